"""Feature columns under the names and arguments of ``tf.contrib.layers``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from headwater import dtypes
from headwater.dtypes import as_dtype
from headwater.tf1.feature_columns import categorical, dense
from headwater.tf1.feature_columns.base import CategoricalColumn, Column
from headwater.tf1.variables.initializers import TruncatedNormal

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.operation import Tensor
    from headwater.graph.types import TensorLike
    from headwater.tf1.variables.types import InitializerLike

_C = TypeVar("_C", bound=Column)


def real_valued_column(
    column_name: str,
    dimension: int = 1,
    default_value: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    normalizer: Callable[[Tensor], Tensor] | None = None,
) -> dense.NumericColumn:
    """`numeric_column` of a vector of ``dimension`` numbers."""
    return _old(dense.numeric_column(column_name, (dimension or 1,), default_value, dtype, normalizer))


def sparse_column_with_hash_bucket(
    column_name: str,
    hash_bucket_size: int,
    combiner: str = "sum",
    dtype: DTypeLike = dtypes.string,
    hash_keys: object = None,
) -> CategoricalColumn:
    """`categorical_column_with_hash_bucket`.

    Raises:
      ValueError: ``hash_keys``, which are not supported, or another ``combiner`` than "sum".
    """
    _require_sums(combiner)
    if hash_keys is not None:
        raise ValueError("hash_keys are not supported")
    return _old(categorical.categorical_column_with_hash_bucket(column_name, hash_bucket_size, dtype))


def sparse_column_with_keys(
    column_name: str,
    keys: Sequence[str | int],
    default_value: int = -1,
    combiner: str = "sum",
    dtype: DTypeLike = dtypes.string,
) -> CategoricalColumn:
    """`categorical_column_with_vocabulary_list`; ``combiner`` must be "sum"."""
    _require_sums(combiner)
    return _old(categorical.categorical_column_with_vocabulary_list(column_name, list(keys), dtype, default_value))


def sparse_column_with_integerized_feature(
    column_name: str, bucket_size: int, combiner: str = "sum", dtype: DTypeLike = dtypes.int64
) -> CategoricalColumn:
    """`categorical_column_with_identity` of integers; ``combiner`` must be "sum"."""
    _require_sums(combiner)
    if not as_dtype(dtype).is_integer:
        raise ValueError(f"dtype must be an integer. dtype: {as_dtype(dtype).name} column_name: {column_name}")
    return _old(categorical.categorical_column_with_identity(column_name, bucket_size))


def crossed_column(
    columns: Sequence[Column],
    hash_bucket_size: int,
    combiner: str = "sum",
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    hash_key: int | None = None,
) -> CategoricalColumn:
    """Returns a `crossed_column`; columns of texts are replaced by their text.

    Args:
      columns: in any order; they are combined in the order of their names.
      hash_key: see `crossed_column`; None for an older fingerprint, which has no key.

    Raises:
      ValueError: a checkpoint or another ``combiner`` than "sum" is given; neither is supported.
    """
    _require_sums(combiner)
    if ckpt_to_load_from is not None or tensor_name_in_ckpt is not None:
        raise ValueError("ckpt_to_load_from is not supported: use tf.train.init_from_checkpoint")
    texts = (categorical.HashedColumn, categorical.VocabularyListColumn)
    leaves: list[Any] = []
    for column in columns:
        leaves.extend(column.leaves() if isinstance(column, categorical.CrossedColumn) else [column])
    keys = [leaf.key if isinstance(leaf, texts) and leaf.dtype == dtypes.string else leaf for leaf in leaves]
    keys.sort(key=lambda key: key if isinstance(key, str) else key.name)
    found = categorical.crossed_column(keys, hash_bucket_size, hash_key)
    return _old(found if hash_key is not None else replace(found, hash_key=None))


def embedding_column(
    sparse_id_column: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: InitializerLike | None = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> dense.EmbeddingColumn:
    """`embedding_column`; tables begin with a standard deviation of 1/√categories."""
    begin = initializer or TruncatedNormal(0.0, 1 / math.sqrt(sparse_id_column.num_buckets))
    found = dense.embedding_column(
        sparse_id_column, dimension, combiner, begin, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable
    )
    return _old(replace(found, table_name="weights"))


def bucketized_column(source_column: Column, boundaries: Sequence[float]) -> dense.BucketizedColumn:
    """`bucketized_column`."""
    return _old(dense.bucketized_column(source_column, boundaries))


def one_hot_column(sparse_id_column: CategoricalColumn) -> dense.IndicatorColumn:
    """`indicator_column`."""
    return _old(dense.indicator_column(sparse_id_column))


def create_feature_spec_for_parsing(feature_columns: Sequence[Column]) -> dict[str, object]:
    """`make_parse_example_spec`."""
    return dense.make_parse_example_spec(feature_columns)


def _old(column: _C) -> _C:
    """Marks a column as made by ``tf.contrib.layers``, and returns it."""
    object.__setattr__(column, "of_contrib", True)  # the column is frozen, and not shared yet
    return column


def _require_sums(combiner: str) -> None:
    """ValueError for another ``combiner`` than "sum"."""
    if combiner != "sum":
        raise ValueError(
            f"combiner={combiner!r} is not supported for the weights of a linear model: they are summed; an "
            "embedding_column of this column takes a combiner of its own"
        )
