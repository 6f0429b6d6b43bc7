"""Iterators over datasets, one element per step."""

from __future__ import annotations

import itertools
import json
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from headwater.data.functions import Filter, Interleave, Map, Scan, TakeWhile
from headwater.data.indexed import unrepeatable
from headwater.data.node import Context, Element, Failure, Node, block_rows, closing, rows_of
from headwater.data.prefetch import Prefetch, prefetched
from headwater.data.sources import Generated
from headwater.data.transforms import Shuffle, Wrapper
from headwater.errors import DataLossError, FailedPreconditionError, NotFoundError, OpError, OutOfRangeError

Prepare = Callable[[Element], Any]
Follow = Callable[[Iterator[Element]], Iterator[Element]]

# Number of blocks, or of single elements, that are produced in advance.
_AHEAD = 2
# Weak references: a handle in a program must not keep the files and threads of a discarded iterator.
_handles: WeakValueDictionary[str, IteratorState] = WeakValueDictionary()


class _Prepared(tuple[Any, ...]):
    """An element, and the ``result`` of calling the function ``by`` with it."""

    by: Prepare
    result: Any

    @classmethod
    def of(cls, element: Element, prepare: Prepare) -> _Prepared:
        found = cls(element)
        found.by, found.result = prepare, prepare(element)
        return found


class IteratorState:
    """An iterator: the position in a dataset up to which a session's steps have taken elements.

    Args:
      name: for messages.

    Attributes:
      handle: the name of the iterator within this process.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.handle: str = f"iterator {name} {secrets.token_hex(8)}"
        self._lock = threading.Lock()
        self._context = Context()
        self._elements: Iterator[Element] | None = None
        self._failure: OpError | None = None
        self._node: Node | None = None
        self._orders: list[tuple[int, int]] = []
        self._taken = 0
        self._asked: Prepare | None = None
        self._prepare: Prepare | None = None
        _handles[self.handle] = self

    def start(self, node: Node, host: object) -> None:
        """Starts at the first element of a dataset."""
        with self._lock:
            self._start(node, host)

    def _start(self, node: Node, host: object) -> None:
        self._close()
        self._node, self._taken = node, 0
        # `saved` stores the seeds with the position, so that a restored iterator has the same order of elements.
        self._orders = [shuffle.next_order() for shuffle in _shuffles(node)]
        self._context = Context(host)
        self._prepare = None  # so that `restore` prepares no elements that it skips
        self._elements = elements_of(node, self._context, self._prepared)
        self._failure = None

    def start_once(self, make: Any, host: Any) -> None:
        """Starts with the dataset ``make()``, unless the iterator has started already."""
        with self._lock:
            begun = self._elements is not None or self._failure is not None
        if not begun:
            self.start(make(), host)

    def next(self, host: object) -> Element:
        """Returns the next element.

        Raises:
          OutOfRangeError: there are no more elements.
          FailedPreconditionError: no dataset is set.
          OpError: an error in producing the element; the next call returns the element after it.
        """
        with self._lock:
            if self._failure is not None:
                # Raise a new object in each step: raising an object adds a traceback to it, and later the operation's
                # name.
                raise type(self._failure)(self._failure.message)
            if self._elements is None:
                raise FailedPreconditionError(
                    "GetNext() failed because the iterator has not been initialized. Ensure that you have run the "
                    "initializer operation for this iterator before getting the next element."
                )
            self._context.host = host
            try:
                element = next(self._elements, None)
            except OpError as error:
                self._failure = error
                raise
            if isinstance(element, Failure):
                raise element.error
            if element is None:
                self._failure = OutOfRangeError("End of sequence")
                raise self._failure
            self._taken += 1
            return element

    def next_prepared(self, host: object, prepare: Prepare) -> tuple[Element, Any]:
        """Returns the next element, and the result of ``prepare`` for it if that is known, otherwise None.

        From the second call in succession with the same ``prepare``, results are computed in advance, by the thread
        that produces the elements.

        Raises:
          OpError: see `next`.
        """
        element = self.next(host)
        if self._asked is prepare:
            self._prepare = prepare
        self._asked = prepare
        return element, element.result if isinstance(element, _Prepared) and element.by is prepare else None

    def _prepared(self, elements: Iterator[Element]) -> Iterator[Element]:
        with closing(elements):
            for element in elements:
                prepare = self._prepare
                if prepare is None or isinstance(element, Failure):
                    yield element
                else:
                    yield _Prepared.of(element, prepare)

    def saved(self) -> bytes:
        """Returns the position in the dataset as text, for `restore`.

        Raises:
          FailedPreconditionError: there is no dataset yet, or it may produce different elements when it is iterated
            again.
        """
        with self._lock:
            node = self._begun("SerializeIterator")
            changing = unrepeatable(node, shuffles=False)
            if changing:
                raise FailedPreconditionError(f"iterator {self.name!r} cannot be saved: the dataset has {changing}")
            return json.dumps({"taken": self._taken, "orders": self._orders}).encode()

    def restore(self, saved: bytes, host: object) -> None:
        """Moves to the position returned by `saved`, in the present dataset.

        Raises:
          FailedPreconditionError: there is no dataset yet.
          DataLossError: ``saved`` is from another dataset.
        """
        with self._lock:
            node = self._begun("Restore()")
            taken, orders = _read(saved)
            shuffles = list(_shuffles(node))
            if len(shuffles) != len(orders):
                raise DataLossError(
                    f"iterator {self.name!r}: the saved state is of a dataset with {len(orders)} shuffle(), this one "
                    f"has {len(shuffles)}"
                )
            for shuffle, order in zip(shuffles, orders, strict=True):
                shuffle.start_at(*order)
            self._start(node, host)
            assert self._elements is not None
            # Produce and discard the elements before the position: for a dataset of arbitrary functions, there is no
            # other way to reach it.
            successes = (element for element in self._elements if not isinstance(element, Failure))
            self._taken = sum(1 for _ in itertools.islice(successes, taken))

    def _begun(self, what: str) -> Node:
        if self._node is None:
            raise FailedPreconditionError(
                f"{what} failed because the iterator has not been initialized. Ensure that you have run the "
                "initializer operation for this iterator before."
            )
        return self._node

    def _close(self) -> None:
        close = getattr(self._elements, "close", None)
        if close is not None:
            close()
        self._elements = None

    def close_now(self) -> None:
        """Closes the iterator's files and threads."""
        with self._lock:
            self._close()


