"""A step in progress, as the executor sees it: its number, its end, and where its transfers go."""

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

_LOOK_AGAIN_S = 0.5
#: Held by who decides whether a step is withdrawn or goes on: both are rare.
_deciding = threading.Lock()


class Stopped(NamedTuple):
    """Where in its plan a step was cancelled.

    Attributes:
      position: of the instruction that was in progress.
      slots: what there was by then, see `headwater.graph.runtime.executor.CompiledPlan`.
    """

    position: int
    slots: Sequence[Any]


class Step:
    """One run of a plan.

    Its session and its number identify it on every task that takes part in it, whatever connections it outlives.
    Subclasses carry transfers; a step of a single task has none.

    Args:
      number: the step's number, the same on all tasks.
      session: handle of the session it belongs to.
      deadline: `time.monotonic` after which waiting operations give up, or None.

    Attributes:
      waits_for: what it waits for, in words, and since when (`time.monotonic`); None while it does not.

    Attributes:
      trace: where the step says what it does, or None.
      resumes: whether it outlives the connections to the tasks that take part in it.
      ends: what `ended` calls.
      has_read_ahead: whether `take_given` may have something.
      follows: whether it does again what another task has done, for a second copy of that.
      committed: whether other tasks may do their part of it on the strength of this one's: see `commit`.
      stopped: where in its plan it was cancelled; None where it was not, or is half way through an instruction.
    """

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
        """Sends a transfer that only the end of the step follows."""
        self.send(destination, transfer, tensors)

    def recv(self, source: str, transfer: int) -> Sequence[AnyArray]:
        """Waits for a transfer from another task."""
        raise AssertionError(f"a step of one task has no transfer from {source}")

    def take_given(self) -> Sequence[AnyArray] | None:
        """What the task that asked for the step has computed from variables that it had read ahead, where it has and
        these are current; see `headwater.graph.runtime.first_reads`.

        Returns:
          The values of the variables that the plan needs itself, then the transfer; None to read, send and wait.
        """
        return None

    def at_end(self, call: Callable[[], object]) -> None:
        """Has ``call`` called when nothing of the step runs on this task any more, whatever became of it."""
        self.ends = (*self.ends, call)

    def ended(self) -> None:
        """Nothing of the step runs on this task any more."""
        calls, self.ends = self.ends, ()
        for call in calls:
            call()

    def away(self) -> bool:
        """Whether the task that asked for the step is gone but may come back; asked now and then while an operation
        waits. Until it is back, the operation does not end: its effect would be lost with that task.

        Raises:
          CancelledError: it does not come back.
        """
        return False

    def cancel(self, reason: str) -> None:
        """Ends the step: operations that wait raise CancelledError with ``reason``."""
        self._cancelled = reason
        self._wake()

    def _wake(self) -> None:
        for condition in list(self._waiting):
            with condition:
                condition.notify_all()

    def commit(self) -> None:
        """From now on `withdraw` does not end the step: other tasks hear that this one is about to do its part, and do
        theirs.

        Raises:
          CancelledError, DeadlineExceededError: as `check`.
        """
        with _deciding:
            self.check()
            self.committed = True

    def withdraw(self, reason: str) -> bool:
        """As `cancel`, unless the step has committed itself; whether it ends."""
        with _deciding:
            if self.committed:
                return False
            self._cancelled = reason
        self._wake()
        return True

    def seconds_left(self) -> float | None:
        """Time until the deadline in seconds, at least 0; None without one."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def check(self) -> None:
        """Raises CancelledError when the step was cancelled, DeadlineExceededError when its time is over."""
        if self._cancelled is not None:
            raise CancelledError(None, None, self._cancelled)
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise DeadlineExceededError(None, None, f"step {self.number} ran out of its time")

    def wait_until(self, condition: threading.Condition, ready: Callable[[], bool], what: str) -> None:
        """Waits under ``condition``, which is held, until ``ready()``.

        Raises:
          CancelledError: the step was cancelled, or the task that asked for it is gone.
          DeadlineExceededError: the step's time is over; the message says ``what`` it waited for.
        """
        self._waiting.add(condition)
        self.waits_for = what, time.monotonic()
        away = False
        try:
            while True:
                if self._cancelled is not None:
                    raise CancelledError(None, None, f"{self._cancelled}, while waiting for {what}")
                if not away and ready():
                    return
                timeout = _LOOK_AGAIN_S
                if self.deadline is not None:
                    timeout = min(timeout, self.deadline - time.monotonic())
                    if timeout <= 0:
                        raise DeadlineExceededError(None, None, f"Timed out waiting for {what}")
                if not condition.wait(timeout) or away:
                    # That the task is gone is told to resources with conditions of their own: none is held meanwhile.
                    condition.release()
                    try:
                        away = self.away()
                    finally:
                        condition.acquire()
        finally:
            self._waiting.discard(condition)
            self.waits_for = None


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What a host operation may use besides its inputs: a `headwater.graph.resources.host_context.HostContext`.

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
        self,
        container: str,
        shared_name: str,
        kind: type[R],
        make: Callable[[], R],
        signature: Signature | None = None,
    ) -> R:
        """The task's resource of class ``kind`` that the operation stands for, made when it is not there.

        One with a ``shared_name`` is shared by all sessions, which must agree on its ``signature``, see
        `Resources.get_or_make`; one without belongs to this session alone.
        """
        if shared_name:
            return self.resources.get_or_make(container, shared_name, kind, make, signature)
        return self.resources.get_or_make(session_container(self.step.session), self.op_name, kind, make, signature)

    def cell(self, variable: str) -> Cell:
        """The cell of one of the plan's variables."""
        info = self.variables[variable]
        return self.resources.cell(info.container, info.cell)
