"""Elements made ahead of time, by a thread in the background."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from headwater.data.node import Block, Context, Element, closing
from headwater.data.transforms import Wrapper
from headwater.dtypes import DType, int64
from headwater.errors import InvalidArgumentError

AUTOTUNE: Final = -1
_GOOD_SIZE: Final = 2
_JOIN_S: Final = 5.0


class _Ahead:
    """What the thread in the background and the one that takes elements share."""

    def __init__(self, size: int) -> None:
        self.changed = threading.Condition()
        self.size = size
        self.items: deque[Any] = deque()
        self.error: BaseException | None = None
        self.ended = False
        self.stopped = False

    def fill(self, start: Callable[[], Iterator[Any]]) -> None:
        error: BaseException | None = None
        try:
            with closing(start()) as source:
                for item in source:
                    with self.changed:
                        self.items.append(item)
                        self.changed.notify_all()
                        self.changed.wait_for(lambda: self.stopped or len(self.items) < self.size)
                        if self.stopped:
                            return
        except BaseException as caught:  # noqa: BLE001 - it is raised again where the elements are taken
            error = caught
        finally:
            with self.changed:
                self.error, self.ended = error, True
                self.changed.notify_all()


def prefetched(start: Callable[[], Iterator[Any]], size: int) -> Generator[Any]:
    """The items of an iterator, up to ``size`` of them made ahead by a thread, which ends with this generator.

    Args:
      start: gives the iterator; called in that thread, where it also ends.
      size: at least 1.
    """
    shared = _Ahead(max(1, size))
    thread = threading.Thread(target=shared.fill, args=(start,), name="headwater-data-prefetch", daemon=True)
    thread.start()
    try:
        while True:
            with shared.changed:
                shared.changed.wait_for(lambda: bool(shared.items) or shared.ended)
                if not shared.items:
                    break
                item = shared.items.popleft()
                shared.changed.notify_all()
            yield item
        if shared.error is not None:
            raise shared.error
    finally:
        with shared.changed:
            shared.stopped = True
            shared.changed.notify_all()
        if thread is not threading.current_thread():
            # A source that waits for something that never comes ends with the process.
            thread.join(_JOIN_S)


@dataclass(eq=False, kw_only=True)
class Prefetch(Wrapper):
    """The elements, of which up to ``buffer_size`` are made ahead; -1 for a good number, 0 for none."""

    values: ClassVar[dict[str, DType | None]] = {"buffer_size": int64}
    buffer_size: Any

    @property
    def cardinality(self) -> int:
        return self.input.cardinality

    def _size(self) -> int:
        size = int(self.buffer_size)
        if size < AUTOTUNE:
            raise InvalidArgumentError(None, None, f"buffer_size must be >= 0, or -1 for a good number, not {size}")
        return size

    def elements(self, context: Context) -> Iterator[Element]:
        size = self._size()
        if size == 0:
            return self.input.elements(context)
        return prefetched(lambda: self.input.elements(context), _GOOD_SIZE if size < 0 else size)

    def blocks(self, context: Context, rows: int) -> Iterator[Block]:
        size = self._size()
        if size == 0:
            return self.input.blocks(context, rows)
        ahead = _GOOD_SIZE if size < 0 else -(-size // rows)
        return prefetched(lambda: self.input.blocks(context, rows), ahead)
