"""Components of elements that consist of several arrays: sparse ones, and rows of different lengths.

Such a component has a class of its own, and a spec that lists its arrays. Nodes treat the component as one value: a
node stacks components, takes rows of a component, or passes a component on. Functions, steps and files get the arrays
of a component one by one.
"""

from __future__ import annotations

import functools
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

import numpy as np

from headwater.data.spec import TensorSpec, as_array
from headwater.dtypes import DType, as_dtype, float32, from_numpy, int64, string
from headwater.errors import InvalidArgumentError

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.registry import HostArray
    from headwater.shapes import Dims, ShapeLike


class Composite(ABC):
    """A component that consists of several arrays."""

    @property
    @abstractmethod
    def spec(self) -> TensorSpec:
        """The class, type and shape of the component."""

    @property
    @abstractmethod
    def parts(self) -> tuple[HostArray, ...]:
        """The arrays, in the order of `TensorSpec.parts`."""

    @abstractmethod
    def stacked(self, values: Sequence[object], label: str, component: int) -> Composite:
        """Stacks ``values``, the first of which is this component, as the rows of one component.

        Args:
          label: the transformation, for messages.
          component: the component's position in an element, for messages.

        Raises:
          InvalidArgumentError: the shapes do not fit.
        """

    @abstractmethod
    def row(self, index: int) -> Any:
        """Returns one row: a component of the same class, or an array if nothing in the row is ragged."""

    @abstractmethod
    def rows(self, start: int, stop: int) -> Composite:
        """Returns the rows from ``start`` up to, but excluding, ``stop``."""

    @abstractmethod
    def selected(self, rows: HostArray) -> Composite:
        """Returns the rows with these numbers, in this order."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of rows."""

    @property
    def shape(self) -> Dims:
        """The dense shape, with None for dimensions that are ragged."""
        return self.spec.dims

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape or ())

    @property
    def dtype(self) -> DType:
        """The type of the values."""
        return self.spec.dtype

    def __getitem__(self, key: SupportsIndex | slice | HostArray) -> Any:
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1:
                return self.rows(start, max(start, stop))
            key = np.arange(start, stop, step)
        if isinstance(key, np.ndarray):
            return self.selected(cast("HostArray", key))
        return self.row(operator.index(key))


def expand(offsets: Any, rows: Any) -> tuple[Any, Any]:
    """Returns the places of the elements of some rows, [n], and the offsets of these rows among them, [rows + 1].

    Args:
      offsets: the start of each row among the elements, and the end of the last one.
      rows: numbers of rows.
    """
    starts: Any = offsets[rows]
    sizes = offsets[rows + 1] - starts
    bounds: Any = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(sizes, out=bounds[1:])
    return np.arange(int(bounds[-1])) + np.repeat(starts - bounds[:-1], sizes), bounds


