"""`QueueRunner`: threads that fill a queue, each by running one enqueue operation again and again."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from headwater.data.io.protos.queue_runner_pb2 import QueueRunnerDef
from headwater.errors import OpError, OutOfRangeError, exception_type_from_error_code
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph, get_default_session
from headwater.graph.session import BaseSession
from headwater.tf1.training.coordinator import Coordinator

if TYPE_CHECKING:
    from headwater.graph.types import OpOrTensor, SessionLike


_logger: Final = logging.getLogger(__name__)
_BLOCK: Final = 256
"""Maximum number of runs requested at once; more are hardly faster."""


def repeated(sess: Any, op: Any) -> Callable[[], Any]:
    """A function that runs ``op``, once or many times, for a thread that calls it again and again."""
    return sess.make_repeated(op, _BLOCK) if isinstance(sess, BaseSession) else sess.make_callable(op)


class QueueRunner:
    """Defines how a queue is filled; `create_threads` makes the threads that fill it.

    A thread ends when the coordinator stops, or when its enqueue operation raises one of
    ``queue_closed_exception_types``; the last one to end closes the queue, so that readers find its end. Any other
    error stops the coordinator.

    Args:
      enqueue_ops: operations that add to it; each gets its own thread.
      close_op: closes the queue; pending enqueue operations still run.
      cancel_op: closes the queue and cancels pending enqueue operations.
      queue_closed_exception_types: errors that mean the end of the input; by default `OutOfRangeError`.
      queue_runner_def: a ``QueueRunnerDef`` in place of all the rest.
      import_scope: name scope that ``queue_runner_def`` was imported into.

    Raises:
      ValueError: not exactly one of a queue with operations and a definition is given.
      TypeError: ``queue_closed_exception_types`` is not a tuple of error classes.

    Attributes:
      exceptions_raised: errors of threads that ran without a coordinator.
    """

    def __init__(
        self,
        queue: Any = None,
        enqueue_ops: Sequence[Any] | None = None,
        close_op: OpOrTensor | None = None,
        cancel_op: OpOrTensor | None = None,
        queue_closed_exception_types: tuple[type[Exception], ...] | None = None,
        queue_runner_def: QueueRunnerDef | None = None,
        import_scope: str | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._running: weakref.WeakKeyDictionary[SessionLike, int] = weakref.WeakKeyDictionary()
        self.exceptions_raised: list[Exception] = []
        if queue_runner_def is not None:
            if queue is not None or enqueue_ops:
                raise ValueError("queue_runner_def and queue are mutually exclusive.")
            self._init_from_proto(queue_runner_def, import_scope)
            return
        if queue is None or not enqueue_ops:
            raise ValueError("Must provide queue and enqueue_ops.")
        types = (OutOfRangeError,) if queue_closed_exception_types is None else queue_closed_exception_types
        if not isinstance(types, tuple) or not types or not all(issubclass(t, OpError) for t in types):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                "queue_closed_exception_types, when provided, must be a tuple of tf.error types, but saw: "
                f"{queue_closed_exception_types}"
            )
        self.queue: Any = queue
        self.enqueue_ops: list[Any] = list(enqueue_ops)
        self.close_op: Any = queue.close() if close_op is None else close_op
        self.cancel_op: Any = queue.close(cancel_pending_enqueues=True) if cancel_op is None else cancel_op
        self.queue_closed_exception_types: tuple[type[Exception], ...] = types

    def _init_from_proto(self, proto: QueueRunnerDef, import_scope: str | None) -> None:
        graph = get_default_graph()

        def find(name: str) -> Any:
            return graph.as_graph_element(f"{import_scope}/{name}" if import_scope else name)

        self.queue = find(proto.queue_name)
        self.enqueue_ops = [find(name) for name in proto.enqueue_op_name]
        self.close_op = find(proto.close_op_name)
        self.cancel_op = find(proto.cancel_op_name)
        self.queue_closed_exception_types = tuple(
            exception_type_from_error_code(code) for code in proto.queue_closed_exception_types
        ) or (OutOfRangeError,)

    @property
    def name(self) -> str:
        """The queue's name."""
        return self.queue.name

    def create_threads(
        self, sess: Any, coord: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """Creates the threads that fill the queue.

        Args:
          sess: the session they run in.
          coord: stops the threads; their errors are reported to it.
          daemon: the process does not wait for the threads at its end.
          start: start the threads immediately.

        Returns:
          The threads; none if threads of an earlier call in this session are still running.
        """
        with self._lock:
            if self._running.get(sess):
                return []
            self._running[sess] = len(self.enqueue_ops)
            self.exceptions_raised = []
        threads = [
            threading.Thread(target=self._run, args=(sess, op, coord), name=f"QueueRunnerThread-{self.name}-{op.name}")
            for op in self.enqueue_ops
        ]
        if coord is not None:
            name = f"QueueRunnerThread-{self.name}-close_on_stop"
            threads.append(threading.Thread(target=self._close_on_stop, args=(sess, self.cancel_op, coord), name=name))
        for thread in threads:
            if coord is not None:
                coord.register_thread(thread)
            thread.daemon = daemon
            if start:
                thread.start()
        return threads

    def _run(self, sess: object, enqueue_op: OpOrTensor, coord: Coordinator | None = None) -> None:
        try:
            enqueue = repeated(sess, enqueue_op)
            while coord is None or not coord.should_stop():
                enqueue()
        except self.queue_closed_exception_types:
            self._ended(sess, close=True)
            return
        except Exception as error:  # raised again, here or when the threads are joined
            self._ended(sess)
            if coord is not None:
                coord.request_stop(error)
                return
            _logger.error("Exception in QueueRunner: %s", error)
            with self._lock:
                self.exceptions_raised.append(error)
            raise
        self._ended(sess)

    def _ended(self, sess: Any, close: bool = False) -> None:
        with self._lock:
            self._running[sess] = self._running.get(sess, 1) - 1
            last = self._running[sess] == 0
        if close and last:
            self._quietly(sess, self.close_op)

    def _close_on_stop(self, sess: object, cancel_op: OpOrTensor, coord: Coordinator) -> None:
        coord.wait_for_stop()
        self._quietly(sess, cancel_op)

    @staticmethod
    def _quietly(sess: Any, op: Any) -> None:
        """Closes a queue; ignores errors if its session is closed or its task was lost."""
        try:
            sess.run(op)
        except (OpError, RuntimeError) as error:
            _logger.debug("Ignored exception: %s", error)

    def to_proto(self, export_scope: str | None = None) -> Any:
        """Returns a ``QueueRunnerDef``; None if the queue is outside ``export_scope``."""
        if export_scope is not None and not self.name.startswith(export_scope):
            return None

        def strip(name: str) -> str:
            return name.removeprefix(f"{export_scope}/") if export_scope else name

        return QueueRunnerDef(
            queue_name=strip(self.name),
            enqueue_op_name=[strip(op.name) for op in self.enqueue_ops],
            close_op_name=strip(self.close_op.name),
            cancel_op_name=strip(self.cancel_op.name),
            queue_closed_exception_types=[getattr(t, "code", 0) for t in self.queue_closed_exception_types],
        )

    @staticmethod
    def from_proto(queue_runner_def: QueueRunnerDef, import_scope: str | None = None) -> QueueRunner:
        """Returns a queue runner described by a ``QueueRunnerDef``; its operations must be in the default graph."""
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Adds a queue runner for `start_queue_runners` to find."""
    get_default_graph().add_to_collection(collection, qr)


def start_queue_runners(
    sess: SessionLike | None = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:
    """Starts the threads of all queue runners of the graph.

    Args:
      sess: the session they run in; the default one if None.
      coord, daemon, start: as for `QueueRunner.create_threads`.
      collection: where the queue runners are.

    Raises:
      ValueError: there is no session.
      TypeError: ``sess`` is not a session.
    """
    sess = sess or get_default_session()
    if sess is None:
        raise ValueError(
            "Cannot start queue runners: No default session is registered. Use `with sess.as_default()` or pass an "
            "explicit session to tf.start_queue_runners(sess=sess)"
        )
    if hasattr(sess, "run_step_fn"):
        return []  # a monitored session has started them itself
    if not isinstance(sess, BaseSession):
        raise TypeError(f"sess must be a `tf.Session` object. Given class: {type(sess)}")
    runners = get_default_graph().get_collection(collection)
    if not runners:
        _logger.warning("`tf.train.start_queue_runners()` was called when no queue runners were defined.")
    threads: list[threading.Thread] = []
    with sess.graph.as_default():
        for runner in runners:
            threads.extend(runner.create_threads(sess, coord=coord, daemon=daemon, start=start))
    return threads
