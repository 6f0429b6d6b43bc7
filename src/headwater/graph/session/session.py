"""Sessions as in TensorFlow 1.15: connections of a client to a master, which runs operations."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headwater.cluster.telemetry.step_stats import StepTrace
from headwater.errors import CancelledError, InvalidArgumentError, NotFoundError, OpError
from headwater.graph import context
from headwater.graph.graph import Graph
from headwater.graph.master.master import error_with_op
from headwater.graph.master.remote import SCHEME, RemoteMaster
from headwater.graph.master.session_config import device_counts, process_settings, session_options
from headwater.graph.master.targets import Master, OpenSession, Runnable, local_master
from headwater.graph.runtime.process import configure
from headwater.graph.session.default_config import default_config
from headwater.graph.session.fetches import FedTensor, Fetches, cache_key, expand_feeds, make_request, to_result
from headwater.graph.session.partial_run import PartialRun
from headwater.graph.session.run_metadata import wanted_metadata
from headwater.graph.types import FeedDict
from headwater.tensorboard_protos import config_pb2


@dataclass(frozen=True, slots=True)
class DeviceAttributes:
    """A device that a session may use.

    Attributes:
      name: full name.
      device_type: ``CPU`` or ``GPU``.
      memory_limit_bytes: limit of memory use, in bytes; 0 if unknown.
      incarnation: 0; kept for compatibility.
    """

    name: str
    device_type: str
    memory_limit_bytes: int = 0
    incarnation: int = 0


class _Runner:
    """A structure of fetches and a set of feeds, prepared to run many times.

    Attributes:
      one_each: whether each value of the feed_dict feeds one tensor, in the order of the feeds, so that the feed_dict
        need not be expanded.
    """

    __slots__ = ("feeds", "fetches", "one_each", "prepared")

    def __init__(self, fetches: Fetches, feeds: Sequence[FedTensor], one_each: bool, prepared: Runnable | None) -> None:
        self.fetches = fetches
        self.feeds = feeds
        self.one_each = one_each
        self.prepared = prepared


class BaseSession:
    """Runs operations of one graph.

    Args:
      target: the master: empty for this process, otherwise a server's target such as ``grpc://localhost:2222``.
      graph: the graph; the default graph if None.
      config: a ``ConfigProto``. ``allow_soft_placement``, ``log_device_placement``, ``device_filters``,
        ``operation_timeout_in_ms`` and ``isolate_session_state`` apply to the session. ``device_count`` applies if the
        session has no target. ``intra_op_parallelism_threads`` and ``gpu_options`` apply to the process, unless an
        earlier session has set them.

    Raises:
      TypeError: an argument has the wrong type.

    Attributes:
      sess_str: the target.
    """

    #: Whether steps resume after lost connections; see ``resumes`` in `headwater.graph.master.master.SessionOptions`.
    _steps_resume = False

    def __init__(self, target: str = "", graph: Graph | None = None, config: object = None) -> None:
        if graph is not None and not isinstance(graph, Graph):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"graph must be a tf.Graph, but got {type(graph)}")
        if config is not None and not isinstance(config, config_pb2.ConfigProto):
            raise TypeError(f"config must be a tf.ConfigProto, but got {type(config)}")
        if isinstance(target, bytes):
            target = target.decode()
        if not isinstance(target, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"target must be a string, but got {type(target)}")
        self.graph: Graph = context.get_default_graph() if graph is None else graph
        self.sess_str: str = target
        config = default_config() if config is None else config
        self._config: object = config
        self._options = replace(session_options(config), resumes=self._steps_resume)
        configure(process_settings(config))
        self._opened: OpenSession | None = _master(target, config).open(self.graph, self._options)
        self._given_up_for: OpError | None = None
        self._runners: dict[object, _Runner] = {}
        self._partial: dict[str, PartialRun] = {}
        self._parts: dict[object, Runnable] = {}

    @property
    def graph_def(self) -> Any:
        return self.graph.as_graph_def()

    def run(
        self, fetches: object, feed_dict: FeedDict | None = None, options: object = None, run_metadata: object = None
    ) -> Any:
        """Runs one step.

        Args:
          fetches: a tensor, operation, variable, or name of one, or lists, tuples, dicts and named tuples of these.
          feed_dict: values for tensors, used instead of computing them.
          options: a ``RunOptions``; ``timeout_in_ms``, ``trace_level`` and ``output_partition_graphs`` are used.
          run_metadata: a ``RunMetadata`` to fill in; unchanged if no option requests any part of it. The three trace
            levels are equivalent: each records the times of every executable and operation on every task. Operations
            that XLA has fused have one entry, named after the last of them. ``build_cost_model`` of the session's
            ``GraphOptions`` adds costs (`headwater.graph.session.run_metadata`).

        Returns:
          The same structure with NumPy values for tensors and None for operations.

        Raises:
          RuntimeError: the session is closed, or the graph is empty.
          TypeError, ValueError: a fetch or feed is not in this graph, or a fed value has an incompatible type or shape.
          OpError: the step has failed.
        """
        key = (cache_key(fetches), *feed_dict) if feed_dict else cache_key(fetches)
        runner = self._runners.get(key)
        if runner is None:
            runner = self._make_runner(fetches, feed_dict or {})
            self._runners[key] = runner
        if feed_dict:
            values = feed_dict.values() if runner.one_each else expand_feeds(self.graph, feed_dict).values()
            arrays = [feed.array(value) for feed, value in zip(runner.feeds, values, strict=True)]
        else:
            arrays = ()
        return self._run(runner, arrays, options, run_metadata)

    def make_callable(
        self, fetches: object, feed_list: Sequence[object] | None = None, accept_options: bool = False
    ) -> Callable[..., object]:
        """Returns a function that runs ``fetches`` with its arguments as the values of ``feed_list``.

        Args:
          fetches: see `run`.
          feed_list: the tensors that the function's arguments feed, in order.
          accept_options: whether the function also takes ``options`` and ``run_metadata``.
        """
        if feed_list is not None and not isinstance(feed_list, list | tuple):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("`feed_list` must be a list or tuple.")
        runner = self._make_runner(fetches, dict.fromkeys(feed_list or ()))
        feeds = runner.feeds

        def call(*args: Any, **kwargs: Any) -> Any:
            options, metadata = (kwargs.get("options"), kwargs.get("run_metadata")) if accept_options else (None, None)
            if len(args) != len(feeds):
                raise TypeError(f"the callable takes {len(feeds)} values to feed, {len(args)} given")
            arrays = [feed.array(value) for feed, value in zip(feeds, args, strict=True)]
            return self._run(runner, arrays, options, metadata)

        return call

    def partial_run_setup(self, fetches: object, feeds: Sequence[object] | None = None) -> str:
        """Prepares a step to be run in parts with `partial_run`; returns its handle.

        Args:
          fetches: everything that any part will fetch, in any structure.
          feeds: the tensors that parts will feed.

        Raises:
          InvalidArgumentError: there is nothing to fetch.
          RuntimeError: the session is closed.
        """
        self._require_open()
        wanted = Fetches(self.graph, fetches)
        partial = PartialRun(wanted.tensors, list(expand_feeds(self.graph, dict.fromkeys(feeds or ()))))
        self._partial[partial.handle] = partial
        return partial.handle

    def partial_run(self, handle: str, fetches: object, feed_dict: FeedDict | None = None) -> Any:
        """Runs the next part of a step. Every operation runs in the first part that needs it, and in no other part.

        Args:
          handle: the result of `partial_run_setup`.
          fetches: some of the announced fetches.
          feed_dict: values of some of the announced feeds.

        Returns:
          The structure of ``fetches`` with NumPy values.

        Raises:
          InvalidArgumentError: there is no such step, or it has ended; a tensor was fed or fetched before, or was not
            announced; or ``fetches`` depend on tensors that were not fed yet.
          RuntimeError: ``fetches`` has operations; or the session is closed.
          OpError: this part has failed.
        """
        opened = self._require_open()
        partial = self._partial.get(handle)
        if partial is None:
            raise InvalidArgumentError("Must run 'setup' before performing partial runs!")
        wanted = Fetches(self.graph, fetches)
        if wanted.targets:
            raise RuntimeError("partial_run() requires empty target_list.")
        fed = {t: FedTensor(t).array(value) for t, value in expand_feeds(self.graph, feed_dict or {}).items()}
        part = partial.next_part(wanted.tensors, fed)
        try:
            values: Sequence[object] = ()
            if part is not None:
                key = "part", part[0], self.graph.version
                prepared = self._parts.get(key) or opened.prepare(part[0])
                self._parts[key] = prepared
                values = prepared.run(part[1])
        except OpError as error:
            raise self._explain_error(error) from None
        found = partial.finish(part and part[0], wanted.tensors, values)
        if partial.is_over:
            del self._partial[handle]
        return wanted.rebuild([to_result(value) for value in found])

    def make_repeated(self, enqueue_op: object, block: int) -> Callable[[], object]:
        """Returns a function that runs an operation that fills a queue, for a thread that calls it in a loop.

        Args:
          enqueue_op: the operation.
          block: maximum number of runs that one call may combine, if the graph allows it.
        """
        runner = self._make_runner(enqueue_op, {}, block)
        return lambda: self._run(runner, (), None)

    def _make_runner(self, fetches: object, feed_dict: FeedDict, block: int = 1) -> _Runner:
        self._require_open()
        empty = RuntimeError("The Session graph is empty. Add operations to the graph before calling run().")
        with self.as_default():  # some types of fetches keep the session, others add operations
            try:
                wanted = Fetches(self.graph, fetches)
            except (KeyError, TypeError, ValueError):
                if not self.graph.version:
                    raise empty from None
                raise
        if not self.graph.version:
            raise empty
        expanded = expand_feeds(self.graph, feed_dict)
        feeds = [FedTensor(tensor) for tensor in expanded]
        one_each = [id(value) for value in expanded.values()] == [id(value) for value in feed_dict.values()]
        if not wanted.tensors and not wanted.targets:
            return _Runner(wanted, feeds, one_each, None)
        return _Runner(wanted, feeds, one_each, self._prepare(wanted, feeds, block))

    def _prepare(self, wanted: Fetches, feeds: Sequence[FedTensor], block: int) -> Runnable:
        try:
            return self._require_open().prepare(make_request(wanted, feeds, block))
        except OpError as error:
            raise self._explain_error(error) from None

    def _run(self, runner: _Runner, arrays: Sequence[object], options: Any, run_metadata: object = None) -> object:
        if self._opened is None:
            self._require_open()
        if runner.prepared is None:
            return runner.fetches.rebuild(())
        timeout_s = options.timeout_in_ms / 1e3 if options is not None and options.timeout_in_ms else None
        wanted = None if run_metadata is None else wanted_metadata(options, self._config)
        try:
            if wanted is None:
                values = runner.prepared.run(arrays, timeout_s)
            else:
                trace = StepTrace(graphs=wanted.partitions or wanted.costs)
                values = runner.prepared.run(arrays, timeout_s, trace)
                wanted.fill(run_metadata, trace, self.graph)
        except OpError as error:
            raise self._explain_error(error) from None
        return runner.fetches.rebuild([to_result(value) for value in values])

    def _explain_error(self, error: OpError) -> OpError:
        """Returns the error to raise for the ``error`` of a step: the error because of which the session was closed, if
        any, otherwise ``error`` with its operation."""
        if self._given_up_for is not None and isinstance(error, CancelledError):
            return self._given_up_for
        return error_with_op(error, self.graph)

    def _require_open(self) -> OpenSession:
        if self._opened is None:
            if self._given_up_for is not None:
                raise self._given_up_for
            raise RuntimeError("Attempted to use a closed Session.")
        return self._opened

    def list_devices(self) -> list[DeviceAttributes]:
        """Returns all devices that this session may use."""
        return [
            DeviceAttributes(device.name(), device.device_type or "", 256 << 20 if device.device_type == "CPU" else 0)
            for device in self._require_open().devices()
        ]

    def as_default(self) -> Any:
        """Returns a context in which this is the thread's default session. Leaving it does not close the session."""
        return context.default_session(self)

    def close(self) -> None:
        """Ends the session; running steps raise CancelledError."""
        if self._opened is not None:
            opened, self._opened = self._opened, None
            self._runners.clear()
            self._parts.clear()
            opened.close()

    def close_with_error(self, error: OpError) -> None:
        """Ends the session because of ``error``, which running and later steps raise."""
        if self._opened is not None:
            self._given_up_for = error
            self.close()

    def __del__(self) -> None:
        # A session that is freed without `close` still has plans on other tasks. Release these in another thread. In
        # this thread it could lead to a deadlock: the garbage collector may call this method while the thread holds a
        # lock that the release needs.
        opened = getattr(self, "_opened", None)
        if opened is not None and self.sess_str and not sys.is_finalizing():
            with contextlib.suppress(RuntimeError):  # no thread can be started: the process is ending
                threading.Thread(target=opened.close, name="closes a session", daemon=True).start()


