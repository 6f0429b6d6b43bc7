"""Text: joining, splitting, replacing, and conversion to numbers and back."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from headwater import dtypes
from headwater.dtypes import DTypeLike, as_dtype
from headwater.graph.convert import constant, convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays
from headwater.tf1.functional.apply import apply, of_input, one
from headwater.tf1.functional.reductions import either
from headwater.tf1.functional.sparse import SparseTensor

string_strip: Callable[..., Tensor] = of_input("StringStrip", "Without blanks at both ends.")
decode_base64: Callable[..., Tensor] = of_input("DecodeBase64", "Decodes web-safe Base64 text.")


def encode_base64(input: TensorLike, pad: bool = False, name: str | None = None) -> Tensor:
    """Encodes as Base64 for the web (with ``-`` and ``_``), padded with ``=`` on request."""
    return one("EncodeBase64", input, pad=pad, name=name)


def as_string(
    input: TensorLike,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Tensor:
    """Formats numbers as text.

    Args:
      precision: number of decimals; -1 for the default of six.
      scientific: use an exponent.
      shortest: use the shorter of both forms.
      width: minimum number of characters.
      fill: padding: a blank, ``0``, ``+`` or ``-`` (which aligns to the left).
    """
    form = {"precision": precision, "scientific": scientific, "shortest": shortest, "width": width, "fill": fill}
    return one("AsString", input, name=name, **form)


def string_to_number(
    string_tensor: object = None,
    out_type: DTypeLike = dtypes.float32,
    name: str | None = None,
    input: TensorLike | None = None,
) -> Tensor:
    """Parses each string as a number."""
    text = either(string_tensor, input, "string_tensor", "input")
    return one("StringToNumber", text, out_type=as_dtype(out_type), name=name)


def string_lower(input: TensorLike, encoding: str = "", name: str | None = None) -> Tensor:
    """Converts to lower case: ASCII letters only, or with ``encoding="utf-8"`` all."""
    return one("StringLower", input, encoding=encoding, name=name)


def string_upper(input: TensorLike, encoding: str = "", name: str | None = None) -> Tensor:
    """Converts to upper case: ASCII letters only, or with ``encoding="utf-8"`` all."""
    return one("StringUpper", input, encoding=encoding, name=name)


def string_length(input: TensorLike, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """Returns the number of bytes, or with ``unit="UTF8_CHAR"`` characters, of each string."""
    return one("StringLength", input, unit=unit, name=name)


def substr(input: TensorLike, pos: TensorLike, len: TensorLike, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """``len`` bytes (or characters, see `string_length`) of each string, from ``pos`` on."""
    return one("Substr", input, pos, len, unit=unit, name=name)


def regex_replace(
    input: TensorLike, pattern: TensorLike, rewrite: TensorLike, replace_global: bool = True, name: str | None = None
) -> Tensor:
    """Matches of a regular expression replaced, all or the first; ``\\1`` in ``rewrite`` is the first group."""
    if isinstance(pattern, str | bytes) and isinstance(rewrite, str | bytes):
        return one(
            "StaticRegexReplace", input, pattern=pattern, rewrite=rewrite, replace_global=replace_global, name=name
        )
    return one("RegexReplace", input, pattern, rewrite, replace_global=replace_global, name=name)


def regex_full_match(input: TensorLike, pattern: TensorLike, name: str | None = None) -> Tensor:
    """Returns whether the whole of each string matches a regular expression."""
    if isinstance(pattern, str | bytes):
        return one("StaticRegexFullMatch", input, pattern=pattern, name=name)
    return one("RegexFullMatch", input, pattern, name=name)


def string_join(inputs: Sequence[TensorLike], separator: str = "", name: str | None = None) -> Tensor:
    """Joins the strings of several tensors elementwise; scalars are broadcast."""
    return one("StringJoin", list(inputs), separator=separator, name=name)


def reduce_join(
    inputs: TensorLike,
    axis: TensorLike | None = None,
    keep_dims: bool | None = None,
    separator: str = "",
    name: str | None = None,
    reduction_indices: TensorLike | None = None,
    keepdims: bool | None = None,
) -> Tensor:
    """The strings along dimensions joined: first along the first of ``axis``, the results along the next, and so on.

    Args:
      axis: the dimensions; all, from the last to the first, if None.
    """
    axis = either(axis, reduction_indices, "axis", "reduction_indices")
    keep = bool(either(keepdims, keep_dims, "keepdims", "keep_dims"))
    with name_scope(name, "ReduceJoin", [inputs]):
        inputs = convert_to_tensor(inputs)
        if axis is None:
            dims = inputs.dims
            axis = (
                arrays.range(arrays.rank(inputs) - 1, -1, -1)
                if dims is None
                else constant(list(range(len(dims)))[::-1], dtypes.int32)
            )
        return one("ReduceJoin", inputs, axis, keep_dims=keep, separator=separator)


def string_split(
    source: TensorLike,
    sep: str | None = None,
    skip_empty: bool = True,
    delimiter: str | None = None,
    name: str | None = None,
) -> SparseTensor:
    """A vector of strings split at any of the characters of ``sep`` (blanks if None; everywhere when empty).

    Returns:
      A sparse matrix with the parts of each string in its row.
    """
    with name_scope(name, "StringSplit", [source]):
        marks = either(sep, delimiter, "sep", "delimiter")
        between = convert_to_tensor(" " if marks is None else marks, dtypes.string)
        source = convert_to_tensor(source, dtypes.string)
        return SparseTensor(*apply("StringSplit", source, between, skip_empty=skip_empty).outputs)


def string_split_v2(
    source: TensorLike, sep: str | None = None, maxsplit: int = -1, name: str | None = None
) -> SparseTensor:
    """A vector of strings split as Python's ``str.split`` does. See `string_split`."""
    with name_scope(name, "StringSplit", [source]):
        text = convert_to_tensor(source, dtypes.string, name="input")
        if text.dims == ():
            text = arrays.expand_dims(text, 0)
        between = convert_to_tensor("" if sep is None else sep, dtypes.string)
        return SparseTensor(*apply("StringSplitV2", text, between, maxsplit=maxsplit).outputs)


