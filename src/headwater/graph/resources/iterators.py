"""Iterators, as a task keeps them between steps: they go over a dataset, one element a step."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from typing import Any
from weakref import WeakValueDictionary

from headwater.data.functions import Filter, Interleave, Map, Scan, TakeWhile
from headwater.data.node import Context, Element, Node, block_rows, rows_of
from headwater.data.prefetch import Prefetch, prefetched
from headwater.data.sources import Generated
from headwater.errors import FailedPreconditionError, NotFoundError, OpError, OutOfRangeError

_AHEAD = 2
_handles: WeakValueDictionary[str, IteratorState] = WeakValueDictionary()


class IteratorState:
    """Where in a dataset the steps of a session are.

    Args:
      name: for messages.

    Attributes:
      handle: text that names it within this process.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.handle: str = f"iterator {name} {secrets.token_hex(8)}"
        self._lock = threading.Lock()
        self._context = Context()
        self._elements: Iterator[Element] | None = None
        self._failure: OpError | None = None
        _handles[self.handle] = self

    def start(self, node: Node, host: Any) -> None:
        """Begins with the first element of a dataset."""
        with self._lock:
            self._close()
            self._context = Context(host)
            self._elements = ahead(node, self._context)
            self._failure = None

    def start_once(self, make: Any, host: Any) -> None:
        """Begins with the dataset that ``make()`` gives, unless it has begun already."""
        with self._lock:
            begun = self._elements is not None or self._failure is not None
        if not begun:
            self.start(make(), host)

    def next(self, host: Any) -> Element:
        """The next element.

        Raises:
          OutOfRangeError: there is none.
          FailedPreconditionError: no dataset was given yet.
          OpError: what making the element raises; the iterator has no more elements then.
        """
        with self._lock:
            if self._failure is not None:
                raise type(self._failure)(None, None, self._failure.message)
            if self._elements is None:
                raise FailedPreconditionError(
                    None,
                    None,
                    "GetNext() failed because the iterator has not been initialized. Ensure that you have run the "
                    "initializer operation for this iterator before getting the next element.",
                )
            self._context.host = host
            try:
                element = next(self._elements, None)
            except OpError as error:
                self._failure = error
                raise
            if element is None:
                self._failure = OutOfRangeError(None, None, "End of sequence")
                raise self._failure
            return element

    def _close(self) -> None:
        close = getattr(self._elements, "close", None)
        if close is not None:
            close()
        self._elements = None

    def close_now(self) -> None:
        """Ends its files and threads."""
        with self._lock:
            self._close()


def iterator_of(handle: str) -> IteratorState:
    """The iterator with this handle; NotFoundError when it is not one of this process, or no more."""
    found: IteratorState | None = _handles.get(handle)
    if found is None:
        raise NotFoundError(None, None, f"{handle!r} is no handle of an iterator in this process")
    return found


def ahead(node: Node, context: Context) -> Iterator[Element]:
    """The elements, with a thread that makes some ahead where no program can see that it does."""
    if isinstance(node, Prefetch) or not _quiet(node):
        return node.elements(context)
    if node.columnar:
        return rows_of(prefetched(lambda: node.blocks(context, block_rows(node.specs)), _AHEAD))
    return prefetched(lambda: node.elements(context), _AHEAD)


def _quiet(node: Node) -> bool:
    """Whether making elements has no effect but the elements."""
    if isinstance(node, Generated):
        return False
    if isinstance(node, Map | Filter | Scan | TakeWhile | Interleave) and not getattr(node.function, "quiet", False):
        return False
    return all(map(_quiet, node.nodes()))
