"""The progress watchdog: finds workers that make no steps although their connections work.

A task sees only its own part of each worker's steps. From these it derives the usual interval between two steps of a
worker. A worker whose next step takes much longer is *late*. A late worker is *behind* if other workers make steps or
wait, or if there is no other worker.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

_FACTOR = 10.0
"""A worker is late after this multiple of its usual interval between steps."""
_WEIGHT = 0.2
"""Weight of the newest interval in the moving average."""
MIN_INTERVAL_S = 10.0


class StepInProgress(Protocol):
    """The interface of a running step.

    Attributes:
      waits_for: the reason why the step waits on this task, and the start of the wait; None while it does not wait.
    """

    waits_for: tuple[str, float] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerProgress:
    """Progress of a worker's steps, as one task sees it.

    Attributes:
      worker: the worker's name.
      steps: the number of steps that the worker has completed on the task.
      idle_s: time since the worker completed its last step, or began its first step, in seconds.
      in_step: whether a step of the worker is running on the task now.
      waiting: the reason why that step waits on the task; empty if it does not wait.
      behind: whether the worker is late, and other workers make steps or wait, or there are no other workers.
    """

    worker: str
    steps: int = 0
    idle_s: float = 0.0
    in_step: bool = False
    waiting: str = ""
    behind: bool = False


@dataclass(kw_only=True, slots=True)
class _Worker:
    """State of a worker.

    Runs are counted by (session, plan). A worker counts as training only if a plan has run twice, because a plan that
    initialises variables, for example, runs only once.
    """

    since: float
    channels: dict[str, int] = field(default_factory=dict[str, int])
    runs: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    steps: int = 0
    usual_s: float = 0.0
    repeats: bool = False
    now: dict[StepInProgress, float] = field(default_factory=dict[StepInProgress, float])
    said_at: float | None = None
    said_steps: int = 0

    def last_step_time(self) -> float:
        """Returns the time at which the latest step ended; before that, the time at which the first step began."""
        return self.since if self.steps else min(self.now.values(), default=self.since)

    def trains(self) -> bool:
        return self.repeats or bool(self.now)

    def waits_for(self) -> str:
        waits = [step.waits_for for step in list(self.now)]
        return next((wait[0] for wait in waits if wait is not None), "")


class ProgressWatchdog:
    """Watches the steps of workers at one task. All methods may be called from any thread.

    Args:
      is_open: returns whether a session is still open.
      least_s: minimum number of seconds without a step before a worker is late.
      clock: returns monotonic seconds.
    """

    def __init__(
        self,
        is_open: Callable[[str], bool],
        *,
        least_s: float = MIN_INTERVAL_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._is_open = is_open
        self._least_s = least_s
        self._clock = clock
        self._lock = threading.Lock()
        self._workers: dict[str, _Worker] = {}

    def record_start(self, worker: str, session: str, step: StepInProgress) -> None:
        """Records that a worker begins a step of training.

        Args:
          worker: the worker's name.
          session: the session of the step; ignored unless `record_open` was called for it.
        """
        now = self._clock()
        with self._lock:
            known = self._workers.get(worker)
            if known is not None and session in known.channels:
                known.now[step] = now

    def record_end(self, worker: str, session: str, plan: int, step: StepInProgress, *, done: bool) -> None:
        """Records the end of a step that was passed to `record_start`.

        Args:
          worker, session, step: as passed to `record_start`.
          plan: the number of the plan in the session.
          done: whether the step succeeded.
        """
        now = self._clock()
        with self._lock:
            known = self._workers.get(worker)
            if known is None or known.now.pop(step, None) is None or not done:
                return
            runs = known.runs.get((session, plan), 0) + 1
            known.runs[session, plan] = runs
            known.repeats = known.repeats or runs > 1
            # The first run of a plan may follow a long preparation, so only later runs show the usual interval.
            if runs > 1:
                interval = now - known.since
                known.usual_s += (interval - known.usual_s) * (_WEIGHT if runs > 2 else 1.0)
            known.since = now
            known.steps += 1

    def record_open(self, worker: str, session: str) -> None:
        """Records a new channel for a session of a worker."""
        with self._lock:
            known = self._workers.setdefault(worker, _Worker(since=self._clock()))
            known.channels[session] = known.channels.get(session, 0) + 1

    def record_close(self, worker: str, session: str) -> None:
        """Records the end of a channel. Forgets a session without channels, and a worker without sessions."""
        with self._lock:
            known = self._workers.get(worker)
            if known is None or session not in known.channels:
                return
            known.channels[session] -= 1
            if not known.channels[session]:
                self._forget(worker, session)

    def progress(self) -> tuple[WorkerProgress, ...]:
        """Returns the progress of the workers that train, in the order of names."""
        with self._lock:
            return self._progress(self._clock())

    def sentences(self) -> list[str]:
        """Returns messages about workers that make no steps, or make steps again.

        A message is repeated whenever the duration of the pause has doubled. One thread has to call this method about
        once a second.
        """
        now = self._clock()
        with self._lock:
            progress_of = {one.worker: one for one in self._progress(now)}
            late = {name for name in progress_of if self._late(name, now)}
            messages = [text for name in progress_of if (text := self._resume_message(name))]
            behind = sorted(name for name in late if progress_of[name].behind)
            others = [progress_of[name] for name in progress_of if name not in late]
            messages += [
                f"{name} is behind: {_place(progress_of[name])}{_state_of_others(others)}"
                for name in behind
                if self._should_report(name, now)
            ]
            # A late worker may itself be waiting, on another task, for the worker that is behind. This task cannot
            # distinguish these cases, so report all late workers.
            idle = sorted(late.difference(behind))
            if [name for name in idle if self._should_report(name, now)]:
                messages.append(
                    "no worker makes steps: " + "; ".join(f"{name}: {_place(progress_of[name])}" for name in idle)
                )
            return messages

    def _forget(self, worker: str, session: str) -> None:
        known = self._workers[worker]
        del known.channels[session]
        known.runs = {key: runs for key, runs in known.runs.items() if key[0] != session}
        known.repeats = any(runs > 1 for runs in known.runs.values())
        if not known.channels:
            del self._workers[worker]

    def _progress(self, now: float) -> tuple[WorkerProgress, ...]:
        # A session may end although its channels stay open, so look for ended sessions here.
        over = [
            (name, its) for name, known in self._workers.items() for its in known.channels if not self._is_open(its)
        ]
        for name, session in over:
            self._forget(name, session)
        training = {name: known for name, known in sorted(self._workers.items()) if known.trains()}
        progress: list[WorkerProgress] = []
        for name, known in training.items():
            late = self._late(name, now)
            others = [other for its, other in training.items() if its != name]
            limit = self._limit(known)
            # Count other workers also if their steps wait here: they may be waiting for this worker.
            go_on = any(
                other.last_step_time() - known.last_step_time() >= limit or other.waits_for() for other in others
            )
            progress.append(
                WorkerProgress(
                    worker=name,
                    steps=known.steps,
                    idle_s=round(now - known.last_step_time(), 3),
                    in_step=bool(known.now),
                    waiting=known.waits_for(),
                    behind=late and (go_on or not others),
                )
            )
        return tuple(progress)

    def _limit(self, known: _Worker) -> float:
        return max(self._least_s, _FACTOR * known.usual_s)

    def _late(self, name: str, now: float) -> bool:
        known = self._workers[name]
        return now - known.last_step_time() >= self._limit(known) and not known.waits_for()

    def _should_report(self, name: str, now: float) -> bool:
        known = self._workers[name]
        if known.said_at is not None and now - known.last_step_time() < 2 * (known.said_at - known.last_step_time()):
            return False
        known.said_at, known.said_steps = now, known.steps
        return True

    def _resume_message(self, name: str) -> str:
        known = self._workers[name]
        if known.said_at is None or known.steps == known.said_steps:
            return ""
        known.said_at = None
        return f"{name} makes steps again"


def _place(one: WorkerProgress) -> str:
    where = "in a step" if one.in_step else "between two steps"
    return f"it has been {where} for {one.idle_s:.0f} s, after {one.steps} steps, and connected"


def _state_of_others(others: list[WorkerProgress]) -> str:
    going = [one.worker for one in others if not one.waiting]
    waiting = [one.worker for one in others if one.waiting]
    clauses = [
        f"{', '.join(workers)} {one if len(workers) == 1 else many}"
        for workers, one, many in ((going, "continues", "continue"), (waiting, "waits", "wait"))
        if workers
    ]
    return f"; {' and '.join(clauses)}" if clauses else ""
