"""Dense columns: numeric columns, buckets, indicators, embeddings."""

from __future__ import annotations

import math as std_math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater import dtypes
from headwater.dtypes import DType, as_dtype
from headwater.graph.collections import GraphKeys
from headwater.graph.convert import constant
from headwater.graph.operation import Tensor
from headwater.tf1.feature_columns.base import CategoricalColumn, Column, DenseColumn, Features, IdWeightPair
from headwater.tf1.functional import arrays, indexing, math, reductions
from headwater.tf1.functional.sparse import SparseTensor, sparse_tensor_to_dense
from headwater.tf1.input import parsing
from headwater.tf1.variables.embedding import safe_embedding_lookup_sparse
from headwater.tf1.variables.initializers import TruncatedNormal
from headwater.tf1.variables.scope_settings import AUTO_REUSE, ReuseMode
from headwater.tf1.variables.variable_scope import get_variable, variable_scope

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import TensorLike
    from headwater.shapes import ShapeLike
    from headwater.tf1.input.parsing import FixedLenFeature
    from headwater.tf1.variables.partitioned import PartitionInfo
    from headwater.tf1.variables.types import InitializerLike


@dataclass(frozen=True)
class NumericColumn(DenseColumn):
    """Numbers, unchanged or normalised."""

    key: str
    shape: tuple[int, ...]
    default_value: tuple[float, ...] | None
    dtype: DType
    normalizer_fn: Callable[[Any], Any] | None

    @property
    def name(self) -> str:
        return self.key

    @property
    def size(self) -> int:
        return std_math.prod(self.shape)

    @property
    def parse_example_spec(self) -> dict[str, FixedLenFeature]:
        return {self.key: parsing.FixedLenFeature(self.shape, self.dtype, self.default_value)}

    def transform(self, features: Features) -> Tensor:
        tensor = features.get(self.key)
        if isinstance(tensor, SparseTensor):
            raise ValueError(f"The corresponding Tensor of numerical column must be a Tensor. key: {self.key}")
        if self.normalizer_fn is not None:
            tensor = self.normalizer_fn(tensor)
        return math.to_float(tensor)

    def dense(self, features: Features, trainable: bool, collections: Sequence[str]) -> Tensor:
        del trainable, collections
        return features.get(self)


@dataclass(frozen=True)
class BucketizedColumn(CategoricalColumn, DenseColumn):
    """Numbers as indices of buckets."""

    source_column: NumericColumn
    boundaries: tuple[float, ...]

    @property
    def name(self) -> str:
        return f"{self.source_column.name}_bucketized"

    @property
    def _count(self) -> int:
        return len(self.boundaries) + 1

    @property
    def size(self) -> int:
        return self._count * self.source_column.size

    @property
    def num_buckets(self) -> int:
        return self.size

    @property
    def parse_example_spec(self) -> dict[str, FixedLenFeature]:
        return self.source_column.parse_example_spec

    def transform(self, features: Features) -> Tensor:
        numbers = arrays.expand_dims(features.get(self.source_column), -1)
        # NaN is below no boundary, and so in the last bucket.
        passed = math.logical_not(math.less(numbers, constant(list(self.boundaries), dtypes.float32)))
        return reductions.reduce_sum(math.to_int32(passed), -1)

    def dense(self, features: Features, trainable: bool, collections: Sequence[str]) -> Tensor:
        del trainable, collections
        return indexing.one_hot(math.to_int64(features.get(self)), self._count, on_value=1.0, off_value=0.0)

    def ids(self, features: Features) -> IdWeightPair:
        buckets: Tensor = features.get(self)
        size = self.source_column.size
        rows = arrays.shape(buckets)[0]
        flat = arrays.reshape(buckets, [-1])
        example = arrays.reshape(arrays.tile(arrays.expand_dims(arrays.range(rows), 1), [1, size]), [-1])
        place = arrays.tile(arrays.range(size), [rows])
        numbers = math.to_int64(flat + self._count * place)
        indices = math.to_int64(arrays.transpose(arrays.stack([example, place])))
        shape = math.to_int64(arrays.stack([rows, size]))
        return IdWeightPair(SparseTensor(indices, numbers, shape), None)