def decode_raw(
    input_bytes: TensorLike | None = None,
    out_type: Any = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: TensorLike | None = None,
) -> Tensor:
    """The bytes of each string as numbers of ``out_type``, along a further dimension."""
    text = either(input_bytes, bytes, "input_bytes", "bytes")
    return one("DecodeRaw", text, out_type=as_dtype(out_type), little_endian=little_endian, name=name)


def format(
    template: str, inputs: TensorLike, placeholder: str = "{}", summarize: int = 3, name: str | None = None
) -> Tensor:
    """Returns ``template`` with each placeholder replaced by a tensor; of a large dimension, only both ends are shown.

    Raises:
      ValueError: there are more or fewer placeholders than inputs.
    """
    items: list[TensorLike] = list(inputs) if isinstance(inputs, list | tuple) else [inputs]  # pyright: ignore[reportUnknownArgumentType]
    if template.count(placeholder) != builtins.len(items):
        raise ValueError(
            f"{template.count(placeholder)} placeholder(s) in template does not match {builtins.len(items)} tensor(s)"
        )
    return one("StringFormat", items, template=template, placeholder=placeholder, summarize=summarize, name=name)


def unsorted_segment_join(
    inputs: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, separator: str = "", name: str | None = None
) -> Tensor:
    """Joins the strings of each segment.

    Args:
      inputs: text with the dimensions of ``segment_ids`` first.
      segment_ids: for each string, or slice of strings, its segment.
      num_segments: number of segments.
      separator: text between two strings.
    """
    return one("UnsortedSegmentJoin", inputs, segment_ids, num_segments, separator=separator, name=name)


def my_fact() -> Tensor:
    """A fact about factorials."""
    return one("Fact")


def fingerprint(data: TensorLike, method: str = "farmhash64", name: str | None = None) -> Tensor:
    """Returns a fingerprint of eight bytes for each element of the first dimension, the same on all platforms.

    Args:
      data: a tensor of any type, with at least one dimension.
      method: ``farmhash64``, the only supported method.

    Raises:
      ValueError: ``data`` is a scalar.
    """
    return one("Fingerprint", data, method, name=name)