def _read(saved: bytes) -> tuple[int, list[tuple[int, int]]]:
    """Parses the result of `IteratorState.saved`; DataLossError for other text."""
    try:
        found = json.loads(saved)
        return int(found["taken"]), [(int(turn), int(own)) for turn, own in found["orders"]]
    except (KeyError, TypeError, ValueError) as error:
        raise DataLossError(f"malformed state of an iterator: {saved[:80]!r}") from error


def _shuffles(node: Node) -> Iterator[Shuffle]:
    """Yields the shuffles of a dataset, in a fixed order."""
    if isinstance(node, Shuffle):
        yield node
    for child in node.nodes():
        yield from _shuffles(child)


def iterator_of(handle: str) -> IteratorState:
    """Returns the iterator with this handle; raises NotFoundError if this process does not have it."""
    iterator: IteratorState | None = _handles.get(handle)
    if iterator is None:
        raise NotFoundError(f"{handle!r} is not a handle of an iterator in this process")
    return iterator


@dataclass(eq=False, kw_only=True)
class _Followed(Wrapper):
    """Passes the elements through ``follow``, which yields equal elements."""

    follow: Follow

    @property
    def columnar(self) -> bool:
        return False

    def elements(self, context: Context) -> Iterator[Element]:
        return self.follow(self.input.elements(context))


def elements_of(node: Node, context: Context, follow: Follow = iter) -> Iterator[Element]:
    """Returns the elements. If producing them has no side effects, a thread produces some in advance.

    ``follow`` yields the same elements, in that thread; it is not called for rows of blocks.
    """
    # A dataset that prefetches needs no second thread.
    if isinstance(node, Prefetch):
        return node.with_input(_Followed(input=node.input, follow=follow)).elements(context)
    if not _quiet(node):
        return node.elements(context)
    if node.columnar:
        return rows_of(prefetched(lambda: node.blocks(context, block_rows(node.specs)), _AHEAD))
    return prefetched(lambda: follow(node.elements(context)), _AHEAD)


def _quiet(node: Node) -> bool:
    """Returns whether producing elements has no side effects."""
    if isinstance(node, Generated):
        return False
    if isinstance(node, Map | Filter | Scan | TakeWhile | Interleave) and not getattr(node.function, "quiet", False):
        return False
    return all(map(_quiet, node.nodes()))
