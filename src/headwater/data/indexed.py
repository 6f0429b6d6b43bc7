"""Elements of a dataset by their numbers, in any order.

If the order of a node's elements is known, an element is computed directly; otherwise, the node is iterated over from
the beginning.

The iterations of a dataset are numbered from 0, and a shuffle has another order in each iteration. The same number in
the same iteration selects the same element in every process.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from headwater.data.batches import Batch, PaddedBatch
from headwater.data.functions import Interleave, ListNode, Map
from headwater.data.node import (
    INFINITE,
    UNKNOWN,
    Array,
    Block,
    Context,
    Element,
    Node,
    call,
    raise_failures,
    row,
    stack,
    static_value,
)
from headwater.data.prefetch import Prefetch
from headwater.data.queries import RandomNumbers
from headwater.data.sharding import map_inputs
from headwater.data.sources import Generated, Range, Slices, Whole
from headwater.data.stored import StoredCache
from headwater.data.transforms import (
    SHARD_HINT,
    Cache,
    RandomIndices,
    Repeat,
    Shard,
    Shuffle,
    Skip,
    Take,
    Wrapper,
    Zipped,
)
from headwater.errors import InvalidArgumentError

Numbers = NDArray[np.int64]
_KEPT_ORDERS = 2  # at most two epochs are in progress at a time
_ROWS = 512


_DESCRIPTIONS: dict[type[Node], str] = {
    Generated: "a generator",
    Interleave: "an interleave whose order may change",
    Shuffle: "a shuffle without a seed",
}


class NoElementError(InvalidArgumentError):
    """There is no element with this number: the dataset ends before this number."""

    def __init__(self, number: int) -> None:
        super().__init__(f"the dataset has no element {number}: it is shorter than its given size")


class Indexed(ABC):
    """Access to elements by their numbers."""

    @abstractmethod
    def element(self, context: Context, number: int, iteration: int = 0) -> Element:
        """Returns the element with a number, from 0.

        Raises:
          NoElementError: there is no such element.
        """

    def rows(self, context: Context, numbers: Numbers, iteration: int = 0) -> Block:
        """Returns the elements with these numbers, as a block.

        Raises:
          NoElementError: there is no element with one of the numbers.
          InvalidArgumentError: elements differ in shape.
        """
        return _stacked([self.element(context, number, iteration) for number in numbers.tolist()])


class _Columns(Indexed):
    """Random access to elements, many at a time."""

    @abstractmethod
    def rows(self, context: Context, numbers: Numbers, iteration: int = 0) -> Block: ...

    def element(self, context: Context, number: int, iteration: int = 0) -> Element:
        return tuple(row(column, 0) for column in self.rows(context, np.array([number]), iteration))


class _Slices(_Columns):
    def __init__(self, columns: Sequence[Array]) -> None:
        self._columns = columns

    def rows(self, context: Context, numbers: Numbers, iteration: int = 0) -> Block:
        _check(numbers, len(self._columns[0]))
        return tuple(column[numbers] for column in self._columns)


class _Range(_Columns):
    def __init__(self, numbers: range) -> None:
        self._numbers = numbers

    def rows(self, context: Context, numbers: Numbers, iteration: int = 0) -> Block:
        _check(numbers, len(self._numbers))
        return (self._numbers.start + numbers * self._numbers.step,)


class _Mapped(Indexed):
    def __init__(self, source: Indexed, node: Map) -> None:
        self._source = source
        self._function = node.function

    def element(self, context: Context, number: int, iteration: int = 0) -> Element:
        return call(self._function, context, self._source.element(context, number, iteration), number)

    def rows(self, context: Context, numbers: Numbers, iteration: int = 0) -> Block:
        if not self._function.columnar:
            return super().rows(context, numbers, iteration)
        return self._function.rows(context, self._source.rows(context, numbers, iteration))


class _Taken(Indexed):
    def __init__(self, source: Indexed, count: int) -> None:
        self._source = source
        self._count = count

    def element(self, context: Context, number: int, iteration: int = 0) -> Element:
        if number >= self._count:
            raise NoElementError(number)
        return self._source.element(context, number, iteration)

    def rows(self, context: Context, numbers: Numbers, iteration: int = 0) -> Block:
        _check(numbers, self._count)
        return self._source.rows(context, numbers, iteration)


class _Renumbered(Indexed):
    """Elements whose numbers are mapped to other numbers in the source: after skipped elements, or of one shard."""

    def __init__(self, source: Indexed, number: Callable[[Any], Any]) -> None:
        self._source = source
        self._number = number

    def element(self, context: Context, number: int, iteration: int = 0) -> Element:
        return self._source.element(context, self._number(number), iteration)

    def rows(self, context: Context, numbers: Numbers, iteration: int = 0) -> Block:
        return self._source.rows(context, self._number(numbers), iteration)


class _Zipped(Indexed):
    def __init__(self, sources: Sequence[Indexed]) -> None:
        self._sources = sources

    def element(self, context: Context, number: int, iteration: int = 0) -> Element:
        return tuple(part for source in self._sources for part in source.element(context, number, iteration))

    def rows(self, context: Context, numbers: Numbers, iteration: int = 0) -> Block:
        return tuple(column for source in self._sources for column in source.rows(context, numbers, iteration))


class _Shuffled(Indexed):
    """The elements in the orders of a shuffling node, which has one order for each iteration."""

    def __init__(self, source: Indexed, node: Shuffle) -> None:
        self._source = source
        self._node = node
        self._orders: dict[int, Numbers] = {}

    def element(self, context: Context, number: int, iteration: int = 0) -> Element:
        order = self._order(iteration)
        _check(np.array([number]), len(order))
        return self._source.element(context, int(order[number]), iteration)

    def rows(self, context: Context, numbers: Numbers, iteration: int = 0) -> Block:
        order = self._order(iteration)
        _check(numbers, len(order))
        return self._source.rows(context, order[numbers], iteration)

    def _order(self, iteration: int) -> Numbers:
        order = self._orders.get(iteration)
        if order is None:
            while len(self._orders) >= _KEPT_ORDERS:
                del self._orders[min(self._orders)]
            numbers = pinned(replace(self._node, input=_numbers(self._node.cardinality)), iteration)
            order = self._orders[iteration] = np.concatenate([block[0] for block in numbers.blocks(Context(), _ROWS)])
        return order


class _Repeated(Indexed):
    """Repeats the elements: each repetition is the next iteration of the source.

    Args:
      source: elements of one iteration.
      size: number of elements of an iteration.
      times: number of repetitions; None: infinitely many.
    """

    def __init__(self, source: Indexed, size: int, times: int | None) -> None:
        self._source = source
        self._size = size
        self._times = times

    def element(self, context: Context, number: int, iteration: int = 0) -> Element:
        return self._source.element(context, number % self._size, self._iteration(number // self._size, iteration))

    def rows(self, context: Context, numbers: Numbers, iteration: int = 0) -> Block:
        time = int(numbers[0]) // self._size
        if (numbers // self._size != time).any():
            return super().rows(context, numbers, iteration)
        return self._source.rows(context, numbers % self._size, self._iteration(time, iteration))

    def _iteration(self, time: int, iteration: int) -> int:
        return time if self._times is None else iteration * self._times + time


class _Batched(Indexed):
    """Combines several elements into one.

    Args:
      source: the single elements.
      node: the batching node.
    """

    def __init__(self, source: Indexed, node: Batch | PaddedBatch) -> None:
        self._source = source
        self._node = node
        self._size = int(node.batch_size)
        self._known = node.input.cardinality

    def element(self, context: Context, number: int, iteration: int = 0) -> Element:
        start, stop = number * self._size, (number + 1) * self._size
        if self._known >= 0:
            stop = min(stop, self._known)
        if stop <= start or (bool(self._node.drop_remainder) and stop < start + self._size):
            raise NoElementError(number)
        if isinstance(self._node, Batch) and self._known != UNKNOWN:
            return self._source.rows(context, np.arange(start, stop), iteration)
        items: list[Element] = []
        with contextlib.suppress(NoElementError):  # the last batch may be smaller
            items += (self._source.element(context, at, iteration) for at in range(start, stop))
        one = replace(self._node, input=ListNode(items=items, of=self._node.input.specs))
        batch = next(raise_failures(one.elements(context)), None)
        if batch is None:
            raise NoElementError(number)
        return batch


class _Kept(Indexed):
    """Keeps all elements in memory, from the first access on."""

    def __init__(self, node: Node) -> None:
        self._node = pinned(node, 0)
        self._kept: list[Element] | None = None

    def element(self, context: Context, number: int, iteration: int = 0) -> Element:
        if self._kept is None:
            self._kept = list(raise_failures(self._node.elements(context)))
        if number >= len(self._kept):
            raise NoElementError(number)
        return self._kept[number]


class _Sequential(Indexed):
    """Iterates over a node: skips to later elements, and starts again for earlier ones."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._elements: Iterator[Element] | None = None
        self._at: int = 0
        self._iteration: int = 0

    def element(self, context: Context, number: int, iteration: int = 0) -> Element:
        if self._elements is None or number < self._at or iteration != self._iteration:
            close = getattr(self._elements, "close", None)
            if close is not None:
                close()
            self._elements = raise_failures(pinned(self._node, iteration).elements(context))
            self._at, self._iteration = 0, iteration
        for element in self._elements:
            self._at += 1
            if self._at > number:
                return element
        self._elements, self._at = None, 0
        raise NoElementError(number)


