"""A pool of daemon threads."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class DaemonThreads(Executor):
    """Runs calls in daemon threads, which are started when needed and reused.

    A task has to answer others until its process ends, even after the last line of its program: for example, another
    task may have requested the end, and still waits for the answer before it closes its session. At interpreter
    shutdown, `concurrent.futures.ThreadPoolExecutor` rejects calls, so that gRPC's own thread would end with an error.
    Since Python 3.12, no thread can be started during shutdown; then calls wait for idle threads.

    Args:
      name: the threads' name.
      most: maximum number of threads; further calls wait for an idle thread. None for no limit.
    """

    def __init__(self, name: str, most: int | None = None) -> None:
        self._name = name
        self._most = most
        self._changed = threading.Condition()
        self._work: deque[Callable[[], object]] = deque()
        self._count = 0
        self._idle = 0
        self._over = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submits a call as `Executor.submit` does, also at interpreter shutdown."""
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - the future raises it for the caller
                future.set_exception(error)
            else:
                future.set_result(result)

        self.start(run)
        return future

    def start(self, fn: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Runs a call and ignores its result. An exception is passed to `threading.excepthook`."""
        with self._changed:
            self._work.append(partial(fn, *args, **kwargs))
            if len(self._work) <= self._idle:
                self._changed.notify()
                return
            if self._count == self._most:
                return
            self._count += 1
        try:
            threading.Thread(target=self._run, name=self._name, daemon=True).start()
        except RuntimeError:  # at interpreter shutdown
            with self._changed:
                self._count -= 1

    def _next(self) -> Callable[[], object] | None:
        """Waits for a call; returns None after `shutdown`, when none is left."""
        with self._changed:
            self._idle += 1
            while not self._work and not self._over:
                self._changed.wait()
            self._idle -= 1
            return self._work.popleft() if self._work else None

    def _run(self) -> None:
        while (run := self._next()) is not None:
            try:
                run()
            except BaseException:  # noqa: BLE001 - report it as for any thread that ends with an exception
                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the threads once submitted calls have run. Does not wait for them."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
