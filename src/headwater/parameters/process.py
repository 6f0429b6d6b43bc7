"""This process as a task that serves or uses parameters."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence
from typing import Any

import jax

from headwater.cluster.names import TaskName
from headwater.task.endpoint import Endpoint, Members

_jax: Any = jax

_endpoints: dict[TaskName, Endpoint] = {}
_lock = threading.Lock()


def process_endpoint(members: Members) -> Endpoint:
    """The endpoint of this process, made at the first call. A ``ps`` stays off GPUs; a worker says when it is done."""
    with _lock:
        if members.me not in _endpoints:
            if members.is_server:
                _jax.config.update("jax_platforms", "cpu")
            endpoint = _endpoints[members.me] = Endpoint(members, _devices)
            if not members.is_server:
                atexit.register(endpoint.leave)
        return _endpoints[members.me]


def _devices() -> Sequence[tuple[str, int]]:
    local: list[Any] = _jax.local_devices()
    return [(str(device.platform).upper(), index) for index, device in enumerate(local)]
