"""Elements of a dataset by their numbers, in any order.

At once where its nodes can tell which is which, otherwise by going over it from the beginning.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from headwater.data.functions import Map
from headwater.data.node import Array, Block, Context, Element, Node, call, stack
from headwater.data.prefetch import Prefetch
from headwater.data.sources import Range, Slices
from headwater.data.transforms import Cache, Repeat, Shuffle, Skip, Take, Zipped
from headwater.errors import InvalidArgumentError

Numbers = NDArray[np.int64]


class Indexed(ABC):
    """Elements by their numbers."""

    @abstractmethod
    def rows(self, context: Context, numbers: Numbers) -> Block:
        """The elements of these numbers, from 0, as a block.

        Raises:
          InvalidArgumentError: there is none of a number, or elements differ in shape.
        """


class _Slices(Indexed):
    def __init__(self, columns: Sequence[Array]) -> None:
        self._columns = columns

    def rows(self, context: Context, numbers: Numbers) -> Block:
        _check(numbers, len(self._columns[0]))
        return tuple(column[numbers] for column in self._columns)


class _Range(Indexed):
    def __init__(self, numbers: range) -> None:
        self._numbers = numbers

    def rows(self, context: Context, numbers: Numbers) -> Block:
        _check(numbers, len(self._numbers))
        return (self._numbers.start + numbers * self._numbers.step,)


class _Mapped(Indexed):
    def __init__(self, source: Indexed, node: Map) -> None:
        self._source = source
        self._function = node.function

    def rows(self, context: Context, numbers: Numbers) -> Block:
        block = self._source.rows(context, numbers)
        if self._function.columnar:
            return self._function.rows(context, block)
        found = [
            call(self._function, context, tuple(column[at] for column in block), int(number))
            for at, number in enumerate(numbers)
        ]
        return _stacked(found)


class _Skipped(Indexed):
    def __init__(self, source: Indexed, count: int) -> None:
        self._source = source
        self._count = count

    def rows(self, context: Context, numbers: Numbers) -> Block:
        return self._source.rows(context, numbers + self._count)


class _Side(Indexed):
    def __init__(self, sources: Sequence[Indexed]) -> None:
        self._sources = sources

    def rows(self, context: Context, numbers: Numbers) -> Block:
        return tuple(column for source in self._sources for column in source.rows(context, numbers))


class _Kept(Indexed):
    """All elements in memory, from the first time on that some are asked for."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._kept: list[Element] | None = None

    def rows(self, context: Context, numbers: Numbers) -> Block:
        if self._kept is None:
            self._kept = list(self._node.elements(context))
        kept = self._kept
        _check(numbers, len(kept))
        found: list[Element] = [kept[int(number)] for number in numbers]
        return _stacked(found)


class _Following(Indexed):
    """The elements as a node gives them: forwards at the cost of those in between, backwards from the beginning."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._elements: Iterator[Element] | None = None
        self._at = 0

    def rows(self, context: Context, numbers: Numbers) -> Block:
        return _stacked([self._element(context, number) for number in numbers.tolist()])

    def _element(self, context: Context, number: int) -> Element:
        if self._elements is None or number < self._at:
            close = getattr(self._elements, "close", None)
            if close is not None:
                close()
            self._elements, self._at = self._node.elements(context), 0
        for element in self._elements:
            self._at += 1
            if self._at > number:
                return element
        self._elements, self._at = None, 0
        raise _no_element(number)


def _stacked(elements: Sequence[Element]) -> Block:
    return tuple(stack([element[part] for element in elements], "accounted", part) for part in range(len(elements[0])))


def _check(numbers: Numbers, size: int) -> None:
    if numbers.size and int(numbers.max()) >= size:
        raise _no_element(int(numbers.max()))


def _no_element(number: int) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, f"the dataset has no element {number}: it is shorter than was said")


def indexed(node: Node) -> Indexed:
    """The elements of a node by their numbers."""
    return _at_once(node) or _Following(node)


def sequential_part(node: Node) -> Node | None:
    """What of a dataset can only be gone over; None where all of it can be had by numbers."""
    if _passes(node):
        return sequential_part(node.input)
    match node:
        case Slices() | Range() | Cache():
            return None
        case Zipped(inputs=inputs):
            found = [sequential_part(child) for child in inputs]
            return next((part for part in found if part is not None), None)
        case _:
            return node


def _passes(node: Node) -> TypeGuard[Map | Take | Skip | Prefetch]:
    return isinstance(node, Map | Take | Skip | Prefetch)


def _at_once(node: Node) -> Indexed | None:
    if sequential_part(node) is not None:
        return None
    match node:
        case Slices(components=columns):
            return _Slices(columns)
        case Range(start=start, stop=stop, step=step):
            return _Range(range(int(start), int(stop), int(step)))
        case Map(input=inner):
            return _Mapped(indexed(inner), node)
        case Take(input=inner) | Prefetch(input=inner):
            return indexed(inner)
        case Skip(input=inner, count=count):
            return _Skipped(indexed(inner), int(count))
        case Zipped(inputs=inputs):
            return _Side([indexed(child) for child in inputs])
        case _:
            return _Kept(node)


def orderly(node: Node) -> Node | None:
    """The part of a dataset that changes the order or number of its elements from epoch to epoch; None without any."""
    if isinstance(node, Shuffle | Repeat):
        return node
    found: Any = (orderly(child) for child in node.nodes())
    return next((part for part in found if part is not None), None)
