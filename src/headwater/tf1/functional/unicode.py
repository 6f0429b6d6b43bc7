"""Text as characters of Unicode, as bytes, and as n-grams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from headwater import dtypes
from headwater.graph.convert import name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays
from headwater.tf1.functional.apply import apply, one
from headwater.tf1.functional.ragged_tensor import RaggedTensor, as_ragged_or_tensor, gather_rows

_ERRORS: Final = ("strict", "replace", "ignore")


def _by_text(input: Tensor, of_vector: Callable[[Tensor], Any]) -> Any:
    """Applies a function from a vector of strings to a ragged tensor with one more dimension to any input."""
    input = as_ragged_or_tensor(input, name="input")
    if isinstance(input, RaggedTensor):
        return input.with_flat_values(_by_text(input.flat_values, of_vector))
    rank = input.shape.ndims
    if rank is None:
        raise ValueError("Rank of `input` must be statically known.")
    if rank == 0:
        return of_vector(arrays.reshape(input, [1])).values
    if rank == 1:
        return of_vector(input)
    ragged = RaggedTensor.from_tensor(input, ragged_rank=rank - 1)
    return ragged.with_flat_values(of_vector(ragged.flat_values))


def string_bytes_split(input: Any, name: str | None = None) -> Any:
    """The bytes of each string, in a further dimension."""

    def of_vector(texts: Tensor) -> RaggedTensor:
        values, splits = apply("StringSplitBytes", texts).outputs
        return RaggedTensor.from_row_splits(values, splits, validate=False)

    with name_scope(name, "StringsByteSplit", []):
        return _by_text(input, of_vector)


def _decoded(input: Tensor, what: int, **settings: Any) -> object:
    def of_vector(texts: Tensor) -> RaggedTensor:
        found = apply("UnicodeDecodeWithOffsets", texts, **settings).outputs
        return RaggedTensor.from_row_splits(found[what], found[0], validate=False)

    return _by_text(input, of_vector)


_CHARACTERS, _PLACES = 1, 2


def unicode_decode(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """The characters of each string, as numbers, in a further dimension.

    Args:
      input: strings.
      input_encoding: such as "UTF-8", "UTF-16-BE" and "UTF-32-BE".
      errors: handling of invalid bytes: "replace" (by ``replacement_char``), "ignore" or "strict".
      replacement_char: the character for invalid bytes.
      replace_control_characters: use it for characters below 32, too.
    """
    with name_scope(name, "UnicodeDecode", []):
        return _decoded(
            input,
            _CHARACTERS,
            input_encoding=input_encoding,
            errors=errors,
            replacement_char=replacement_char,
            replace_control_characters=replace_control_characters,
        )


def unicode_decode_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Like `unicode_decode`, but also returns the offset of each character's first byte."""
    settings: dict[str, object] = {
        "input_encoding": input_encoding,
        "errors": errors,
        "replacement_char": replacement_char,
        "replace_control_characters": replace_control_characters,
    }
    with name_scope(name, "UnicodeDecodeWithOffsets", []):
        return _decoded(input, _CHARACTERS, **settings), _decoded(input, _PLACES, **settings)


