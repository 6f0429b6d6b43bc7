"""Operations on text, in Python: joining, splitting, conversion, and formatting and parsing of numbers."""

from __future__ import annotations

import base64
import functools
import itertools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from headwater.dtypes import DType, float32, int32, int64, string
from headwater.errors import InvalidArgumentError, OutOfRangeError
from headwater.graph.ops.common import as_ints, constant_ints, output
from headwater.graph.ops.define import fixed, host
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.graph.resources.host_context import HostContext
from headwater.shapes import Dims, broadcast_dims, merge_dims

_WEB_SAFE = re.compile(rb"[A-Za-z0-9_-]*").fullmatch

# Element by element -----------------------------------------------------------------------------------------------


def _same_shape(dtype: DType) -> Callable[[Inference], Sequence[Spec]]:
    return lambda inference: [Spec(dtype, inference.inputs[0].dims)]


def _require_unit(inference: Inference) -> None:
    unit = inference.attrs.get("unit", "BYTE")
    if unit not in ("BYTE", "UTF8_CHAR"):
        raise ValueError(f'Attr \'unit\' passed string {unit!r} not in: "BYTE", "UTF8_CHAR".')


def each(function: Callable[[Any], object], values: HostArray, dtype: DType = string) -> HostArray:
    """Applies ``function`` to every element."""
    flat = np.empty(values.size, dtype.numpy_dtype)
    for index, value in enumerate(values.ravel()):
        flat[index] = function(value)
    return flat.reshape(values.shape)


def _number_format(kind: str, precision: int, width: int, fill: str, scientific: bool, shortest: bool) -> str:
    """A format for Python's ``%`` operator."""
    if fill not in ("", " ", "0", "-", "+"):
        raise ValueError(f"Fill argument not supported: {fill!r}")
    letter = "d" if kind in "iu" else "g" if shortest else "e" if scientific else "f"
    room = str(width) if width >= 0 else ""
    digits = f".{precision}" if precision >= 0 and letter != "d" else ""
    return f"%{fill}{room}{digits}{letter}"


@host("AsString", inputs="input:T|numeric_or_bool", infer=_same_shape(string))
def as_string(
    input: HostArray,
    *,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
) -> HostArray:
    """Numbers as text, formatted as C's ``printf`` does."""
    kind = input.dtype.kind
    if kind == "b":
        return each(lambda value: b"true" if value else b"false", input)
    if kind in "iu" and (scientific or shortest):
        raise ValueError(f"scientific and shortest format not supported for datatype {input.dtype}")
    if kind in "iu" and precision >= 0:
        raise ValueError(f"precision not supported for datatype {input.dtype}")
    if scientific and shortest:
        raise ValueError("Cannot select both scientific and shortest notation")
    layout = _number_format(kind, precision, width, fill, scientific, shortest).encode()
    plain = layout if fill != "0" else layout.replace(b"0", b"", 1)  # infinity and NaN are not padded with zeros

    def shown(value: Any) -> bytes:
        return (layout if math.isfinite(value) else plain) % value

    values: list[Any] = input.ravel().tolist()
    texts = np.empty(len(values), object)
    if kind == "c":
        texts[:] = [b"(%b,%b)" % (shown(value.real), shown(value.imag)) for value in values]
    else:
        texts[:] = [layout % value for value in values] if kind in "iu" else [shown(value) for value in values]
    return texts.reshape(input.shape)


def _parsed(text: bytes, dtype: np.dtype[Any]) -> object:
    """Parses ``text`` as a number. Floats may also be ``0x`` with hexadecimal digits, or ``inf`` or ``nan`` in any
    case."""
    try:
        if b"_" in text:
            raise ValueError
        if dtype.kind == "f":
            word = text.strip().lower()
            if word.endswith(b"y"):  # ``infinity``, which TensorFlow does not accept
                raise ValueError
            return float(int(word, 16)) if b"x" in word else float(word)
        value = int(text)
        if b"+" in text or not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            raise ValueError
    except ValueError:
        shown = text.decode(errors="replace")
        raise ValueError(f"StringToNumberOp could not correctly convert string: {shown}") from None
    return value


def _wanted_type(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.attrs.get("out_type", float32), inference.inputs[0].dims)]


@host("StringToNumber", inputs="string_tensor:string", infer=_wanted_type)
def string_to_number(string_tensor: HostArray, *, out_type: DType = float32) -> HostArray:
    """Parses each string as a number."""
    dtype = out_type.numpy_dtype
    with np.errstate(over="ignore"):  # a number that is too large is infinite
        numbers = _parsed_at_once(string_tensor.ravel().tolist(), dtype)
        if numbers is not None:
            return numbers.reshape(string_tensor.shape)
        return each(lambda text: _parsed(text, dtype), string_tensor, out_type)


