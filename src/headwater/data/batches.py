"""Nodes that combine several elements into one, or split an element into several."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from headwater.data.composites import Composite, RaggedArray, RaggedSpec, SparseArray, SparseSpec
from headwater.data.functions import Map
from headwater.data.node import (
    INFINITE,
    UNKNOWN,
    Array,
    Block,
    Context,
    Element,
    Failure,
    Node,
    block_rows,
    closing,
    first_failure,
    flat_mapped,
    fully_defined,
    mapped,
    row,
    stack,
    static_value,
)
from headwater.data.sources import Slices
from headwater.data.spec import TensorSpec, is_array
from headwater.data.transforms import ByElement, Wrapper
from headwater.dtypes import DType, bool_, int32, int64
from headwater.errors import DataLossError, InvalidArgumentError, OpError

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


@dataclass(eq=False, kw_only=True)
class Batch(ByElement):
    """Stacks ``batch_size`` elements into one; the last may be smaller unless ``drop_remainder``."""

    values: ClassVar[dict[str, DType | None]] = {"batch_size": int64, "drop_remainder": bool_}
    positive: ClassVar[dict[str, str]] = {"batch_size": "batch_size"}
    batch_size: Any
    drop_remainder: TensorLike

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        size = static_value(self.batch_size) if static_value(self.drop_remainder) else None
        return tuple(spec.batched(size) for spec in self.input.specs)

    @property
    def cardinality(self) -> int:
        size, drop, inner = static_value(self.batch_size), static_value(self.drop_remainder), self.input.cardinality
        if inner == INFINITE:
            return INFINITE
        if size is None or size < 1 or drop is None or inner == UNKNOWN:
            return UNKNOWN
        return inner // size if drop else -(-inner // size)

    def elements(self, context: Context) -> Iterator[Element]:
        size, drop = int(self.batch_size), bool(self.drop_remainder)
        # `Slices` has blocks of sparse and ragged elements, too. Other nodes compute such elements one by one.
        if self.input.columnar or isinstance(self.input, Slices):
            return regroup_blocks(self.input, context, size, drop, failures_count=self.failures_count)
        return _grouped(self.input, context, size, drop, stacked, failures_count=self.failures_count)

    @property
    def failures_count(self) -> bool:
        """Whether a `Failure` counts as an element of its batch, so that the whole batch fails.

        Otherwise, the incomplete batch before the failure is dropped, and a new batch begins after the failure. As in
        TensorFlow, which computes a batch of mapped elements in one operation, failures of a map count.
        """
        return isinstance(self.input, Map)


def stacked(chosen: Sequence[Element]) -> Element:
    """Returns the batch of ``chosen``."""
    return tuple(stack(column, "batch", index) for index, column in enumerate(zip(*chosen, strict=True)))


def _grouped(
    node: Node,
    context: Context,
    size: int,
    drop: bool,
    combine: Callable[[Sequence[Element]], Element],
    failures_count: bool = False,
) -> Iterator[Element]:
    """Yields the result of ``combine`` for each group of ``size`` consecutive elements of ``node``.

    The last group may be smaller, unless ``drop``. For ``failures_count``, see `Batch.failures_count`.
    """
    chosen: list[Element] = []
    with closing(node.elements(context)) as source:
        for element in source:
            if isinstance(element, Failure) and not failures_count:
                chosen = []
                yield element
                continue
            chosen.append(element)
            if len(chosen) == size:
                yield _combined(chosen, combine)
                chosen = []
    if chosen and not drop:
        yield _combined(chosen, combine)


def _combined(chosen: Sequence[Element], combine: Callable[[Sequence[Element]], Element]) -> Element:
    failure = first_failure(chosen)
    if failure is not None:
        return failure
    try:
        return combine(chosen)
    except OpError as error:
        return Failure.of(error)


def rows_at_once(node: Node, size: int) -> int:
    """Returns the number of elements that `regroup_blocks` requests at once for blocks of ``size``."""
    # Each request has a fixed cost, so request several small batches at once.
    return size * max(1, block_rows(node.specs) // size)


def regroup_blocks(
    node: Node,
    context: Context,
    size: int,
    drop: bool,
    request_size: int | None = None,
    failures_count: bool = False,
) -> Iterator[Block]:
    """Yields the elements of a columnar node in blocks of exactly ``size``; the last may be smaller unless ``drop``.

    ``request_size`` is the number of elements to request from ``node`` at once; by default `rows_at_once`. For
    ``failures_count``, see `Batch.failures_count`.
    """
    request_size = request_size or rows_at_once(node, size)
    parts: list[Block] = []
    held = 0
    with closing(node.blocks(context, request_size)) as source:
        for block in source:
            if isinstance(block, Failure) and not failures_count:
                parts, held = [], 0
                yield block
                continue
            start, count = 0, _count(block)
            while held + count - start >= size:
                stop = start + size - held
                parts.append(_slice(block, start, stop))
                yield concatenate_blocks(parts)
                parts, held, start = [], 0, stop
            if start < count:
                parts.append(_slice(block, start, count))
                held += count - start
    if parts and not drop:
        yield concatenate_blocks(parts)


def _count(block: Block) -> int:
    return 1 if isinstance(block, Failure) else len(block[0])


def _slice(block: Block, start: int, stop: int) -> Block:
    return block if isinstance(block, Failure) else tuple(column[start:stop] for column in block)


def concatenate_blocks(parts: Sequence[Block]) -> Block:
    """Concatenates blocks; returns the first failure if there is one. The result does not share memory with dense
    columns of ``parts``."""
    failure = first_failure(parts)
    if failure is not None:
        return failure
    if len(parts) == 1:
        return tuple(column if isinstance(column, Composite) else column.copy() for column in parts[0])
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


@dataclass(eq=False, kw_only=True)
class SparseBatch(ByElement):
    """Combines the values of ``batch_size`` elements into one sparse component; the last may be smaller.

    Attributes:
      row_shape: the shape that elements must fit into; -1 for the largest size in the batch.
    """

    values: ClassVar[dict[str, DType | None]] = {"batch_size": int64, "row_shape": int64}
    positive: ClassVar[dict[str, str]] = {"batch_size": "batch_size"}
    batch_size: Any
    row_shape: Any

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        (spec,) = self.input.specs
        sizes = [None if size < 0 else int(size) for size in self.row_shape] if is_array(self.row_shape) else None
        return (SparseSpec(None if sizes is None else [None, *sizes], spec.dtype),)

    def elements(self, context: Context) -> Iterator[Element]:
        size = int(self.batch_size)
        yield from _grouped(self.input, context, size, False, self._batch)

    def _batch(self, chosen: Sequence[Element]) -> Element:
        values = [np.asarray(value) for (value,) in chosen]
        rank = len(self.row_shape)
        if any(value.ndim != rank for value in values):
            raise InvalidArgumentError(
                f"Input element had shape {[list(value.shape) for value in values]} that is incompatible with the "
                f"row shape {list(self.row_shape)}"
            )
        greatest = np.max([value.shape for value in values], axis=0).astype(np.int64)
        wanted = np.asarray(self.row_shape, np.int64)
        shape = np.where(wanted < 0, greatest, wanted)
        if (greatest > shape).any():
            raise DataLossError(
                f"Input element had shape {greatest.tolist()} that is larger than the row shape {shape.tolist()}."
            )
        rows = [SparseArray(list(np.ndindex(value.shape)), value.reshape(-1), shape) for value in values]
        return (rows[0].stacked(rows, "dense_to_sparse_batch", 0),)


@dataclass(eq=False, kw_only=True)
class RaggedElements(ByElement):
    """Converts arrays with unknown dimensions to ragged arrays, so that arrays of different sizes can form a batch.

    Attributes:
      wide: whether the splits are int64, instead of int32.
    """

    wide: bool = True

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return tuple(self._ragged(spec) or spec for spec in self.input.specs)

    keeps_count: ClassVar[bool] = True

    def elements(self, context: Context) -> Iterator[Element]:
        ragged_specs = [self._ragged(spec) for spec in self.input.specs]
        return mapped(
            self.input.elements(context),
            lambda element: tuple(
                value if spec is None else _as_ragged(value, spec)
                for value, spec in zip(element, ragged_specs, strict=True)
            ),
        )

    def _ragged(self, spec: TensorSpec) -> RaggedSpec | None:
        """Returns the spec of the ragged component for an array with unknown dimensions; None for other components."""
        if spec.code != "dense" or spec.dims is None or None not in spec.dims:
            return None
        last = max(axis for axis, size in enumerate(spec.dims) if size is None)
        return RaggedSpec(spec.dims, spec.dtype, last, int64 if self.wide else int32)


def _as_ragged(value: Array, spec: RaggedSpec) -> RaggedArray:
    """Converts an array to a ragged array, in which all rows of a dimension have the same length."""
    sizes: tuple[int, ...] = value.shape
    kind = spec.splits_dtype.numpy_dtype
    counts = [math.prod(sizes[: axis + 1]) for axis in range(spec.ragged_rank)]
    splits = [np.arange(count + 1, dtype=kind) * sizes[axis + 1] for axis, count in enumerate(counts)]
    return RaggedArray(value.reshape(-1, *sizes[spec.ragged_rank + 1 :]), splits, spec.splits_dtype)


@dataclass(eq=False, kw_only=True)
class Rebatch(ByElement):
    """Divides the rows of all elements into new elements. The last element may have fewer rows unless
    ``drop_remainder``.

    Attributes:
      sizes: numbers of rows of the new elements, used cyclically.
    """

    values: ClassVar[dict[str, DType | None]] = {"sizes": int64, "drop_remainder": bool_}
    sizes: Any
    drop_remainder: Any

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        sizes = {int(size) for size in np.ravel(self.sizes)} if is_array(self.sizes) else set[int]()
        known = sizes.pop() if len(sizes) == 1 and static_value(self.drop_remainder) else None
        return tuple(spec.sliced().batched(known) for spec in self.input.specs)

    def elements(self, context: Context) -> Iterator[Element]:
        sizes = [int(size) for size in np.ravel(self.sizes)]
        if not sizes or min(sizes) < 0 or not sum(sizes):
            raise InvalidArgumentError(f"rebatch: batch sizes must be positive, not {sizes}")
        drop = bool(self.drop_remainder)
        with closing(Unbatch(input=self.input).elements(context)) as source:
            for size in itertools.cycle(sizes):
                chosen = list(itertools.islice(source, size))
                if size and (not chosen or (drop and len(chosen) < size)):
                    return
                yield _combined(chosen, self._stacked)

    def _stacked(self, chosen: Sequence[Element]) -> Element:
        if chosen:
            return tuple(stack(column, "rebatch", at) for at, column in enumerate(zip(*chosen, strict=True)))
        # A size of 0 yields an element without rows, whose shape is known only from the specs.
        return tuple(
            np.zeros((0, *(size or 0 for size in (spec.dims or (0,))[1:])), spec.dtype.numpy_dtype)
            for spec in self.input.specs
        )


@dataclass(eq=False, kw_only=True)
class PaddedBatch(ByElement):
    """Stacks elements as `Batch` does, after padding them to one shape.

    Attributes:
      shapes: shape of each component, int64; -1 for the largest size in the batch.
      padding: padding value of each component, a scalar.
    """

    values: ClassVar[dict[str, DType | None]] = {
        "batch_size": int64,
        "shapes": int64,
        "padding": None,
        "drop_remainder": bool_,
    }
    positive: ClassVar[dict[str, str]] = {"batch_size": "batch_size"}
    batch_size: Any
    shapes: tuple[Any, ...]
    padding: tuple[Any, ...]
    drop_remainder: TensorLike

    @property
    def cardinality(self) -> int:
        return Batch(input=self.input, batch_size=self.batch_size, drop_remainder=self.drop_remainder).cardinality

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        size = static_value(self.batch_size) if static_value(self.drop_remainder) else None
        specs_of_batches: list[TensorSpec] = []
        for spec, shape in zip(self.input.specs, self.shapes, strict=True):
            if is_array(shape):
                dims = [None if dim < 0 else int(dim) for dim in shape]
                specs_of_batches.append(TensorSpec([size, *dims], spec.dtype))
            else:
                specs_of_batches.append(
                    TensorSpec(None if spec.dims is None else [size, *[None] * len(spec.dims)], spec.dtype)
                )
        return tuple(specs_of_batches)

    def elements(self, context: Context) -> Iterator[Element]:
        size, drop = int(self.batch_size), bool(self.drop_remainder)
        yield from _grouped(self.input, context, size, drop, self._stacked)

    def _stacked(self, chosen: Sequence[Element]) -> Element:
        columns = zip(zip(*chosen, strict=True), self.shapes, self.padding, strict=True)
        return tuple(_padded(column, [int(dim) for dim in shape], padding) for column, shape, padding in columns)


def _padded(values: Sequence[Array], shape: Sequence[int], padding: Any) -> Array:
    """Stacks arrays after padding each at its ends to ``shape``; a size of -1 means the largest size in ``values``."""
    rank = len(shape)
    for value in values:
        if value.ndim != rank:
            raise InvalidArgumentError(
                f"All elements in a batch must have the same rank as the padded shape: expected rank {rank} but got "
                f"element with rank {value.ndim}"
            )
    sizes = [max(value.shape[i] for value in values) if want < 0 else want for i, want in enumerate(shape)]
    out = np.empty((len(values), *sizes), values[0].dtype)
    out[...] = padding[()] if is_array(padding) else padding
    for index, value in enumerate(values):
        if any(have > room for have, room in zip(value.shape, sizes, strict=True)):
            raise DataLossError(
                f"Attempted to pad to a smaller size than the input element: {list(value.shape)} into {sizes}."
            )
        out[(index, *(slice(0, have) for have in value.shape))] = value if value.ndim else value[()]
    return out


@dataclass(eq=False, kw_only=True)
class Unbatch(Wrapper):
    """Yields the slices of each element along the first dimension."""

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        return tuple(spec.sliced() for spec in self.input.specs)

    @property
    def columnar(self) -> bool:
        return fully_defined(self.specs)

    def elements(self, context: Context) -> Iterator[Element]:
        return flat_mapped(self.input.elements(context), self._slices)

    def _slices(self, element: Element) -> Iterator[Element]:
        for index in range(_rows(element)):
            yield tuple(row(column, index) for column in element)

    def blocks(self, context: Context, rows: int) -> Iterator[Block]:
        return flat_mapped(
            self.input.elements(context),
            lambda element: (_slice(element, start, start + rows) for start in range(0, _rows(element), rows)),
        )


def _rows(element: Element) -> int:
    """Returns the number of rows of all components.

    Raises:
      InvalidArgumentError: a component is a scalar, or their numbers of rows differ.
    """
    counts = {len(column) if column.ndim else -1 for column in element}
    if len(counts) != 1 or -1 in counts:
        raise InvalidArgumentError(
            f"unbatch: components have shapes {[list(column.shape) for column in element]}; they must have "
            "equal first dimensions"
        )
    return counts.pop()
