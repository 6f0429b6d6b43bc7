"""Columns of sequences: each step of an example has its own categories or numbers."""

from __future__ import annotations

import math as std_math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.dtypes import DType, as_dtype
from headwater.graph.operation import Tensor
from headwater.tf1.feature_columns import categorical, dense
from headwater.tf1.feature_columns.base import CategoricalColumn, Column, Features, IdWeightPair
from headwater.tf1.functional import arrays, math, reductions
from headwater.tf1.functional.checks import assert_equal
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.sparse import SparseTensor, sparse_tensor_to_dense
from headwater.tf1.functional.sparse_changes import sparse_reshape
from headwater.tf1.input import parsing
from headwater.tf1.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import TensorLike
    from headwater.shapes import ShapeLike
    from headwater.tf1.feature_columns.base import ColumnsLike
    from headwater.tf1.input.parsing import VarLenFeature


@dataclass(frozen=True)
class SequenceCategoricalColumn(CategoricalColumn):
    """Categories of each step, by a column of categories. For `sequence_input_layer` in an indicator or embedding."""

    of_sequences = True
    column: CategoricalColumn

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def num_buckets(self) -> int:
        return self.column.num_buckets

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.column.parse_example_spec

    def transform(self, features: Features) -> IdWeightPair:
        ids, weights = self.column.ids(features)
        return IdWeightPair(_by_step(ids), None if weights is None else _by_step(weights))

    def ids(self, features: Features) -> IdWeightPair:
        return features.get(self)


def _by_step(ids: SparseTensor) -> SparseTensor:
    """Flattens the dimensions of ``ids`` after the steps: ``[batch, steps, categories of a step]``."""
    shape = arrays.concat([ids.dense_shape[:2], math.to_int64([-1])], 0)
    return sparse_reshape(ids, shape)


@dataclass(frozen=True)
class SequenceNumericColumn(Column):
    """Numbers of each step. For `sequence_input_layer`.

    Attributes:
      shape: the shape of the numbers of a step.
      default_value: padding after the end of a sequence.
      normalizer_fn: transforms the numbers.
    """

    key: str
    shape: tuple[int, ...]
    default_value: float
    dtype: DType
    normalizer_fn: Callable[[Any], Any] | None

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, VarLenFeature]:
        return {self.key: parsing.VarLenFeature(self.dtype)}

    def transform(self, features: Features) -> SparseTensor:
        tensor = features.get(self.key)
        if not isinstance(tensor, SparseTensor):
            raise TypeError(f"sequence_numeric_column of {self.key!r} needs a SparseTensor, not {tensor}")
        if self.normalizer_fn is None:
            return tensor
        changed: SparseTensor = self.normalizer_fn(tensor)
        return changed

    def sequence(self, features: Features) -> tuple[Tensor, Tensor]:
        """The numbers, ``[batch, steps, *shape]``, and how many steps each example has."""
        sparse: SparseTensor = features.get(self)
        numbers = sparse_tensor_to_dense(sparse, self.default_value)
        shape = arrays.concat([arrays.shape(numbers)[:1], [-1], list(self.shape)], 0)
        size = std_math.prod(self.shape)
        return arrays.reshape(math.to_float(numbers), shape), _lengths(sparse, size)


def _lengths(sparse: SparseTensor, size: int = 1) -> Tensor:
    """Returns the number of steps of each row of ``sparse``, with ``size`` columns per step."""
    last = math.to_int64(math.floordiv(sparse.indices[:, 1], size)) + 1
    rows = sparse.dense_shape[0]
    return math.maximum(reductions.unsorted_segment_max(last, sparse.indices[:, 0], rows), math.to_int64(0))


# The functions that make them ---------------------------------------------------------------------------------------


def sequence_categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> SequenceCategoricalColumn:
    """Categories of each step, as numbers; see `categorical_column_with_identity`."""
    return SequenceCategoricalColumn(categorical.categorical_column_with_identity(key, num_buckets, default_value))


def sequence_categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: DTypeLike = dtypes.string
) -> SequenceCategoricalColumn:
    """Categories of each step by their fingerprint; see `categorical_column_with_hash_bucket`."""
    return SequenceCategoricalColumn(categorical.categorical_column_with_hash_bucket(key, hash_bucket_size, dtype))


