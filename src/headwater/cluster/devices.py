"""Names of devices.

A full name is ``/job:ps/replica:0/task:1/device:CPU:0``. A partial name lacks some of the parts, and the older spelling
``/cpu:0`` or ``/gpu:0`` means ``/device:CPU:0`` or ``/device:GPU:0``. Nested device scopes merge their names: parts of
the inner name take precedence, and parts that it lacks are taken from the outer name.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from headwater.cluster.names import TaskName

_SHORT_TYPES = ("CPU", "GPU")


class Device(NamedTuple):
    """The parts of a device's name; None for each missing part.

    Passes and sessions use this immutable value; `DeviceSpec` is its mutable form for programs.
    """

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    device_type: str | None = None
    device_index: int | None = None

    def over(self, outer: Device) -> Device:
        """Returns this device with missing parts taken from ``outer``."""
        return Device(
            self.job if self.job is not None else outer.job,
            self.replica if self.replica is not None else outer.replica,
            self.task if self.task is not None else outer.task,
            self.device_type if self.device_type is not None else outer.device_type,
            self.device_index if self.device_index is not None else outer.device_index,
        )

    def name(self) -> str:
        """Returns the canonical name."""
        text = "" if self.job is None else f"/job:{self.job}"
        if self.replica is not None:
            text += f"/replica:{self.replica}"
        if self.task is not None:
            text += f"/task:{self.task}"
        if self.device_type is not None:
            text += f"/device:{self.device_type}:{'*' if self.device_index is None else self.device_index}"
        return text


@functools.lru_cache(maxsize=4096)
def parse_device(name: str) -> Device:
    """Parses ``name``; raises ValueError if it is not a device name."""
    fields: dict[str, Any] = {}
    for part in name.split("/"):
        key, *values = part.split(":")
        # Only the short spellings, such as ``/GPU:0``, are accepted in any case.
        match key.lower() if key.upper() in _SHORT_TYPES else key, values:
            case "", []:
                continue
            case "job", [job]:
                fields["job"] = job
            case "replica" | "task", [number]:
                fields[key] = _number(number, key, name)
            case "device", [device_type, number]:
                _one_device(fields, device_type, number, name)
            case "cpu" | "gpu", []:
                _one_device(fields, key, "*", name)
            case "cpu" | "gpu", [number]:
                _one_device(fields, key, number, name)
            case _:
                raise ValueError(f"device name {name!r} has an unknown part {part!r}")
    return Device(**fields)


def _one_device(fields: dict[str, object], device_type: str, number: str, name: str) -> None:
    if "device_type" in fields:
        raise ValueError(f"device name {name!r} has more than one device")
    fields["device_type"] = _type(device_type)
    fields["device_index"] = None if number == "*" else _number(number, "device index", name)


def _number(text: str, what: str, name: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"device name {name!r}: the {what} must be a number, not {text!r}") from None


def _type(device_type: str) -> str:
    return device_type.upper() if device_type.upper() in _SHORT_TYPES else device_type


@functools.lru_cache(maxsize=4096)
def canonical_device_name(name: str) -> str:
    """Returns ``name`` in the newer spelling, its parts in order; raises ValueError if it is not a device name."""
    return parse_device(name).name()


@functools.lru_cache(maxsize=4096)
def merge_device_names(outer: str, inner: str) -> str:
    """Returns the canonical name of ``inner`` with missing parts taken from ``outer``.

    Raises ValueError if one of them is not a device name.
    """
    return parse_device(inner).over(parse_device(outer)).name()


@functools.lru_cache(maxsize=4096)
def full_device_name(name: str, task: TaskName) -> str:
    """Returns the full name of a device: missing parts are taken from ``task``, and a missing device is the first
    CPU."""
    open_parts = Device(task.job, 0, task.index, "CPU", 0)
    return parse_device(name).over(open_parts).name()


class DeviceSpec:
    """The parts of a device's name; each may be None, for a missing part.

    Args:
      job: the job's name.
      replica: the replica's index.
      task: the task's index.
      device_type: the type, such as ``"CPU"`` or ``"GPU"``; these two in any case.
      device_index: the device's index among those of its type.

    Raises:
      ValueError: an index is not a number.
    """

    def __init__(
        self,
        job: str | None = None,
        replica: int | None = None,
        task: int | None = None,
        device_type: str | None = None,
        device_index: int | None = None,
    ) -> None:
        self.job = job
        self.replica = replica
        self.task = task
        self.device_type = device_type
        self.device_index = device_index

    @classmethod
    def from_string(cls, spec: str) -> DeviceSpec:
        """Parses a full or partial name; raises ValueError if it is not a device name."""
        return cls(*parse_device(spec))

    def parse_from_string(self, spec: str) -> DeviceSpec:
        """Sets this object to the device ``spec``, and returns it; raises ValueError if ``spec`` is not a device
        name."""
        self._parts = parse_device(spec)
        return self

    def merge_from(self, dev: DeviceSpec) -> None:
        """Replaces the parts that ``dev`` has by its parts."""
        self._parts = dev._parts.over(self._parts)

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """Returns a new spec: a copy of this spec after `merge_from`."""
        return DeviceSpec(*dev._parts.over(self._parts))

    def replace(self, **parts: Any) -> DeviceSpec:
        """Returns a new spec with some parts replaced; raises TypeError for an unknown part."""
        return DeviceSpec(**(self._parts._asdict() | parts))

    def to_string(self) -> str:
        """Returns the canonical name."""
        return self._parts.name()

    _parts = Device()

    @property
    def job(self) -> str | None:
        return self._parts.job

    @job.setter
    def job(self, job: str | None) -> None:
        self._parts = self._parts._replace(job=None if job is None else str(job))

    @property
    def replica(self) -> int | None:
        return self._parts.replica

    @replica.setter
    def replica(self, replica: int | None) -> None:
        self._parts = self._parts._replace(replica=None if replica is None else int(replica))

    @property
    def task(self) -> int | None:
        return self._parts.task

    @task.setter
    def task(self, task: int | None) -> None:
        self._parts = self._parts._replace(task=None if task is None else int(task))

    @property
    def device_type(self) -> str | None:
        return self._parts.device_type

    @device_type.setter
    def device_type(self, device_type: str | None) -> None:
        self._parts = self._parts._replace(device_type=None if device_type is None else _type(device_type))

    @property
    def device_index(self) -> int | None:
        return self._parts.device_index

    @device_index.setter
    def device_index(self, device_index: int | None) -> None:
        self._parts = self._parts._replace(device_index=None if device_index is None else int(device_index))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    def __repr__(self) -> str:
        return f"DeviceSpec.from_string({self.to_string()!r})"
