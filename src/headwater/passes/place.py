"""Place: which device every operation runs on.

Operations that share variables, or that were colocated by the program, form groups; a group goes to one device. The
device asked for may be given in part. Of the devices that fit, a GPU comes before a CPU if everything in the group can
run there, then the first job by name, the lowest task and the lowest device, as TensorFlow places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headwater.cluster.devices import Device, parse_device
from headwater.dtypes import resource, string
from headwater.errors import InvalidArgumentError
from headwater.graph.operation import Operation
from headwater.passes.prune import Pruned
from headwater.registry import Kind


@dataclass(frozen=True, slots=True)
class Placement:
    """Operations with their devices.

    Attributes:
      pruned: the operations.
      devices: for each, the device in full.
    """

    pruned: Pruned
    devices: Mapping[Operation, Device]


def runs_on_host(op: Operation) -> bool:
    """Whether ``op`` runs in Python on its task's CPU: host operations, and whatever handles strings."""
    if op.definition.kind is Kind.HOST:
        return True
    return any(t.dtype.base_dtype in (string, resource) for t in (*op.inputs, *op.outputs))


def place(pruned: Pruned, devices: Sequence[Device], *, soft_placement: bool = False) -> Placement:
    """Chooses a device for every operation.

    Raises:
      InvalidArgumentError: no device is as asked for, or a group is asked to be in two places; the message names the
        operation and lists the devices there are.
    """
    groups = _Groups(pruned.ops)
    order = sorted(devices, key=_preference)
    chosen: dict[Operation, Device] = {}
    for members in groups.members():
        wanted = _wanted(members, soft_placement)
        device = _choose(members, wanted, order, soft_placement)
        chosen.update(dict.fromkeys(members, device))
    return Placement(pruned, chosen)


def _preference(device: Device) -> tuple[bool, str, int, int, int]:
    return (
        device.device_type != "GPU", device.job or "", device.replica or 0, device.task or 0, device.device_index or 0,
    )  # fmt: skip


class _Groups:
    """Operations joined by what must be on one device (a disjoint-set forest)."""

    def __init__(self, ops: Sequence[Operation]) -> None:
        self._parent: dict[Operation, Operation] = {op: op for op in ops}
        by_name = {op.name: op for op in ops}
        for op in ops:
            for index in op.definition.ref_positions(op.attrs):
                self._join(op, op.inputs[index].op)
            for group in op.attrs.get("_class", ()):
                name = (group.decode() if isinstance(group, bytes) else str(group)).removeprefix("loc:@")
                if name in by_name:
                    self._join(op, by_name[name])

    def _find(self, op: Operation) -> Operation:
        while self._parent[op] is not op:
            self._parent[op] = self._parent[self._parent[op]]
            op = self._parent[op]
        return op

    def _join(self, a: Operation, b: Operation) -> None:
        if b in self._parent:
            self._parent[self._find(a)] = self._find(b)

    def members(self) -> list[list[Operation]]:
        found: dict[Operation, list[Operation]] = {}
        for op in self._parent:
            found.setdefault(self._find(op), []).append(op)
        return list(found.values())


def _wanted(members: list[Operation], soft_placement: bool) -> Device:
    """What the group's operations ask for together. Variables decide where the others disagree with them."""
    merged = Device()
    for op in sorted(members, key=lambda op: op.type != "VariableV2"):
        asked = parse_device(op.device)
        for key in ("job", "replica", "task", "device_type", "device_index"):
            have, want = getattr(merged, key), getattr(asked, key)
            if have is None and want is not None:
                if key == "device_index" and asked.device_type != merged.device_type:
                    continue
                merged = merged._replace(**{key: want})
            elif want is not None and have != want and not soft_placement and not op.attrs.get("_class"):
                first = members[0]
                raise InvalidArgumentError(
                    None,
                    op,
                    f"Cannot colocate nodes '{op.name}' and '{first.name}': '{op.name}' asks for {op.device}, "
                    f"and what it shares a variable with is on {merged.name()}",
                )
    return merged


def _choose(members: list[Operation], wanted: Device, devices: Sequence[Device], soft_placement: bool) -> Device:
    host = next((op for op in members if runs_on_host(op)), None)
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
            f"was asked for. Devices there are: [ {listed} ]. allow_soft_placement=True would use a CPU.",
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
    """Every operation has a full device, and what touches a variable is where the variable is."""
    for op in placement.pruned.ops:
        device = placement.devices[op]
        assert None not in (device.job, device.task, device.device_type, device.device_index), op.name
        for index in op.definition.ref_positions(op.attrs):
            source = op.inputs[index].op
            assert placement.devices.get(source, device) == device, f"{op.name} is not where {source.name} is"