#: Characters of strings for which `float` or `int` may differ from `_parsed`.
_UNUSUAL_FLOAT: Final = re.compile(rb"[_xXyY]")
_UNUSUAL_INT: Final = re.compile(rb"[_+]")


def _parsed_at_once(texts: list[bytes], dtype: np.dtype[Any]) -> HostArray | None:
    """Parses ``texts`` as numbers; returns None if one of them has to be parsed by `_parsed`."""
    unusual, parse = (_UNUSUAL_FLOAT, float) if dtype.kind == "f" else (_UNUSUAL_INT, int)
    if unusual.search(b" ".join(texts)):
        return None
    try:
        return np.array([*map(parse, texts)], dtype)
    except (ValueError, OverflowError):
        return None


def _unary(op_type: str, function: Callable[[bytes], object], dtype: DType = string) -> None:
    def lower(context: HostContext, input: HostArray) -> HostArray:
        del context
        return each(function, input, dtype)

    host(op_type, inputs="input:string", infer=_same_shape(dtype))(lower)


def _cased(op_type: str, of_bytes: Callable[[bytes], bytes], of_text: Callable[[str], str]) -> None:
    def lower(context: HostContext, input: HostArray, *, encoding: str = "") -> HostArray:
        del context
        change = (lambda item: of_text(item.decode()).encode()) if encoding == "utf-8" else of_bytes
        return each(change, input)

    host(op_type, inputs="input:string", infer=_same_shape(string))(lower)


_cased("StringLower", bytes.lower, str.lower)
_cased("StringUpper", bytes.upper, str.upper)
_unary("StringStrip", bytes.strip)


def _length_spec(inference: Inference) -> Sequence[Spec]:
    _require_unit(inference)
    return [Spec(int32, inference.inputs[0].dims)]


@host("StringLength", inputs="input:string", infer=_length_spec)
def string_length(input: HostArray, *, unit: str = "BYTE") -> HostArray:
    """The number of bytes, or of characters in UTF-8."""
    return each(len if unit == "BYTE" else lambda item: len(item.decode(errors="replace")), input, int32)


@host("EncodeBase64", inputs="input:string", infer=_same_shape(string))
def encode_base64(input: HostArray, *, pad: bool = False) -> HostArray:
    """Encodes in the URL-safe Base64 alphabet, which has ``-`` and ``_``."""
    return each(
        lambda item: base64.urlsafe_b64encode(item) if pad else base64.urlsafe_b64encode(item).rstrip(b"="), input
    )


def _decode_base64(item: bytes) -> bytes:
    body = item
    if item and len(item) % 4 == 0:
        body = item[:-2] if item.endswith(b"==") else item.removesuffix(b"=")
    if not _WEB_SAFE(body):
        raise ValueError("Invalid character found in base64.")
    if len(body) % 4 == 1:
        raise ValueError("Base64 string length cannot be 1 modulo 4.")
    return base64.urlsafe_b64decode(body + b"=" * (-len(body) % 4))


_unary("DecodeBase64", _decode_base64)


def as_bytes(value: Any) -> bytes:
    """Converts an attribute or element that is text to bytes."""
    return value.encode() if isinstance(value, str) else bytes(value)


def _part(text: bytes, start: int, length: int) -> bytes:
    """Returns a substring of ``text`` in bytes; everything after ``start`` for a negative length."""
    first = start + len(text) if start < 0 else start
    if not 0 <= first <= len(text):
        raise ValueError(f"pos {start} out of range for string b'{text.decode(errors='replace')}'")
    return text[first:] if length < 0 else text[first : first + length]


def _part_of_text(text: bytes, start: int, length: int) -> bytes:
    """Returns a substring of ``text`` in characters; empty for a negative length."""
    letters = text.decode(errors="surrogateescape")
    first = start + len(letters) if start < 0 else start
    if not 0 <= first <= len(letters):
        raise ValueError(f"pos {start} out of range for string {letters!r}")
    return letters[first : first + max(length, 0)].encode(errors="surrogateescape")


def _substr_spec(inference: Inference) -> Sequence[Spec]:
    _require_unit(inference)
    text, position, length = (spec.dims for spec in inference.inputs)
    return [Spec(string, broadcast_dims(text, merge_dims(position, length)))]


@host("Substr", inputs="input:string, pos:T|index, len:T", infer=_substr_spec)
def substr(input: HostArray, pos: HostArray, len: HostArray, *, unit: str = "BYTE") -> HostArray:
    """Returns ``len`` bytes, or UTF-8 characters, from ``pos`` on; ``pos`` and ``len`` broadcast with ``input``."""
    texts, starts, lengths = np.broadcast_arrays(input, pos, len)
    take = _part if unit == "BYTE" else _part_of_text
    flat = np.empty(texts.size, object)
    for index, (text, start, length) in enumerate(zip(texts.flat, starts.flat, lengths.flat, strict=True)):
        try:
            flat[index] = take(text, int(start), int(length))
        except ValueError as error:
            raise ValueError(f"{error} at index {index}") from None
    return flat.reshape(texts.shape)