def _stacked(elements: Sequence[Element]) -> Block:
    return tuple(stack([element[part] for element in elements], "batch", part) for part in range(len(elements[0])))


def _check(numbers: Numbers, size: int) -> None:
    if numbers.size and int(numbers.max()) >= size:
        raise NoElementError(int(numbers.max()))


def _numbers(size: int) -> Range:
    return Range(start=np.array(0), stop=np.array(size), step=np.array(1))


def pinned(node: Node, iteration: int) -> Node:
    """Returns a node whose first iteration has the order of iteration ``iteration``."""
    # A `Repeat` inside takes several iterations of its source for each of its own iterations, and the numbers of the
    # source's iterations must not overlap.
    repeats = _part(node, lambda child: isinstance(child, Repeat)) is not None
    return _starting(node, iteration << 32 if repeats else iteration)


def _starting(node: Node, iteration: int) -> Node:
    if isinstance(node, Cache | StoredCache):  # a cache keeps the order of the first iteration of the nodes below
        return node
    started = map_inputs(node, lambda child: _starting(child, iteration))
    if isinstance(started, Shuffle):
        started = replace(started)
        started.start_at(iteration)
    return started


# Nodes with access by numbers -----------------------------------------------------------------------------------------


def indexed(node: Node) -> Indexed:
    """Returns access to the elements of a node by their numbers.

    A part without access by numbers is iterated over; the nodes above it are applied only to the requested elements.
    """
    match node:
        case Slices(components=columns):
            return _Slices(columns)
        case Range(start=start, stop=stop, step=step):
            return _Range(range(int(start), int(stop), int(step)))
        case Map(input=inner):
            return _Mapped(indexed(inner), node)
        case Take(input=inner, count=count) if int(count) >= 0:
            return _Taken(indexed(inner), int(count))
        case Take(input=inner) | Prefetch(input=inner):
            return indexed(inner)
        case Skip(input=inner, count=count):
            skipped = int(count)
            return _Renumbered(indexed(inner), lambda number: number + skipped)
        case Shard(input=inner, count=count, index=index) if int(count) != SHARD_HINT:
            parts, part = int(count), int(index)
            return _Renumbered(indexed(inner), lambda number: number * parts + part)
        case Shard(input=inner):
            return indexed(inner)
        case Zipped(inputs=inputs):
            return _Zipped([indexed(child) for child in inputs])
        case Batch(input=inner) | PaddedBatch(input=inner):
            return _Batched(indexed(inner), node)
        case Repeat(input=inner, count=count) if inner.cardinality > 0:
            return _Repeated(indexed(inner), inner.cardinality, int(count) if int(count) >= 0 else None)
        case Shuffle(input=inner) if node.cardinality > 0 and sequential_part(inner) is None:
            return _Shuffled(indexed(inner), node)
        case Cache() | ListNode() | Whole():
            return _Kept(node)
        case _:
            return _Sequential(node)


