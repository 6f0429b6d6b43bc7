"""The barrier of synchronous replicas: a replica that has finished a step waits until the next one starts.

If the chief issues tokens, as in TensorFlow's token queue, a replica waits for a token instead. Tokens may be issued
before the present step is over, and a fast replica may take more tokens than a slow one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from headwater.errors import AbortedError, OutOfRangeError
from headwater.graph.resources import training_runs
from headwater.graph.resources.containers import Resources
from headwater.graph.resources.queues import Waiting
from headwater.graph.resources.replicable import ReplicableResource, ResourceState, StillWaitsError
from headwater.graph.resources.training_runs import TrainingRuns

_log = logging.getLogger("headwater")

#: Interval between log messages about a wait, in seconds.
_LOG_INTERVAL_S = 5.0


class StepBarrier(ReplicableResource):
    """The barrier: the present step of all replicas, and the replicas that wait for the next one.

    Args:
      clock: returns monotonic time in seconds.

    Attributes:
      step: the number of the step; -1 before it is set.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.step: int = -1
        self._clock = clock
        self._said = clock()
        self._chief = ""
        self._chief_ended = ""
        self._over = ""
        self._extra = 0
        self._tokens: deque[int] | None = None
        self._runs = TrainingRuns()
        self._start = 0
        self._waiting: dict[str, int] = {}
        self._condition = threading.Condition()

    def join(self, session: str) -> int:
        """Registers a replica's ``session``; returns the name of the present start of the training."""
        with self._condition:
            self._runs = training_runs.with_session(self._runs, session)
            self.changes += 1
            return self._start

    @property
    def run_number(self) -> int:
        """Number of starts of the training."""
        return self._runs.run_number

    def start(self, session: str, step: int, elsewhere: int, extra: int, name: int = 0) -> None:
        """Starts the training in the chief's ``session``, perhaps again.

        Replicas that joined before this start and wait here get an error, because their step is void. The very first
        start is an exception: then only replicas that have finished a step after ``step`` get the error.

        Args:
          session: session of the chief.
          step: number of the first step.
          elsewhere: as for `training_runs.is_first`.
          extra: as for `set`.
          name: name of this start; see `training_runs.Start`.
        """
        with self._condition:
            self._start = name
            self.changes += 1
            # The training was restored at an earlier step than the last step of these replicas, so that step is not
            # part of the restored training.
            stranded = [session for session, done in self._waiting.items() if done > step]
            self._runs = training_runs.start_run(self._runs, session, step, elsewhere, stranded=stranded)
            if self._runs.run_number > 1:
                _log.warning("the chief restarts the training at step %d; the training was at step %d", step, self.step)
            self.step, self._extra, self._tokens = step, extra, None
            self._chief, self._chief_ended, self._over = session, "", ""
            self._condition.notify_all()

    def issue_tokens(self, session: str, step: int, tokens: int) -> None:
        """Switches to tokens until the next start of the training, and issues the first ones.

        Args:
          session: session of the chief.
          step: value of the tokens: the step of a replica that takes one.
          tokens: number of tokens.

        Raises:
          AbortedError: another chief has started the training since.
        """
        with self._condition:
            self._check(session)
            self.changes += 1
            self._tokens = self._tokens or deque()
            self._tokens.extend([step] * tokens)
            self._condition.notify_all()

    def set(self, session: str, step: int, extra: int, tokens: int) -> None:
        """Starts a step: replicas that wait for this step continue.

        Args:
          session: session of the chief that has made the update.
          step: number of the step.
          extra: number of additional gradients that the step needs because an update needs more gradients than there
            are replicas. As many replicas may continue early and contribute another gradient in the same step.
          tokens: number of tokens to issue, if replicas wait for tokens.

        Raises:
          AbortedError: another chief has started the training since.
        """
        with self._condition:
            self._check(session)
            self.step, self._extra = step, extra
            self.changes += 1
            if self._tokens is not None:
                self._tokens.extend([step] * tokens)
            self._condition.notify_all()

    def wait(self, waiting: Waiting, session: str, done: int) -> int:
        """Waits until a step after ``done`` starts, or until the present step needs an additional gradient; returns the
        present step.

        With tokens: waits for a token, takes it, and returns its value.

        Raises:
          AbortedError: the training was restarted since ``session`` joined, so the step that it waits for may never
            start.
          OutOfRangeError: the chief's program, and so the training, has ended.
        """
        # Only long waits are logged: the first message follows one interval after the start of the wait.
        began = self._said = self._clock()

        def may_continue() -> bool:
            if self._over or training_runs.is_void(self._runs, session):
                return True
            if self._tokens if self._tokens is not None else self.step > done or self._extra > 0:
                return True
            self._log_wait(began, done)
            return False

        with self._condition:
            # After a restart, the task does not know the sessions that joined before.
            if session not in self._runs.sessions:
                self._runs = training_runs.with_session(self._runs, session)
                self.changes += 1
            self._waiting[session] = done
            tried_again = False
            try:
                waiting.wait_until(self._condition, may_continue, f"the gradients of other replicas for step {done}")
            except StillWaitsError:
                # On a replicated task, the operation is tried again after the wait. Until then, the replica still
                # counts as waiting.
                tried_again = True
                raise
            finally:
                if not tried_again:
                    del self._waiting[session]
            # The wait may have ended because the training was restarted.
            self._check(session)
            if self._tokens:
                self.changes += 1
                return self._tokens.popleft()
            # If the last step has started before the job was over, the replica still makes it.
            if self._over and self.step <= done:
                raise OutOfRangeError(f"there is no step after {done}: {self._over}, and no other task makes updates")
            if self.step <= done:
                self._extra -= 1
                self.changes += 1
            return self.step

    def session_ended(self, session: str, reason: str) -> None:
        """Remembers for log messages that the chief's session has ended, or that its client is lost and may reconnect.
        Other sessions are ignored."""
        with self._condition:
            if session == self._chief:
                self._chief_ended = reason
                self.changes += 1

    def forget_session(self, session: str) -> None:
        """Removes a session that has ended."""
        with self._condition:
            self._runs = training_runs.without_session(self._runs, session)
            self.changes += 1

    def job_over(self, reason: str) -> None:
        """Ends all waits: the chief's program has ended without an error, so no further step will start."""
        with self._condition:
            self._over = reason
            self._condition.notify_all()

    def _log_wait(self, began: float, done: int) -> None:
        """Logs the wait at intervals of a few seconds. The caller holds the condition."""
        now = self._clock()
        if now - self._said < _LOG_INTERVAL_S:
            return
        self._said = now
        chief = f"; the session of the chief has ended ({self._chief_ended})" if self._chief_ended else ""
        _log.warning(
            "%d replicas have waited for %.0f s for the gradients of other replicas for step %d%s",
            len(self._waiting),
            now - began,
            done,
            chief,
        )

    def _check(self, session: str) -> None:
        if training_runs.is_void(self._runs, session):
            raise AbortedError(training_runs.void_text(self._runs))

    # Replication ------------------------------------------------------------------------------------------------------

    def share(self, lock: threading.RLock) -> None:
        self._condition = threading.Condition(lock)

    def state(self) -> ResourceState:
        tokens = None if self._tokens is None else list(self._tokens)
        chief = self._chief, self._chief_ended
        return ResourceState((self.step, self._extra, tokens, self._runs.as_words(), self._start, *chief))

    def install_state(self, state: ResourceState) -> None:
        self.step, self._extra, tokens, runs, self._start, self._chief, self._chief_ended = state.words
        self._tokens = None if tokens is None else deque(tokens)
        self._runs = TrainingRuns.of_words(runs)

    @classmethod
    def made_of(cls, state: ResourceState, resources: Resources) -> StepBarrier:
        del state, resources
        return cls()
