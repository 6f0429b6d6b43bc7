"""A running step for the executor: its number, cancellation, deadline, and transfers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from headwater.cluster.telemetry.step_stats import StepTrace
from headwater.errors import CancelledError, DeadlineExceededError
from headwater.graph.passes.plan import VariableInfo
from headwater.graph.resources.containers import Cell, Resources, Signature, session_container

if TYPE_CHECKING:
    from headwater.graph.ops.common import AnyArray


R = TypeVar("R")

# Interval at which a waiting operation checks the connection to its master, in seconds.
_CHECK_INTERVAL_S = 0.5
#: Prevents `commit` and `withdraw` from running at the same time. One lock for all steps is enough, since both are
#: rare.
_commit_lock = threading.Lock()


class Stopped(NamedTuple):
    """The point in its plan at which a step was cancelled.

    Attributes:
      position: the position of the instruction that was running.
      slots: the values at that point, see `headwater.graph.runtime.executor.CompiledPlan`.
    """

    position: int
    slots: Sequence[Any]


class Step:
    """One run of a plan.

    A session and a number identify the step on every task that takes part in it, also after connections are lost.
    Subclasses implement transfers between tasks; a step of a single task has none.

    Args:
      number: the step's number, the same on all tasks.
      session: handle of the step's session.
      deadline: time (`time.monotonic`) after which waiting operations fail; None for no deadline.

    Attributes:
      waits_for: a description of the step's present wait, and the start of the wait (`time.monotonic`); None without a
        wait.
      trace: records the step's activities; None if it is not traced.
      resumes: whether the step can resume after the loss of a connection to a task that takes part in it.
      ends: callbacks for `ended`.
      has_read_ahead: whether `pop_given` may return a transfer.
      follows: whether the step repeats a change of the primary on a backup.
      committed: whether other tasks may rely on this task to make its part of the step's update; see `commit`.
      stopped: the point at which it was cancelled. None if it was not cancelled, or if it cannot resume because the
        instruction at that point had already had a part of its effects.
    """

    # Class attributes as defaults: `__init__` runs for each step, and few steps have other values.
    trace: StepTrace | None = None
    resumes: bool = False
    waits_for: tuple[str, float] | None = None
    _cancelled: str | None = None
    ends: tuple[Callable[[], object], ...] = ()
    has_read_ahead = False
    follows: bool = False
    committed: bool = False
    stopped: Stopped | None = None

    def __init__(self, number: int = 0, session: str = "", deadline: float | None = None) -> None:
        self.number = number
        self.session = session
        self.deadline = deadline
        self._waiting: set[threading.Condition] = set()

    def send(self, destination: str, transfer: int, tensors: Sequence[AnyArray]) -> None:
        """Sends a transfer to another task."""
        raise AssertionError(f"a step of one task has no transfer to {destination}")

    def send_last(self, destination: str, transfer: int, tensors: Sequence[AnyArray]) -> None:
        """Sends a transfer that is followed only by the end of the step."""
        self.send(destination, transfer, tensors)

    def recv(self, source: str, transfer: int) -> Sequence[AnyArray]:
        """Waits for a transfer from another task."""
        raise AssertionError(f"a step of one task has no transfer from {source}")

    def pop_given(self) -> Sequence[AnyArray] | None:
        """Returns the transfer that the master has computed from variables read ahead, if they are still current; see
        `headwater.graph.runtime.first_reads`.

        Returns:
          The values of the variables that the plan itself needs, then the transfer; None if the plan has to send the
          variables and wait for the transfer.
        """
        return None

    def at_end(self, call: Callable[[], object]) -> None:
        """Registers a callback for the end of the step on this task, whether it succeeds or fails."""
        self.ends = (*self.ends, call)

    def call_end_callbacks(self) -> None:
        """Runs the callbacks of `at_end`; called when no part of the step runs on this task."""
        calls, self.ends = self.ends, ()
        for call in calls:
            call()

    def is_master_away(self) -> bool:
        """Returns whether the master is disconnected but may reconnect; called regularly while an operation waits.

        While this is true, the wait continues even if its condition holds. Otherwise the operation could, for example,
        take an element from a queue, and the element would be lost if the master did not return.

        Raises:
          CancelledError: the master has not reconnected in time.
        """
        return False

    def cancel(self, reason: str) -> None:
        """Ends the step: operations that wait raise CancelledError with ``reason``."""
        self._cancelled = reason
        self._wake()

    def _wake(self) -> None:
        # A copy, since other threads add and remove conditions meanwhile.
        for condition in list(self._waiting):
            with condition:
                condition.notify_all()

    def commit(self) -> None:
        """Commits the step: from now on, other tasks may apply their parts of the step's update, so `withdraw` does not
        end the step.

        Raises:
          CancelledError, DeadlineExceededError: as `check`.
        """
        with _commit_lock:
            # Check and commit under one lock. A `withdraw` in between would cancel a step on which other tasks rely.
            self.check()
            self.committed = True

    def withdraw(self, reason: str) -> bool:
        """Like `cancel`, unless the step has committed; returns whether the step is cancelled."""
        with _commit_lock:
            if self.committed:
                return False
            self._cancelled = reason
        self._wake()
        return True

    def seconds_left(self) -> float | None:
        """Returns the time until the deadline in seconds, at least 0; None without a deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def check(self) -> None:
        """Raises CancelledError if the step was cancelled, DeadlineExceededError if its deadline has passed."""
        if self._cancelled is not None:
            raise CancelledError(self._cancelled)
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise DeadlineExceededError(f"step {self.number} has exceeded its deadline")

    def wait_until(self, condition: threading.Condition, ready: Callable[[], bool], what: str) -> None:
        """Waits until ``ready()`` is true. The caller holds ``condition``.

        Raises:
          CancelledError: the step was cancelled, or its master is lost.
          DeadlineExceededError: the step's deadline has passed; the message says ``what`` it waited for.
        """
        self._waiting.add(condition)
        self.waits_for = what, time.monotonic()
        away = False
        try:
            while True:
                if self._cancelled is not None:
                    raise CancelledError(f"{self._cancelled}, while waiting for {what}")
                if not away and ready():
                    return
                timeout = _CHECK_INTERVAL_S
                if self.deadline is not None:
                    timeout = min(timeout, self.deadline - time.monotonic())
                    if timeout <= 0:
                        raise DeadlineExceededError(f"Timed out waiting for {what}")
                # Check the connection only after a timeout: a notification usually means that the awaited event has
                # happened.
                if not condition.wait(timeout) or away:
                    # `is_master_away` may notify resources, which acquires their conditions. To avoid a deadlock,
                    # release this condition first.
                    condition.release()
                    try:
                        away = self.is_master_away()
                    finally:
                        condition.acquire()
        finally:
            self._waiting.discard(condition)
            self.waits_for = None