# Joining and splitting
# -------------------------------------------------------------------------------------------------


def _joined_spec(inference: Inference) -> Sequence[Spec]:
    dims: Dims = ()
    for spec in inference.inputs:
        if spec.dims != ():
            dims = spec.dims if dims == () else merge_dims(dims, spec.dims)
    return [Spec(string, dims)]


@host("StringJoin", inputs="inputs:string*", infer=_joined_spec)
def string_join(*inputs: HostArray, separator: str = "") -> HostArray:
    """Joins the strings at each place; a single string is broadcast."""
    between = as_bytes(separator)
    shapes = {text.shape for text in inputs if text.ndim}
    if len(shapes) > 1:
        raise ValueError(f"StringJoin: input shapes do not match: {sorted(shapes)}")
    parts = np.broadcast_arrays(*inputs)
    flat = np.empty(parts[0].size, object)
    for index, texts in enumerate(zip(*(part.flat for part in parts), strict=True)):
        flat[index] = between.join(texts)
    return flat.reshape(parts[0].shape)


def _reduced_spec(inference: Inference) -> Sequence[Spec]:
    dims, axes = inference.inputs[0].dims, constant_ints(inference, 1)
    if dims is None or axes is None:
        return output(inference, None)
    for axis in axes:
        if not -len(dims) <= axis < len(dims):
            raise ValueError(f"Invalid reduction dimension {axis} for input with {len(dims)} dimensions.")
    gone = {axis % max(len(dims), 1) for axis in axes}
    if inference.attrs.get("keep_dims"):
        return output(inference, tuple(1 if i in gone else d for i, d in enumerate(dims)))
    return output(inference, tuple(d for i, d in enumerate(dims) if i not in gone))


@host("ReduceJoin", inputs="inputs:string, reduction_indices:int32", infer=_reduced_spec)
def reduce_join(
    inputs: HostArray, reduction_indices: HostArray, *, keep_dims: bool = False, separator: str = ""
) -> HostArray:
    """Joins the strings along dimensions: first along the first given dimension, then the results along the next."""
    between = as_bytes(separator)
    axes = [axis % max(inputs.ndim, 1) for axis in as_ints(reduction_indices)]
    for axis in as_ints(reduction_indices):
        if not -inputs.ndim <= axis < inputs.ndim:
            said = f"Invalid reduction dimension {axis} for input with {inputs.ndim} dimension(s)"
            raise OutOfRangeError(said)
    rest = [axis for axis in range(inputs.ndim) if axis not in axes]
    joined = math.prod(inputs.shape[axis] for axis in axes)
    moved: HostArray = np.transpose(inputs, [*rest, *axes[::-1]]).reshape(
        [inputs.shape[axis] for axis in rest] + [joined]
    )
    shape = [1 if axis in axes else size for axis, size in enumerate(inputs.shape)] if keep_dims else moved.shape[:-1]
    flat = np.empty(int(np.prod(moved.shape[:-1])), object)
    for index, texts in enumerate(moved.reshape(flat.size, joined) if axes else inputs.reshape(-1, 1)):
        flat[index] = between.join(texts)
    return flat.reshape(shape if axes else inputs.shape)


def _segments_spec(inference: Inference) -> Sequence[Spec]:
    dims, ids, count = inference.inputs[0].dims, inference.inputs[1].dims, constant_ints(inference, 2)
    if dims is None or ids is None:
        return output(inference, None)
    if len(ids) > len(dims) or any(None not in pair and pair[0] != pair[1] for pair in zip(dims, ids, strict=False)):
        raise ValueError(f"segment_ids of shape {ids} must have the first dimensions of inputs, {dims}")
    return output(inference, (None if count is None else count[0], *dims[len(ids) :]))


@host(
    "UnsortedSegmentJoin",
    inputs="inputs:string, segment_ids:Tindices|index, num_segments:Tnumsegments|index=int32",
    infer=_segments_spec,
)
def unsorted_segment_join(
    inputs: HostArray, segment_ids: HostArray, num_segments: HostArray, *, separator: str = ""
) -> HostArray:
    """Joins the strings of each segment; an empty segment yields an empty string."""
    between, count = as_bytes(separator), int(num_segments)
    ids = segment_ids.ravel()
    if ((ids < 0) | (ids >= count)).any():
        raise ValueError(f"segment_ids must be in [0, {count}), not from {ids.min()} to {ids.max()}")
    rest = inputs.shape[segment_ids.ndim :]
    rows = inputs.reshape(len(ids), int(np.prod(rest)))
    found = np.empty((count, rows.shape[1]), object)
    for segment, column in np.ndindex(*found.shape):
        found[segment, column] = between.join(rows[ids == segment, column])
    return found.reshape(count, *rest)


