"""Runs the replicas of one process in one thread each, so that they can wait for each other.

Only one thread runs at a time: each runs up to its next exchange, in the order of the replicas' numbers. So changes of
a variable that the replicas share are serialized, while computations on the devices still overlap.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_current: contextvars.ContextVar[tuple[Lockstep, int] | None] = contextvars.ContextVar("lockstep", default=None)


class Lockstep:
    """Threads that all run the same function.

    Args:
      count: number of threads.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._changed = threading.Condition()
        self._turn = 0
        self._ended: set[int] = set()
        self._error: BaseException | None = None
        self._values: list[object] = [None] * count
        self._result: object = None

    def run(self, body: Callable[[int], object]) -> list[Tree]:
        """Returns the results of ``body`` for each number; raises the error of the first replica that failed."""
        results: list[object] = [None] * self._count

        def work(index: int) -> None:
            _current.set((self, index))
            try:
                self._wait(index)
                results[index] = body(index)
            except _OtherFailed:
                return
            except BaseException as error:  # noqa: BLE001  raised again by the thread that waits
                with self._changed:
                    self._error = self._error or error
                    self._changed.notify_all()
            else:
                self._ended.add(index)
                self._pass(index)

        threads = [
            threading.Thread(target=work, args=(index,), name=f"replica {index}") for index in range(self._count)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._error is not None:
            raise self._error
        return results

    def combine(self, index: int, value: object, combination: Callable[[list[Any]], object]) -> object:
        """Waits until all threads have called this method, and returns ``combination`` of their values, which is
        computed once. All threads must make the same calls in the same order.

        Raises:
          RuntimeError: another thread has ended without this call.
        """
        if self._ended:
            raise RuntimeError(
                f"replica {index} makes a collective call (such as all_reduce) after replica {min(self._ended)} has "
                "finished: all replicas must make the same collective calls"
            )
        self._values[index] = value
        if index == self._count - 1:
            self._result = combination(list(self._values))
        self._pass(index)
        self._wait(index)
        return self._result

    def _pass(self, index: int) -> None:
        with self._changed:
            self._turn = (index + 1) % self._count
            self._changed.notify_all()

    def _wait(self, index: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._turn == index or self._error is not None)
        if self._error is not None:
            raise _OtherFailed


class _OtherFailed(Exception):
    """Another replica has failed; its error has the reason."""


def current() -> tuple[Lockstep, int] | None:
    """Returns this thread's lockstep, and its number in it."""
    return _current.get()
