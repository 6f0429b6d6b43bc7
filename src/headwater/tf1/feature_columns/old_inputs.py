"""Inputs of models from the feature columns of ``tf.contrib.layers``, with its names of variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.tf1.feature_columns import categorical, dense
from headwater.tf1.feature_columns.base import CategoricalColumn, Column, DenseColumn, Features
from headwater.tf1.functional import arrays, math
from headwater.tf1.functional.linalg import matmul
from headwater.tf1.variables.embedding import safe_embedding_lookup_sparse
from headwater.tf1.variables.initializers import ZEROS
from headwater.tf1.variables.variable_scope import get_variable, variable_scope

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.tf1.variables.scope_settings import VariableScope
    from headwater.tf1.variables.variables import Variable

_KINDS: Mapping[type[Column], str] = {
    dense.BucketizedColumn: "_BucketizedColumn",
    dense.EmbeddingColumn: "_EmbeddingColumn",
    dense.IndicatorColumn: "_OneHotColumn",
    dense.NumericColumn: "_RealValuedColumn",
    categorical.CrossedColumn: "_CrossedColumn",
    categorical.HashedColumn: "_SparseColumnHashed",
    categorical.IdentityColumn: "_SparseColumnIntegerized",
    categorical.VocabularyListColumn: "_SparseColumnKeys",
}
"""TensorFlow's names of the classes, by which it sorts columns."""


def _kind(column: Column) -> str:
    return _KINDS.get(type(column), type(column).__name__)


def _order(column: Any) -> str:
    """Returns the key by which TensorFlow sorts a column: the beginning of its text, which has its class first."""
    source = getattr(column, "source_column", None) or getattr(column, "categorical_column", None)
    return f"{_kind(column)}({_order(source) if source else repr(column.name)}"


def _sorted(columns: Iterable[Column]) -> list[Any]:
    return sorted(set(columns), key=_order)


def input_from_feature_columns(
    columns_to_tensors: Any,
    feature_columns: Iterable[Column],
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    scope: str | VariableScope | None = None,
    cols_to_outs: Any = None,
) -> Tensor:
    """Concatenates dense columns to a matrix with a row per example, in TensorFlow's order: by class, then by name.

    Args:
      columns_to_tensors: tensors by their keys.
      weight_collections: further collections for variables.
      cols_to_outs: a dictionary to fill with the part of each column.

    Raises:
      ValueError: a column is not dense.
    """
    made, outputs = Features(columns_to_tensors), list["Tensor"]()
    with variable_scope(scope, "input_from_feature_columns", list(columns_to_tensors.values())):
        for column in _sorted(feature_columns):
            if not isinstance(column, DenseColumn):
                raise ValueError(
                    f"Error creating input layer for column: {column.name}.\n{_kind(column)} is not "
                    "supported in DNN. Please use embedding_column or one_hot_column."
                )
            with variable_scope(None, default_name=column.name):
                found = column.dense(made, trainable, dense.collections_of(weight_collections))
                outputs.append(arrays.reshape(found, [-1, column.size]))
            if cols_to_outs is not None:
                cols_to_outs[column] = outputs[-1]
        return arrays.concat(outputs, 1)


def weighted_sum_from_feature_columns(
    columns_to_tensors: Any,
    feature_columns: Iterable[Column],
    num_outputs: int,
    weight_collections: Sequence[str] | None = None,
    trainable: bool = True,
    scope: str | VariableScope | None = None,
) -> tuple[Tensor, dict[Column, list[Variable]], Variable]:
    """Returns a bias plus the weighted sum of numbers and categories, the weights of each column, and the bias.

    Raises:
      ValueError: a column has neither numbers nor categories.
    """
    made, collections = Features(columns_to_tensors), dense.collections_of(weight_collections)
    weights: dict[Column, list[Variable]] = {}

    def zeros(name: str, *shape: int) -> Variable:
        return get_variable(
            name, list(shape), dtypes.float32, initializer=ZEROS, trainable=trainable, collections=collections
        )

    def part(column: Column) -> Tensor:
        if isinstance(column, CategoricalColumn):
            weights[column] = [zeros("weights", column.num_buckets, num_outputs)]
            ids, given = column.ids(made)
            return safe_embedding_lookup_sparse(weights[column][0], ids, given, "sum", name="weights")
        if isinstance(column, dense.NumericColumn):
            weights[column] = [zeros("weight", column.size, num_outputs)]
            numbers = arrays.reshape(column.dense(made, trainable, collections), [-1, column.size])
            return matmul(numbers, weights[column][0], name="matmul")
        raise ValueError(
            f"Error creating weighted sum for column: {column.name}.\n{_kind(column)} is not "
            "supported in linear models. Please use sparse_column."
        )

    with variable_scope(scope, "weighted_sum_from_feature_columns", list(columns_to_tensors.values())):
        sums: list[Tensor] = []
        for column in _sorted(feature_columns):
            with variable_scope(None, default_name=column.name):
                sums.append(part(column))
        bias = zeros("bias_weight", num_outputs)
        return math.add(math.add_n(sums), bias, name="BiasAdd"), weights, bias
