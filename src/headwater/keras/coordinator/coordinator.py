"""`ClusterCoordinator`: the chief schedules function calls on all workers.

Every task runs the same program, but only the chief runs all of it. A ``ps`` serves within the constructor, which does
not return. A worker runs the program up to its first `ClusterCoordinator.schedule`, `join` or `fetch`. By then it has
created the same models and registered the same functions as the chief; the worker then serves the chief's calls within
this method, which does not return. Only names and arguments of functions are sent, not the functions.

::

    coordinator = ClusterCoordinator(strategy)          # after the models

    @coordinator.register
    def step(iterator):
        return model.train_on_batch(*next(iterator))

    batches = iter(coordinator.create_per_worker_dataset(make_dataset))
    losses = [coordinator.schedule(step, args=(batches,)) for _ in range(1000)]
    coordinator.join()
    print(coordinator.fetch(losses[-1]))
"""

from __future__ import annotations

import atexit
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from headwater.cluster.task.answers import bad_header, raise_error
from headwater.cluster.task.kinds import CALL, DONE, END_CALLS, ERROR, OPEN_CALLS
from headwater.cluster.task.links import WaitingLink
from headwater.cluster.task.memory_servers import MemoryLink, MemoryServers
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.errors import CancelledError, OpError, UnavailableError
from headwater.keras.coordinator.calls import CallServer, Registry, name_of
from headwater.keras.coordinator.values import PerWorker, decode, encode

if TYPE_CHECKING:
    from headwater.keras.parameter_server.strategy import ParameterServerStrategy

_log = logging.getLogger("headwater")

_LOG_INTERVAL_S = 5.0

F = TypeVar("F", bound=Callable[..., Any])


class RemoteValue:
    """The result of a scheduled function."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._value: object = None
        self._error: OpError | None = None

    def fetch(self) -> Any:
        """Waits for the value and returns it.

        Raises:
          OpError: the function failed, or was cancelled (`CancelledError`) because another function had failed.
        """
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._value

    def get(self) -> Any:
        """Same as `fetch`."""
        return self.fetch()

    def set_result(self, value: object, error: OpError | None = None) -> None:
        """Sets the value, or the error of the call."""
        self._value, self._error = value, error
        self._done.set()


class PerWorkerDataset:
    """A dataset that each worker creates locally; `iter` returns a reference to one iterator in each worker."""

    def __init__(self, number: int) -> None:
        self.reference: PerWorker = PerWorker(number)
        self._iterators = 0

    def __iter__(self) -> PerWorkerIterator:
        self._iterators += 1
        return PerWorkerIterator(PerWorker(self.reference.dataset, self._iterators - 1))


class PerWorkerIterator:
    """A reference to each worker's iterator, to be passed to scheduled functions."""

    def __init__(self, reference: PerWorker) -> None:
        self.reference = reference

    def __iter__(self) -> PerWorkerIterator:
        return self

    def __next__(self) -> Any:
        raise TypeError("the batches of a per-worker dataset are on the workers: pass its iterator to schedule()")


class _Call:
    def __init__(self, name: str, args: Sequence[object], kwargs: dict[str, object]) -> None:
        self.name = name
        self.args = tuple(args)
        self.kwargs = kwargs
        self.result = RemoteValue()


