"""The replicas of one process at the same time, each in a thread of its own, so that they can wait for each other."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_current: contextvars.ContextVar[tuple[Lockstep, int] | None] = contextvars.ContextVar("lockstep", default=None)


class Lockstep:
    """Threads that all do the same.

    Args:
      count: how many.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._barrier = threading.Barrier(count)
        self._values: list[object] = [None] * count
        self._result = None

    def run(self, body: Callable[[int], object]) -> list[Tree]:
        """What ``body`` returns for each number; raises what the first raised that failed by itself."""
        results: list[object] = [None] * self._count
        errors: list[BaseException] = []

        def work(index: int) -> None:
            _current.set((self, index))
            try:
                results[index] = body(index)
            except threading.BrokenBarrierError:  # another one failed, which says why
                return
            except BaseException as error:  # noqa: BLE001  raised again by the thread that waits
                errors.append(error)
                self._barrier.abort()

        threads = [
            threading.Thread(target=work, args=(index,), name=f"replica {index}") for index in range(self._count)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return results

    def combine(self, index: int, value: object, combination: Callable[[list[Any]], object]) -> object | None:
        """``combination`` of the values of all threads, computed once; each must call this as often as the others."""
        self._values[index] = value
        if self._barrier.wait() == 0:
            self._result = combination(list(self._values))
        self._barrier.wait()
        result = self._result
        self._barrier.wait()
        return result


def current() -> tuple[Lockstep, int] | None:
    """The lockstep that this thread is in, and its number there."""
    return _current.get()
