"""Place: chooses a device for every operation.

Operations that share variables, or that the program has colocated, form groups; a group is placed on one device. The
requested device may leave parts open, such as the task. Of the devices that match, a GPU is preferred to a CPU if the
whole group can run there; then the first job by name, the lowest task and the lowest device are chosen, as in
TensorFlow.

Groups are formed over the whole graph rather than over one request, so that a variable has the same device in all
plans.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from headwater.cluster.devices import Device, parse_device
from headwater.dtypes import resource, string, variant
from headwater.errors import InvalidArgumentError
from headwater.graph.operation import Operation, Tensor
from headwater.graph.passes.groups import Groups
from headwater.graph.passes.prune import Pruned
from headwater.graph.registry import Kind


@dataclass(frozen=True, slots=True)
class Placement:
    """Operations with their devices.

    Attributes:
      pruned: the operations.
      devices: full device of each operation.
    """

    pruned: Pruned
    devices: Mapping[Operation, Device]


def runs_on_host(op: Operation) -> bool:
    """Returns whether ``op`` runs in Python on its task's CPU, as host operations and operations on strings do."""
    return op.definition.kind is Kind.HOST or _handles_text(op)


def _handles_text(op: Operation) -> bool:
    return any(t.dtype.base_dtype in (string, resource, variant) for t in (*op.inputs, *op.outputs))


def reads_variable(op: Operation, fed: Collection[Tensor]) -> bool:
    """Returns whether ``op`` does nothing but read a variable."""
    return op.read_reference is not None and op.read_reference not in fed


def _needs_cpu(op: Operation) -> bool:
    """Returns whether ``op`` must be on a CPU. A host operation that only reads a variable may be on any device."""
    if op.definition.kind is Kind.HOST and op.definition.refs:
        return _handles_text(op)
    return runs_on_host(op)


def place(pruned: Pruned, devices: Sequence[Device], *, soft_placement: bool = False) -> Placement:
    """Chooses a device for every operation; raises as `Placer.place`."""
    return Placer(devices, soft_placement=soft_placement).place(pruned)


class Placer:
    """Places the operations of one graph, which may grow. Each operation is placed once, for all requests.

    Args:
      soft_placement: whether to use another device if the requested one does not exist.
    """

    def __init__(self, devices: Sequence[Device], *, soft_placement: bool = False) -> None:
        self._devices = sorted(devices, key=_preference)
        self._soft = soft_placement
        self._groups = Groups()
        self._chosen: dict[Operation, Device] = {}

    def place(self, pruned: Pruned) -> Placement:
        """Returns the devices of the operations that a request needs.

        Raises:
          InvalidArgumentError: no device matches, or a group has conflicting requests; the message names the operation
            and lists the devices.
        """
        if not pruned.ops:
            return Placement(pruned, {})
        self._groups.extend(pruned.ops[0].graph.get_operations())
        needed = set(pruned.ops)
        for op in pruned.ops:
            if op not in self._chosen:
                self._place_group(op, needed)
        devices = {op: self._chosen[op] for op in pruned.ops}
        # Another device would get the value before the operations after which the program has placed the read.
        variables = {op: op.read_reference for op in pruned.ops if op.control_inputs}
        devices |= {op: devices[ref.op] for op, ref in variables.items() if ref is not None and ref.op in devices}
        return Placement(pruned, devices)

    def _place_group(self, op: Operation, needed: set[Operation]) -> None:
        members = self._groups.members(op)
        settled = next((each for each in _anchors_first(members) if each in self._chosen), None)
        wanted = _merge_devices(members, needed, self._soft)
        if settled is None:
            device = _choose(members, wanted, self._devices, self._soft)
        else:
            device = self._chosen[settled]  # an operation that was added later gets the device of its group
        for each in members:
            self._chosen.setdefault(each, device)


def _preference(device: Device) -> tuple[bool, str, int, int, int]:
    return (
        device.device_type != "GPU",
        device.job or "",
        device.replica or 0,
        device.task or 0,
        device.device_index or 0,
    )


def _anchors_first(members: Sequence[Operation]) -> list[Operation]:
    return sorted(members, key=lambda op: op.type != "VariableV2")


def _merge_devices(members: Sequence[Operation], needed: set[Operation], soft_placement: bool) -> Device:
    """Merges the devices that a group's operations request. The devices of variables take precedence, and conflicts
    with operations that the request does not need are ignored."""
    merged = Device()
    for op in _anchors_first(members):
        asked = parse_device(op.device)
        for key in ("job", "replica", "task", "device_type", "device_index"):
            have, want = getattr(merged, key), getattr(asked, key)
            if have is None and want is not None:
                if key == "device_index" and asked.device_type != merged.device_type:
                    continue
                merged = merged._replace(**{key: want})
            elif (
                want is not None and have != want and not soft_placement and op in needed and not op.attrs.get("_class")
            ):
                first = members[0]
                raise InvalidArgumentError(
                    None,
                    op,
                    f"Cannot colocate nodes '{op.name}' and '{first.name}': '{op.name}' asks for {op.device}, "
                    f"and an operation that shares a variable with it is on {merged.name()}",
                )
    return merged


def _choose(members: Sequence[Operation], wanted: Device, devices: Sequence[Device], soft_placement: bool) -> Device:
    host = next((op for op in members if _needs_cpu(op)), None)
    fitting = [device for device in devices if _fits(device, wanted)]
    able = [device for device in fitting if host is None or device.device_type == "CPU"]
    if able:
        return able[0]
    if soft_placement:
        anywhere = Device(job=wanted.job, replica=wanted.replica, task=wanted.task)
        for device in devices:
            if _fits(device, anywhere) and (host is None or device.device_type == "CPU"):
                return device
    op = next((op for op in members if op.device), members[0])
    listed = ", ".join(device.name() for device in devices) or "none"
    if fitting and host is not None:
        raise InvalidArgumentError(
            None,
            host,
            f"Cannot assign a device for operation {host.name}: {host.type} runs on a CPU only, and '{wanted.name()}' "
            f"was requested. Devices: [ {listed} ]. allow_soft_placement=True would use a CPU.",
        )
    raise InvalidArgumentError(
        None,
        op,
        f"Cannot assign a device for operation {op.name}: Operation was explicitly assigned to '{wanted.name()}' but "
        f"available devices are [ {listed} ]. Make sure the device specification refers to a valid device.",
    )


def _fits(device: Device, wanted: Device) -> bool:
    for key in ("job", "replica", "task", "device_type", "device_index"):
        want = getattr(wanted, key)
        if want is not None and getattr(device, key) != want:
            return False
    return True


def verify_placement(placement: Placement) -> None:
    """Checks that every operation has a full device, and that operations on a variable are on the variable's device."""
    for op in placement.pruned.ops:
        device = placement.devices[op]
        assert None not in (device.job, device.task, device.device_type, device.device_index), op.name
        for index in op.definition.ref_positions(op.attrs):
            source = op.inputs[index].op
            assert placement.devices.get(source, device) == device, f"{op.name} is not where {source.name} is"
