"""The devices of this process, in the form of ``tensorflow.python.client.device_lib``."""

from __future__ import annotations

import secrets
from functools import cache

from headwater.data.io.protos.device_attributes_pb2 import DeviceAttributes
from headwater.graph.runtime.devices import describe, device_names, memory_bytes


@cache
def _incarnation(name: str) -> int:
    del name  # used as the key of the cache: each device keeps its number until the process ends
    return secrets.randbits(63)


def list_local_devices(session_config: object = None) -> list[DeviceAttributes]:
    """Returns a ``DeviceAttributes`` message for each device, the CPU first.

    Args:
      session_config: accepted for compatibility.
    """
    del session_config
    return [
        DeviceAttributes(
            name=f"/device:{name}",
            device_type=name.partition(":")[0],
            memory_limit=memory_bytes(name),
            incarnation=_incarnation(name),
            physical_device_desc=describe(name),
        )
        for name in device_names()
    ]
