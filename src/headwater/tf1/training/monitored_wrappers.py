"""The layers of a monitored session, from the inside: hooks, coordinated threads, recovery from lost tasks."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from headwater.cluster.pauses import pause
from headwater.cluster.transport.waiting import Patience
from headwater.errors import GaveUpError, OpError
from headwater.graph.graph import Graph
from headwater.tensorboard_protos import config_pb2
from headwater.tf1.training.coordinator import Coordinator
from headwater.tf1.training.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from headwater.tf1.training.supervised_session import LOST

if TYPE_CHECKING:
    from headwater.graph.session.session import BaseSession
    from headwater.graph.types import FeedDict, SessionLike, Structure
    from headwater.tensorboard_protos import RunMetadata, RunOptions


_logger: Final = logging.getLogger(__name__)

_PAUSE_S: Final = 0.5


class WrappedSession:
    """Base of sessions that wrap another one.

    Args:
      sess: the inner session.
    """

    def __init__(self, sess: SessionLike | None) -> None:
        self._sess: Any = sess

    @property
    def graph(self) -> Graph:
        return self._sess.graph

    @property
    def sess_str(self) -> str:
        return self._sess.sess_str

    def should_stop(self) -> bool:
        """Returns whether the loop should end: a stop was requested here or in an inner session."""
        if self.check_stop():
            return True
        if self._sess is None:
            return True
        return isinstance(self._sess, WrappedSession) and self._sess.should_stop()

    def check_stop(self) -> bool:
        """Returns whether this layer wants to stop."""
        return False

    def close(self) -> None:
        """Closes the inner session; ignores errors if a task was lost."""
        if self._sess is not None:
            try:
                self._sess.close()
            except LOST as error:
                _logger.debug("An error occurred while closing a session: %s", error)
            finally:
                self._sess = None

    def run(
        self,
        fetches: Structure,
        feed_dict: Any = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Same as `Session.run`."""
        return self._sess.run(fetches, feed_dict, options, run_metadata)

    def run_step_fn(self, step_fn: Callable[[StepContext], object], raw_session: Any, run_with_hooks: Any) -> Any:
        """Calls ``step_fn`` with a `StepContext`."""
        if isinstance(self._sess, WrappedSession):
            return self._sess.run_step_fn(step_fn, raw_session, run_with_hooks or self._sess.run)
        return step_fn(StepContext(raw_session, run_with_hooks))


class StepContext:
    """Argument of a ``step_fn`` of `MonitoredSession.run_step_fn`.

    Attributes:
      session: the session without hooks.
    """

    def __init__(self, session: BaseSession, run_with_hooks_fn: Callable[..., object]) -> None:
        self.session: Any = session
        self._run_with_hooks_fn = run_with_hooks_fn

    def run_with_hooks(self, *args: object, **kwargs: object) -> Any:
        """Runs one step with hooks, like `MonitoredSession.run`."""
        return self._run_with_hooks_fn(*args, **kwargs)

    def request_stop(self) -> None:
        """Ends the loop immediately."""
        raise StopIteration("step_fn has requested the iterations to stop.")


class HookedSession(WrappedSession):
    """Calls hooks around every step."""

    def __init__(self, sess: SessionLike | None, hooks: Sequence[SessionRunHook]) -> None:
        super().__init__(sess)
        self._hooks = hooks
        self._stop = False

    def check_stop(self) -> bool:
        return self._stop

    def run(
        self,
        fetches: Structure,
        feed_dict: Any = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        if self.should_stop():
            raise RuntimeError("Run called even after should_stop requested.")
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self._sess)
        options = options or config_pb2.RunOptions()
        run_metadata = run_metadata or config_pb2.RunMetadata()
        wanted: dict[Any, Any] = {"caller": fetches}
        fed = self._merge_requests(context, wanted, feed_dict, options)
        values = self._sess.run(wanted, fed, options, run_metadata)
        for hook in self._hooks:
            hook.after_run(context, SessionRunValues(values.get(hook), options, run_metadata))
        self._stop = self._stop or context.stop_requested
        return values["caller"]

    def _merge_requests(
        self, context: SessionRunContext, wanted: dict[Any, Any], feed_dict: FeedDict | None, options: RunOptions
    ) -> Mapping[Any, Any] | None:
        """Adds the hooks' fetches and options to ``wanted`` and ``options``; returns the merged feed dictionary."""
        fed: dict[object, object] = {}
        for hook in self._hooks:
            request = hook.before_run(context)
            if request is None:
                continue
            if request.fetches is not None:
                wanted[hook] = request.fetches
            if request.feed_dict:
                _check_disjoint(fed, request.feed_dict, "Same tensor is fed by two hooks.")
                fed.update(request.feed_dict)
            if request.options is not None:
                options.MergeFrom(request.options)
        if not fed or not feed_dict:
            return fed or feed_dict
        _check_disjoint(fed, feed_dict, "Same tensor is fed by a SessionRunHook and user.")
        return {**feed_dict, **fed}


