"""The masters of this process, by target; other targets name masters of other processes."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Protocol

from headwater.cluster.devices import Device
from headwater.cluster.telemetry.step_stats import StepTrace
from headwater.graph.graph import Graph
from headwater.graph.master.master import MasterSession, PreparedStep, SessionOptions
from headwater.graph.passes.prune import RunRequest
from headwater.graph.runtime.task import TaskRuntime


class OpenSession(Protocol):
    """A session as its client sees it, whether the master is in this process or in another."""

    def prepare(self, request: RunRequest) -> Runnable: ...

    def devices(self) -> list[Device]: ...

    def close(self) -> None: ...


class Runnable(Protocol):
    """A request that a master has planned."""

    def run(
        self, feeds: Sequence[object], timeout_s: float | None = None, trace: StepTrace | None = None
    ) -> list[object]: ...


class Master(Protocol):
    """The master that a session's target names.

    Attributes:
      over: why the job of this process is over; empty while it is running, as far as is known.
    """

    over: str

    def open(self, graph: Graph, options: SessionOptions) -> OpenSession:
        """Starts a session that runs operations of ``graph``."""
        ...

    def reset(self, containers: Sequence[str]) -> None:
        """Discards the state of all tasks."""
        ...


class LocalMaster:
    """The master of sessions without a target: runs in this process, with separate state for each session.

    Args:
      device_counts: number of devices of each type that the master offers.
    """

    def __init__(self, device_counts: Mapping[str, int] | None = None) -> None:
        self.over: str = ""
        self._device_counts = device_counts

    def open(self, graph: Graph, options: SessionOptions) -> OpenSession:
        return MasterSession(TaskRuntime(device_counts=self._device_counts), graph, options)

    def reset(self, containers: Sequence[str]) -> None:
        del containers


_masters: dict[str, Master] = {}
_lock = threading.Lock()


def register_master(target: str, master: Master) -> None:
    """Registers the master of a server of this process under ``target``."""
    with _lock:
        _masters[target] = master


def forget_master(target: str) -> None:
    """Removes the master registered under ``target``."""
    with _lock:
        _masters.pop(target, None)


def local_master(target: str, device_counts: Mapping[str, int] | None = None) -> Master | None:
    """Returns the master of this process that ``target`` names, or None; see `LocalMaster` for ``device_counts``."""
    return LocalMaster(device_counts) if target in ("", "local") else _masters.get(target)


__all__ = [
    "LocalMaster",
    "Master",
    "OpenSession",
    "PreparedStep",
    "Runnable",
    "forget_master",
    "local_master",
    "register_master",
]
