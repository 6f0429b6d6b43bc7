"""Concurrent iteration over several iterators, each with a thread that works ahead.

Elements are passed through a deque, whose ``append`` and ``popleft`` are atomic, so passing one takes no lock. A side
that must wait takes the lock and sets a flag; the other side takes the lock only if it sees the flag, to wake it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import Final

from headwater.data.node import Element, closing

_JOIN_S: Final = 5.0


class PrefetchedIterator:
    """One iterator, whose elements a thread makes ahead of time.

    Attributes:
      items: elements that were computed and not yet returned.
      ended: whether no elements follow ``items``.
      error: the error that ended the iterator; None if it was exhausted.
      full: whether its thread waits for room, which ``room`` signals.
    """

    def __init__(self, lock: threading.Lock) -> None:
        self.items: deque[Element] = deque()
        self.ended = False
        self.error: BaseException | None = None
        self.full = False
        self.room = threading.Condition(lock)

    @property
    def ready(self) -> bool:
        """Whether an element, or the end, is available without waiting."""
        return bool(self.items) or self.ended


class Prefetchers:
    """Threads that compute the elements of several iterators. `close` stops them.

    Args:
      calls: maximum number of elements computed concurrently.
      ahead: maximum number of prefetched elements of each iterator; at least 1.
    """

    def __init__(self, calls: int, ahead: int) -> None:
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._waiting = False
        self._ahead = ahead
        self._stopped = False
        self._all: list[tuple[threading.Thread, PrefetchedIterator]] = []
        self._permits: SimpleQueue[None] = SimpleQueue()
        for _ in range(calls):
            self._permits.put(None)

    def open(self, start: Callable[[], Iterator[Element]]) -> PrefetchedIterator:
        """Starts a thread that computes the elements of an iterator, which ``start`` creates in that thread."""
        iterator = PrefetchedIterator(self._lock)
        thread = threading.Thread(target=self._fill, args=(iterator, start), name="headwater-data-ahead", daemon=True)
        self._all = [each for each in self._all if each[0].is_alive()]
        self._all.append((thread, iterator))
        thread.start()
        return iterator

    def next_element(self, iterator: PrefetchedIterator) -> Element | None:
        """Returns the next element of an iterator, once it is made; None after the last.

        Raises:
          Exception: what the iterator raises, after the elements before it.
        """
        if not iterator.items:
            self.wait([iterator])
        if not iterator.items:
            if iterator.error is not None:
                raise iterator.error
            return None
        item = iterator.items.popleft()
        if iterator.full and self._has_room(iterator):
            with self._lock:
                iterator.room.notify()
        return item

    def wait(self, some: Sequence[PrefetchedIterator]) -> None:
        """Waits until one of ``some`` is ready."""
        if any(iterator.ready for iterator in some):
            return
        with self._lock:
            self._waiting = True
            self._arrived.wait_for(lambda: any(iterator.ready for iterator in some))
            self._waiting = False

    def close(
        self, current: Callable[[], threading.Thread] = threading.current_thread, wait_s: float = _JOIN_S
    ) -> None:
        """Stops the threads. A thread whose iterator blocks forever lasts until the process ends.

        Args:
          current: returns the thread of the caller. As a default argument, because an iterator that is left over is
            closed at the end of the interpreter, when names of modules no longer have values.
          wait_s: the time to wait for each thread, in seconds.
        """
        with self._lock:
            self._stopped = True
            for _, iterator in self._all:
                iterator.room.notify()
        for thread, _ in self._all:
            # A garbage collection in one of these threads may call this method there.
            if thread is not current():
                thread.join(wait_s)

    def _has_room(self, iterator: PrefetchedIterator) -> bool:
        """Returns whether a waiting thread may continue: only when half of the elements are taken, because waking it
        for each element would cost too much."""
        return len(iterator.items) <= self._ahead // 2

    def _fill(self, iterator: PrefetchedIterator, start: Callable[[], Iterator[Element]]) -> None:
        try:
            with closing(start()) as source:
                while (item := self._next(source)) is not None:
                    iterator.items.append(item)
                    self._notify_waiting()
                    if len(iterator.items) >= self._ahead:
                        self._wait_for_room(iterator)
                    if self._stopped:
                        return
        except BaseException as caught:  # noqa: BLE001 - it is raised again where the elements are taken
            iterator.error = caught
        finally:
            iterator.ended = True
            self._notify_waiting()

    def _next(self, source: Iterator[Element]) -> Element | None:
        self._permits.get()
        try:
            return next(source, None)
        finally:
            self._permits.put(None)

    def _notify_waiting(self) -> None:
        if self._waiting:
            with self._lock:
                self._arrived.notify()

    def _wait_for_room(self, iterator: PrefetchedIterator) -> None:
        with self._lock:
            iterator.full = True
            iterator.room.wait_for(lambda: self._stopped or self._has_room(iterator))
            iterator.full = False