def unicode_split(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> RaggedTensor | Tensor:
    """The characters of each string, as strings, in a further dimension; see `unicode_decode`."""
    with name_scope(name, "UnicodeSplit", []):
        points = unicode_decode(input, input_encoding, errors, replacement_char)
        return _each_encoded(points, input_encoding, errors, replacement_char)


def unicode_split_with_offsets(
    input: TensorLike,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Like `unicode_split`, but also returns the offset of each character's first byte."""
    with name_scope(name, "UnicodeSplitWithOffsets", []):
        points, places = unicode_decode_with_offsets(input, input_encoding, errors, replacement_char)
        return _each_encoded(points, input_encoding, errors, replacement_char), places


def _each_encoded(points: TensorLike, encoding: str, errors: str, replacement: int) -> RaggedTensor | Tensor:
    flat = points.flat_values if isinstance(points, RaggedTensor) else points
    splits = arrays.range(arrays.shape(flat, out_type=dtypes.int64)[0] + 1)
    texts = one("UnicodeEncode", flat, splits, output_encoding=encoding, errors=errors, replacement_char=replacement)
    return points.with_flat_values(texts) if isinstance(points, RaggedTensor) else texts


def unicode_encode(
    input: TensorLike,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> RaggedTensor | Tensor:
    """Encodes the characters of each row of the innermost dimension as a string. See `unicode_decode`.

    Args:
      input: numbers, a tensor or ragged tensor of rank 1 at least.
      output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
      errors: handling of numbers that are not characters.
      replacement_char: the character for these.

    Raises:
      ValueError: ``input`` is a scalar.
    """
    settings: dict[str, object] = {
        "output_encoding": output_encoding,
        "errors": errors,
        "replacement_char": replacement_char,
    }
    with name_scope(name, "UnicodeEncode", []):
        return _encoded(as_ragged_or_tensor(input, name="input"), settings)


def _encoded(points: Any, settings: dict[str, Any]) -> Any:
    if isinstance(points, RaggedTensor):
        inner = points.values
        if isinstance(inner, RaggedTensor) or (inner.shape.ndims or 0) > 1:
            return points.with_values(_encoded(inner, settings))
        return one("UnicodeEncode", inner, points.row_splits, **settings)
    rank = points.shape.ndims
    if rank is None:
        raise ValueError("Rank of input_tensor must be statically known.")
    if rank == 0:
        raise ValueError("input_tensor's rank must be at least 1.")
    if rank == 1:
        splits = arrays.stack([0, arrays.shape(points, out_type=dtypes.int64)[0]])
        return arrays.reshape(one("UnicodeEncode", points, splits, **settings), [])
    texts = _encoded(RaggedTensor.from_tensor(arrays.reshape(points, [-1, arrays.shape(points)[-1]])), settings)
    return arrays.reshape(texts, arrays.shape(points)[:-1])


def unicode_transcode(
    input: TensorLike,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Tensor:
    """Texts in another encoding; see `unicode_decode`.

    Raises:
      ValueError: ``errors`` is unknown.
    """
    if errors not in _ERRORS:
        raise ValueError(f"Value for attr 'errors' of '{errors}' not in: " + ", ".join(f'"{each}"' for each in _ERRORS))
    encodings = {"input_encoding": input_encoding, "output_encoding": output_encoding, "errors": errors}
    replacing = {"replacement_char": replacement_char, "replace_control_characters": replace_control_characters}
    return one("UnicodeTranscode", input, name=name, **encodings, **replacing)


def _text(value: object) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def ngrams(
    data: Any,
    ngram_width: Any,
    separator: str | bytes = " ",
    pad_values: object = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Any:
    """Returns the n-grams of each row of the innermost dimension.

    Args:
      data: strings, a tensor or ragged tensor.
      ngram_width: number of strings of an n-gram, or a list or tuple of numbers.
      separator: text between two strings.
      pad_values: padding before and after each row: one string for both or two; no padding if None.
      padding_width: length of the padding; one less than ``ngram_width`` if None.
      preserve_short_sequences: make one n-gram of a row that is too short.

    Raises:
      TypeError, ValueError: an argument of the wrong kind.
    """
    widths = list(cast("list[Any]", ngram_width)) if isinstance(ngram_width, list | tuple) else [ngram_width]
    separator = _text(separator)
    if any(not isinstance(width, int) for width in widths):
        raise TypeError(f"ngram_width must be a list or tuple of ints, got {ngram_width!r}")
    if any(width < 1 for width in widths):
        raise ValueError(f"All ngram_widths must be greater than 0. Got {ngram_width}")
    if pad_values is None:
        if padding_width is not None:
            raise ValueError("pad_values must be provided if padding_width is set.")
        pads = ("", "")
        width = 0
    else:
        pads = tuple(cast("list[Any]", pad_values)) if isinstance(pad_values, list | tuple) else (pad_values,) * 2
        pads = tuple(map(_text, pads))
        if len(pads) != 2 or any(not isinstance(pad, str) for pad in pads):
            raise TypeError("pad_values must be a string, tuple of strings, or None.")
        if padding_width is not None and padding_width < 1:
            raise ValueError("padding_width must be greater than 0.")
        width = -1 if padding_width is None else padding_width
    with name_scope(name, "StringNGrams", []):
        data = as_ragged_or_tensor(data, dtypes.string, name="data")
        squeezes = fills = False
        if not isinstance(data, RaggedTensor):
            rank = data.shape.ndims
            if not rank:
                raise ValueError("Data must have rank>0")
            if rank == 1:
                data, squeezes = arrays.expand_dims(data, 0), True
                rank = 2
            fills = True
            data = RaggedTensor.from_tensor(data, ragged_rank=rank - 1)
        splits = data.nested_row_splits
        values, last = apply(
            "StringNGrams",
            data.flat_values,
            splits[-1],
            separator=separator,
            ngram_widths=widths,
            left_pad=pads[0],
            right_pad=pads[1],
            pad_width=width,
            preserve_short_sequences=preserve_short_sequences,
        ).outputs
        found = RaggedTensor.from_nested_row_splits(values, [*splits[:-1], last], validate=False)
        if squeezes:
            return gather_rows(found, [0]).values
        return found.to_tensor("") if fills else found


def unicode_script(input: TensorLike, name: str | None = None) -> Tensor:
    """Returns the script of each character as ICU's number, int32; -1 for invalid characters.

    Args:
      input: code points, int32.
    """
    return one("UnicodeScript", input, name=name)