class Session(BaseSession):
    """A session, to be used as a context manager or closed with `close`. See `BaseSession` for the arguments.

    >>> from headwater import tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     x = tf.placeholder(tf.float32, [None])
    ...     print(session.run(tf.reduce_sum(2 * x), feed_dict={x: [1, 2, 3]}))
    12.0
    """

    def __init__(self, target: str = "", graph: Graph | None = None, config: object = None) -> None:
        super().__init__(target, graph, config)
        self._entered: list[Any] = []

    def __enter__(self) -> Session:
        graph_context = self.graph.as_default()
        graph_context.__enter__()
        self._entered.append(graph_context)
        context.enter_session(self)
        return self

    def __exit__(self, exc_type: object, exc_value: object, traceback: object) -> None:
        context.exit_session(self)
        self._entered.pop().__exit__(exc_type, exc_value, traceback)
        self.close()

    @staticmethod
    def reset(target: str | None, containers: Sequence[str] | None = None, config: object = None) -> None:
        """Discards the state of all tasks of ``target``'s master, and ends their sessions.

        Args:
          target: the target of a server; this process if None or empty.
          containers: names of containers to discard; all if None.
          config: a ``ConfigProto``; its ``operation_timeout_in_ms`` is used.
        """
        _master(target or "", config).reset(list(containers or ()))


class InteractiveSession(BaseSession):
    """A session that installs itself as the default session, for interactive use."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: object = None) -> None:
        super().__init__(target, graph, config)
        self._graph_context = self.graph.as_default()
        if graph is not None:
            self._graph_context.__enter__()
        self._own_graph = graph is not None
        context.enter_session(self)

    def close(self) -> None:
        if self._opened is not None:
            if context.get_default_session() is self:
                context.exit_session(self)
            if self._own_graph:
                self._graph_context.__exit__(None, None, None)
        super().close()


def _master(target: str, config: object) -> Master:
    found = local_master(target, device_counts(config))
    if found is not None:
        return found
    if target.startswith(SCHEME):
        return RemoteMaster(target, None if config is None else session_options(config).timeout_s)
    raise NotFoundError(f"a session's target is empty, or {SCHEME}host:port, and not {target!r}")
