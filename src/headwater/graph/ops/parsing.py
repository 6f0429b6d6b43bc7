"""Operations on the host that parse messages and text: examples, comma-separated values, tensors."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from google.protobuf.message import DecodeError

from headwater.data.io.example import ExampleBatch, columns_of_one
from headwater.data.io.tensor_proto import make_ndarray, make_tensor_proto
from headwater.dtypes import DType, int64, string
from headwater.errors import InvalidArgumentError
from headwater.graph.ops.define import fixed, host
from headwater.graph.ops.strings import string_to_number
from headwater.graph.registry import Attrs, HostArray, Inference, Spec
from headwater.graph.resources.host_context import HostContext
from headwater.graph.resources.readers import inflate
from headwater.shapes import Dims, TensorShape, as_shape
from headwater.tables import examples
from headwater.tensorboard_protos import tensor_pb2

_FEATURE_NS: Final = 1_500
"""The time that the protobuf library needs to read one feature."""


def _batch(
    serialized: Sequence[bytes],
    names: Sequence[bytes] | None,
    keys: Sequence[str],
    types: Sequence[DType],
    sparse: Sequence[str] = (),
) -> ExampleBatch:
    """Parses the examples for later requests of the features ``keys``, each with its type. The features in ``sparse``
    will be requested by `ExampleBatch.sparse`."""
    wanted = dict(zip(keys, types, strict=True))
    # A feature may be requested twice, with different types.
    if len(wanted) < len(keys) or not examples.parse.pays(_FEATURE_NS * len(serialized) * len(keys)):
        return ExampleBatch(serialized, names)
    return ExampleBatch(serialized, names, examples.columns_of(serialized, wanted, sparse))


def _varies(shape: TensorShape) -> bool:
    """Returns whether the number of elements of a dense feature may vary, because its first dimension is unknown."""
    return bool(shape.ndims) and shape.as_dims is not None and shape.as_dims[0] is None


def _dense(
    batch: ExampleBatch,
    keys: Sequence[str],
    types: Sequence[DType],
    shapes: Sequence[TensorShape],
    defaults: Sequence[HostArray],
) -> list[np.ndarray[Any, Any]]:
    found: list[np.ndarray[Any, Any]] = []
    for key, dtype, shape, default in zip(keys, types, map(as_shape, shapes), defaults, strict=True):
        dims: Any = shape.as_list()
        if dims and dims[0] is None:
            found.append(batch.padded(key, dtype, dims[1:], default.ravel()[0] if default.size else None))
        else:
            required = not default.size and 0 not in dims
            found.append(batch.fixed(key, dtype, dims, None if required else default))
    return found


def _sparse_specs(types: Sequence[DType], rank: int) -> list[Spec]:
    return [
        *(Spec(int64, (None, rank)) for _ in types),
        *(Spec(dtype, (None,)) for dtype in types),
        *(Spec(int64, (rank,)) for _ in types),
    ]


def _single_specs(inference: Inference) -> Sequence[Spec]:
    attrs = inference.attrs
    dense = [Spec(t, as_shape(s).as_dims) for t, s in zip(attrs["Tdense"], attrs["dense_shapes"], strict=True)]
    return [*_sparse_specs(attrs["sparse_types"], 1), *dense]


@host("ParseSingleExample", infer=_single_specs)
def parse_single_example(
    serialized: HostArray,
    *dense_defaults: Any,
    num_sparse: int,
    sparse_keys: Any,
    dense_keys: Any,
    sparse_types: Sequence[DType],
    Tdense: Any,
    dense_shapes: Any,
) -> Sequence[HostArray]:
    del num_sparse
    one, wanted = serialized.item(), dict(zip((*sparse_keys, *dense_keys), (*sparse_types, *Tdense), strict=True))
    # A feature may be requested twice, with different types.
    columns = columns_of_one(one, wanted) if len(wanted) == len(sparse_keys) + len(dense_keys) else None
    batch = ExampleBatch([one], None, columns)
    sparse = [batch.sparse(key, dtype) for key, dtype in zip(sparse_keys, sparse_types, strict=True)]
    dense = _dense(batch, dense_keys, Tdense, dense_shapes, dense_defaults)
    return (
        *(found.indices[:, 1:] for found in sparse),
        *(found.values for found in sparse),
        *(found.dense_shape[1:] for found in sparse),
        *(column[0] for column in dense),
    )


def parse_examples_alike(serialized: HostArray, *dense_defaults: Any, **attrs: Any) -> tuple[HostArray, ...]:
    """Like `parse_single_example`, for many examples at once: each result has a row for every example. All requested
    features must have fixed shapes (`all_fixed`)."""
    batch = _batch(serialized.tolist(), None, attrs["dense_keys"], attrs["Tdense"])
    return tuple(_dense(batch, attrs["dense_keys"], attrs["Tdense"], attrs["dense_shapes"], dense_defaults))


def all_fixed(attrs: Attrs) -> bool:
    """Returns whether each feature that a `parse_single_example` requests has the same shape in all examples."""
    return not attrs["num_sparse"] and not any(_varies(as_shape(shape)) for shape in attrs["dense_shapes"])


def _batch_specs(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims
    dense = _dense_specs(inference, (None,) if dims is None else dims)
    return [*_sparse_specs(inference.attrs["sparse_types"], 2), *dense]


def _dense_specs(inference: Inference, count: tuple[int | None, ...]) -> list[Spec]:
    """Returns the specs of the dense features of ``count`` examples."""
    pairs = zip(inference.attrs["Tdense"], inference.attrs["dense_shapes"], strict=True)
    return [Spec(t, None if (inner := as_shape(s).as_dims) is None else (*count, *inner)) for t, s in pairs]


@host("ParseExample", infer=_batch_specs)
def parse_example(
    serialized: HostArray,
    names: HostArray,
    *rest: HostArray,
    Nsparse: int,
    Ndense: int,
    sparse_types: Sequence[DType],
    Tdense: Sequence[DType],
    dense_shapes: Sequence[TensorShape],
) -> Sequence[HostArray]:
    keys = [key.item().decode() for key in rest[: Nsparse + Ndense]]
    batch = _batch(serialized.tolist(), names.tolist() or None, keys, (*sparse_types, *Tdense), keys[:Nsparse])
    sparse = [batch.sparse(key, dtype) for key, dtype in zip(keys[:Nsparse], sparse_types, strict=True)]
    dense = _dense(batch, keys[Nsparse:], Tdense, dense_shapes, rest[Nsparse + Ndense :])
    return (
        *(found.indices for found in sparse),
        *(found.values for found in sparse),
        *(found.dense_shape for found in sparse),
        *dense,
    )


def _batch_specs_v2(inference: Inference) -> Sequence[Spec]:
    attrs = inference.attrs
    dims = inference.inputs[0].dims
    if dims is None:
        dense = [Spec(dtype, None) for dtype in attrs["Tdense"]]
        sparse = [
            *((int64,) * len(attrs["sparse_types"])),
            *attrs["sparse_types"],
            *((int64,) * len(attrs["sparse_types"])),
        ]
        known = [*(Spec(dtype, None) for dtype in sparse), *dense]
    else:
        known = [*_sparse_specs(attrs["sparse_types"], 1 + len(dims)), *_dense_specs(inference, dims)]
    return [
        *known,
        *(Spec(dtype, (None,)) for dtype in attrs["ragged_value_types"]),
        *(Spec(dtype, (None,)) for dtype in attrs["ragged_split_types"]),
    ]


@host("ParseExampleV2", infer=_batch_specs_v2)
def parse_example_v2(
    serialized: HostArray,
    names: HostArray,
    sparse_keys: HostArray,
    dense_keys: HostArray,
    ragged_keys: HostArray,
    *dense_defaults: HostArray,
    Tdense: Sequence[DType],
    num_sparse: int,
    sparse_types: Sequence[DType],
    ragged_value_types: Sequence[DType],
    ragged_split_types: Sequence[DType],
    dense_shapes: Sequence[TensorShape],
) -> Sequence[HostArray]:
    """Like `parse_example`, but the keys are vectors, the input may be a single example, and features may be ragged."""
    del num_sparse
    alone = serialized.ndim == 0
    sparse_names, dense_names, ragged_names = (
        [key.decode() for key in keys.tolist()] for keys in (sparse_keys, dense_keys, ragged_keys)
    )
    keys = [*sparse_names, *dense_names, *ragged_names]
    types = (*sparse_types, *Tdense, *ragged_value_types)
    sparse_ones = [*sparse_names, *ragged_names]
    batch = _batch(serialized.reshape(-1).tolist(), names.reshape(-1).tolist() or None, keys, types, sparse_ones)
    sparse = [batch.sparse(key, dtype) for key, dtype in zip(sparse_names, sparse_types, strict=True)]
    dense = _dense(batch, dense_names, Tdense, dense_shapes, dense_defaults)
    ragged = [batch.sparse(key, dtype) for key, dtype in zip(ragged_names, ragged_value_types, strict=True)]
    lengths = [np.bincount(found.indices[:, 0], minlength=serialized.size) for found in ragged]
    first = 1 if alone else 0
    return (
        *(found.indices[:, first:] for found in sparse),
        *(found.values for found in sparse),
        *(found.dense_shape[first:] for found in sparse),
        *(column[0] if alone else column for column in dense),
        *(found.values for found in ragged),
        *(
            np.concatenate([[0], np.cumsum(each)]).astype(dtype.numpy_dtype)
            for each, dtype in zip(lengths, ragged_split_types, strict=True)
        ),
    )


def _merged_specs(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims
    rank = None if dims is None or dims[1] is None else dims[1] + len(inference.inputs) - 3
    return [Spec(int64, (None, rank)), Spec(inference.inputs[1].dtype, (None,))]


@host("SparseFeature", infer=_merged_specs, inputs="indices:int64, values:T, ids:int64*")
def sparse_feature(
    indices: HostArray, values: HostArray, *ids: HostArray, sizes: Sequence[int], already_sorted: bool = False
) -> Sequence[HostArray]:
    """Returns a sparse tensor with ``values``. Its indices are ``indices`` with the last column replaced by ``ids``,
    which other features contain.

    Raises:
      InvalidArgumentError: the numbers of ids and of values differ, or an id is not below its size.
    """
    for places, size in zip(ids, sizes, strict=True):
        if len(places) != len(values):
            raise InvalidArgumentError(f"a sparse feature has {len(places)} indices for {len(values)} values")
        if ((places < 0) | (places >= size)).any():
            raise InvalidArgumentError(f"an index of a sparse feature is not in [0, {size})")
    merged = np.concatenate([indices[:, :-1], *(places[:, None] for places in ids)], axis=1)
    if not already_sorted:
        order = np.lexsort(merged.T[::-1])
        merged, values = merged[order], values[order]
    return merged, values


def _csv_specs(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims
    return [Spec(dtype, dims) for dtype in inference.attrs["OUT_TYPE"]]


@host("DecodeCSV", infer=_csv_specs, inputs="records:string, record_defaults:OUT_TYPE**")
def decode_csv(
    records: HostArray,
    *record_defaults: HostArray,
    OUT_TYPE: Sequence[DType],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Any = (),
) -> Sequence[HostArray]:
    count = len(OUT_TYPE)
    rows: list[list[str]] = []
    for index, record in enumerate(records.ravel()):
        fields = _fields(record, index, field_delim, use_quote_delim)
        if select_cols:
            fields = [field for place, field in enumerate(fields) if place in select_cols]
        if len(fields) != count:
            raise InvalidArgumentError(f"Expect {count} fields but have {len(fields)} in record {index}")
        rows.append(fields)
    outputs: list[HostArray] = []
    for place, (dtype, default) in enumerate(zip(OUT_TYPE, record_defaults, strict=True)):
        outputs.append(_column([row[place] for row in rows], place, dtype, default, na_value).reshape(records.shape))
    return tuple(outputs)


def _fields(record: bytes, index: int, delimiter: str, quoted: bool) -> list[str]:
    """Returns the fields of one line; bytes that are not valid UTF-8 are kept.

    Line breaks before a field are skipped. A field is either unquoted, ends at the next delimiter and has neither
    quotes nor line breaks; or it is enclosed in quotes, and each quote within it is doubled. Without ``quoted``, quotes
    are ordinary characters.
    """
    text = record.decode(errors="surrogateescape")
    if not text:
        return []
    if not ("\n" in text or "\r" in text or (quoted and '"' in text)):
        return text.split(delimiter)
    fields: list[str] = []
    plain, in_quotes = _field_patterns(delimiter, quoted)
    at = 0
    while (at := len(text) - len(text[at:].lstrip("\r\n"))) < len(text):
        is_quoted = quoted and text[at] == '"'
        match = (in_quotes if is_quoted else plain).match(text, at)
        if match is None:
            raise InvalidArgumentError(f"{_misfit(text, at, is_quoted)}: record {index}")
        fields.append(match[1].replace('""', '"') if is_quoted else match[1])
        at = match.end()
    return [*fields, ""] if text.endswith(delimiter) else fields


@functools.lru_cache(maxsize=16)
def _field_patterns(delimiter: str, quoted: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    end = rf"(?:{re.escape(delimiter)}|\Z)"
    banned = re.escape(delimiter) + r"\r\n" + ('"' if quoted else "")
    return re.compile(rf"([^{banned}]*){end}"), re.compile(rf'"((?:[^"]|"")*)"{end}')


def _misfit(text: str, at: int, is_quoted: bool) -> str:
    """Returns the reason why the text at position ``at`` is not a valid field."""
    if not is_quoted:
        return "Unquoted fields cannot have quotes/CRLFs inside"
    if re.compile(r'"(?:[^"]|"")*\Z').match(text, at):
        return "Quoted field has to end with quote followed by delim or end"
    return "Quote inside a string has to be escaped by another quote"


def _column(texts: list[str], place: int, dtype: DType, default: HostArray, na_value: str) -> HostArray:
    absent = [text in ("", na_value) for text in texts]
    if any(absent) and not default.size:
        record = absent.index(True)
        raise InvalidArgumentError(f"Field {place} is required but missing in record {record}!")
    filler = default.ravel()[0] if default.size else None
    if dtype == string:
        values = np.empty(len(texts), object)
        values[:] = [
            filler if gone else text.encode(errors="surrogateescape") for text, gone in zip(texts, absent, strict=True)
        ]
        return values
    return np.array(
        [
            filler if gone else _number(text, place, record, dtype)
            for record, (text, gone) in enumerate(zip(texts, absent, strict=True))
        ],
        dtype.numpy_dtype,
    )


def _number(text: str, place: int, record: int, dtype: DType) -> HostArray:
    try:
        return string_to_number(np.array(text.strip().encode(), object), out_type=dtype)
    except (InvalidArgumentError, ValueError):
        raise InvalidArgumentError(f"Field {place} in record {record} is not a valid {dtype.name}: {text}") from None


def _tensor_spec(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.attrs["out_type"], None)]


@host("ParseTensor", infer=_tensor_spec, inputs="serialized:string")
def parse_tensor(serialized: HostArray, *, out_type: DType) -> HostArray:
    try:
        array = make_ndarray(tensor_pb2.TensorProto.FromString(serialized.item()))
    except (DecodeError, ValueError, TypeError, KeyError) as error:
        raise InvalidArgumentError(f"Could not parse a TensorProto: {error}") from None
    if array.dtype != out_type.numpy_dtype:
        raise InvalidArgumentError(f"Type mismatch between parsed tensor ({array.dtype}) and dtype ({out_type.name})")
    return array


@host("SerializeTensor", infer=fixed(string, ()), inputs="tensor:T")
def serialize_tensor(tensor: HostArray) -> HostArray:
    return make_tensor_proto(tensor).SerializeToString()


def _same(inference: Inference) -> Sequence[Spec]:
    dims: Dims = inference.inputs[0].dims
    return [Spec(string, dims)]


@host("DecodeCompressed", infer=_same, inputs="bytes:string")
def decode_compressed(context: HostContext, bytes: HostArray, *, compression_type: str = "") -> HostArray:
    result = np.empty(bytes.shape, object)
    for index, data in np.ndenumerate(bytes):
        result[index] = inflate(data, compression_type, f"operation '{context.op_name}'")
    return result
