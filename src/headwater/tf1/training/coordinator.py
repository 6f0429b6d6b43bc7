"""`Coordinator`: several threads stop together, and the first of their errors is raised where they are joined."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Final

from headwater.errors import OutOfRangeError

_logger: Final = logging.getLogger(__name__)
_POLL_INTERVAL_S: Final = 0.1

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]


class Coordinator:
    """Coordinates threads: a stop request that all threads poll, and the first error of any thread.

    Threads run ``while not coord.should_stop()``; any calls ``request_stop``; the main thread calls ``join``.

    Args:
      clean_stop_exception_types: errors that stop the threads without a failure; by default `OutOfRangeError`, which
        a queue raises at its end.

    Attributes:
      joined: whether the threads were joined.
    """

    def __init__(self, clean_stop_exception_types: Sequence[type[BaseException]] | None = None) -> None:
        self._clean_stop_exception_types = tuple(
            (OutOfRangeError,) if clean_stop_exception_types is None else clean_stop_exception_types
        )
        self._lock = threading.Lock()
        self._stop_event = threading.Event()
        self._error: BaseException | None = None
        self.joined: bool = False
        self._registered_threads: set[threading.Thread] = set()

    def request_stop(self, ex: BaseException | ExcInfo | None = None) -> None:
        """Asks all threads to stop.

        Args:
          ex: an error, or a result of `sys.exc_info`, to be raised by `join`, which raises only the first error. After
            the threads are joined, this call raises it.
        """
        error = ex[1] if isinstance(ex, tuple) else ex
        if isinstance(error, self._clean_stop_exception_types):
            error = None
        with self._lock:
            if self.joined:
                if error is not None:
                    raise error
                return
            if not self._stop_event.is_set():
                if error is not None and self._error is None:
                    _logger.info("Error reported to Coordinator: %s, %s", type(error), error)
                    self._error = error
                self._stop_event.set()

    def clear_stop(self) -> None:
        """Clears the stop request and its error, so that further threads can be coordinated."""
        with self._lock:
            self.joined = False
            self._error = None
            self._stop_event.clear()

    def should_stop(self) -> bool:
        """Returns whether a stop was requested."""
        return self._stop_event.is_set()

    @contextmanager
    def stop_on_exception(self) -> Generator[None]:
        """Turns an error of the block into a stop request."""
        try:
            yield
        except BaseException as error:  # noqa: BLE001 - an error that ends a thread has to reach the thread that joins it
            self.request_stop(error)

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Waits for a stop request, at most ``timeout`` seconds; returns whether there is one."""
        return self._stop_event.wait(None if timeout is None else max(0.0, timeout))

    def register_thread(self, thread: threading.Thread) -> None:
        """Adds a thread for `join` to wait for."""
        with self._lock:
            self._registered_threads.add(thread)

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Waits until all threads have ended.

        Args:
          threads: to wait for besides the registered ones.
          stop_grace_period_secs: maximum time until they end after a stop request, in seconds.
          ignore_live_threads: only log threads that are alive after that.

        Raises:
          BaseException: the first error that a thread has reported.
          RuntimeError: threads are alive after the grace period; the message names them.
        """
        with self._lock:
            alive = [*self._registered_threads.union(threads or ())]
        while not self._stop_event.is_set():
            alive = [thread for thread in alive if thread.is_alive()]
            if not alive:
                break
            alive[0].join(_POLL_INTERVAL_S)
        deadline = time.monotonic() + stop_grace_period_secs
        for thread in alive:
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))
        stragglers = [thread.name for thread in alive if thread.is_alive()]
        with self._lock:
            self.joined = True
            self._registered_threads.clear()
            error = self._error
        if error is not None:
            raise error
        if stragglers:
            message = f"Coordinator stopped with threads still running: {' '.join(stragglers)}"
            if not ignore_live_threads:
                raise RuntimeError(message)
            _logger.info(message)

    def raise_requested_exception(self) -> None:
        """Raises the error reported by a thread, if any."""
        with self._lock:
            error = self._error
        if error is not None:
            raise error


class LooperThread(threading.Thread):
    """A thread that calls a function repeatedly until the coordinator stops.

    Subclasses override `start_loop`, `run_loop` and `stop_loop`.

    Args:
      coord: the coordinator; the thread registers with it.
      timer_interval_secs: seconds between the starts of two calls; None: without a pause.
      target: the function to call.
      args, kwargs: arguments of the function.

    Raises:
      ValueError: ``coord`` is not a coordinator, or there are arguments without ``target``.
    """

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., object] | None = None,
        args: Sequence[object] | None = None,
        kwargs: Mapping[str, object] | None = None,
    ) -> None:
        if not isinstance(coord, Coordinator):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"'coord' argument must be a Coordinator: {coord}")
        if target is None and (args or kwargs):
            raise ValueError("'args' and 'kwargs' argument require that you also pass 'target'")
        super().__init__(name=type(self).__name__)
        self.daemon = True
        self._coord = coord
        self._timer_interval_secs = timer_interval_secs
        self._loop_target = target
        self._loop_args = tuple(args or ())
        self._loop_kwargs = dict(kwargs or {})
        coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., object],
        args: Sequence[object] | None = None,
        kwargs: Mapping[str, object] | None = None,
    ) -> LooperThread:
        """Starts a thread that calls ``target``; see the class for the arguments."""
        looper = LooperThread(coord, timer_interval_secs, target=target, args=args, kwargs=kwargs)
        looper.start()
        return looper

    def run(self) -> None:
        with self._coord.stop_on_exception():
            self.start_loop()
            if self._timer_interval_secs is None:
                while not self._coord.should_stop():
                    self.run_loop()
            else:
                due = time.monotonic()
                while not self._coord.wait_for_stop(due - time.monotonic()):
                    due += self._timer_interval_secs
                    self.run_loop()
            self.stop_loop()

    def start_loop(self) -> None:
        """Called once, before the first iteration."""

    def stop_loop(self) -> None:
        """Called once, after the last iteration, unless there was an error."""

    def run_loop(self) -> None:
        """Runs one iteration of the loop: calls the target."""
        if self._loop_target is not None:
            self._loop_target(*self._loop_args, **self._loop_kwargs)