@dataclass(frozen=True)
class IndicatorColumn(DenseColumn):
    """For each category, the number of its occurrences in an example, or the sum of their weights."""

    categorical_column: CategoricalColumn

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_indicator"

    @property
    def size(self) -> int:
        return self.categorical_column.num_buckets

    @property
    def parse_example_spec(self) -> dict[str, object]:
        return self.categorical_column.parse_example_spec

    def transform(self, features: Features) -> Tensor:
        ids, weights = self.categorical_column.ids(features)
        numbers = sparse_tensor_to_dense(ids, -1)
        rows = indexing.one_hot(numbers, self.size, on_value=1.0, off_value=0.0)
        if weights is not None:
            given = sparse_tensor_to_dense(SparseTensor(ids.indices, weights.values, ids.dense_shape), 0.0)
            rows = rows * arrays.expand_dims(given, -1)
        return reductions.reduce_sum(rows, axis=[-2])

    def dense(self, features: Features, trainable: bool, collections: Sequence[str]) -> Tensor:
        del trainable, collections
        return features.get(self)


@dataclass(frozen=True)
class EmbeddingColumn(DenseColumn):
    """Categories as rows of a table, combined to one.

    Attributes:
      shared_name: name of a table that several columns share; None if the column has its own table.
      table_name: name of the table's variable in the column's scope.
    """

    categorical_column: CategoricalColumn
    dimension: int
    combiner: str
    initializer: InitializerLike
    max_norm: float | None
    trainable: bool
    shared_name: str | None = None
    table_name: str = "embedding_weights"

    @property
    def name(self) -> str:
        shared = "_shared" if self.shared_name else ""
        return f"{self.categorical_column.name}{shared}_embedding"

    @property
    def size(self) -> int:
        return self.dimension

    @property
    def parse_example_spec(self) -> dict[str, object]:
        return self.categorical_column.parse_example_spec

    def transform(self, features: Features) -> IdWeightPair:
        return self.categorical_column.ids(features)

    def dense(self, features: Features, trainable: bool, collections: Sequence[str]) -> Tensor:
        ids, weights = features.get(self)
        table = get_variable(
            self.table_name,
            [self.categorical_column.num_buckets, self.dimension],
            dtypes.float32,
            initializer=self.initializer,
            trainable=self.trainable and trainable,
            collections=collections,
        )
        return safe_embedding_lookup_sparse(
            table, ids, weights, self.combiner, name=f"{self.name}_weights", max_norm=self.max_norm
        )


# Functions that create columns ---------------------------------------------------------------------------------------


def numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    normalizer_fn: Callable[[Tensor], Tensor] | None = None,
) -> NumericColumn:
    """Returns a column of numbers, transformed by ``normalizer_fn`` if given.

    Args:
      shape: the shape of one example's values.
      default_value: for examples that lack it when they are parsed.

    Raises:
      ValueError: a key, a type or a shape is invalid.
      TypeError: ``normalizer_fn`` is not callable, or a default of another type.
    """
    if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"key must be a string. Got: type {type(key)}. Given key: {key}.")
    sizes: tuple[int, ...] = tuple(int(size) for size in np.ravel(shape))
    if any(size < 1 for size in sizes):
        raise ValueError(f"shape dimensions must be greater than 0. shape: {shape}, key: {key}")
    kind = as_dtype(dtype)
    if not (kind.is_integer or kind.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {kind.name}, key: {key}")
    if normalizer_fn is not None and not callable(normalizer_fn):  # pyright: ignore[reportUnnecessaryComparison]
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn}")
    default: tuple[float, ...] | None = None
    if default_value is not None:
        whole = np.broadcast_to(np.asarray(default_value, kind.numpy_dtype), sizes)
        default = tuple(whole.ravel().tolist())
    return NumericColumn(key, sizes, default, kind, normalizer_fn)


def bucketized_column(source_column: Column, boundaries: Sequence[float]) -> BucketizedColumn:
    """Numbers as the buckets between ``boundaries``, of which each bucket includes its lower one.

    Raises:
      ValueError: the source is not a numeric column of one dimension, or the boundaries are not sorted.
    """
    if not isinstance(source_column, NumericColumn):
        raise ValueError(f"source_column must be a column generated with numeric_column(). Given: {source_column}")
    if len(source_column.shape) > 1:
        raise ValueError(f"source_column must be one-dimensional column. Given: {source_column}")
    found = tuple(boundaries)
    if not found or any(a >= b for a, b in pairwise(found)):
        raise ValueError("boundaries must be a sorted list.")
    return BucketizedColumn(source_column, found)