def _sparse_specs(inference: Inference) -> Sequence[Spec]:
    del inference
    return [Spec(int64, (None, 2)), Spec(string, (None,)), Spec(int64, (2,))]


@functools.lru_cache(maxsize=64)
def _grid(rows: int, columns: int) -> HostArray:
    """Returns the indices of all elements of a matrix, row by row; read-only."""
    indices = np.indices((rows, columns)).reshape(2, -1).T.astype(np.int64, order="C")
    indices.flags.writeable = False
    return indices


def _sparse_of(parts: list[bytes], lengths: list[int]) -> tuple[HostArray, HostArray, HostArray]:
    """Returns the indices, values and shape of a sparse matrix of strings, given row by row, with rows of these
    lengths."""
    rows, widest = len(lengths), max(lengths, default=0)
    if len(parts) == rows * widest:
        indices = _grid(rows, widest)
    else:
        starts = np.cumsum([0, *lengths[:-1]])
        indices = np.empty((len(parts), 2), np.int64)
        indices[:, 0] = np.repeat(np.arange(rows), lengths)
        indices[:, 1] = np.arange(len(parts)) - np.repeat(starts, lengths)
    values = np.empty(len(parts), object)
    values[:] = parts
    return indices, values, np.array([rows, widest], np.int64)


def _sparse(rows: list[list[bytes]]) -> tuple[HostArray, HostArray, HostArray]:
    """Converts lists of strings to the indices, values and shape of a sparse matrix."""
    return _sparse_of([*itertools.chain.from_iterable(rows)], [*map(len, rows)])


def _split_at(text: bytes, delimiters: bytes, skip_empty: bool) -> list[bytes]:
    if delimiters:
        parts = re.split(b"[" + re.escape(delimiters) + b"]", text)
    else:
        parts = [text[i : i + 1] for i in range(len(text))]
    if skip_empty:
        return [*filter(None, parts)]
    return parts if text else []


@host("StringSplit", inputs="input:string, delimiter:string", infer=_sparse_specs)
def string_split(input: HostArray, delimiter: HostArray, *, skip_empty: bool = True) -> Sequence[HostArray]:
    """Splits strings at each of the delimiter's characters; with an empty delimiter, into single characters."""
    if delimiter.ndim:
        raise InvalidArgumentError(f"delimiter must be scalar, got shape: {delimiter.shape}")
    delimiters, texts = delimiter.item(), input.tolist()
    if len(delimiters) == 1:
        parts = delimiters.join(texts).split(delimiters)
        if b"" not in parts:
            return _sparse_of(parts, [text.count(delimiters) + 1 for text in texts])
        if skip_empty:
            return _sparse([[*filter(None, text.split(delimiters))] for text in texts])
    return _sparse([_split_at(text, delimiters, skip_empty) for text in texts])


@host("StringSplitV2", inputs="input:string, sep:string", infer=_sparse_specs)
def string_split_v2(input: HostArray, sep: HostArray, *, maxsplit: int = -1) -> Sequence[HostArray]:
    """Splits strings at a separator as Python's ``split`` does."""
    if sep.ndim:
        raise InvalidArgumentError(f"sep must be scalar, got shape: {sep.shape}")
    separator = sep[()] or None
    return _sparse([text.split(separator, maxsplit) for text in input])


# Bytes as numbers -------------------------------------------------------------------------------------------------


def _raw_spec(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims
    return [Spec(inference.attrs["out_type"], None if dims is None else (*dims, None))]


@host("DecodeRaw", inputs="bytes:string", infer=_raw_spec)
def decode_raw(bytes: HostArray, *, out_type: DType, little_endian: bool = True) -> HostArray:
    """Reinterprets the bytes of each string as numbers, along an additional dimension."""
    dtype = out_type.numpy_dtype
    texts = bytes.ravel().tolist()
    size = len(texts[0]) if texts else 0
    for index, text in enumerate(texts):
        if len(text) != size:
            raise ValueError(
                "DecodeRaw requires input strings to all be the same size, but element "
                f"{index} has size {size} != {len(text)}"
            )
    if size % dtype.itemsize:
        raise ValueError(
            f"Input to DecodeRaw has length {size} that is not a multiple of {dtype.itemsize}, the size of "
            f"{out_type.name}"
        )
    order = dtype.newbyteorder("<" if little_endian else ">")
    return np.frombuffer(b"".join(texts), order).astype(dtype).reshape(*bytes.shape, size // dtype.itemsize)


@host("Fact", inputs="", infer=fixed(string, ()))
def fact() -> HostArray:
    """A fact about factorials."""
    return np.array(b"0! == 1", object)