def _check_disjoint(one: FeedDict, other: FeedDict, message: str) -> None:
    both = [str(key) for key in one if key in other]
    if both:
        raise RuntimeError(f"{message} Conflict(s): {', '.join(both)}")


class CoordinatedSession(WrappedSession):
    """A session that raises errors of its coordinator's threads, and stops these threads when it is closed.

    Args:
      coord: the threads' coordinator.
      stop_grace_period_secs: seconds that the threads may take to end.
    """

    def __init__(self, sess: SessionLike | None, coord: Coordinator, stop_grace_period_secs: float) -> None:
        super().__init__(sess)
        self._coord = coord
        self._grace_s = stop_grace_period_secs

    def check_stop(self) -> bool:
        self._coord.raise_requested_exception()
        return self._coord.should_stop()

    def close(self) -> None:
        self._coord.request_stop()
        try:
            self._coord.join(stop_grace_period_secs=self._grace_s, ignore_live_threads=True)
        finally:
            try:
                super().close()
            except (OpError, RuntimeError) as error:
                _logger.debug("Ignored exception: %s", error)

    def run(
        self,
        fetches: Structure,
        feed_dict: FeedDict | None = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        try:
            return super().run(fetches, feed_dict, options, run_metadata)
        except LOST:
            raise  # the surrounding RecoverableSession handles lost tasks
        except Exception:
            # A thread's error may be the cause: it is more informative than the error of the queue that the thread
            # closed.
            self._coord.raise_requested_exception()
            raise


class RecoverableSession(WrappedSession):
    """A session that is replaced, and whose run is retried, after a task was lost.

    Creating the first session is not retried if a task does not connect before the deadline. Creating a session after
    a loss is, since a machine that restarts may be unreachable for longer than the timeout for a firewall. A run that
    has waited for a task until the deadline is not retried: that task may have ended for good.

    Args:
      create: create a session.
      give_up_after_s: for how many seconds to retry ``create``; then the error is raised. None: as long as the process
        waits for a task (``HEADWATER_CONNECT_DEADLINE_S``).
      clock: returns monotonic seconds.
    """

    def __init__(
        self,
        create: Callable[[], object],
        give_up_after_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._create = create
        self._give_up_after_s = Patience.from_environment().deadline_s if give_up_after_s is None else give_up_after_s
        self._clock = clock
        super().__init__(self._created(GaveUpError))

    def _created(self, final: type[OpError] | tuple[()] = ()) -> Any:
        deadline = self._clock() + self._give_up_after_s
        while True:
            try:
                return self._create()
            except LOST as error:
                if isinstance(error, final) or self._clock() >= deadline:
                    raise
                _log_lost_task(error)
                pause(_PAUSE_S)

    def _recreate(self, error: OpError) -> None:
        if isinstance(error, GaveUpError):
            raise error
        _log_lost_task(error)
        self.close()
        self._sess = self._created()

    def check_stop(self) -> bool:
        if self._sess is None:
            return True
        try:
            return self._sess.check_stop()
        except LOST as error:
            self._recreate(error)
            return False

    def run(
        self,
        fetches: Structure,
        feed_dict: Any = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        while True:
            try:
                if self._sess is None:
                    self._sess = self._created()
                return self._sess.run(fetches, feed_dict, options, run_metadata)
            except LOST as error:
                self._recreate(error)

    def run_step_fn(self, step_fn: Callable[[Any], Any], raw_session: SessionLike | None, run_with_hooks: Any) -> Any:
        while True:
            try:
                return super().run_step_fn(step_fn, raw_session, run_with_hooks)
            except LOST as error:
                self._recreate(error)


def _log_lost_task(error: OpError) -> None:
    _logger.warning("A worker or parameter server was lost; the session is closed and a new one made. Error: %s", error)