def sequence_categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: DTypeLike = dtypes.string,
) -> SequenceCategoricalColumn:
    """Categories of each step by their line in a file; see `categorical_column_with_vocabulary_file`."""
    column = categorical.categorical_column_with_vocabulary_file(
        key, vocabulary_file, vocabulary_size, num_oov_buckets, default_value, dtype
    )
    return SequenceCategoricalColumn(column)


def sequence_categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Sequence[object],
    dtype: DTypeLike | None = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> SequenceCategoricalColumn:
    """Categories of each step by their place in a list; see `categorical_column_with_vocabulary_list`."""
    column = categorical.categorical_column_with_vocabulary_list(
        key, vocabulary_list, dtype, default_value, num_oov_buckets
    )
    return SequenceCategoricalColumn(column)


def sequence_numeric_column(
    key: str,
    shape: ShapeLike = (1,),
    default_value: float = 0.0,
    dtype: DTypeLike = dtypes.float32,
    normalizer_fn: Callable[[Any], Any] | None = None,
) -> SequenceNumericColumn:
    """Returns a column with numbers of each step.

    Args:
      shape: the shape of the numbers of a step.
      default_value: padding after the end of a sequence.
      normalizer_fn: transforms the sparse tensor of the numbers.

    Raises:
      TypeError: ``normalizer_fn`` is not callable.
      ValueError: the shape or type is invalid.
    """
    like = dense.numeric_column(key, shape, None, dtype, normalizer_fn)
    return SequenceNumericColumn(key, like.shape, default_value, as_dtype(dtype), normalizer_fn)


# A model's input ----------------------------------------------------------------------------------------------------


def sequence_input_layer(
    features: TensorLike,
    feature_columns: ColumnsLike,
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
) -> tuple[Tensor, Tensor]:
    """Concatenates sequence columns, in the order of their names.

    Args:
      features: tensors by their keys.
      feature_columns: columns of numbers of sequences, and indicators and embeddings of categories of sequences.
      weight_collections: further collections for variables.
      trainable: whether the variables are trained.

    Returns:
      ``[batch, steps, size]`` of float32, and how many steps each example has, int64.

    Raises:
      ValueError: there are no columns, two have the same name, or one is not a sequence column. A step fails if an
        example has sequences of different lengths.
    """
    columns = dense.sort_columns(feature_columns)
    with variable_scope(None, default_name="sequence_input_layer", values=None):
        return concatenate_sequences(features, columns, weight_collections, trainable)


def concatenate_sequences(
    features: Any, columns: Sequence[Column], weight_collections: Sequence[str] | None, trainable: bool
) -> tuple[Tensor, Tensor]:
    """Returns the result of `sequence_input_layer`, with variables in the current variable scope."""
    made = Features(features)
    outputs: list[Tensor] = []
    lengths: list[Tensor] = []
    for column in columns:
        with variable_scope(column.name):
            numbers, length, size = _sequence(column, made, trainable, dense.collections_of(weight_collections))
            shape = arrays.shape(numbers)
            outputs.append(arrays.reshape(numbers, arrays.concat([shape[:2], [size]], 0)))
            lengths.append(length)
    with control_dependencies([assert_equal(lengths[0], length) for length in lengths[1:]]):
        return arrays.concat(outputs, -1), arrays.identity(lengths[0])


def _sequence(
    column: Column, features: Features, trainable: bool, collections: Sequence[str]
) -> tuple[Tensor, Tensor, int]:
    """Returns a column's numbers, the lengths of its sequences, and the number of numbers per step."""
    if isinstance(column, SequenceNumericColumn):
        return *column.sequence(features), std_math.prod(column.shape)
    inner = getattr(column, "categorical_column", None)
    if not isinstance(column, dense.IndicatorColumn | dense.EmbeddingColumn) or not isinstance(
        inner, SequenceCategoricalColumn
    ):
        raise ValueError(
            "All feature_columns must be of sequences. You can wrap a sequence_categorical_column with an "
            f"embedding_column or indicator_column. Given: {column}"
        )
    return column.dense(features, trainable, collections), _lengths(inner.ids(features).id_tensor), column.size
