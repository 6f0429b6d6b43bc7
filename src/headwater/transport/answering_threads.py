"""The threads that answer calls of the control plane."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import Empty, SimpleQueue
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class AnsweringThreads(Executor):
    """Runs calls in daemon threads, which are made when they are needed.

    A task answers until its process ends: the last line of its program may have run because of what another task has
    sent, and that task still closes its session. `concurrent.futures.ThreadPoolExecutor` takes no more work from the
    last line on, which ends gRPC's own thread by an error, and the process then waits for its calls for ever.

    Args:
      most: how many threads there are at most; further calls wait for a thread.
      name: the threads' name.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._count = 0

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """As `Executor.submit`, at any moment of the process."""
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - it belongs to the future
                future.set_exception(error)
            else:
                future.set_result(result)

        self._work.put(run)
        if not self._idle.acquire(blocking=False):
            self._grow()
        return future

    def _grow(self) -> None:
        with self._lock:
            if self._count == self._most:
                return
            self._count += 1
        try:
            threading.Thread(target=self._run, name=self._name, daemon=True).start()
        except RuntimeError:  # Python 3.12 starts no thread in a process that ends; those that are there go on
            with self._lock:
                self._count -= 1

    def _run(self) -> None:
        while True:
            try:
                run = self._work.get_nowait()
            except Empty:
                self._idle.release()
                run = self._work.get()
            if run is None:
                self._work.put(None)
                return
            run()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the threads after the work that is there. Does not wait for them."""
        self._work.put(None)