class ClusterCoordinator:
    """Schedules function calls on the next free worker.

    A call on a worker that is lost is repeated on another worker, so its effects may occur twice. Without a cluster, a
    thread of this process is the only worker.

    Args:
      strategy: the strategy with the workers; on a ``ps``, the constructor serves its models.
      registry: the functions that may be called; a new registry if None.

    Raises:
      SystemExit: on a ``ps``, when the job is over.
    """

    def __init__(self, strategy: ParameterServerStrategy, registry: Registry | None = None) -> None:
        self._strategy = strategy
        self._registry = registry or Registry()
        self._changed = threading.Condition()
        self._queue: deque[_Call] = deque()
        self._running = 0
        self._error: OpError | None = None
        self._none_left: OpError | None = None
        self._workers: set[str] = set()
        self._ended = False
        self._connected = 0
        self._server: CallServer | None = None
        task = strategy.task
        if task is not None and task.members.is_server:
            strategy.serve_models()
            task.serve()
        if task is not None and not task.members.is_chief:
            self._server = CallServer(str(task.members.me), self._registry)
            task.shell.add_service(self._server)
            return
        strategy.connect_models()
        others = task.members.workers[1:] if task is not None else []
        # Add all workers before the first thread starts. Otherwise a thread whose worker cannot be reached could assume
        # that no worker is left.
        self._workers.update(map(str, others))
        for name in others:
            assert task is not None
            self._start(str(name), task.shell.link(name))
        if not others:
            server = CallServer("/job:worker/task:0", self._registry)
            server.start()
            servers = MemoryServers(["this process"], lambda _, channel, first: server.serve(channel, first))
            self._start(*servers.links()[0])
        atexit.register(self.close)

    def _start(self, task: str, link: WaitingLink | MemoryLink) -> None:
        self._workers.add(task)
        threading.Thread(target=self._work, args=(task, link), name=f"calls of {task}", daemon=True).start()

    @property
    def strategy(self) -> ParameterServerStrategy:
        """The strategy."""
        return self._strategy

    def register(self, function: F) -> F:
        """Registers ``function``, so that workers can call it, and returns it.

        `schedule` registers its function, too. But a worker's first `schedule` serves and does not return, so functions
        that the program schedules later must be registered before it.
        """
        self._registry.add(function)
        return function

    def create_per_worker_dataset(self, dataset_fn: Callable[[], object]) -> PerWorkerDataset:
        """Returns a dataset that each worker creates with ``dataset_fn`` at its first use and after each restart."""
        return PerWorkerDataset(self._registry.add_dataset(dataset_fn))

    def schedule(self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None) -> RemoteValue:
        """Schedules a call of ``fn`` on any worker; does not wait for it.

        Args:
          fn: a function of the program.
          args: numbers, strings, arrays, structures of these, per-worker datasets and iterators, and remote values,
            which are replaced by their values.
          kwargs: like ``args``, by name.

        Raises:
          OpError: a function that was scheduled before failed.
          SystemExit: on a worker, which serves in this call: the coordinator has ended.
        """
        self._registry.add(fn)
        self._serve_here()
        call = _Call(name_of(fn), args or (), dict(kwargs or {}))
        with self._changed:
            self._raise_error()
            self._queue.append(call)
            self._changed.notify_all()
        return call.result

    def join(self) -> None:
        """Waits for all scheduled calls; then reads the values of the strategy's models from the ``ps``.

        Raises:
          OpError: a function failed; calls that had not begun are cancelled.
          UnavailableError: no worker is left; all scheduled calls are cancelled.
        """
        self._serve_here()
        with self._changed:
            while not self._changed.wait_for(lambda: not self._queue and not self._running, _LOG_INTERVAL_S):
                _log.warning(
                    "The coordinator waits for %d functions, of which %d are with a worker; %d of these workers are "
                    "connected: %s",
                    len(self._queue) + self._running,
                    self._running,
                    self._connected,
                    ", ".join(sorted(self._workers)),
                )
            self._raise_error()
        self._strategy.sync_models()

    def done(self) -> bool:
        """Returns whether all scheduled calls are done; raises the same errors as `join`."""
        self._serve_here()
        with self._changed:
            self._raise_error()
            return not self._queue and not self._running

    def fetch(self, val: object) -> Any:
        """Waits for all remote values in ``val`` and replaces them by their values; raises as `RemoteValue.fetch`."""
        self._serve_here()
        return _map_leaves(lambda leaf: leaf.fetch() if isinstance(leaf, RemoteValue) else leaf, val)

    def close(self) -> None:
        """Ends the workers' programs. Called automatically when the process ends."""
        atexit.unregister(self.close)
        with self._changed:
            self._ended = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._connected)

    def _serve_here(self) -> None:
        if self._server is not None:
            self._server.run()

    def _raise_error(self) -> None:
        if self._none_left is not None:
            raise self._none_left
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    # A worker's thread ------------------------------------------------------------------------------------------------

    def _work(self, task: str, link: WaitingLink | MemoryLink) -> None:
        while True:
            try:
                link.reach()
                channel = link.open_channel()
            except OpError as error:
                # The worker did not connect before the deadline; the other workers make the calls.
                _log.warning("%s does not take part: %s", task, error.message)
                self._remove_worker(task, error)
                return
            with self._changed:
                self._connected += 1
            over = self._run_calls(task, channel)
            link.release_channel(channel, False)
            with self._changed:
                self._connected -= 1
                self._changed.notify_all()
            if over:
                return

    def _run_calls(self, task: str, channel: Channel) -> bool:
        """Performs calls on a channel; returns True when no calls are left, False if the channel has broken."""
        call: _Call | None = None
        try:
            channel.send(Frame(OPEN_CALLS))
            while (call := self._next()) is not None:
                try:
                    self._finish(call, self._execute(channel, call), None)
                except UnavailableError:
                    raise
                except OpError as error:
                    self._finish(call, None, error)
            channel.send(Frame(END_CALLS))
            channel.recv()
        except UnavailableError as error:
            if call is not None:
                _log.warning(
                    "%s was lost while it ran %s, which another worker repeats: %s", task, call.name, error.message
                )
                self._requeue(call)
            return self._ended
        except OpError as error:
            _log.debug("cannot notify %s that the coordinator has stopped: %s", task, error.message)
        return True

    def _next(self) -> _Call | None:
        """Waits for the next call; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._ended)
            if not self._queue:
                return None
            self._running += 1
            return self._queue.popleft()

    def _remove_worker(self, task: str, error: OpError) -> None:
        """Removes a worker; if it was the last one, fails all scheduled calls."""
        with self._changed:
            self._workers.discard(task)
            if self._workers or self._ended:
                return
            self._none_left = UnavailableError(f"no worker is left to call functions: {error.message}")
            self._fail_waiting_calls(self._none_left)
            self._changed.notify_all()

    def _fail_waiting_calls(self, error: OpError) -> None:
        """Fails all calls that have not begun with ``error``. Called with the lock held."""
        while self._queue:
            self._queue.popleft().result.set_result(None, error)

    def _requeue(self, call: _Call) -> None:
        with self._changed:
            self._running -= 1
            self._queue.appendleft(call)
            self._changed.notify_all()

    def _finish(self, call: _Call, value: object, error: OpError | None) -> None:
        call.result.set_result(value, error)
        with self._changed:
            self._running -= 1
            if error is not None and self._error is None:
                self._error = error
                self._fail_waiting_calls(CancelledError(f"{call.name}, scheduled before, failed: {error.message}"))
            self._changed.notify_all()

    def _execute(self, channel: Channel, call: _Call) -> object:
        # Wait for the results of other calls among the arguments first.
        args, kwargs = _plain(call.args), _plain(call.kwargs)
        return self.exchange(channel, call.name, args, kwargs)

    def exchange(self, channel: Channel, name: str, args: object, kwargs: object) -> Any:
        """Calls a function on a worker, and returns its result.

        Raises:
          OpError: the function failed, or the worker is lost.
        """
        arrays: list[Any] = []
        channel.send(Frame(CALL, (name, encode((args, kwargs), arrays)), arrays))
        answer = channel.recv()
        if answer.kind == ERROR:
            raise_error(answer, channel.peer)
        match answer.kind, answer.header:
            case int(kind), (result,) if kind == DONE:
                return decode(result, answer.tensors, _nowhere)
            case _:
                raise bad_header(answer, channel.peer)


def _plain(value: object) -> object:
    """Replaces per-worker values in ``value`` by references, and remote values by their fetched values."""

    def plain(leaf: object) -> object:
        if isinstance(leaf, RemoteValue):
            return leaf.fetch()
        return leaf.reference if isinstance(leaf, (PerWorkerDataset, PerWorkerIterator)) else leaf

    return _map_leaves(plain, value)


def _map_leaves(function: Callable[[Any], Any], value: object) -> object:
    """Applies ``function`` to each leaf of ``value``; lists, tuples, named tuples and dicts are structures."""
    structure: Any = value
    if isinstance(value, (list, tuple)):
        items = [_map_leaves(function, item) for item in structure]
        return type(structure)(*items) if hasattr(structure, "_fields") else type(structure)(items)
    if isinstance(value, dict):
        return {key: _map_leaves(function, item) for key, item in structure.items()}
    return function(value)


def _nowhere(what: PerWorker) -> object:
    raise CancelledError(f"dataset {what.dataset} is on the worker that made it")
