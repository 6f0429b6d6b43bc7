"""`RaggedFeature`: features of examples that are read as ragged tensors, with row partitions in other features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from headwater.dtypes import as_dtype, int32
from headwater.tf1.functional import arrays, indexing, math, reductions
from headwater.tf1.functional.ragged_reductions import reduce_max
from headwater.tf1.functional.ragged_tensor import RaggedTensor

if TYPE_CHECKING:
    from headwater.dtypes import DType, DTypeLike
    from headwater.graph.sparse_tensor import SparseTensor


class _RowLengths(NamedTuple):
    """The feature ``key`` holds the length of each row."""

    key: str


class _RowSplits(NamedTuple):
    """The feature ``key`` holds 0 and the end of each row."""

    key: str


class _RowStarts(NamedTuple):
    """The feature ``key`` holds the start of each row."""

    key: str


class _RowLimits(NamedTuple):
    """The feature ``key`` holds the end of each row."""

    key: str


class _ValueRowIds(NamedTuple):
    """The feature ``key`` holds the row of each value, ascending; rows after the last value's are empty and dropped."""

    key: str


class _UniformRowLength(NamedTuple):
    """All rows have the same length."""

    length: int


class RaggedFeature:
    """A feature with any number of values in rows; read as a `RaggedTensor`.

    Args:
      dtype: the type of the values.
      value_key: name of the feature with the values; the name under which this one is listed if None.
      partitions: the rows, the outermost dimension first: `RowLengths`, `RowSplits`, `RowStarts`, `RowLimits`,
        `ValueRowIds` or `UniformRowLength`.
      row_splits_dtype: the type of the splits.
      validate: accepted: partitions that do not fit the values always fail.

    Raises:
      TypeError: ``partitions`` has another object.
    """

    RowLengths: ClassVar[type] = _RowLengths
    RowSplits: ClassVar[type] = _RowSplits
    RowStarts: ClassVar[type] = _RowStarts
    RowLimits: ClassVar[type] = _RowLimits
    ValueRowIds: ClassVar[type] = _ValueRowIds
    UniformRowLength: ClassVar[type] = _UniformRowLength

    def __init__(
        self,
        dtype: DTypeLike,
        value_key: str | None = None,
        partitions: tuple[Any, ...] | list[Any] = (),
        row_splits_dtype: DTypeLike = int32,
        validate: bool = False,
    ) -> None:
        del validate
        self.dtype: DType = as_dtype(dtype)
        self.value_key = value_key
        self.partitions: tuple[Any, ...] = tuple(partitions)
        self.row_splits_dtype: DType = as_dtype(row_splits_dtype)
        kinds = (_RowLengths, _RowSplits, _RowStarts, _RowLimits, _ValueRowIds, _UniformRowLength)
        for partition in self.partitions:
            if not isinstance(partition, kinds):
                raise TypeError(f"partitions must be RaggedFeature's partitions, not {partition!r}")

    @property
    def partition_keys(self) -> list[str]:
        """The names of the features with partitions."""
        return [partition.key for partition in self.partitions if not isinstance(partition, _UniformRowLength)]

    def of_one(self, key: str, parsed: Mapping[str, SparseTensor]) -> Any:
        """Returns the feature ``key`` of one example: a vector, or with partitions a ragged tensor.

        Args:
          parsed: the values of features with any number of values, by name.
        """
        found: Any = parsed[self.value_key or key].values
        for partition in reversed(self.partitions):
            if isinstance(partition, _UniformRowLength):
                found = self._uniform(found, partition.length)
                continue
            given = math.cast(parsed[partition.key].values, self.row_splits_dtype)
            make = {
                _RowLengths: RaggedTensor.from_row_lengths,
                _RowSplits: RaggedTensor.from_row_splits,
                _RowStarts: RaggedTensor.from_row_starts,
                _RowLimits: RaggedTensor.from_row_limits,
                _ValueRowIds: RaggedTensor.from_value_rowids,
            }[type(partition)]
            found = make(found, given)
        return found

    def of_batch(self, key: str, parsed: Mapping[str, SparseTensor]) -> RaggedTensor:
        """Returns the feature ``key`` of several examples: a row for each."""
        found = self._rows_of(parsed[self.value_key or key])
        for partition in reversed(self.partitions):
            if isinstance(partition, _UniformRowLength):
                outer = math.floordiv(found.row_splits, partition.length)
                found = RaggedTensor.from_row_splits(self._uniform(found.values, partition.length), outer)
                continue
            lengths = _lengths(partition, self._rows_of(parsed[partition.key]), found)
            inner = RaggedTensor.from_row_lengths(found.values, lengths.values)
            found = RaggedTensor.from_row_splits(inner, lengths.row_splits, validate=False)
        return found

    def _rows_of(self, sparse: SparseTensor) -> Any:
        rows = math.cast(sparse.indices[:, 0], self.row_splits_dtype)
        values = sparse.values
        if values.dtype != self.dtype:
            values = math.cast(values, self.row_splits_dtype)
        return RaggedTensor.from_value_rowids(values, rows, math.cast(sparse.dense_shape[0], self.row_splits_dtype))

    def _uniform(self, values: Any, length: int) -> Any:
        """Returns rows of one length: one more dimension of a tensor, or of a ragged tensor."""
        if not isinstance(values, RaggedTensor):
            return arrays.reshape(values, arrays.concat([[-1, length], arrays.shape(values)[1:]], 0))
        count = values.nrows(self.row_splits_dtype)
        return RaggedTensor.from_row_splits(values, arrays.range(0, count + 1, length, dtype=self.row_splits_dtype))


def _lengths(partition: object, given: Any, values: Any) -> Any:
    """Returns the lengths of each example's rows.

    Args:
      partition: the kind of ``given``.
      given: the partition of each example, a row for each.
      values: the values of each example, a row for each.
    """
    if isinstance(partition, _RowLengths):
        return given
    if isinstance(partition, _RowSplits):
        return given[:, 1:] - given[:, :-1]
    flat, example = given.values, given.value_rowids()
    if isinstance(partition, _ValueRowIds):
        counts = math.maximum(reduce_max(given + 1, 1), 0)
        first = reductions.cumsum(counts, exclusive=True)
        rows = flat + indexing.gather(first, example)
        made = RaggedTensor.from_value_rowids(flat, rows, reductions.reduce_sum(counts))
        return RaggedTensor.from_row_lengths(made.row_lengths(), counts)
    place = arrays.range(arrays.size(flat, out_type=flat.dtype))
    if isinstance(partition, _RowLimits):
        is_first = math.equal(place, indexing.gather(given.row_starts(), example))
        before = arrays.concat([arrays.zeros([1], flat.dtype), flat], 0)[:-1]
        return given.with_values(flat - indexing.where(is_first, arrays.zeros_like(flat), before))
    is_last = math.equal(place + 1, indexing.gather(given.row_limits(), example))
    after = arrays.concat([flat, arrays.zeros([1], flat.dtype)], 0)[1:]
    return given.with_values(indexing.where(is_last, indexing.gather(values.row_lengths(), example), after) - flat)