@dataclass(frozen=True, slots=True)
class TaskContext:
    """The context of a host operation: a `headwater.graph.resources.host_context.HostContext`.

    Attributes:
      op_name: the operation's name.
      task: full name of the task that runs it.
      step: the step, for waiting.
      resources: the task's containers.
      variables: the plan's variables, by operation name.
      arguments: names of the operation's input tensors.
    """

    op_name: str
    task: str
    step: Step
    resources: Resources
    variables: dict[str, VariableInfo]
    arguments: tuple[str, ...] = ()

    def resource(
        self, container: str, shared_name: str, kind: type[R], make: Callable[[], R], signature: Signature | None = None
    ) -> R:
        """Returns the task's resource of class ``kind`` to which the operation refers; creates it if missing.

        A resource with a ``shared_name`` is shared by all sessions, which must agree on its ``signature``, see
        `Resources.get_or_make`. Without a ``shared_name``, the resource belongs to this session alone.
        """
        if shared_name:
            return self.resources.get_or_make(container, shared_name, kind, make, signature)
        return self.resources.get_or_make(session_container(self.step.session), self.op_name, kind, make, signature)

    def cell(self, variable: str) -> Cell:
        """Returns the cell of one of the plan's variables."""
        info = self.variables[variable]
        return self.resources.cell(info.container, info.cell)
