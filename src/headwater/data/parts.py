"""Nodes that divide batches between workers."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from headwater.data.batches import Batch, concatenate_blocks, regroup_blocks, rows_at_once, stacked
from headwater.data.functions import Map
from headwater.data.node import (
    Block,
    Context,
    Element,
    Node,
    closing,
    flat_mapped,
    fully_defined,
    mapped,
    raise_failures,
    stack,
)
from headwater.data.prefetch import Prefetch
from headwater.data.spec import TensorSpec
from headwater.data.transforms import ByElement, Wrapper


@dataclass(eq=False, kw_only=True)
class _Parts(ByElement):
    """Divides the rows of each element, a batch, into parts. Their sizes differ by at most one; larger parts are first.

    Attributes:
      count: number of parts.
    """

    count: int

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return tuple(_part_spec(spec, self.count) for spec in self.input.specs)

    def part(self, element: Element, index: int) -> Element:
        return tuple(column[_part(len(column), self.count, index)] for column in element)


@dataclass(eq=False, kw_only=True)
class BatchPart(_Parts):
    """Yields one worker's part of each batch.

    A function that is applied to elements before they are batched (``map``, then ``batch``) is called only for the
    elements of this part.

    Attributes:
      index: the number of the part.
    """

    index: int

    keeps_count: ClassVar[bool] = True

    def elements(self, context: Context) -> Iterator[Element]:
        batch = self.input
        if isinstance(batch, Batch) and isinstance(batch.input, Map) and fully_defined(batch.input.specs):
            return _own_rows(batch, self.count, self.index, context)
        return mapped(batch.elements(context), lambda element: self.part(element, self.index))


@dataclass(eq=False, kw_only=True)
class BatchParts(_Parts):
    """Yields each part as an element of its own."""

    @property
    def cardinality(self) -> int:
        inner = self.input.cardinality
        return inner * self.count if inner >= 0 else inner

    def elements(self, context: Context) -> Iterator[Element]:
        return flat_mapped(self.input.elements(context), self._parts)

    def _parts(self, element: Element) -> Iterator[Element]:
        for index in range(self.count):
            part = self.part(element, index)
            if len(part[0]):
                yield part


@dataclass(eq=False, kw_only=True)
class _OwnRows(Wrapper):
    """Yields the elements of one worker's parts of the batches, before these elements are batched.

    Attributes:
      size, drop: size of the whole batches, and whether a smaller last batch is dropped.
      request_size: number of elements to request at once.
      count, index: see `BatchPart`.
      part_sizes: receives the size of the worker's part of each batch, before the elements of this part are yielded.
    """

    size: int
    drop: bool
    request_size: int
    count: int
    index: int
    part_sizes: deque[int]

    def _part(self, rows: int) -> slice:
        part = _part(rows, self.count, self.index)
        self.part_sizes.append(part.stop - part.start)
        return part

    def elements(self, context: Context) -> Iterator[Element]:
        with closing(raise_failures(self.input.elements(context))) as source:
            while chosen := list(itertools.islice(source, self.size)):
                if self.drop and len(chosen) < self.size:
                    return
                yield from chosen[self._part(len(chosen))]

    def blocks(self, context: Context, rows: int) -> Iterator[Block]:
        for batch in raise_failures(regroup_blocks(self.input, context, self.size, self.drop, self.request_size)):
            part = self._part(len(batch[0]))
            for start in range(part.start, part.stop, rows):
                yield tuple(column[start : min(start + rows, part.stop)] for column in batch)


def _own_rows(batch: Batch, count: int, index: int, context: Context) -> Iterator[Element]:
    """Yields one worker's part of each batch. Calls the mapped functions only for the elements of this part."""
    size, drop = int(batch.batch_size), bool(batch.drop_remainder)
    functions: list[Wrapper] = []
    below = batch.input
    while isinstance(below, Map | Prefetch):
        functions.append(below)
        below = below.input
    # Request elements from the input as for whole batches: a shuffle's order may depend on the size of requests.
    request_size = rows_at_once(batch.input, size) if batch.input.columnar else size
    part_sizes: deque[int] = deque()
    node: Node = _OwnRows(
        input=below, size=size, drop=drop, request_size=request_size, count=count, index=index, part_sizes=part_sizes
    )
    for function in reversed(functions):
        node = function.with_input(node)
    rows = _joined_rows if node.columnar else _stacked_rows
    yield from rows(node, context, request_size, part_sizes)
    for _ in part_sizes:  # only parts without rows remain
        yield tuple(
            np.empty((0, *(dim or 0 for dim in spec.dims or ())), spec.dtype.numpy_dtype) for spec in batch.input.specs
        )


def _joined_rows(node: Node, context: Context, request_size: int, part_sizes: deque[int]) -> Iterator[Element]:
    held: list[Block] = []
    rows = 0
    with closing(raise_failures(node.blocks(context, request_size))) as source:
        for block in source:
            held.append(block)
            rows += len(block[0])
            while part_sizes and part_sizes[0] <= rows:
                wanted = part_sizes.popleft()
                whole = concatenate_blocks(held)
                yield tuple(column[:wanted] for column in whole)
                rows -= wanted
                held = [tuple(column[wanted:] for column in whole)]


def _stacked_rows(node: Node, context: Context, request_size: int, part_sizes: deque[int]) -> Iterator[Element]:
    del request_size
    held: list[Element] = []
    with closing(raise_failures(node.elements(context))) as source:
        for element in source:
            while not part_sizes[0]:
                part_sizes.popleft()
                yield tuple(stack([value], "batch")[:0] for value in element)
            held.append(element)
            if part_sizes[0] == len(held):
                part_sizes.popleft()
                yield stacked(held)
                held = []


def _part(rows: int, count: int, index: int) -> slice:
    size, larger_parts = divmod(rows, count)
    start = index * size + min(index, larger_parts)
    return slice(start, start + size + (index < larger_parts))


def _part_spec(spec: TensorSpec, count: int) -> TensorSpec:
    if not spec.dims:
        return spec
    rows = spec.dims[0]
    return spec.with_shape([None if rows is None or rows % count else rows // count, *spec.dims[1:]])