def indicator_column(categorical_column: CategoricalColumn) -> IndicatorColumn:
    """Returns a column with the count of each category in an example."""
    return IndicatorColumn(categorical_column)


def embedding_column(
    categorical_column: CategoricalColumn,
    dimension: int,
    combiner: str = "mean",
    initializer: InitializerLike | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> EmbeddingColumn:
    """Returns a column that combines trainable table rows of categories; see `embedding_lookup_sparse`.

    Raises:
      ValueError: a bad dimension or initializer, or a checkpoint, which is not supported.
    """
    if dimension is None or dimension < 1:  # pyright: ignore[reportUnnecessaryComparison]
        raise ValueError(f"Invalid dimension {dimension}.")
    if initializer is not None and not callable(initializer):
        raise ValueError(f"initializer must be callable if specified: {categorical_column.name}")
    if ckpt_to_load_from is not None or tensor_name_in_ckpt is not None:
        raise ValueError("ckpt_to_load_from is not supported: use tf.train.init_from_checkpoint")
    begin = initializer or TruncatedNormal(0.0, 1 / std_math.sqrt(dimension))
    return EmbeddingColumn(categorical_column, dimension, combiner, begin, max_norm, trainable)


def shared_embedding_columns(
    categorical_columns: Sequence[CategoricalColumn],
    dimension: int,
    combiner: str = "mean",
    initializer: InitializerLike | None = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> list[EmbeddingColumn]:
    """`embedding_column` of several columns with one table.

    Raises:
      ValueError: the columns have different numbers of categories.
    """
    if len({column.num_buckets for column in categorical_columns}) != 1:
        raise ValueError("All categorical_columns that share an embedding must have the same number of buckets.")
    names = sorted(column.name for column in categorical_columns)
    shared = shared_embedding_collection_name or f"{'_'.join(names)}_shared_embedding"
    single = embedding_column(
        categorical_columns[0],
        dimension,
        combiner,
        initializer,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm,
        trainable,
    )
    return [
        EmbeddingColumn(column, dimension, combiner, single.initializer, max_norm, trainable, shared)
        for column in categorical_columns
    ]


# Models' inputs ------------------------------------------------------------------------------------------------------


def sort_columns(feature_columns: Column | Iterable[Column]) -> list[Any]:
    """Returns the columns in the order of their names.

    Raises:
      ValueError: there are no columns, or two have the same name.
    """
    found = [feature_columns] if isinstance(feature_columns, Column) else list(feature_columns)
    if not found:
        raise ValueError("feature_columns must not be empty.")
    names = [column.name for column in found]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"Duplicate feature column name found for columns: {twice}.")
    return sorted(found, key=lambda column: column.name)


def input_layer(
    features: object,
    feature_columns: Iterable[Column],
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    cols_to_vars: object = None,
    cols_to_output_tensors: object = None,
) -> Tensor:
    """Concatenates dense columns, in the order of their names, to a matrix with a row per example.

    Args:
      features: tensors by their keys.
      weight_collections: further collections for variables.
      cols_to_vars, cols_to_output_tensors: dictionaries to fill.

    Raises:
      ValueError: there are no columns, two have the same name, or one is not dense.
    """
    columns = sort_dense_columns(feature_columns)
    with variable_scope(None, default_name="input_layer", values=None):
        return concatenate(features, columns, weight_collections, trainable, cols_to_vars, cols_to_output_tensors)


def sort_dense_columns(feature_columns: Iterable[Column]) -> list[DenseColumn]:
    """Returns dense columns, in the order of their names.

    Raises:
      ValueError: there are no columns, two have the same name, or one is not dense.
    """
    columns = sort_columns(feature_columns)
    found: list[DenseColumn] = []
    for column in columns:
        if not isinstance(column, DenseColumn):
            raise ValueError(
                "Items of feature_columns must be a _DenseColumn. You can wrap a categorical column with an "
                f"embedding_column or indicator_column. Given: {column}"
            )
        if getattr(getattr(column, "categorical_column", None), "of_sequences", False):
            raise ValueError(f"input_layer takes no columns of sequences; sequence_input_layer does. Given: {column}")
        found.append(column)
    return found


def concatenate(
    features: Any,
    columns: Iterable[DenseColumn],
    weight_collections: Sequence[str] | None,
    trainable: bool,
    cols_to_vars: Any,
    cols_to_output_tensors: Any,
) -> Tensor:
    """Returns the result of `input_layer`, with variables in the current variable scope."""
    made = Features(features)
    collections = collections_of(weight_collections)
    outputs: list[Tensor] = []
    for column in columns:
        shared = column.shared_name if isinstance(column, EmbeddingColumn) else None
        with variable_scope(shared or column.name, reuse=_reuse(shared)) as scope:
            tensor = column.dense(made, trainable, collections)
            flat = _flat(tensor, column.size)
            outputs.append(flat)
            if cols_to_vars is not None:
                cols_to_vars[column] = scope.global_variables()
            if cols_to_output_tensors is not None:
                cols_to_output_tensors[column] = flat
    return arrays.concat(outputs, 1)


def _flat(tensor: Tensor, size: int) -> Tensor:
    """Returns a column's numbers as a matrix with ``size`` numbers in each row."""
    dims = tensor.dims
    if dims is not None and len(dims) == 2 and dims[1] == size:
        return tensor
    return arrays.reshape(tensor, [arrays.shape(tensor)[0], size])


def collections_of(more: Any) -> list[str]:
    """Returns the collections for variables of a model's input, ``more`` first."""
    return list(dict.fromkeys([*(more or ()), GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]))


def _reuse(shared: str | None) -> ReuseMode | None:
    return AUTO_REUSE if shared else None


def linear_model(
    features: Any,
    feature_columns: Iterable[Column],
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    cols_to_vars: Any = None,
) -> Tensor:
    """Returns a bias plus the weighted sum of the columns' numbers and categories.

    Args:
      units: number of sums.
      sparse_combiner: how an example's categories are combined; see `embedding_lookup_sparse`.

    Raises:
      ValueError: there are no columns, or two have the same name.
    """
    columns = sort_columns(feature_columns)
    made = Features(features)
    collections = collections_of(weight_collections)
    sums: list[Tensor] = []
    with variable_scope(None, default_name="linear_model", values=None):
        for column in columns:
            with variable_scope(column.name) as scope:
                rows = column.num_buckets if isinstance(column, CategoricalColumn) else column.size
                weights = get_variable(
                    "weights",
                    [rows, units],
                    dtypes.float32,
                    initializer=_zeros,
                    trainable=trainable,
                    collections=collections,
                )
                if isinstance(column, CategoricalColumn):
                    ids, given = column.ids(made)
                    part = safe_embedding_lookup_sparse(weights, ids, given, sparse_combiner, name="weighted_sum")
                else:
                    tensor = column.dense(made, trainable, collections)
                    flat = _flat(tensor, column.size)
                    part = reductions.reduce_sum(
                        arrays.expand_dims(flat, -1) * arrays.expand_dims(weights, 0), 1, name="weighted_sum"
                    )
                sums.append(part)
                if cols_to_vars is not None:
                    cols_to_vars[column] = scope.global_variables()
        bias = get_variable(
            "bias_weights", [units], dtypes.float32, initializer=_zeros, trainable=trainable, collections=collections
        )
        if cols_to_vars is not None:
            cols_to_vars["bias"] = [bias]
        total = math.add_n(sums, name="weighted_sum_no_bias")
        return math.add(total, bias, name="weighted_sum")


def _zeros(shape: ShapeLike, dtype: DTypeLike | None = None, partition_info: PartitionInfo | None = None) -> Tensor:
    del partition_info
    return arrays.zeros(shape, dtype)


def make_parse_example_spec(feature_columns: Iterable[Column]) -> dict[str, object]:
    """Returns the specification with which `parse_example` reads the columns' features.

    Raises:
      ValueError: two columns read one feature in different ways.
    """
    found: dict[str, object] = {}
    for column in feature_columns:
        for key, value in column.parse_example_spec.items():
            if key in found and found[key] != value:
                raise ValueError(f"feature_columns have different parse specs for {key}: {value} and {found[key]}")
            found[key] = value
    return found