def sequential_part(node: Node) -> Node | None:
    """Returns the part of a dataset that can only be iterated over; None if all of it has access by numbers."""
    if _passes(node):
        return sequential_part(node.input)
    match node:
        case Slices() | Range() | Cache() | ListNode() | Whole():
            return None
        case Repeat(input=inner) | Shuffle(input=inner) if inner.cardinality > 0:
            return sequential_part(inner)
        case Zipped(inputs=inputs):
            parts = [sequential_part(child) for child in inputs]
            return next((part for part in parts if part is not None), None)
        case _:
            return node


def _passes(node: Node) -> TypeGuard[Wrapper]:
    return isinstance(node, Map | Take | Skip | Shard | Prefetch | Batch | PaddedBatch)


def reordering_part(node: Node) -> Node | None:
    """Returns the part of a dataset that changes the order or number of its elements from epoch to epoch, or None."""
    return _part(node, lambda child: isinstance(child, Shuffle | Repeat))


def unrepeatable(node: Node, *, shuffles: bool = True) -> str:
    """Describes the part of a dataset that may yield other elements, or another order, in another process.

    Empty if there is no such part; the program's functions are assumed to be reproducible. ``shuffles``: whether a
    shuffle without a seed is such a part.
    """

    def changes(child: Node) -> bool:
        match child:
            case Generated():
                return True
            case Interleave(sloppy=sloppy, changes=inside):
                return sloppy or inside
            case Shuffle() if not shuffles:
                return False
            case (
                Shuffle(seed=seed, seed2=seed2)
                | RandomIndices(seed=seed, seed2=seed2)
                | RandomNumbers(seed=seed, seed2=seed2)
            ):
                return not (static_value(seed) or static_value(seed2))
            case _:
                return False

    part = _part(node, changes)
    return "" if part is None else _DESCRIPTIONS.get(type(part), "random numbers without a seed")