class SparseArray(Composite):
    """The values at some positions of an array that is zero everywhere else.

    Args:
      indices: int64 ``[values, dimensions]``, in row-major order.
      values: ``[values]``.
      dense_shape: int64 ``[dimensions]``.
    """

    __slots__ = ("dense_shape", "indices", "values")

    def __init__(self, indices: object, values: object, dense_shape: object) -> None:
        self.indices: Any = np.asarray(indices, np.int64)
        self.values: Any = as_array(values)
        self.dense_shape: Any = np.asarray(dense_shape, np.int64)
        if not self.indices.size:
            self.indices = self.indices.reshape(len(self.values), len(self.dense_shape))

    @property
    def spec(self) -> SparseSpec:
        return SparseSpec(self.shape, _dtype(self.values))

    @property
    def shape(self) -> Dims:
        return tuple(self.dense_shape.tolist())

    @property
    def parts(self) -> tuple[HostArray, ...]:
        return self.indices, self.values, self.dense_shape

    def stacked(self, values: Sequence[Any], label: str, component: int) -> SparseArray:
        for other in values:
            if len(other.dense_shape) != len(self.dense_shape):
                raise InvalidArgumentError(
                    f"{label}: Inconsistent rank across SparseTensors: rank prior to SparseTensor in component "
                    f"{component} was: {len(self.dense_shape)} but rank of a later one is: {len(other.dense_shape)}"
                )
        counts = [len(value.values) for value in values]
        rows = np.repeat(np.arange(len(values), dtype=np.int64), counts)[:, None]
        shape = np.max([value.dense_shape for value in values], axis=0)
        return SparseArray(
            np.concatenate([rows, np.concatenate([value.indices for value in values])], axis=1),
            np.concatenate([value.values for value in values]),
            np.concatenate([[len(values)], shape]),
        )

    def row(self, index: int) -> SparseArray:
        start, stop = np.searchsorted(self.indices[:, 0], [index, index + 1])
        return SparseArray(self.indices[start:stop, 1:], self.values[start:stop], self.dense_shape[1:])

    def rows(self, start: int, stop: int) -> SparseArray:
        first, last = np.searchsorted(self.indices[:, 0], [start, stop])
        indices = self.indices[first:last]
        if start:
            indices = indices.copy()
            indices[:, 0] -= start
        return SparseArray(indices, self.values[first:last], [stop - start, *self.dense_shape[1:]])

    def selected(self, rows: HostArray) -> SparseArray:
        starts = np.searchsorted(self.indices[:, 0], np.arange(len(self) + 1))
        places, offsets = expand(starts, rows)
        indices = self.indices[places]
        indices[:, 0] = np.repeat(np.arange(len(rows)), np.diff(offsets))
        return SparseArray(indices, self.values[places], [len(rows), *self.dense_shape[1:]])

    def __len__(self) -> int:
        if not len(self.dense_shape):
            raise TypeError("a sparse scalar has no rows")
        return int(self.dense_shape[0])

    def __repr__(self) -> str:
        return f"SparseArray({self.indices!r}, {self.values!r}, {self.dense_shape!r})"


class RaggedArray(Composite):
    """Rows of different lengths.

    Args:
      values: all innermost values, concatenated.
      splits: for each ragged dimension, outermost first, the boundaries of its rows; empty if no dimension is ragged.
      splits_dtype: type of the splits; by default the type of the first splits, or int64.
    """

    __slots__ = ("_splits_dtype", "splits", "values")

    def __init__(self, values: object, splits: Sequence[Any] = (), splits_dtype: DType | None = None) -> None:
        self.values: Any = as_array(values)
        self.splits: tuple[Any, ...] = tuple(map(np.asarray, splits))
        self._splits_dtype = splits_dtype or (from_numpy(self.splits[0].dtype) if self.splits else int64)

    @property
    def spec(self) -> RaggedSpec:
        rows = [len(self.splits[0]) - 1] + [None] * len(self.splits) if self.splits else [None]
        return RaggedSpec([*rows, *self.values.shape[1:]], _dtype(self.values), len(self.splits), self._splits_dtype)

    @property
    def parts(self) -> tuple[HostArray, ...]:
        return self.values, *self.splits

    def stacked(self, values: Sequence[Any], label: str, component: int) -> RaggedArray:
        for other in values:
            if len(other.splits) != len(self.splits) or other.values.shape[1:] != self.values.shape[1:]:
                raise InvalidArgumentError(
                    f"{label}: component {component} has ragged rows of shape {other.shape}, which cannot be one batch "
                    f"with rows of shape {self.shape}"
                )
        kind = self._splits_dtype.numpy_dtype
        outer = np.cumsum([0, *(len(value) for value in values)], dtype=kind)
        inner: list[Any] = []
        for level in range(len(self.splits)):
            starts = np.cumsum([0, *(value.splits[level][-1] for value in values)], dtype=kind)
            shifted = (value.splits[level][1:] + start for value, start in zip(values, starts[:-1], strict=True))
            inner.append(np.concatenate([starts[:1], *shifted]).astype(kind))
        found = np.concatenate([value.values for value in values])
        return RaggedArray(found, (outer, *inner), self._splits_dtype)

    def row(self, index: int) -> Any:
        if not self.splits:
            return _as_array(self.values[index])
        return self._between(int(self.splits[0][index]), int(self.splits[0][index + 1]), 1, ())

    def rows(self, start: int, stop: int) -> RaggedArray:
        if not self.splits:
            return RaggedArray(self.values[start:stop], (), self._splits_dtype)
        first = self.splits[0][start : stop + 1]
        return self._between(int(first[0]), int(first[-1]), 1, (first - first[0],))

    def selected(self, rows: HostArray) -> RaggedArray:
        selected_parts: list[Any] = []
        for splits in self.splits:
            rows, offsets = expand(splits, rows)
            selected_parts.append(offsets.astype(splits.dtype, copy=False))
        return RaggedArray(self.values[rows], selected_parts, self._splits_dtype)

    def _between(self, start: int, stop: int, level: int, outer: tuple[object, ...]) -> RaggedArray:
        """Returns rows ``start`` to ``stop`` of the ragged dimension ``level``, with ``outer`` as the splits of the
        dimensions above it."""
        found = list(outer)
        for splits in self.splits[level:]:
            part = splits[start : stop + 1]
            found.append(part - part[0])
            start, stop = int(part[0]), int(part[-1])
        return RaggedArray(self.values[start:stop], found, self._splits_dtype)

    def __len__(self) -> int:
        return len(self.splits[0]) - 1 if self.splits else len(self.values)

    def __repr__(self) -> str:
        return f"RaggedArray({self.values!r}, {self.splits!r})"


