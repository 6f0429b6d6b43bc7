"""Categorical columns: by vocabulary, by number, by fingerprint, by combination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater import dtypes
from headwater.data.io import files
from headwater.dtypes import DType, as_dtype, from_numpy
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.tf1.feature_columns.base import CategoricalColumn, Features, IdWeightPair, to_sparse
from headwater.tf1.functional import indexing, math, strings, tables
from headwater.tf1.functional.checks import assert_greater_equal, assert_less
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.sparse import SparseTensor
from headwater.tf1.input import parsing

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import TensorLike
    from headwater.tf1.input.parsing import VarLenFeature


def _with_values(like: SparseTensor, values: TensorLike) -> SparseTensor:
    return SparseTensor(like.indices, values, like.dense_shape)


@dataclass(frozen=True)
class _Keyed(CategoricalColumn):
    key: str

    @property
    def name(self) -> str:
        return self.key

    @property
    def dtype(self) -> DType:
        return dtypes.string

    @property
    def parse_example_spec(self) -> dict[str, VarLenFeature]:
        return {self.key: parsing.VarLenFeature(self.dtype)}

    def transform(self, features: Features) -> SparseTensor:
        return self.to_indices(to_sparse(features.get(self.key)))

    def to_indices(self, tensor: SparseTensor) -> SparseTensor:
        """Returns the indices of categories."""
        raise NotImplementedError


@dataclass(frozen=True)
class VocabularyListColumn(_Keyed):
    """Categories by their place in a list."""

    vocabulary: tuple[Any, ...]
    kind: DType
    default_value: int
    num_oov_buckets: int

    @property
    def dtype(self) -> DType:
        return self.kind

    @property
    def num_buckets(self) -> int:
        return len(self.vocabulary) + self.num_oov_buckets

    def to_indices(self, tensor: SparseTensor) -> SparseTensor:
        integer = self.kind.is_integer
        table = tables.index_table_from_tensor(
            list(self.vocabulary),
            self.num_oov_buckets,
            self.default_value,
            dtype=dtypes.int64 if integer else self.kind,
            name=f"{self.key}_lookup",
        )
        return table.lookup(_with_values(tensor, math.to_int64(tensor.values)) if integer else tensor)


@dataclass(frozen=True)
class VocabularyFileColumn(_Keyed):
    """Categories by their line in a file."""

    file: str
    size: int
    num_oov_buckets: int
    kind: DType
    default_value: int

    @property
    def dtype(self) -> DType:
        return self.kind

    @property
    def num_buckets(self) -> int:
        return self.size + self.num_oov_buckets

    @property
    def vocabulary_file(self) -> str:
        return self.file

    @property
    def vocabulary_size(self) -> int:
        """Number of lines to use."""
        return self.size

    def to_indices(self, tensor: SparseTensor) -> SparseTensor:
        integer = self.kind.is_integer
        table = tables.index_table_from_file(
            self.file,
            self.num_oov_buckets,
            self.size,
            self.default_value,
            key_dtype=dtypes.int64 if integer else self.kind,
            name=f"{self.key}_lookup",
        )
        return table.lookup(_with_values(tensor, math.to_int64(tensor.values)) if integer else tensor)


@dataclass(frozen=True)
class HashedColumn(_Keyed):
    """Categories by their fingerprint modulo a number."""

    hash_bucket_size: int
    kind: DType

    @property
    def dtype(self) -> DType:
        return self.kind

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    def to_indices(self, tensor: SparseTensor) -> SparseTensor:
        text = tensor.values if self.kind == dtypes.string else strings.as_string(tensor.values)
        return _with_values(tensor, tables.string_to_hash_bucket_fast(text, self.hash_bucket_size, name="lookup"))


@dataclass(frozen=True)
class IdentityColumn(_Keyed):
    """Categories that are numbers already."""

    number_buckets: int
    default_value: int | None

    @property
    def dtype(self) -> DType:
        return dtypes.int64

    @property
    def num_buckets(self) -> int:
        return self.number_buckets

    def to_indices(self, tensor: SparseTensor) -> SparseTensor:
        values = math.cast(tensor.values, dtypes.int64)
        count = convert_to_tensor(self.number_buckets, dtypes.int64)
        zero = convert_to_tensor(0, dtypes.int64)
        if self.default_value is None:
            checks = [assert_less(values, count), assert_greater_equal(values, zero)]
            with control_dependencies(checks):
                values = get_default_graph().create_op("Identity", [values]).outputs[0]
        else:
            bad = math.logical_or(values < zero, values >= count)
            other = convert_to_tensor(self.default_value, dtypes.int64)
            values = indexing.where(bad, math.multiply(other, math.cast(bad, dtypes.int64)), values)
        return _with_values(tensor, values)


@dataclass(frozen=True)
class CrossedColumn(CategoricalColumn):
    """Combinations of categories by their fingerprint modulo a number.

    Attributes:
      hash_key: the initial value of the fingerprint; None for the older fingerprint of ``tf.contrib.layers``.
    """

    keys: tuple[Any, ...]
    hash_bucket_size: int
    hash_key: int | None

    @property
    def name(self) -> str:
        return "_X_".join(sorted(key if isinstance(key, str) else key.name for key in self.leaves()))

    def leaves(self) -> list[Any]:
        """Returns the combined keys and columns."""
        found: list[object] = []
        for key in self.keys:
            found.extend(key.leaves() if isinstance(key, CrossedColumn) else [key])
        return found

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    @property
    def parse_example_spec(self) -> dict[str, object]:
        found: dict[str, Any] = {}
        for key in self.keys:
            found |= {key: parsing.VarLenFeature(dtypes.string)} if isinstance(key, str) else key.parse_example_spec
        return found

    def transform(self, features: Features) -> SparseTensor:
        parts: list[SparseTensor] = []
        dense: list[Tensor] = []
        for leaf in self.leaves():
            found = features.get(leaf) if isinstance(leaf, str) else leaf.ids(features).id_tensor
            if isinstance(found, SparseTensor):
                parts.append(
                    found if found.dtype == dtypes.string else _with_values(found, math.to_int64(found.values))
                )
            else:
                dense.append(found if found.dtype.base_dtype == dtypes.string else math.to_int64(found))
        inputs = [p.indices for p in parts] + [p.values for p in parts] + [p.dense_shape for p in parts] + dense
        attrs = {
            "N": len(parts),
            "hashed_output": True,
            "num_buckets": self.hash_bucket_size,
            "out_type": dtypes.int64,
            "internal_type": dtypes.string,
            "sparse_types": tuple(p.dtype for p in parts),
            "dense_types": tuple(t.dtype.base_dtype for t in dense),
        }
        if self.hash_key is None:
            outputs = get_default_graph().create_op("SparseFeatureCross", inputs, attrs).outputs
        else:
            outputs = get_default_graph().create_op("SparseCross", inputs, attrs | {"hash_key": self.hash_key}).outputs
        return SparseTensor(outputs[0], outputs[1], outputs[2])


@dataclass(frozen=True)
class WeightedColumn(CategoricalColumn):
    """A column of categories with the weight of each in another feature."""

    column: CategoricalColumn
    weight_key: str
    dtype: DType

    @property
    def name(self) -> str:
        return f"{self.column.name}_weighted_by_{self.weight_key}"

    @property
    def num_buckets(self) -> int:
        return self.column.num_buckets

    @property
    def parse_example_spec(self) -> dict[str, object]:
        return {**self.column.parse_example_spec, self.weight_key: parsing.VarLenFeature(self.dtype)}

    def transform(self, features: Features) -> IdWeightPair:
        weights = features.get(self.weight_key)
        ids = self.column.ids(features).id_tensor
        if not isinstance(weights, SparseTensor):
            weights = SparseTensor(ids.indices, indexing.gather_nd(weights, ids.indices), ids.dense_shape)
        return IdWeightPair(ids, _with_values(weights, math.to_float(weights.values)))

    def ids(self, features: Features) -> IdWeightPair:
        return features.get(self)


# Functions that create columns ---------------------------------------------------------------------------------------


def categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Sequence[object],
    dtype: DTypeLike | None = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> VocabularyListColumn:
    """Maps categories to their index in a list.

    Args:
      default_value: the index of categories that are not in the list.
      num_oov_buckets: number of further indices for such categories, in place of ``default_value``.

    Raises:
      ValueError: the list is empty or has duplicates, both of the last two are given, or a type does not match.
    """
    words = tuple(vocabulary_list)
    if not words:
        raise ValueError(f"vocabulary_list {vocabulary_list} must be non-empty, column_name: {key}")
    if len(set(words)) != len(words):
        raise ValueError(f"Duplicate keys in vocabulary_list: {vocabulary_list}, column_name: {key}")
    found = dtypes.string if isinstance(words[0], str | bytes) else from_numpy(np.array(words).dtype)
    kind = found if dtype is None else as_dtype(dtype)
    if kind.is_integer != found.is_integer:
        raise ValueError(f"dtype {kind.name} and vocabulary dtype {found.name} do not match, column_name: {key}")
    _check_oov(key, default_value, num_oov_buckets)
    return VocabularyListColumn(key, words, kind, default_value, num_oov_buckets)


def _check_oov(key: str, default_value: int | None, num_oov_buckets: int) -> None:
    if num_oov_buckets < 0:
        raise ValueError(f"Invalid num_oov_buckets {num_oov_buckets} in {key}.")
    if num_oov_buckets and default_value not in (None, -1):
        raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")


def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: DTypeLike = dtypes.string,
) -> VocabularyFileColumn:
    """Categories by their line in a file, of which ``vocabulary_size`` lines count (all if None)."""
    if not vocabulary_file:
        raise ValueError(f"Missing vocabulary_file in {key}.")
    if vocabulary_size is None:
        with files.open_file(vocabulary_file, "rb") as file:
            vocabulary_size = sum(1 for _ in file)
    if vocabulary_size < 1:
        raise ValueError(f"Invalid vocabulary_size in {key}.")
    _check_oov(key, default_value, num_oov_buckets)
    value = -1 if default_value is None else default_value
    return VocabularyFileColumn(key, str(vocabulary_file), vocabulary_size, num_oov_buckets, as_dtype(dtype), value)


def categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: DTypeLike = dtypes.string
) -> HashedColumn:
    """Categories by the fingerprint of their text modulo ``hash_bucket_size``."""
    if hash_bucket_size is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise ValueError(f"hash_bucket_size must be set. key: {key}")
    if hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be at least 1. hash_bucket_size: {hash_bucket_size}, key: {key}")
    kind = as_dtype(dtype)
    if not (kind.is_integer or kind == dtypes.string):
        raise ValueError(f"dtype must be string or integer. dtype: {kind.name}, column_name: {key}")
    return HashedColumn(key, hash_bucket_size, kind)


def categorical_column_with_identity(key: str, num_buckets: int, default_value: int | None = None) -> IdentityColumn:
    """Categories that are numbers below ``num_buckets``; others become ``default_value``, or an error if None."""
    if num_buckets < 1:
        raise ValueError(f"num_buckets {num_buckets} < 1, column_name {key}")
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError(f"default_value {default_value} not in range [0, {num_buckets}), column_name {key}")
    return IdentityColumn(key, num_buckets, default_value)


_HASH_KEY = 0xDECAFCAFFE


def crossed_column(keys: Sequence[Any], hash_bucket_size: int, hash_key: int | None = None) -> CrossedColumn:
    """Combinations of features and columns of categories by their fingerprint modulo ``hash_bucket_size``.

    Raises:
      ValueError: less than two keys, a bad size, or a column that cannot be combined.
    """
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be > 1. hash_bucket_size: {hash_bucket_size}")
    if not keys or len(keys) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys}")
    for key in keys:
        if isinstance(key, HashedColumn) or not isinstance(key, str | CategoricalColumn):
            raise ValueError(
                f"Unsupported key type. Keys must be strings or categorical columns but hashed ones: {key}"
            )
    return CrossedColumn(tuple(keys), hash_bucket_size, _HASH_KEY if hash_key is None else hash_key)


def weighted_categorical_column(
    categorical_column: CategoricalColumn, weight_feature_key: str, dtype: DTypeLike = dtypes.float32
) -> WeightedColumn:
    """A column of categories with the weight of each in the feature ``weight_feature_key``."""
    kind = as_dtype(dtype)
    if not (kind.is_integer or kind.is_floating):
        raise ValueError(f"dtype {kind.name} is not convertible to float.")
    return WeightedColumn(categorical_column, weight_feature_key, kind)
