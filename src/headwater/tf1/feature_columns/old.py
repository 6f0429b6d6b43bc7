"""Feature columns under the names and arguments of ``tf.contrib.layers``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.dtypes import as_dtype
from headwater.tf1.feature_columns import categorical, dense
from headwater.tf1.feature_columns.base import CategoricalColumn, Column

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.operation import Tensor
    from headwater.graph.types import TensorLike
    from headwater.tf1.variables.types import InitializerLike


def real_valued_column(
    column_name: str,
    dimension: int = 1,
    default_value: TensorLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    normalizer: Callable[[Tensor], Tensor] | None = None,
) -> dense.NumericColumn:
    """`numeric_column` of a vector of ``dimension`` numbers."""
    return dense.numeric_column(column_name, (dimension or 1,), default_value, dtype, normalizer)


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
    return categorical.categorical_column_with_hash_bucket(column_name, hash_bucket_size, dtype)


def sparse_column_with_keys(
    column_name: str,
    keys: Sequence[str | int],
    default_value: int = -1,
    combiner: str = "sum",
    dtype: DTypeLike = dtypes.string,
) -> CategoricalColumn:
    """`categorical_column_with_vocabulary_list`; ``combiner`` must be "sum"."""
    _require_sums(combiner)
    return categorical.categorical_column_with_vocabulary_list(column_name, list(keys), dtype, default_value)


def sparse_column_with_integerized_feature(
    column_name: str, bucket_size: int, combiner: str = "sum", dtype: DTypeLike = dtypes.int64
) -> CategoricalColumn:
    """`categorical_column_with_identity` of integers; ``combiner`` must be "sum"."""
    _require_sums(combiner)
    if not as_dtype(dtype).is_integer:
        raise ValueError(f"dtype must be an integer. dtype: {as_dtype(dtype).name} column_name: {column_name}")
    return categorical.categorical_column_with_identity(column_name, bucket_size)


def crossed_column(
    columns: Sequence[Column],
    hash_bucket_size: int,
    combiner: str = "sum",
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    hash_key: int | None = None,
) -> CategoricalColumn:
    """Returns a `crossed_column`; hashed columns are replaced by their text.

    Raises:
      ValueError: a checkpoint or another ``combiner`` than "sum" is given; neither is supported.
    """
    _require_sums(combiner)
    if ckpt_to_load_from is not None or tensor_name_in_ckpt is not None:
        raise ValueError("ckpt_to_load_from is not supported: use tf.train.init_from_checkpoint")
    keys = [column.key if isinstance(column, categorical.HashedColumn) else column for column in columns]
    return categorical.crossed_column(keys, hash_bucket_size, hash_key)


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
    """`embedding_column`."""
    return dense.embedding_column(
        sparse_id_column, dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable
    )


def create_feature_spec_for_parsing(feature_columns: Sequence[Column]) -> dict[str, object]:
    """`make_parse_example_spec`."""
    return dense.make_parse_example_spec(feature_columns)


def _require_sums(combiner: str) -> None:
    """ValueError for another ``combiner`` than "sum"."""
    if combiner != "sum":
        raise ValueError(
            f"combiner={combiner!r} is not supported for the weights of a linear model: they are summed; an "
            "embedding_column of this column takes a combiner of its own"
        )
