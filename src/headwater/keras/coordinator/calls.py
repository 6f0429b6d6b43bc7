"""The worker's side of a coordinator: calls functions by name, one after the other.

Only functions that the worker's own program has registered can be called. Frames, after OPEN_CALLS of the coordinator::

    OPEN_CALLS  ()                      the channel is for calls
    CALL        (function, arguments)   arrays of the arguments; answered by DONE (result) with its arrays, or by ERROR
    END_CALLS   ()                      there will be no more calls; the worker's program may end
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator
from queue import SimpleQueue
from typing import Any, ClassVar, NoReturn

from headwater.cluster.task.answers import bad_header, error_frame
from headwater.cluster.task.kinds import CALL, DONE, END_CALLS, OPEN_CALLS
from headwater.cluster.task.service import Service
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.errors import CancelledError, NotFoundError, OpError, OutOfRangeError, UnavailableError, UnknownError
from headwater.keras.coordinator.values import PerWorker, decode, encode

_log = logging.getLogger("headwater")


class Registry:
    """Functions that a coordinator may call, by name, and functions that make datasets, by number."""

    def __init__(self) -> None:
        self._functions: dict[str, Callable[..., object]] = {}
        self._datasets: list[Callable[[], object]] = []

    def add(self, function: Callable[..., object]) -> str:
        """Registers a function and returns its name (see `name_of`)."""
        name = name_of(function)
        self._functions[name] = function
        return name

    def add_dataset(self, make: Callable[[], object]) -> int:
        """Registers a function that creates a dataset, and returns the function's number."""
        self._datasets.append(make)
        return len(self._datasets) - 1

    def find(self, name: str) -> Callable[..., Any]:
        """Returns a registered function.

        Raises:
          NotFoundError: no function of that name is registered.
        """
        if name not in self._functions:
            raise NotFoundError(
                f"this worker's program has not registered {name!r} before it began to serve; put "
                "@coordinator.register before the function, above the first schedule()"
            )
        return self._functions[name]

    def dataset(self, number: int) -> Any:
        """Creates a dataset.

        Raises:
          NotFoundError: no dataset of that number is registered.
        """
        if not 0 <= number < len(self._datasets):
            raise NotFoundError(f"this worker's program has created no dataset {number}")
        return self._datasets[number]()


def name_of(function: Callable[..., object]) -> str:
    """Returns the name of a function, equal on all tasks: its module and qualified name."""
    inner: Any = getattr(function, "__wrapped__", function)
    return f"{inner.__module__}.{inner.__qualname__}"


class CallServer(Service):
    """Calls functions for a coordinator.

    Args:
      task: this task's name.
      registry: the functions that may be called.
    """

    kinds: ClassVar[Collection[int]] = (OPEN_CALLS,)

    def __init__(self, task: str, registry: Registry) -> None:
        self._task = task
        self._registry = registry
        self._ready = threading.Event()
        self._over: SimpleQueue[None] = SimpleQueue()
        self._datasets: dict[int, Any] = {}
        self._iterators: dict[tuple[int, int], Iterator[Any]] = {}

    def run(self) -> NoReturn:
        """Serves until the coordinator has ended.

        Raises:
          SystemExit: the coordinator has ended.
        """
        self.start()
        self._over.get()
        raise SystemExit(0)

    def start(self) -> None:
        """Starts to answer calls; the program must have registered its functions."""
        self._ready.set()

    def serve(self, channel: Channel, first: Frame) -> None:
        """Answers the calls of a channel."""
        del first
        # Wait until `start` was called: before that, the program may still be registering functions.
        self._ready.wait()
        # A new incarnation of the coordinator numbers its iterators from 0 again.
        self._datasets, self._iterators = {}, {}
        while True:
            frame = channel.recv()
            if frame.kind == END_CALLS:
                channel.send(Frame(DONE))
                self._over.put(None)
                return
            channel.send(self._call(channel, frame))

    def _call(self, channel: Channel, frame: Frame) -> Frame:
        match frame.kind, frame.header:
            case int(kind), (str(name), arguments) if kind == CALL:
                pass
            case _:
                raise bad_header(frame, channel.peer)
        try:
            function = self._registry.find(name)
            args, kwargs = decode(arguments, frame.tensors, self._local)
            arrays: list[Any] = []
            return Frame(DONE, (encode(function(*args, **kwargs), arrays),), arrays)
        except StopIteration:
            return error_frame(0, OutOfRangeError(f"a dataset ended in {name}"), self._task)
        except UnavailableError as error:
            # Convert the error, which the function itself has raised: the coordinator must not take it for the loss of
            # this worker.
            return error_frame(0, UnknownError(f"in {name}: {error.message}"), self._task)
        except (OpError, CancelledError) as error:
            return error_frame(0, error, self._task)
        except Exception as error:  # noqa: BLE001 - any error must be reported to the coordinator
            _log.exception("%s: %s failed", self._task, name)
            return error_frame(0, UnknownError(f"{type(error).__name__} in {name}: {error}"), self._task)

    def _local(self, what: PerWorker) -> object:
        if what.dataset not in self._datasets:
            self._datasets[what.dataset] = self._registry.dataset(what.dataset)
        if what.iterator < 0:
            return self._datasets[what.dataset]
        key = (what.dataset, what.iterator)
        if key not in self._iterators:
            self._iterators[key] = iter(self._datasets[what.dataset])
        return self._iterators[key]
