"""Functions that parse examples and lines of values (TensorFlow 1.15's ``tf.parse_example`` and others)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headwater.dtypes import DType, as_dtype, float32, float64, int32, int64, string
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, make_const
from headwater.graph.operation import Tensor
from headwater.shapes import TensorShape, as_shape
from headwater.tf1.functional import arrays
from headwater.tf1.functional.apply import apply, one
from headwater.tf1.functional.sparse import SparseTensor
from headwater.tf1.input.ragged_features import RaggedFeature

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import TensorLike
    from headwater.shapes import ShapeLike


class FixedLenFeature(NamedTuple):
    """A feature with the same number of values in each example.

    Attributes:
      shape: the shape of the values of one example.
      dtype: float32, int64 or string.
      default_value: for examples without the feature; None when it must be there.
    """

    shape: ShapeLike
    dtype: DTypeLike | None
    default_value: TensorLike | None = None


class VarLenFeature(NamedTuple):
    """A feature with any number of values; read as a `SparseTensor`."""

    dtype: DTypeLike | None


class SparseFeature(NamedTuple):
    """A feature stored as two features, one with indices and one with values; read as a `SparseTensor`.

    Attributes:
      index_key: name of the feature with the indices, or a list of names, one for each dimension.
      value_key: name of the feature with the values.
      dtype: the dtype of the values.
      size: upper bound of the indices; a list for a list of names.
      already_sorted: the indices are sorted.
    """

    index_key: Any
    value_key: str
    dtype: DTypeLike | None
    size: Any
    already_sorted: bool = False


class FixedLenSequenceFeature(NamedTuple):
    """A feature with any number of elements of one shape; read as a tensor, padded for examples with fewer elements.

    Attributes:
      shape: the shape of an element.
      dtype: float32, int64 or string.
      allow_missing: must be True: an example without the feature has no elements.
      default_value: value of the padding; by default 0 or an empty string.
    """

    shape: ShapeLike
    dtype: DTypeLike | None
    allow_missing: bool = False
    default_value: TensorLike | None = None


_Dense = tuple[DType, TensorShape, Any]


@dataclass(slots=True)
class _Raw:
    """Features as the operations take them.

    Attributes:
      sparse: types of the features with any number of values, by name.
      dense: types, shapes and default values of dense features, by name.
    """

    sparse: dict[str, DType] = field(default_factory=dict[str, DType])
    dense: dict[str, tuple[DType, TensorShape, Any]] = field(
        default_factory=dict[str, "tuple[DType, TensorShape, Any]"]
    )

    @classmethod
    def of(cls, features: Mapping[str, object]) -> _Raw:
        raw = cls()
        for key in sorted(features):
            match features[key]:
                case VarLenFeature() as feature:
                    raw.add_sparse(key, feature.dtype)
                case SparseFeature() as feature:
                    if feature.dtype is None or not feature.index_key or not feature.value_key:
                        raise ValueError(f"SparseFeature {key!r} needs index_key, value_key and dtype")
                    for index_key in _index_keys(feature):
                        raw.add_sparse(index_key, int64)
                    raw.add_sparse(feature.value_key, feature.dtype)
                case FixedLenFeature() as feature:
                    raw.add_fixed(key, feature)
                case FixedLenSequenceFeature() as feature:
                    if not feature.allow_missing:
                        raise ValueError(
                            f"Unsupported: FixedLenSequenceFeature {key!r} requires allow_missing to be True."
                        )
                    shape = as_shape([None, *as_shape(feature.shape).as_list()])
                    raw.dense[key] = (_type_of(key, feature.dtype), shape, feature.default_value)
                case RaggedFeature() as feature:
                    raw.add_sparse(feature.value_key or key, feature.dtype)
                    for name in feature.partition_keys:
                        raw.add_sparse(name, int64)
                case other:
                    raise ValueError(f"Invalid feature {key}:{other}.")
        both = sorted(set(raw.sparse) & set(raw.dense))
        if both:
            raise ValueError(f"Dense and sparse keys must not intersect; intersection: {both}")
        return raw

    def add_sparse(self, key: str, dtype: DTypeLike | None) -> None:
        found = _type_of(key, dtype)
        if self.sparse.setdefault(key, found) != found:
            raise ValueError(f"Conflicting type {self.sparse[key].name} vs {found.name} for feature {key}.")

    def add_fixed(self, key: str, feature: FixedLenFeature) -> None:
        if feature.shape is None:
            raise ValueError(f"Missing shape for feature {key}.")
        shape = as_shape(feature.shape)
        if not shape.is_fully_defined():
            raise ValueError(f"All dimensions of shape for feature {key} need to be known but received {shape}.")
        self.dense[key] = (_type_of(key, feature.dtype), shape, feature.default_value)

    def defaults(self) -> list[Tensor]:
        """Returns the default values as tensors: empty tensors without a default."""
        return [_default(key, *what) for key, what in self.dense.items()]


def _index_keys(feature: SparseFeature) -> list[str]:
    return [feature.index_key] if isinstance(feature.index_key, str) else list(feature.index_key)


def _type_of(key: str, dtype: DTypeLike | None) -> DType:
    if not dtype:
        raise ValueError(f"Missing type for feature {key}.")
    return as_dtype(dtype)


def _default(key: str, dtype: DType, shape: TensorShape, value: Any) -> Tensor:
    if value is None:
        varies = bool(shape.ndims) and shape.as_list()[0] is None
        filler = b"" if dtype == string else 0
        return make_const(np.full((), filler, dtype.numpy_dtype) if varies else np.zeros((0,), dtype.numpy_dtype))
    tensor = convert_to_tensor(value, dtype, name="key_" + re.sub("[^A-Za-z0-9_.\\-/]", "_", key))
    return tensor if not shape.is_fully_defined() else one("Reshape", tensor, shape)


def _result(features: Mapping[str, object], raw: _Raw, outputs: Sequence[Tensor], *, batch: bool) -> dict[str, object]:
    """Returns the tensors by the names of the features.

    Args:
      outputs: sparse indices, values and shapes, then dense tensors.
      batch: whether they are of a vector of examples.
    """
    count = len(raw.sparse)
    found: dict[str, object] = {
        key: SparseTensor(outputs[i], outputs[count + i], outputs[2 * count + i]) for i, key in enumerate(raw.sparse)
    }
    found.update(zip(raw.dense, outputs[3 * count :], strict=True))
    parsed: dict[str, Any] = dict(found)
    for key, feature in features.items():
        if isinstance(feature, SparseFeature):
            found[key] = _merged(feature, found)
        elif isinstance(feature, RaggedFeature):
            found[key] = feature.of_batch(key, parsed) if batch else feature.of_one(key, parsed)
    return {key: found[key] for key in sorted(features)}


def _merged(feature: SparseFeature, found: Mapping[str, Any]) -> SparseTensor:
    keys = _index_keys(feature)
    sizes = [int(size) for size in np.ravel(feature.size)]
    if len(sizes) != len(keys):
        raise ValueError(f"SparseFeature: {len(keys)} index keys, {keys}, and {len(sizes)} sizes, {sizes}")
    ids, values = [found[key] for key in keys], found[feature.value_key]
    inputs = (ids[0].indices, values.values, [each.values for each in ids])
    merged = apply("SparseFeature", *inputs, name="SparseMerge", sizes=sizes, already_sorted=feature.already_sorted)
    # The last sizes are constants, so that the static shape contains them.
    shape = arrays.concat([ids[0].dense_shape[:-1], make_const(np.array(sizes, np.int64))], 0)
    return SparseTensor(merged.outputs[0], merged.outputs[1], shape)


def parse_single_example(
    serialized: TensorLike, features: Mapping[str, object], name: str | None = None, example_names: object = None
) -> dict[str, Any]:
    """Parses the features of one ``Example``.

    Args:
      serialized: a string.
      features: `FixedLenFeature`, `VarLenFeature`, `SparseFeature`, `RaggedFeature` or `FixedLenSequenceFeature`, by
        name.
      example_names: accepted for compatibility.

    Returns:
      Tensors and `SparseTensor` by name.

    Raises:
      ValueError: there are no features, or they contradict each other.
    """
    del example_names
    if not features:
        raise ValueError("Missing features.")
    raw = _Raw.of(features)
    with get_default_graph().name_scope(name or "ParseSingleExample"):
        inputs = [convert_to_tensor(serialized, string, name="serialized"), *raw.defaults()]
        attrs: dict[str, object] = {
            "num_sparse": len(raw.sparse),
            "sparse_keys": tuple(raw.sparse),
            "dense_keys": tuple(raw.dense),
            "sparse_types": tuple(raw.sparse.values()),
            "Tdense": tuple(dtype for dtype, _, _ in raw.dense.values()),
            "dense_shapes": tuple(shape for _, shape, _ in raw.dense.values()),
        }
        outputs = get_default_graph().create_op("ParseSingleExample", inputs, attrs, "ParseSingleExample").outputs
    return _result(features, raw, outputs, batch=False)


def parse_example(
    serialized: TensorLike, features: Mapping[str, object], name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """Parses the features of a vector of ``Example`` messages, as `parse_single_example`, with a row for each.

    Args:
      example_names: names of the examples in errors, a vector of strings.
    """
    if not features:
        raise ValueError("Missing: features was {}.")
    raw = _Raw.of(features)
    with get_default_graph().name_scope(name or "ParseExample"):
        names = convert_to_tensor([] if example_names is None else example_names, string, name="names")
        keys = [convert_to_tensor(key, string, name="keys") for key in (*raw.sparse, *raw.dense)]
        inputs = [convert_to_tensor(serialized, string, name="serialized"), names, *keys, *raw.defaults()]
        attrs: dict[str, object] = {
            "Nsparse": len(raw.sparse),
            "Ndense": len(raw.dense),
            "sparse_types": tuple(raw.sparse.values()),
            "Tdense": tuple(dtype for dtype, _, _ in raw.dense.values()),
            "dense_shapes": tuple(shape for _, shape, _ in raw.dense.values()),
        }
        outputs = get_default_graph().create_op("ParseExample", inputs, attrs, "ParseExample").outputs
    return _result(features, raw, outputs, batch=True)


_CSV_TYPES = (float32, float64, int32, int64, string)


def decode_csv(
    records: TensorLike,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[Tensor]:
    """The columns of lines of separated values.

    Args:
      records: strings of any shape, one line each.
      record_defaults: for each column a tensor, scalar or of one element, for empty fields; of no element where the
        field must not be empty. Its element type is the column's.
      field_delim: one character, between fields.
      use_quote_delim: fields may be in double quotes.
      na_value: further text that counts as empty.
      select_cols: positions of the columns to read, in order; all of them if None.

    Returns:
      A tensor of the shape of ``records`` for each column.

    Raises:
      ValueError: columns are not in order, or the numbers of columns and defaults differ.
      TypeError: the type of a default is not float32, float64, int32, int64 or string.
    """
    columns = list(select_cols or ())
    if any(later <= earlier for earlier, later in itertools.pairwise(columns)):
        raise ValueError("select_cols is not strictly increasing.")
    if columns and columns[0] < 0:
        raise ValueError("select_cols contains negative values.")
    if columns and len(columns) != len(record_defaults):
        raise ValueError("Length of select_cols and record_defaults do not match.")
    defaults = [convert_to_tensor(default) for default in record_defaults]
    for default in defaults:
        if default.dtype.base_dtype not in _CSV_TYPES:
            raise TypeError(f"record_defaults cannot be of type {default.dtype.name}")
    attrs = {"field_delim": field_delim, "use_quote_delim": use_quote_delim, "na_value": na_value}
    return apply("DecodeCSV", records, defaults, name=name, select_cols=tuple(columns), **attrs).outputs


def parse_tensor(serialized: TensorLike, out_type: DTypeLike, name: str | None = None) -> Tensor:
    """The tensor in a ``TensorProto``; at run time InvalidArgumentError if it is of another type."""
    return one("ParseTensor", serialized, out_type=as_dtype(out_type), name=name)


def serialize_tensor(tensor: TensorLike, name: str | None = None) -> Tensor:
    """A tensor as a ``TensorProto``."""
    return one("SerializeTensor", tensor, name=name)


def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Tensor:
    """Strings decompressed; ``compression_type`` is ``ZLIB``, ``GZIP`` or empty."""
    return one("DecodeCompressed", bytes, compression_type=compression_type, name=name)
