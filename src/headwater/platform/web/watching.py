"""Asks tasks how they fare, for as long as somebody looks at their job: who they talk to, how stale gradients are."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from headwater.cluster.addresses import parse_address
from headwater.errors import OpError
from headwater.platform.states import TaskPhase
from headwater.platform.views import JobView
from headwater.platform.web.picture import Talk
from headwater.telemetry.snapshot import SNAPSHOT_DETAIL, Snapshot, rates
from headwater.transport.control_client import ControlClient
from headwater.transport.security import Security

_log = logging.getLogger(__name__)

_TIMEOUT_S = 2.0
_AT_ONCE = 16
# A task that does not answer is no Headwater program, or busy: it is left alone for a while.
_AGAIN_S = 15.0
_TASK = re.compile(r"/job:(\w+)(?:/replica:\d+)?/task:(\d+)")


@dataclass(slots=True)
class _Watched:
    """One address that is asked."""

    task: str
    asked_until: float
    client: ControlClient | None = None
    generation: int = 0
    snapshot: Snapshot | None = None
    not_before: float = 0.0
    talk: Talk | None = None


class Watcher:
    """Keeps what the tasks of jobs say of themselves.

    Nothing runs before `talks` is asked for, and what nobody has asked for in ``idle_s`` is forgotten.

    Args:
      interval_s: between two questions to a task; rates are over this time.
      idle_s: for so long after the last look at a job its tasks are asked.
      clock: gives seconds that only grow.
    """

    def __init__(
        self, interval_s: float = 2.0, idle_s: float = 45.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval_s = interval_s
        self._idle_s = idle_s
        self._clock = clock
        self._lock = threading.Lock()
        self._watched: dict[str, _Watched] = {}
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def talks(self, job: JobView) -> dict[str, Talk]:
        """What a job's running tasks said last, by their labels; those that have said nothing are left out.

        The first call for a job finds nothing, but has its tasks asked from now on.
        """
        until = self._clock() + self._idle_s
        found: dict[str, Talk] = {}
        with self._lock:
            for task in job.tasks:
                if task.address is None or task.phase is not TaskPhase.RUNNING:
                    continue
                watched = self._watched.setdefault(task.address, _Watched(task.name, until))
                watched.task, watched.asked_until = task.name, until
                if watched.talk is not None:
                    found[task.name] = watched.talk
            if self._watched and self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._run, name="headwater-watcher", daemon=True)
                self._thread.start()
        return found

    def close(self) -> None:
        """Ends all connections."""
        self._closing.set()
        thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        security = Security.from_environment()
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="headwater-asking") as pool:
            while self._drop_unwatched():
                with self._lock:
                    now = self._clock()
                    due = [entry for entry in self._watched.items() if entry[1].not_before <= now]
                for asking in [pool.submit(self._ask, address, watched, security) for address, watched in due]:
                    asking.result()
                self._closing.wait(self._interval_s)

    def _drop_unwatched(self) -> bool:
        """Forgets what nobody looks at; whether anything is left. The thread ends where nothing is."""
        with self._lock:
            now = self._clock()
            over = [
                address
                for address, watched in self._watched.items()
                if self._closing.is_set() or watched.asked_until < now
            ]
            clients = [self._watched.pop(address).client for address in over]
            left = bool(self._watched)
            if not left:
                self._thread = None
        for client in clients:
            if client is not None:
                client.close()
        return left

    def _ask(self, address: str, watched: _Watched, security: Security) -> None:
        try:
            if watched.client is None:
                watched.client = ControlClient(parse_address(address), peer=watched.task, security=security)
            status = watched.client.status(timeout_s=_TIMEOUT_S)
            snapshot = Snapshot.decode(status.details[SNAPSHOT_DETAIL])
        except (OpError, ValueError, KeyError) as error:
            _log.debug("%s at %s says nothing of itself: %s", watched.task, address, error)
            watched.talk, watched.snapshot = None, None
            watched.not_before = self._clock() + _AGAIN_S
            return
        before = watched.snapshot if watched.generation == status.generation else None
        watched.generation, watched.snapshot = status.generation, snapshot
        watched.talk = talk_of(before, snapshot)


def talk_of(before: Snapshot | None, now: Snapshot) -> Talk:
    """What two snapshots of a task say, the first of which may be missing: then there are no rates yet."""
    traffic = rates(before, now).bytes if before is not None else {}
    waits = [wait.what for wait in now.waits if wait.seconds >= 1]
    updates = sum(group.updates for group in now.groups)
    stale = sum(group.staleness * group.updates for group in now.groups)
    return Talk(
        bytes_per_s=_by_label(traffic),
        staleness=stale / updates if updates else None,
        staleness_max=max((group.staleness_max for group in now.groups), default=0),
        waiting="; ".join([*(group.waiting for group in now.groups if group.waiting), *waits]),
    )


def _by_label(traffic: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    found: dict[str, tuple[float, float]] = {}
    for peer, (sent, received) in traffic.items():
        match = _TASK.search(peer)
        if match is not None:
            label = f"{match[1]}-{match[2]}"
            known = found.get(label, (0.0, 0.0))
            found[label] = known[0] + sent, known[1] + received
    return found
