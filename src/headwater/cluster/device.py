"""Device names: ``/job:worker/replica:0/task:1/device:GPU:0``, in full or in part, in old and new spelling."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any


@dataclass(frozen=True, slots=True, init=False)
class DeviceSpec:
    """What a device name says; None for what it leaves open.

    Args:
      job: e.g. ``worker``.
      replica: almost always 0.
      task: index within the job.
      device_type: ``CPU`` or ``GPU``.
      device_index: number of the device within its task.
    """

    job: str | None
    replica: int | None
    task: int | None
    device_type: str | None
    device_index: int | None

    def __init__(
        self,
        job: str | None = None,
        replica: int | None = None,
        task: int | None = None,
        device_type: str | None = None,
        device_index: int | None = None,
    ) -> None:
        values = {
            "job": None if job is None else str(job),
            "replica": None if replica is None else int(replica),
            "task": None if task is None else int(task),
            "device_type": None if device_type is None else str(device_type).upper(),
            "device_index": None if device_index is None else int(device_index),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    @staticmethod
    def from_string(spec: str) -> DeviceSpec:
        """Reads a name such as ``/job:ps/task:0``, ``/gpu:1`` or ``/device:GPU:1``; ``*`` leaves a part open.

        Raises:
          ValueError: not well-formed; the message names the part.
        """
        return _parse(spec)

    def parse_from_string(self, spec: str) -> DeviceSpec:
        return _parse(spec)

    def to_string(self) -> str:
        """The name in full spelling; parts that are open are left out."""
        parts: list[str] = []
        for key in ("job", "replica", "task"):
            value = getattr(self, key)
            if value is not None:
                parts.append(f"/{key}:{value}")
        if self.device_type is not None:
            parts.append(f"/device:{self.device_type}:{'*' if self.device_index is None else self.device_index}")
        return "".join(parts)

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """This, with everything that ``dev`` says put in its place."""
        said = {key: getattr(dev, key) for key in self.__slots__ if getattr(dev, key) is not None}
        return self.replace(**said)

    merge_from = make_merged_spec

    def replace(self, **changes: Any) -> DeviceSpec:
        """A copy with other values."""
        return DeviceSpec(**({key: getattr(self, key) for key in self.__slots__} | changes))

    def __str__(self) -> str:
        return self.to_string()


@lru_cache(maxsize=4096)
def _parse(spec: str) -> DeviceSpec:
    found: dict[str, Any] = {}

    def put(key: str, value: Any) -> None:
        if key in found:
            raise ValueError(f"Device name {spec!r} says its {key} twice")
        found[key] = value

    for part in spec.strip().split("/"):
        if not part:
            continue
        key, *values = part.split(":")
        try:
            if key == "job" and len(values) == 1:
                put("job", values[0])
            elif key in ("replica", "task") and len(values) == 1:
                if values[0] != "*":
                    put(key, int(values[0]))
            elif key.upper() in ("CPU", "GPU", "TPU") and len(values) == 1:
                put("device_type", key.upper())
                if values[0] != "*":
                    put("device_index", int(values[0]))
            elif key == "device" and len(values) in (1, 2):
                if values[0] != "*":
                    put("device_type", values[0].upper())
                if len(values) == 2 and values[1] != "*":
                    put("device_index", int(values[1]))
            else:
                raise ValueError(f"Unknown attribute: '{key}' in device name {spec!r}")
        except ValueError as error:
            if "device name" in str(error).lower():
                raise
            raise ValueError(f"Device name {spec!r}: {part!r} needs a number") from None
    return DeviceSpec(**found)


@lru_cache(maxsize=4096)
def canonical_device(name: str) -> str:
    """``name`` in full spelling (``/gpu:1`` becomes ``/device:GPU:1``); ValueError when it is not well-formed."""
    return _parse(name).to_string()


@lru_cache(maxsize=4096)
def merge_devices(outer: str, inner: str) -> str:
    """``outer`` with everything that ``inner`` says put in its place."""
    return _parse(outer).make_merged_spec(_parse(inner)).to_string()