class SparseSpec(TensorSpec):
    """Type and dense shape of a `SparseArray`."""

    __slots__ = ()

    @property
    def code(self) -> str:
        return "sparse"

    @property
    def parts(self) -> tuple[TensorSpec, ...]:
        return _sparse_parts(self.shape.ndims, self.dtype)

    def joined(self, arrays: Sequence[HostArray]) -> SparseArray:
        return SparseArray(*arrays)

    def converted(self, value: Any) -> SparseArray:
        if isinstance(value, SparseArray):
            return value
        return SparseArray(value.indices, as_array(value.values, self.dtype), value.dense_shape)

    def with_shape(self, shape: ShapeLike) -> SparseSpec:
        return SparseSpec(shape, self.dtype)


@functools.cache
def _sparse_parts(rank: int | None, dtype: DType) -> tuple[TensorSpec, ...]:
    """Returns the specs of a sparse component's indices, values and dense shape."""
    return TensorSpec([None, rank], int64), TensorSpec([None], dtype), TensorSpec([rank], int64)


class RaggedSpec(TensorSpec):
    """Type and shape of a `RaggedArray`.

    Args:
      shape: its shape, None for ragged dimensions; None if the number of dimensions is unknown.
      dtype: type of the values.
      ragged_rank: number of dimensions with rows of different lengths.
      splits_dtype: type of the splits.
    """

    __slots__ = ("ragged_rank", "splits_dtype")

    def __init__(
        self, shape: ShapeLike, dtype: DTypeLike = float32, ragged_rank: int = 1, splits_dtype: DTypeLike = int64
    ) -> None:
        super().__init__(shape, dtype)
        self.ragged_rank = ragged_rank
        self.splits_dtype: DType = as_dtype(splits_dtype)

    @property
    def code(self) -> str:
        return f"ragged {self.ragged_rank} {self.splits_dtype.name}"

    @property
    def parts(self) -> tuple[TensorSpec, ...]:
        dims = self.dims
        inner = None if dims is None else [None, *dims[self.ragged_rank + 1 :]]
        outer = None if dims is None or dims[0] is None else dims[0] + 1
        counts = [outer, *[None] * (self.ragged_rank - 1)][: self.ragged_rank]
        return TensorSpec(inner, self.dtype), *(TensorSpec([count], self.splits_dtype) for count in counts)

    def joined(self, arrays: Sequence[HostArray]) -> RaggedArray:
        return RaggedArray(arrays[0], arrays[1:], self.splits_dtype)

    def converted(self, value: object) -> RaggedArray:
        if isinstance(value, RaggedArray):
            return value
        kind = self.splits_dtype.numpy_dtype
        splits = [np.asarray(part, kind) for part in getattr(value, "nested_row_splits", ())]
        return RaggedArray(as_array(getattr(value, "flat_values", value), self.dtype), splits, self.splits_dtype)

    def with_shape(self, shape: ShapeLike) -> RaggedSpec:
        return RaggedSpec(shape, self.dtype, self.ragged_rank, self.splits_dtype)

    def batched(self, size: int | None) -> RaggedSpec:
        shape = None if self.dims is None else [size, *self.dims]
        return RaggedSpec(shape, self.dtype, self.ragged_rank + 1, self.splits_dtype)

    def sliced(self) -> TensorSpec:
        shape = None if self.dims is None else self.dims[1:]
        if not self.ragged_rank:
            return TensorSpec(shape, self.dtype)
        return RaggedSpec(shape, self.dtype, self.ragged_rank - 1, self.splits_dtype)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RaggedSpec) or not super().__eq__(other):
            return False
        return (self.ragged_rank, self.splits_dtype) == (other.ragged_rank, other.splits_dtype)

    def __hash__(self) -> int:
        return hash((super().__hash__(), self.ragged_rank, self.splits_dtype))


