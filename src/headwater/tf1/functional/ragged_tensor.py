"""Ragged tensors: rows of different lengths, stored as concatenated values and row splits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeAlias, cast

from headwater import dtypes
from headwater.dtypes import DType, as_dtype
from headwater.graph.composites import CompositeTensor
from headwater.graph.constants import constant_value
from headwater.graph.context import get_default_graph
from headwater.graph.convert import constant, convert_to_tensor, name_scope
from headwater.graph.fetch_types import register_session_run_conversion_functions
from headwater.graph.graph import Graph
from headwater.graph.operation import Operation, Tensor
from headwater.graph.ragged_value import RaggedTensorValue, ragged_value
from headwater.graph.sparse_tensor import as_sparse
from headwater.graph.types import TensorLike
from headwater.shapes import TensorShape
from headwater.tf1.functional import arrays, indexing, math, reductions
from headwater.tf1.functional.apply import apply, one
from headwater.tf1.functional.checks import Assert, assert_equal
from headwater.tf1.functional.control_flow import with_dependencies
from headwater.tf1.functional.sparse import SparseTensor, sparse_tensor_to_dense

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import FeedDict, SessionLike, Structure

RaggedLike: TypeAlias = "TensorLike | RaggedTensor"
"""The values of rows: dense, or ragged themselves."""


def rows_of_splits(splits: TensorLike, name: str | None = None) -> Tensor:
    """The row of each value, from the splits."""
    return one("RaggedSplitsToRows", splits, name=name)


def splits_of_rows(
    rows: Tensor, count: TensorLike | None = None, name: str | None = None, ascending: bool = True
) -> Tensor:
    """The splits, from the row of each value; ``count``: the number of rows; ``ascending``: a run checks the order."""
    number = constant(-1, rows.dtype) if count is None else math.cast(count, rows.dtype)
    return one("RaggedRowsToSplits", rows, number, name=name, ascending=ascending)


def check_splits(first: Sequence[Tensor], second: Sequence[Tensor], message: str) -> list[Operation]:
    """Returns checks that two ragged tensors have the same splits.

    Raises:
      InvalidArgumentError: the splits are known, and differ.
    """
    pairs = zip(first, second, strict=True)
    return [
        assert_equal(math.cast(one, dtypes.int64), math.cast(other, dtypes.int64), message=message)
        for one, other in pairs
        if one is not other
    ]


class RaggedTensor(CompositeTensor):
    """A tensor with rows of different lengths, made by the class methods ``from_…``.

    Operators apply to each value; operands are ragged tensors with the same rows, or broadcast against each value.
    """

    def __init__(self, values: Any, row_splits: Tensor, *, internal: bool = False) -> None:
        if not internal:
            raise ValueError(
                "RaggedTensor constructor is private; please use one of the factory methods instead (e.g., "
                "RaggedTensor.from_row_lengths())"
            )
        self._values = values
        self._splits: Tensor = row_splits

    # Making them ------------------------------------------------------------------------------------------------

    @classmethod
    def from_row_splits(
        cls, values: RaggedLike, row_splits: TensorLike, name: str | None = None, validate: bool = True
    ) -> Self:
        """The rows ``values[row_splits[i]:row_splits[i + 1]]``.

        Args:
          values: a tensor, or a ragged one.
          row_splits: integers: 0, then the end of each row, which is the start of the next row.
          validate: a run checks the splits.
        """
        if isinstance(row_splits, list | tuple) and not row_splits:
            raise ValueError("row_splits tensor may not be empty.")
        with name_scope(name, "RaggedFromRowSplits", [values, row_splits]):
            values = as_ragged_or_tensor(values, name="values")
            splits = _index(row_splits, "row_splits")
            if splits.shape.ndims not in (None, 1):
                raise ValueError(f"Shape {splits.shape} must have rank 1")
            if validate:
                splits = one("RaggedCheckedSplits", splits, math.cast(length_of(values), splits.dtype))
            return cls(values, splits, internal=True)

    @classmethod
    def from_value_rowids(
        cls,
        values: RaggedLike,
        value_rowids: TensorLike,
        nrows: TensorLike | None = None,
        name: str | None = None,
        validate: bool = True,
    ) -> Self:
        """Returns a ragged tensor with each value in the row ``value_rowids``, ascending.

        Args:
          values: a tensor, or a ragged one.
          value_rowids: the row of each value.
          nrows: number of rows; one more than the last value's if None.
          validate: a run checks the order of the rows.

        Raises:
          ValueError: ``nrows`` is negative, or less than a row.
        """
        if isinstance(nrows, int):
            if nrows < 0:
                raise ValueError(f"Expected nrows >= 0; got {nrows:d}")
            if isinstance(value_rowids, list) and value_rowids and nrows <= max(cast("list[int]", value_rowids)):
                raise ValueError(f"Expected nrows >= value_rowids[-1] + 1; got nrows={nrows}")
        with name_scope(name, "RaggedFromValueRowIds", [values, value_rowids]):
            values = as_ragged_or_tensor(values, name="values")
            rows = _index(value_rowids, "value_rowids")
            return cls(values, splits_of_rows(rows, nrows, ascending=validate), internal=True)

    @classmethod
    def from_row_lengths(
        cls, values: RaggedLike, row_lengths: TensorLike, name: str | None = None, validate: bool = True
    ) -> Self:
        """Rows of these lengths, one after the other."""
        with name_scope(name, "RaggedFromRowLengths", [values, row_lengths]):
            lengths = _index(row_lengths, "row_lengths")
            return cls.from_row_splits(values, _splits_of_lengths(lengths), validate=validate)

    @classmethod
    def from_row_starts(
        cls, values: RaggedLike, row_starts: TensorLike, name: str | None = None, validate: bool = True
    ) -> Self:
        """Rows that begin at these places; the first at 0."""
        with name_scope(name, "RaggedFromRowStarts", [values, row_starts]):
            values = as_ragged_or_tensor(values, name="values")
            starts = _index(row_starts, "row_starts")
            end = arrays.expand_dims(math.cast(length_of(values), starts.dtype), 0)
            return cls.from_row_splits(values, arrays.concat([starts, end], 0), validate=validate)

    @classmethod
    def from_row_limits(
        cls, values: RaggedLike, row_limits: TensorLike, name: str | None = None, validate: bool = True
    ) -> Self:
        """Rows that end at these places; the last with the values."""
        with name_scope(name, "RaggedFromRowLimits", [values, row_limits]):
            limits = _index(row_limits, "row_limits")
            zero = arrays.zeros([1], limits.dtype)
            return cls.from_row_splits(values, arrays.concat([zero, limits], 0), validate=validate)

    @classmethod
    def from_nested_row_splits(
        cls,
        flat_values: TensorLike,
        nested_row_splits: Sequence[TensorLike],
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Returns a ragged tensor with several ragged dimensions from their splits, the outermost first."""
        return cls._nested(flat_values, nested_row_splits, cls.from_row_splits, "nested_row_splits", name, validate)

    @classmethod
    def from_nested_row_lengths(
        cls,
        flat_values: TensorLike,
        nested_row_lengths: Sequence[TensorLike],
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Returns a ragged tensor with several ragged dimensions from their rows' lengths, the outermost first."""
        return cls._nested(flat_values, nested_row_lengths, cls.from_row_lengths, "nested_row_lengths", name, validate)

    @classmethod
    def from_nested_value_rowids(
        cls,
        flat_values: TensorLike,
        nested_value_rowids: Sequence[TensorLike],
        nested_nrows: Sequence[TensorLike] | None = None,
        name: str | None = None,
        validate: bool = True,
    ) -> Any:
        """Returns a ragged tensor with several ragged dimensions from the rows of their values, the outermost first.

        Raises:
          ValueError: the number of ``nested_nrows`` is wrong.
        """
        counts = [None] * len(nested_value_rowids) if nested_nrows is None else list(nested_nrows)
        if len(counts) != len(nested_value_rowids):
            raise ValueError("nested_nrows must have the same length as nested_value_rowids")
        with name_scope(name, "RaggedFromNestedValueRowIds", [flat_values]):
            found = flat_values
            for rows, count in reversed(list(zip(nested_value_rowids, counts, strict=True))):
                found = cls.from_value_rowids(found, rows, count, validate=validate)
            return found

    @classmethod
    def _nested(
        cls,
        flat: Structure,
        nested: Sequence[TensorLike],
        make: Callable[..., object],
        what: str,
        name: str | None,
        validate: bool,
    ) -> Any:
        if isinstance(nested, Tensor):
            raise TypeError(f"{what} must be a list of Tensors")
        with name_scope(name, "RaggedFromNested", [flat]):
            found = flat
            for part in reversed(nested):
                found = make(found, part, validate=validate)
            return found

    @classmethod
    def from_tensor(
        cls,
        tensor: Any,
        lengths: TensorLike | None = None,
        padding: str | None = None,
        ragged_rank: int = 1,
        name: str | None = None,
        row_splits_dtype: DTypeLike = dtypes.int64,
    ) -> Any:
        """Returns the rows of a tensor as a ragged tensor.

        Args:
          tensor: a tensor of a known rank of at least 2.
          lengths: the length of each row, to drop elements beyond it; or a list or tuple of the lengths of all ragged
            dimensions, the outermost first.
          padding: the value to drop at the end of rows.
          ragged_rank: number of dimensions that become ragged.
          row_splits_dtype: the type of the splits.

        Raises:
          ValueError: both ``lengths`` and ``padding`` are given, or ``ragged_rank`` is out of range.
        """
        if lengths is not None and padding is not None:
            raise ValueError("Specify lengths or padding, but not both")
        if not isinstance(ragged_rank, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"ragged_rank expected int, got {ragged_rank!r}")
        if ragged_rank <= 0:
            raise ValueError(f"ragged_rank must be greater than 0; got {ragged_rank}")
        dtype = as_dtype(row_splits_dtype)
        with name_scope(name, "RaggedFromTensor", [tensor, lengths, padding]):
            tensor = convert_to_tensor(tensor, name="tensor")
            rank = tensor.shape.with_rank_at_least(ragged_rank + 1).ndims
            if rank is None:
                raise ValueError("the rank of the tensor must be known")
            if isinstance(lengths, list | tuple) and lengths and isinstance(lengths[0], list | tuple | Tensor):
                rest = list(cast("Sequence[Any]", lengths))
                tensor.shape.with_rank_at_least(len(rest) + 1)
                return _with_nested_lengths(tensor, rest, dtype)
            if ragged_rank > 1:
                return _outer_dense(tensor, lengths, padding, ragged_rank, dtype)
            width = arrays.shape(tensor, out_type=dtype)[1]
            if padding is not None:
                lengths = _lengths_without(tensor, padding, dtype)
            if lengths is not None:
                given = convert_to_tensor(cast("TensorLike", lengths), preferred_dtype=dtype, name="lengths")
                if not given.dtype.is_integer:
                    raise TypeError(f"lengths must be an integer tensor; dtype={given.dtype}")
                kept = math.cast(given, dtype)
                kept = math.maximum(math.minimum(kept, width), constant(0, dtype))
                mask = indexing.sequence_mask(kept, width)
                return cls.from_row_lengths(indexing.boolean_mask(tensor, mask), kept, validate=False)
            count = arrays.shape(tensor, out_type=dtype)[0]
            splits = arrays.range(count + 1) * width
            flat = arrays.reshape(tensor, arrays.concat([[-1], arrays.shape(tensor)[2:]], 0))
            flat.set_shape([None if None in tensor.dims[:2] else tensor.dims[0] * tensor.dims[1], *tensor.dims[2:]])
            return cls(flat, splits, internal=True)

    @classmethod
    def from_sparse(
        cls, st_input: TensorLike, name: str | None = None, row_splits_dtype: DTypeLike = dtypes.int64
    ) -> Self:
        """Returns the rows of a sparse matrix, in which elements must be left-aligned.

        Raises:
          TypeError: ``st_input`` is not a sparse tensor.
          ValueError: ``st_input`` is not a matrix.
          InvalidArgumentError: when run; elements of a row do not fill its first columns.
        """
        if not isinstance(st_input, SparseTensor) and not hasattr(st_input, "dense_shape"):
            raise TypeError(f"Expected SparseTensor, got {type(st_input).__name__}")
        sparse = as_sparse(st_input)
        dims = sparse.indices.dims
        if (sparse.shape.ndims or (dims[1] if dims else None)) != 2:
            raise ValueError("rank(st_input) must be 2")
        dtype = as_dtype(row_splits_dtype)
        with name_scope(name, "RaggedFromSparse", [sparse.indices]):
            row, column = sparse.indices[:, 0], sparse.indices[:, 1]
            before = arrays.concat([[-1], row[:-1]], 0)
            wanted = math.cast(math.equal(row, before), dtypes.int64) * arrays.concat([[1], column[:-1] + 1], 0)
            aligned = reductions.reduce_all(math.equal(column, wanted))
            check = Assert(aligned, ["SparseTensor is not right-ragged"])
            rows = with_dependencies([check], math.cast(row, dtype))
            return cls.from_value_rowids(sparse.values, rows, math.cast(sparse.dense_shape[0], dtype))

    # Properties -------------------------------------------------------------------------------------------------

    @property
    def values(self) -> Any:
        """The rows, one after the other: a tensor, or a ragged one."""
        return self._values

    @property
    def row_splits(self) -> Tensor:
        """The boundaries of rows in the values."""
        return self._splits

    @property
    def flat_values(self) -> Tensor:
        """The innermost values."""
        return self._values.flat_values if isinstance(self._values, RaggedTensor) else self._values

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        """The splits of each ragged dimension, the outermost first."""
        return (self._splits, *(self._values.nested_row_splits if isinstance(self._values, RaggedTensor) else ()))

    @property
    def ragged_rank(self) -> int:
        """The number of ragged dimensions."""
        return len(self.nested_row_splits)

    @property
    def dtype(self) -> DType:
        """The type of the values."""
        return self.flat_values.dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape; None for ragged dimensions."""
        dims = self._splits.dims
        count = None if dims is None or dims[0] is None else dims[0] - 1
        inner = self._values.shape
        return TensorShape(None) if inner.ndims is None else TensorShape([count, None, *inner.as_list()[1:]])

    def get_shape(self) -> TensorShape:
        """Same as `shape`."""
        return self.shape

    @property
    def op(self) -> Operation:
        """The operation that makes the values."""
        return self.flat_values.op

    @property
    def graph(self) -> Graph:
        """The graph to which it belongs."""
        return self.flat_values.graph

    def consumers(self) -> list[Operation]:
        """The operations that take a part of it."""
        return [op for part in self.components for op in part.consumers()]

    def value_rowids(self, name: str | None = None) -> Tensor:
        """The row of each value."""
        return rows_of_splits(self._splits, name)

    def nested_value_rowids(self, name: str | None = None) -> tuple[Tensor, ...]:
        """The row of each value, for each ragged dimension, the outermost first."""
        with name_scope(name, "RaggedNestedValueRowIds", list(self.nested_row_splits)):
            return tuple(rows_of_splits(splits) for splits in self.nested_row_splits)

    def nrows(self, out_type: DTypeLike | None = None, name: str | None = None) -> Tensor:
        """Returns the number of rows."""
        with name_scope(name, "RaggedNRows", [self._splits]):
            kind = self._splits.dtype if out_type is None else as_dtype(out_type)
            return arrays.shape(self._splits, out_type=kind)[0] - 1

    def row_starts(self, name: str | None = None) -> Tensor:
        """Returns the start of each row."""
        with name_scope(name, "RaggedRowStarts", [self._splits]):
            return self._splits[:-1]

    def row_limits(self, name: str | None = None) -> Tensor:
        """Returns the end of each row."""
        with name_scope(name, "RaggedRowLimits", [self._splits]):
            return self._splits[1:]

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """Returns the lengths of the rows of the dimension ``axis``; for an inner dimension, they are ragged, too."""
        if axis == 0:
            return self.nrows()
        with name_scope(name, "RaggedRowLengths", [self._splits]):
            if axis == 1:
                return self._splits[1:] - self._splits[:-1]
            inner = self._values
            if isinstance(inner, RaggedTensor):
                return self.with_values(inner.row_lengths(axis - 1))
            shape = arrays.shape(inner, out_type=self._splits.dtype)
            return self.with_values(arrays.ones(shape[: axis - 1], shape.dtype) * shape[axis - 1])

    def nested_row_lengths(self, name: str | None = None) -> tuple[Tensor, ...]:
        """Returns the lengths of the rows of each ragged dimension, the outermost first."""
        with name_scope(name, "RaggedNestedRowLengths", list(self.nested_row_splits)):
            return tuple(splits[1:] - splits[:-1] for splits in self.nested_row_splits)

    def bounding_shape(
        self, axis: int | None = None, name: str | None = None, out_type: DTypeLike | None = None
    ) -> Tensor:
        """Returns the shape of the smallest tensor that contains it."""
        kind = self._splits.dtype if out_type is None else as_dtype(out_type)
        with name_scope(name, "RaggedBoundingBox", list(self.nested_row_splits)):
            lengths = [math.cast(part, kind) for part in self.nested_row_lengths()]
            widest = [math.maximum(reductions.reduce_max(part), constant(0, kind)) for part in lengths]
            ragged = arrays.stack([self.nrows(kind), *widest])
            whole = arrays.concat([ragged, arrays.shape(self.flat_values, out_type=kind)[1:]], 0)
            return whole if axis is None else indexing.gather(whole, axis)

    # Conversions -------------------------------------------------------------------------------------------

    def with_values(self, new_values: object) -> RaggedTensor:
        """Returns a ragged tensor with the same rows and other values."""
        values = as_ragged_or_tensor(new_values, name="values")
        mine, theirs = self._values.shape, values.shape
        if mine.ndims and theirs.ndims and not mine[:1].is_compatible_with(theirs[:1]):
            raise ValueError(f"Shapes {mine} and {theirs} are incompatible")
        return RaggedTensor(values, self._splits, internal=True)

    def with_flat_values(self, new_values: TensorLike) -> RaggedTensor:
        """Returns a ragged tensor with the same rows and other innermost values."""
        inner = self._values
        return self.with_values(inner.with_flat_values(new_values) if isinstance(inner, RaggedTensor) else new_values)

    def with_row_splits_dtype(self, dtype: DTypeLike) -> RaggedTensor:
        """Converts the type of the splits."""
        kind = as_dtype(dtype)
        if kind not in (dtypes.int32, dtypes.int64):
            raise ValueError("dtype must be int32 or int64")
        inner = self._values
        values = inner.with_row_splits_dtype(kind) if isinstance(inner, RaggedTensor) else inner
        return RaggedTensor(values, math.cast(self._splits, kind), internal=True)

    def to_tensor(self, default_value: Any = None, name: str | None = None) -> Tensor:
        """A tensor in which short rows are filled up with ``default_value``, zero or an empty string if None."""
        with name_scope(name, "RaggedToTensor", [self.flat_values, default_value]):
            values = self._values
            filler = (
                arrays.zeros([], self.dtype) if default_value is None else convert_to_tensor(default_value, self.dtype)
            )
            flat = self.flat_values.shape
            if filler.shape.ndims and flat.ndims is not None:
                filler.shape.with_rank_at_most(flat.ndims - 1).assert_is_compatible_with(flat[-filler.shape.ndims :])
            if isinstance(values, RaggedTensor):
                values = values.to_tensor(filler)
            rows = math.cast(self.value_rowids(), dtypes.int64)
            columns = arrays.range(arrays.shape(rows, out_type=dtypes.int64)[0]) - indexing.gather(
                math.cast(self.row_starts(), dtypes.int64), rows
            )
            size = self.bounding_shape(out_type=dtypes.int64)[:2]
            dims = values.shape.as_list()[1:]
            if not dims:
                indices = arrays.stack([rows, columns], axis=1)
                dense = sparse_tensor_to_dense(SparseTensor(indices, values, size), filler)
            else:
                # Gather row by row: positions without a value take the element appended after all values, the padding.
                inner = arrays.shape(values, out_type=dtypes.int64)[1:]
                end = arrays.broadcast_to(filler, arrays.concat([[1], inner], 0))
                places = sparse_tensor_to_dense(
                    SparseTensor(arrays.stack([rows, columns], axis=1), arrays.range(length_of(values)), size),
                    length_of(values),
                )
                dense = indexing.gather(arrays.concat([values, end], 0), places)
            dense.set_shape([self.shape.as_list()[0], None, *dims])
            return dense

    def to_sparse(self, name: str | None = None) -> SparseTensor:
        """A sparse tensor with the same values."""
        with name_scope(name, "RaggedToSparse", [self.flat_values]):
            flat = self.flat_values
            kind = dtypes.int64
            inner = arrays.shape(flat, out_type=kind)[1:]
            count = reductions.reduce_prod(arrays.shape(flat, out_type=kind))
            place = arrays.range(count)
            columns: list[Tensor] = []
            # Compute the index in each dimension within a value, from the last dimension to the first.
            for axis in reversed(range(1, len(flat.shape.as_list()))):
                width = inner[axis - 1]
                columns.insert(0, math.floormod(place, width))
                place = math.floordiv(place, width)
            size = arrays.shape(flat, out_type=kind)[0]
            for given in reversed(self.nested_row_splits):
                splits = one("RaggedCheckedSplits", given, math.cast(size, given.dtype))
                rows = indexing.gather(math.cast(rows_of_splits(splits), kind), place)
                columns.insert(0, place - indexing.gather(math.cast(splits, kind), rows))
                place, size = rows, arrays.shape(splits, out_type=kind)[0] - 1
            columns.insert(0, place)
            values = arrays.reshape(flat, [-1])
            return SparseTensor(arrays.stack(columns, axis=1), values, self.bounding_shape(out_type=kind))

    def to_list(self) -> list[Any]:
        """Raises ValueError: the values of a graph are known only to a session."""
        raise ValueError(
            "RaggedTensor.to_list() is only supported in eager mode; in graph mode, evaluate the RaggedTensor first "
            "and then use RaggedTensorValue.to_list()."
        )

    def eval(self, feed_dict: FeedDict | None = None, session: SessionLike | None = None) -> RaggedTensorValue:
        """The value in ``session``, or in the default one."""
        return ragged_value([part.eval(feed_dict, session) for part in self.components])

    def __bool__(self) -> NoReturn:
        raise TypeError("RaggedTensor may not be used as a boolean.")

    def __getitem__(self, key: object) -> Any:
        """Selects rows and parts of rows, as of a tensor; an inner ragged dimension can be sliced, but not indexed."""
        keys = list(cast("tuple[Any, ...]", key)) if isinstance(key, tuple) else [key]
        with name_scope(None, "RaggedGetItem", [self.flat_values]):
            return _item(self, keys)

    def __iter__(self) -> Iterator[Any]:
        """Raises TypeError: the rows of a graph's tensor are not known."""
        raise TypeError("rows of a RaggedTensor can be iterated over only in eager mode, not in a graph")

    # Parts of a structure ---------------------------------------------------------------------------------------

    @property
    def components(self) -> list[Tensor]:
        return [self.flat_values, *self.nested_row_splits]

    def with_components(self, components: Sequence[Tensor]) -> RaggedTensor:
        flat, *splits = components
        return RaggedTensor.from_nested_row_splits(flat, splits, validate=False)

    def component_shapes(self, shape: TensorShape) -> list[TensorShape]:
        """Returns shapes for any number of values; ``shape`` is not used."""
        inner = self.flat_values.shape.as_list()[1:]
        return [TensorShape([None, *inner]), *(TensorShape([None]) for _ in self.nested_row_splits)]

    def __repr__(self) -> str:
        return f"tf.RaggedTensor(values={self._values}, row_splits={self._splits})"


def as_ragged_or_tensor(value: Any, dtype: DTypeLike | None = None, name: str | None = None) -> Any:
    """Returns a ragged tensor, or the value of one, unchanged; converts others to a tensor."""
    if isinstance(value, RaggedTensor):
        if dtype is not None and not as_dtype(dtype).is_compatible_with(value.dtype):
            raise ValueError(
                f"Tensor conversion requested dtype {as_dtype(dtype).name} for RaggedTensor with dtype "
                f"{value.dtype.name}"
            )
        return value
    if isinstance(value, RaggedTensorValue):
        flat = convert_to_tensor(value.flat_values, dtype, name="flat_values")
        return RaggedTensor.from_nested_row_splits(flat, value.nested_row_splits, validate=False)
    return convert_to_tensor(value, dtype, name=name)


def same_kind_of_splits(values: Sequence[object]) -> None:
    """Checks that the splits of all ragged tensors among ``values`` have one type.

    Raises:
      ValueError: some are int32 and others int64.
    """
    if len({value.row_splits.dtype for value in values if isinstance(value, RaggedTensor)}) > 1:
        raise ValueError(
            "Input RaggedTensors have mismatched row_splits dtypes; use RaggedTensor.with_row_splits_dtype() to "
            "convert them to compatible dtypes."
        )


def length_of(value: RaggedLike) -> Tensor:
    """Returns the number of rows of a tensor or ragged tensor, int64."""
    if isinstance(value, RaggedTensor):
        return value.nrows(dtypes.int64)
    return arrays.shape(value, out_type=dtypes.int64)[0]


def gather_rows(value: Any, rows: TensorLike) -> Any:
    """The rows ``rows`` of a tensor or ragged tensor."""
    if not isinstance(value, RaggedTensor):
        return indexing.gather(value, rows)
    starts, limits = (indexing.gather(part, rows) for part in (value.row_starts(), value.row_limits()))
    return gather_ranges(value.values, starts, limits)


def gather_ranges(values: TensorLike, starts: Tensor, limits: Tensor) -> RaggedTensor:
    """The rows ``values[starts[i]:limits[i]]``."""
    found = apply("RaggedRange", starts, limits, constant(1, starts.dtype), Tsplits=starts.dtype).outputs
    return RaggedTensor(gather_rows(values, found[1]), found[0], internal=True)


def map_flat_values(op: Callable[..., Structure], *args: object, **kwargs: object) -> Any:
    """Applies ``op`` to the innermost values, and returns the results in the same rows.

    Args:
      op: a function of tensors that keeps the first dimension of its ragged arguments.
      args, kwargs: its arguments; ragged tensors among them, also in lists, tuples and dicts, must have the same rows
        and are replaced by their innermost values.

    Raises:
      ValueError: ragged tensors have different ranks or types of splits, or the result has the wrong size.
      InvalidArgumentError: ragged tensors have different rows; usually when the graph runs.
    """
    found: list[RaggedTensor] = []

    def plain(value: object) -> Structure:
        if isinstance(value, RaggedTensor | RaggedTensorValue):
            found.append(as_ragged_or_tensor(value))
            return found[-1].flat_values
        if isinstance(value, list | tuple):
            return type(value)(map(plain, cast("list[Any]", value)))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        if isinstance(value, dict):
            return {name: plain(item) for name, item in cast("dict[Any, Any]", value).items()}
        return value

    flat_args, flat_kwargs = plain(list(args)), plain(kwargs)
    if not found:
        return op(*flat_args, **flat_kwargs)
    same_kind_of_splits(found)
    first, *others = found
    message = "Inputs must have identical ragged splits"
    if any(other.ragged_rank != first.ragged_rank for other in others):
        raise ValueError(message)
    pairs = ((first.nested_row_splits, other.nested_row_splits) for other in others)
    with get_default_graph().control_dependencies([check for pair in pairs for check in check_splits(*pair, message)]):
        result = convert_to_tensor(op(*flat_args, **flat_kwargs))
    if not first.flat_values.shape[:1].is_compatible_with(result.shape[:1]):
        raise ValueError(
            "tf.ragged.map_flat_values requires that the output of `op` have the same outer-dimension size as "
            f"flat_values of any ragged inputs. (output shape: {result.shape}; expected outer dimension size: "
            f"{first.flat_values.shape[:1]})"
        )
    return first.with_flat_values(result)


def _index(value: TensorLike, name: str) -> Tensor:
    tensor = convert_to_tensor(value, preferred_dtype=dtypes.int64, name=name)
    if tensor.dtype not in (dtypes.int32, dtypes.int64):
        raise ValueError(f"{name} must have dtype int32 or int64")
    return tensor


def _splits_of_lengths(lengths: Tensor) -> Tensor:
    return arrays.concat([arrays.zeros([1], lengths.dtype), reductions.cumsum(lengths)], 0)


def _lengths_without(tensor: Tensor, padding: Any, dtype: DType) -> Tensor:
    """Returns the length of each row without the values ``padding`` at its end."""
    padding = convert_to_tensor(padding, tensor.dtype, name="padding")
    padding.shape.assert_is_compatible_with(tensor.shape[2:])
    differs = math.not_equal(tensor, padding)
    inner = list(range(2, len(tensor.shape.as_list())))
    has_value = reductions.reduce_any(differs, inner) if inner else differs
    places = arrays.range(arrays.shape(tensor, out_type=dtype)[1]) + 1
    ends = math.cast(has_value, dtype) * places
    return math.maximum(reductions.reduce_max(ends, 1), constant(0, dtype))


def _with_nested_lengths(tensor: Tensor, nested: list[TensorLike], dtype: DType) -> Any:
    first, *rest = nested
    outer = RaggedTensor.from_tensor(tensor, first, row_splits_dtype=dtype)
    return outer.with_values(_with_nested_lengths(outer.values, rest, dtype)) if rest else outer


def _outer_dense(tensor: Tensor, lengths: Any, padding: Any, ragged_rank: int, dtype: DType) -> RaggedTensor:
    """Makes the outer dimensions of a tensor ragged with all their rows, and the innermost one like `from_tensor`."""
    sizes = arrays.shape(tensor, out_type=dtype)
    flat = arrays.reshape(tensor, arrays.concat([[-1], arrays.shape(tensor)[ragged_rank:]], 0))
    flat.set_shape([None, *tensor.dims[ragged_rank:]] if tensor.dims is not None else None)
    found = RaggedTensor.from_tensor(flat, lengths, padding, row_splits_dtype=dtype)
    for axis in reversed(range(1, ragged_rank)):
        count = reductions.reduce_prod(sizes[:axis])
        found = RaggedTensor(found, arrays.range(count + 1) * sizes[axis], internal=True)
    return found


def _item(value: Any, keys: list[Any]) -> Any:
    """Returns ``value[keys]``."""
    if not keys:
        return value
    if not isinstance(value, RaggedTensor):
        return value[tuple(keys)]
    first, *rest = keys
    if first is Ellipsis:
        missing = (value.shape.ndims or 0) - len(rest)
        return _item(value, [slice(None)] * missing + rest)
    if first is None:
        count = value.nrows()
        splits = arrays.stack([arrays.zeros_like(count), count])
        outer = RaggedTensor(value, splits, internal=True)
        return _within(outer, rest) if rest else outer
    if isinstance(first, slice):
        rows = value if first == slice(None) else _rows_of(value, cast("Any", first))
        return _within(rows, rest) if rest else rows
    known = constant_value(value.row_splits)
    if known is not None and isinstance(first, int):
        count = len(known) - 1
        if not -count <= first < count:
            raise ValueError(f"slice index {first} of dimension 0 out of bounds.")
        end = first % count + 1
        return _item(value.values[int(known[end - 1]) : int(known[end])], rest)
    place = _wrapped(convert_to_tensor(first), value)
    splits = indexing.gather(value.row_splits, arrays.stack([place, place + 1]))
    return _item(value.values[splits[0] : splits[1]], rest)


def _wrapped(place: Tensor, value: RaggedTensor) -> Tensor:
    count = value.nrows(place.dtype)
    return place + math.cast(math.less(place, constant(0, place.dtype)), place.dtype) * count


def _rows_of(value: RaggedTensor, cut: Any) -> RaggedTensor:
    if cut.step in (None, 1):
        starts, limits = value.row_starts()[cut], value.row_limits()[cut]
        return gather_ranges(value.values, starts, limits)
    return gather_rows(value, arrays.range(value.nrows())[cut])


def _within(value: RaggedTensor, keys: list[object]) -> Any:
    """Returns the part ``keys`` of each row."""
    first, *rest = keys
    if first is Ellipsis:
        return _item(value, [slice(None), *[slice(None)] * ((value.shape.ndims or 0) - 1 - len(rest)), *rest])
    if first is None:
        count = value.nrows()
        outer = RaggedTensor(value, arrays.range(count + 1), internal=True)
        return outer.with_values(_within(value, rest)) if rest else outer
    if not isinstance(first, slice):
        raise ValueError("Cannot index into an inner ragged dimension.")
    if first != slice(None):
        value = _cut(value, cast("Any", first))
    if not rest:
        return value
    inner = value.values
    if isinstance(inner, RaggedTensor):
        return value.with_values(_within(inner, rest))
    return value.with_values(inner[(slice(None), *rest)])


def _cut(value: RaggedTensor, cut: Any) -> RaggedTensor:
    """Returns the slice ``cut`` of each row."""
    if cut.step not in (None, 1):
        raise ValueError("slices of an inner ragged dimension have steps of 1")
    starts, limits = value.row_starts(), value.row_limits()

    def place(end: object, missing: Tensor) -> Tensor:
        if end is None:
            return missing
        number = math.cast(end, starts.dtype)
        base = indexing.where_v2(math.less(number, constant(0, starts.dtype)), limits, starts)
        return math.maximum(math.minimum(base + number, limits), starts)

    begin = place(cut.start, starts)
    return gather_ranges(value.values, begin, math.maximum(begin, place(cut.stop, limits)))


register_session_run_conversion_functions(
    RaggedTensor,
    lambda ragged: (ragged.components, ragged_value),
    lambda ragged, value: list(zip(ragged.components, (value.flat_values, *value.nested_row_splits), strict=True)),
)