def _part(node: Node, is_it: Callable[[Node], bool]) -> Node | None:
    if is_it(node):
        return node
    parts = (_part(child, is_it) for child in node.nodes())
    return next((part for part in parts if part is not None), None)


def counted(node: Node) -> int:
    """Returns the number of elements of a node, or `INFINITE`.

    Iterates over nodes of unknown length, without calling functions that only change their elements.
    """
    if node.cardinality != UNKNOWN:
        return node.cardinality
    match node:
        case Repeat(count=count) if static_value(count) is not None and static_value(count) < 0:
            return INFINITE
        case Prefetch(input=inner) | Map(input=inner) | Shuffle(input=inner):
            return counted(inner)
        case Take() | Skip() | Shard() | Repeat() | Batch() | PaddedBatch():
            below = counted(node.input)
            instead = _numbers(below) if below >= 0 else Repeat(input=_numbers(1), count=np.array(-1))
            return replace(node, input=instead).cardinality
        case _ if node.columnar:
            return sum(len(block[0]) for block in raise_failures(node.blocks(Context(), _ROWS)))
        case _:
            return sum(1 for _ in raise_failures(node.elements(Context())))


def require_examples(node: Node, *, shuffle: bool) -> None:
    """Raises ValueError if the numbers of the examples may change, or the requested order is not possible.

    Args:
      node: yields one example at a time.
      shuffle: whether the examples will be read in any order, which requires access by numbers.
    """
    changing, gone_over = reordering_part(node), sequential_part(node)
    if changing is not None:
        raise ValueError(
            f"the dataset has a {type(changing).__name__.lower()}(), but the numbers of the examples must be the same "
            "at every worker and in every epoch: pass shuffle=, seed= and epochs= with batch_size= instead"
        )
    if shuffle and gone_over is not None:
        raise ValueError(
            f"the dataset's {type(gone_over).__name__} can only be iterated from its beginning, not shuffled: keep "
            "its elements in memory with dataset.cache() behind it, or pass shuffle=False"
        )
