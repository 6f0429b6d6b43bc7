"""Prefetching of elements by a background thread."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from headwater.data.node import Block, Context, Element, closing, static_value
from headwater.data.parallel import Prefetchers
from headwater.data.transforms import Wrapper
from headwater.dtypes import DType, int64
from headwater.errors import InvalidArgumentError

AUTOTUNE: Final = -1
_GOOD_SIZE: Final = 2


def prefetched(start: Callable[[], Iterator[Any]], size: int) -> Generator[Any]:
    """Yields the items of an iterator. A thread prefetches up to ``size`` items; it ends with this generator.

    Args:
      start: creates the iterator; called in that thread, where the iterator is also closed. No item may be None.
      size: at least 1.
    """
    with closing(Prefetchers(1, max(1, size))) as together:
        iterator = together.open(start)
        while (item := together.next_element(iterator)) is not None:
            yield item


@dataclass(eq=False, kw_only=True)
class Prefetch(Wrapper):
    """Prefetches up to ``buffer_size`` elements; -1 for a suitable number, 0 for none."""

    values: ClassVar[dict[str, DType | None]] = {"buffer_size": int64}
    buffer_size: Any

    keeps_count: ClassVar[bool] = True

    def check(self) -> None:
        size = static_value(self.buffer_size)
        if size is not None and size < AUTOTUNE:
            raise InvalidArgumentError(f"buffer_size must be >= 0, or -1 for a good number, not {size}")

    def elements(self, context: Context) -> Iterator[Element]:
        size = int(self.buffer_size)
        if size == 0:
            return self.input.elements(context)
        return prefetched(lambda: self.input.elements(context), _GOOD_SIZE if size < 0 else size)

    def blocks(self, context: Context, rows: int) -> Iterator[Block]:
        size = int(self.buffer_size)
        if size == 0:
            return self.input.blocks(context, rows)
        ahead = _GOOD_SIZE if size < 0 else -(-size // rows)
        return prefetched(lambda: self.input.blocks(context, rows), ahead)
