"""Elements of several iterators at the same time: each has a thread that works ahead.

An element changes hands through a deque, whose ``append`` and ``popleft`` are each one step for all threads; the lock
is taken by a side that has to wait, which says so first, and by the other one to wake it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import Final

from headwater.data.node import Element, closing

_JOIN_S: Final = 5.0


class Ahead:
    """One iterator, whose elements a thread makes ahead.

    Attributes:
      items: what is made and not taken.
      ended: nothing comes any more behind ``items``.
      error: why it ended; None where there was no more.
      full: its thread waits for room, which ``room`` tells of.
    """

    def __init__(self, lock: threading.Lock) -> None:
        self.items: deque[Element] = deque()
        self.ended = False
        self.error: BaseException | None = None
        self.full = False
        self.room = threading.Condition(lock)

    @property
    def ready(self) -> bool:
        """Whether an element, or the end, can be had without waiting."""
        return bool(self.items) or self.ended


class Together:
    """Threads that make the elements of several iterators. `close` ends them.

    Args:
      calls: how many elements may be in the making at the same time.
      ahead: how many elements of each iterator are made before one is taken; at least 1.
    """

    def __init__(self, calls: int, ahead: int) -> None:
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._waiting = False
        self._ahead = ahead
        self._stopped = False
        self._all: list[tuple[threading.Thread, Ahead]] = []
        self._permits: SimpleQueue[None] = SimpleQueue()
        for _ in range(calls):
            self._permits.put(None)

    def open(self, start: Callable[[], Iterator[Element]]) -> Ahead:
        """Starts making the elements of an iterator, which ``start`` gives in the iterator's own thread."""
        made = Ahead(self._lock)
        thread = threading.Thread(target=self._fill, args=(made, start), name="headwater-data-ahead", daemon=True)
        self._all = [each for each in self._all if each[0].is_alive()]
        self._all.append((thread, made))
        thread.start()
        return made

    def take(self, made: Ahead) -> Element | None:
        """The next element of one, once it is there; None behind the last.

        Raises:
          Exception: what the iterator raised, behind the elements before it.
        """
        if not made.items:
            self.wait([made])
        if not made.items:
            if made.error is not None:
                raise made.error
            return None
        item = made.items.popleft()
        if made.full and self._has_room(made):
            with self._lock:
                made.room.notify()
        return item

    def wait(self, some: Sequence[Ahead]) -> None:
        """Waits until one of ``some`` is ready."""
        if any(made.ready for made in some):
            return
        with self._lock:
            self._waiting = True
            self._arrived.wait_for(lambda: any(made.ready for made in some))
            self._waiting = False

    def close(self) -> None:
        """Ends the threads. One whose iterator waits for something that never comes ends with the process."""
        with self._lock:
            self._stopped = True
            for _, made in self._all:
                made.room.notify()
        for thread, _ in self._all:
            if thread is not threading.current_thread():  # which may be the one that collects a generator as garbage
                thread.join(_JOIN_S)

    def _has_room(self, made: Ahead) -> bool:
        """Whether a thread that waits for room goes on: not at each element, which would wake it as often."""
        return len(made.items) <= self._ahead // 2

    def _fill(self, made: Ahead, start: Callable[[], Iterator[Element]]) -> None:
        try:
            with closing(start()) as source:
                while (item := self._next(source)) is not None:
                    made.items.append(item)
                    self._tell()
                    if len(made.items) >= self._ahead:
                        self._wait_for_room(made)
                    if self._stopped:
                        return
        except BaseException as caught:  # noqa: BLE001 - it is raised again where the elements are taken
            made.error = caught
        finally:
            made.ended = True
            self._tell()

    def _next(self, source: Iterator[Element]) -> Element | None:
        self._permits.get()
        try:
            return next(source, None)
        finally:
            self._permits.put(None)

    def _tell(self) -> None:
        if self._waiting:
            with self._lock:
                self._arrived.notify()

    def _wait_for_room(self, made: Ahead) -> None:
        with self._lock:
            made.full = True
            made.room.wait_for(lambda: self._stopped or self._has_room(made))
            made.full = False
