"""`SupervisedSession`: counts training steps for the launcher, and outlives lost tasks."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.cluster.pauses import pause
from headwater.cluster.transport.waiting import Patience
from headwater.errors import AbortedError, CancelledError, GaveUpError, OpError, UnavailableError
from headwater.graph.collections import GraphKeys
from headwater.graph.graph import Graph
from headwater.graph.session import Session
from headwater.tf1.training.progress import progress_reporter

if TYPE_CHECKING:
    from headwater.graph.types import FeedDict, Structure
    from headwater.tensorboard_protos import ConfigProto, RunMetadata, RunOptions


_logger: Final = logging.getLogger(__name__)
_PAUSE_S: Final = 0.5

LOST: Final = (AbortedError, UnavailableError)
"""Errors of a task that is unavailable or was restarted; a new session may work."""


class SupervisedSession(Session):
    """A session for training loops.

    Runs of operations in ``TRAIN_OP`` are training steps, which are reported to a launcher, if one listens. A floating
    scalar fetched in a list together with such an operation is reported as the loss.

    A step survives lost connections: it waits until the task reconnects and resumes, so that each of its updates is
    applied once. It fails if the task has lost its state.

    After `recover_with`, a step that fails because a task was lost waits until the model is ready again, and is
    retried. The calling program notices only that the step took long, or gets an error if a task does not return
    before the deadline.
    """

    _steps_resume = True

    def __init__(self, target: str = "", graph: Graph | None = None, config: ConfigProto | None = None) -> None:
        super().__init__(target, graph, config)
        reporter = progress_reporter()
        self._reporter = reporter if reporter.listening else None
        self._steps: set[object] = set()
        self._recover: Callable[[], Session] | None = None
        self._give_up_after_s = 0.0
        self._recovery = threading.RLock()
        self._session_number = 0
        self._blocks: dict[object, tuple[int, int]] = {}

    def recover_with(self, open_again: Callable[[], Session], give_up_after_s: float | None = None) -> None:
        """Makes subsequent steps recover from lost tasks.

        Args:
          open_again: waits until the model is ready, and returns another session.
          give_up_after_s: for how many seconds to retry ``open_again`` after a loss; then the error is raised. None:
            as long as the process waits for a task (``HEADWATER_CONNECT_DEADLINE_S``).
        """
        self._recover = open_again
        self._give_up_after_s = Patience.from_environment().deadline_s if give_up_after_s is None else give_up_after_s

    def _make_runner(self, fetches: Structure, feed_dict: FeedDict, block: int = 1) -> Any:
        while True:
            session_number = self._session_number
            try:
                runner = super()._make_runner(fetches, feed_dict, block)
            except LOST as error:
                self._start_over(session_number, error)
                continue
            self._blocks[runner] = (session_number, block)
            if self._reporter is not None:
                train_ops = set(self.graph.get_collection(GraphKeys.TRAIN_OP))
                asked = (*runner.fetches.targets, *(tensor.op for tensor in runner.fetches.tensors))
                if train_ops.intersection(asked):
                    self._steps.add(runner)
            return runner

    def _run(
        self, runner: Any, arrays: Sequence[object], options: RunOptions, run_metadata: RunMetadata | None = None
    ) -> Any:
        while True:
            session_number = self._session_number
            try:
                # Another thread may have replaced the session since this runner was prepared.
                if self._blocks[runner][0] != session_number:
                    self._prepare_again(runner)
                result = super()._run(runner, arrays, options, run_metadata)
                break
            except LOST as error:
                self._start_over(session_number, error)
            except CancelledError:
                # Another thread may have closed the lost session in which this step ran: then retry in the new one.
                with self._recovery:
                    if self._session_number == session_number:
                        raise
        if self._reporter is not None and runner in self._steps:
            self._reporter.step(loss=_first_float(result))
        return result

    def _prepare_again(self, runner: Any) -> None:
        session_number, (_, block) = self._session_number, self._blocks[runner]
        if runner.prepared is not None:
            runner.prepared = self._prepare(runner.fetches, runner.feeds, block)
        self._blocks[runner] = (session_number, block)

    def _start_over(self, session_number: int, error: OpError) -> None:
        """Replaces the lost session number ``session_number`` by a new one; raises ``error`` if it cannot."""
        with self._recovery:
            if self._session_number != session_number:
                return  # another thread has already replaced the session
            if self._recover is None or self._opened is None or isinstance(error, GaveUpError):
                raise error
            _logger.warning("A new session is created once the model is ready again: %s", error.message)
            fresh = self._opened_again(self._recover)
            # Move the connection of the new session into this object, which the program keeps using.
            old, self._opened, fresh._opened = self._opened, fresh._opened, None
            self._session_number += 1
            _logger.warning("The session is available again.")
        try:
            old.close()
        except (OpError, RuntimeError) as problem:
            _logger.debug("Ignored exception: %s", problem)

    def _opened_again(self, open_again: Callable[[], Session]) -> Session:
        deadline = time.monotonic() + self._give_up_after_s
        while True:
            try:
                return open_again()
            except LOST as error:
                if time.monotonic() >= deadline:
                    raise
                _logger.warning("The session is still unavailable: %s", error.message)
                pause(_PAUSE_S)


# Programs unwrap `_sess` until they find a class with this name: in TensorFlow, training uses plain sessions.
SupervisedSession.__name__ = "Session"


def _first_float(result: Structure) -> float | None:
    if isinstance(result, dict):
        return _first_float(result.get("caller"))  # pyright: ignore[reportUnknownMemberType] - of a monitored session
    if not isinstance(result, list | tuple):
        return None
    return next((float(item) for item in result if isinstance(item, np.floating)), None)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
