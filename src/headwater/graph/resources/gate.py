"""The barrier of the workers that train a group of variables. `headwater.ps.consistency` decides which workers may
continue; this module makes them wait."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from headwater.errors import AbortedError
from headwater.graph.resources import replicable
from headwater.graph.resources.containers import Resources
from headwater.graph.resources.queues import Waiting
from headwater.graph.resources.training_runs import Start
from headwater.ps.consistency import (
    Announced,
    Apply,
    Consistency,
    ConsistencyDecision,
    Contributed,
    DataEnd,
    Event,
    Go,
    Left,
    Restarted,
    Tick,
    TrainingMember,
    TrainingState,
    Updated,
    decide,
    from_text,
    to_text,
    waiting_text,
)

_log = logging.getLogger("headwater")

#: Interval between log messages about a wait, in seconds.
_LOG_INTERVAL_S = 5.0


class Data(Protocol):
    """The source of the examples from which gradients are computed; it knows when the data ends."""

    @property
    def name(self) -> str: ...

    def mark_step_given(self, step: Any, /) -> None:
        """Notes that a step has given its gradient."""
        ...

    def is_starved(self) -> bool:
        """Returns whether gradients are gathered and no further gradient can arrive before the next update."""
        ...


class Gate(replicable.ReplicableResource):
    """The barrier of one group of variables.

    A worker is a member through the session of its latest gradient, and is removed when that session ends.

    Args:
      name: name of the group, for messages.
      choice: the consistency of its training.
      clock: returns monotonic time in seconds.
      lock: guards the state; by default a new lock. If examples are accounted for, it must be the lock of the task's
        resources. Two different locks could lead to a deadlock: `end_step` would hold the gate's lock and call the
        ledger, which needs the lock of the resources; at the same time, an update would hold the lock of the resources
        and call the gate.
    """

    def __init__(
        self,
        name: str,
        choice: Consistency,
        clock: Callable[[], float] = time.monotonic,
        lock: threading.RLock | None = None,
    ) -> None:
        self._name = name
        self._clock = clock
        self._condition = threading.Condition(lock)
        # Workers are held until `restart`, because the variables have no values before the chief has initialised or
        # restored them.
        self._state = TrainingState(choice=choice, held=True)
        self._go: dict[str, int] = {}
        self._due: int | None = None
        self._start = Start()
        self._sessions: dict[str, str] = {}
        self._updater: str | None = None
        self._abandoned = False
        self._given: dict[str, tuple[str, int]] = {}
        self._data = ""
        self._said = clock()

    @property
    def current_state(self) -> TrainingState:
        """The present state."""
        with self._condition:
            return self._state

    def choose(self, choice: Consistency) -> None:
        """Changes the consistency; called when a restarted program has chosen another one."""
        with self._condition:
            if choice != self._state.choice:
                _log.warning("%s: the consistency is %s from now on, not %s", self._name, choice, self._state.choice)
                self._state = TrainingState(choice=choice, held=True, version=self._state.version)
                self.changes += 1

    def announce_worker(self, session: str, worker: str) -> None:
        """Registers a worker that is about to start its first step in ``session``."""
        with self._condition:
            self._sessions[worker] = session
            self.changes += 1
            self._apply_event(Announced(worker))

    @property
    def start(self) -> int:
        """Name of the latest start of the training; 0 before the first."""
        with self._condition:
            return self._start.name

    def data_end(self, data: Data) -> None:
        """Handles the end of the data: if by ``data`` no worker can contribute another gradient before the next
        update, that update is made from the gathered gradients."""
        with self._condition:
            if data.name == self._data and data.is_starved():
                self._apply_event(DataEnd())

    def end_step(
        self,
        waiting: Waiting,
        session: str,
        worker: str,
        version: int,
        start: int,
        number: int | None = None,
        data: Data | None = None,
    ) -> tuple[int, int]:
        """Ends a worker's step; waits until the worker may start the next one.

        Args:
          waiting: the worker's step.
          session: handle of the worker's session.
          worker: the worker's name.
          version: version of the variables that the worker read.
          start: name of the start of the training to which the worker's gradient belongs.
          number: number of the step, which makes the call idempotent: a repeated call for the same step only waits, and
            its gradient is not counted again.
          data: the source of the worker's examples, if the source knows when the data ends.

        Returns:
          The version of the variables for the next step, and the name of the start to which this version belongs.
        """
        with self._condition:
            step = None if number is None else (session, number)
            if step is None or self._given.get(worker) != step:
                if step is not None:
                    self._given[worker] = step
                # A worker whose session was lost continues in a new session. Remember the newest one: the worker stays
                # a member as long as that session exists.
                self._sessions[worker] = session
                # Discard an unused permission for an earlier step; the worker did not receive it because its connection
                # was lost.
                self._go.pop(worker, None)
                self.changes += 1
                self._apply_event(Contributed(worker, version, void=not self._start.counts(start)))
            if data is not None:
                self._data = data.name
                data.mark_step_given(waiting)
                if data.is_starved():
                    self._apply_event(DataEnd())
            waiting.wait_until(
                self._condition,
                # A worker that was removed while its connection was lost must not wait, because no decision would ever
                # release it.
                lambda: self._may_continue(worker) or worker not in self._sessions,
                f"the other workers ({self._name})",
            )
            self.changes += 1
            return self._go.pop(worker, self._state.version), self._start.name

    def wait_for_update(self, waiting: Waiting, session: str) -> tuple[int, int]:
        """Waits until an update is due. After the update, the caller has to call `complete_update`.

        Returns:
          The number of gradients for the update, and the name of the start of the training to which they belong.

        Raises:
          AbortedError: the session that was to complete an update has ended. The variables may be partly updated, so
            the training has to be set up again with `restart`.
        """
        with self._condition:
            waiting.wait_until(
                self._condition, lambda: self._due is not None or self._abandoned, f"gradients ({self._name})"
            )
            self.changes += 1
            if self._abandoned:
                # This session has to call `restart`. If it is lost before that, too, the next caller of
                # `wait_for_update` gets the error.
                self._updater, self._abandoned = session, False
                raise AbortedError(f"{self._name}: an update was not completed: its worker is lost")
            assert self._due is not None
            due, self._due, self._updater = self._due, None, session
            return due, self._start.name

    def complete_update(self, session: str) -> None:
        """Completes the update that `wait_for_update` started in ``session``, unless the training was restarted."""
        with self._condition:
            if self._updater != session:
                return
            # `_abandoned` may be True because the session was assumed lost meanwhile. It has reconnected and completed
            # the update, so reset it.
            self._updater, self._abandoned = None, False
            self.changes += 1
            self._apply_event(Updated())

    def restart(self, version: int, *, again: bool = False, name: int = 0) -> None:
        """Starts the training, perhaps again: discards a due or incomplete update, and lets the workers continue.

        Args:
          version: version of the variables.
          again: whether the training was started before, perhaps in an earlier incarnation of this task.
          name: a random number for this start.
        """
        with self._condition:
            self._start = Start(name, first=not (again or self._state.started))
            self._due, self._updater, self._abandoned = None, None, False
            self.changes += 1
            self._apply_event(Restarted(version, again))

    def session_ended(self, session: str, reason: str) -> None:
        """Removes the workers of a session that has ended or is lost."""
        with self._condition:
            for worker in [worker for worker, its in self._sessions.items() if its == session]:
                del self._sessions[worker]
                self.changes += 1
                self._apply_event(Left(worker, reason))
            if self._updater == session:
                self._abandoned = True
                self.changes += 1
                self._condition.notify_all()

    def waiting_text(self) -> str:
        """Returns a text with the waiting workers and the workers that they wait for; empty if no worker waits."""
        with self._condition:
            return waiting_text(self._state, self._clock())

    def _may_continue(self, worker: str) -> bool:
        # The decision may change with time alone: for example, a worker that is slow for too long is no longer waited
        # for. So ask for a decision each time that the wait checks its condition.
        if worker not in self._go:
            self._apply_event(Tick())
        if worker in self._go:
            return True
        now = self._clock()
        if now - self._said >= _LOG_INTERVAL_S:
            self._said = now
            text = waiting_text(self._state, now)
            if text:
                _log.warning("%s: waiting: %s", self._name, text)
        return False

    def _apply_event(self, event: Event) -> None:
        """Applies an event. The caller holds the condition."""
        decision: ConsistencyDecision = decide(self._state, event, self._clock())
        # Count only real changes, because each counted change sends the state to the backup.
        if decision.actions or decision.state is not self._state:
            self.changes += 1
        self._state = decision.state
        if decision.reason:
            _log.warning("%s: %s", self._name, decision.reason)
        for action in decision.actions:
            match action:
                case Go(worker, version):
                    self._go[worker] = version
                    self._said = self._clock()
                case Apply(gradients) if self._state.gathers:
                    self._due = gradients
                case _:
                    pass  # the gradient's step has applied it, or the accumulators have dropped it
        if decision.actions:
            self._condition.notify_all()

    # Replication ------------------------------------------------------------------------------------------------------

    def share(self, lock: threading.RLock) -> None:
        self._condition = threading.Condition(lock)

    def state(self) -> replicable.ResourceState:
        # Times are sent as durations: the clocks of two processes have different origins.
        known, now = self._state, self._clock()
        members = {
            name: (one.clock, one.gave, _seconds_since(one.waits_since, now), now - one.busy_since)
            for name, one in known.members.items()
        }
        return replicable.ResourceState(
            (
                self._name,
                to_text(known.choice),
                (known.version, known.gathered, known.formed, known.updating, known.dropped, known.started),
                members,
                sorted(known.arriving),
                sorted(known.void),
                self._go,
                self._due,
                (self._start.name, self._start.first),
                self._sessions,
                (self._updater, self._abandoned),
                self._given,
                self._data,
            )
        )

    def install_state(self, state: replicable.ResourceState) -> None:
        _, choice, numbers, members, arriving, void, go, self._due, start, sessions, update, given, self._data = (
            state.words
        )
        version, gathered, formed, updating, dropped, started = numbers
        now = self._clock()
        self._state = TrainingState(
            choice=from_text(choice),
            version=version,
            members={
                name: TrainingMember(
                    clock=clock, gave=gave, waits_since=None if waits is None else now - waits, busy_since=now - busy
                )
                for name, (clock, gave, waits, busy) in members.items()
            },
            gathered=gathered,
            formed=formed,
            updating=updating,
            dropped=dropped,
            started=started,
            held=True,
            arriving=frozenset(arriving),
            void=frozenset(void),
        )
        self._go, self._sessions, self._start = dict(go), dict(sessions), Start(*start)
        self._updater, self._abandoned = update
        self._given = {worker: (session, number) for worker, (session, number) in given.items()}

    @classmethod
    def made_of(cls, state: replicable.ResourceState, resources: Resources) -> Gate:
        name, choice, *_ = state.words
        return cls(name, from_text(choice), lock=resources.lock)


def _seconds_since(then: float | None, now: float) -> float | None:
    return None if then is None else now - then