def _as_array(item: object) -> HostArray:
    """Converts an item of an array to an array; a scalar to an array without dimensions."""
    if isinstance(item, np.ndarray):
        return cast("HostArray", item)
    scalar = np.empty((), object if isinstance(item, bytes) else np.asarray(item).dtype)
    scalar[()] = item
    return scalar


def _dtype(array: HostArray) -> DType:
    return string if array.dtype == object else from_numpy(array.dtype)


def spec_of_code(code: str, shape: ShapeLike, dtype: DTypeLike) -> TensorSpec:
    """Returns the spec with this `TensorSpec.code`."""
    kind, *settings = code.split()
    if kind == "sparse":
        return SparseSpec(shape, dtype)
    if kind == "ragged":
        return RaggedSpec(shape, dtype, int(settings[0]), settings[1])
    if kind == "dense":
        return TensorSpec(shape, dtype)
    raise InvalidArgumentError(f"{code!r} is not a class of a dataset's component")


def flat_specs(specs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
    """Returns the specs of the arrays of an element."""
    return tuple(part for spec in specs for part in spec.parts)


def flat_element(element: Sequence[Any]) -> tuple[Any, ...]:
    """Returns the arrays of the components of an element."""
    return tuple(part for value in element for part in (value.parts if isinstance(value, Composite) else (value,)))


def element_of(specs: Sequence[TensorSpec], arrays: Sequence[object]) -> tuple[Any, ...]:
    """Assembles an element from the arrays of its components, in order."""
    rest: Iterator[object] = iter(arrays)
    return tuple(spec.joined(list(islice(rest, len(spec.parts)))) for spec in specs)


def is_dense(specs: Sequence[TensorSpec]) -> bool:
    """Returns whether each component is one array."""
    return all(spec.code == "dense" for spec in specs)


def as_component(value: object, dtype: DType | None = None) -> Any:
    """Converts a value to a component: an array, or a composite value, which is unchanged."""
    if isinstance(value, Composite):
        return value
    if hasattr(value, "dense_shape"):
        component = cast("Any", value)
        return SparseArray(component.indices, as_array(component.values, dtype), component.dense_shape)
    if hasattr(value, "nested_row_splits"):
        component = cast("Any", value)
        return RaggedArray(as_array(component.flat_values, dtype), component.nested_row_splits)
    return as_array(value, dtype)
