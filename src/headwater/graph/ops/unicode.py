"""Host operations that convert text to Unicode characters and back."""

from __future__ import annotations

import codecs
import functools
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from headwater.dtypes import int32, int64, string
from headwater.errors import InvalidArgumentError
from headwater.graph.ops.define import host
from headwater.graph.registry import HostArray, Inference, Spec


def _codec(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise InvalidArgumentError(f"Could not create converter for input encoding: {name}") from None


def _ordered(data: bytes, encoding: str) -> tuple[str, int]:
    """Returns the encoding including its byte order, and the length of the byte order mark.

    Without a mark, UTF-16 and UTF-32 are big-endian.
    """
    if encoding not in ("utf-16", "utf-32"):
        return encoding, 0
    marks = {f"{encoding}-{order}": "\ufeff".encode(f"{encoding}-{order}") for order in ("be", "le")}
    return next(((name, len(mark)) for name, mark in marks.items() if data.startswith(mark)), (f"{encoding}-be", 0))


def characters(data: bytes, encoding: str, errors: str, replacement: int) -> Iterator[tuple[int, int]]:
    """Yields each character with the offset of its first byte.

    Raises:
      InvalidArgumentError: ``errors`` is "strict" and some bytes are not a character.
    """
    encoding, at = _ordered(data, encoding)
    while at < len(data):
        try:
            good, bad = data[at:].decode(encoding), 0
        except UnicodeDecodeError as error:
            good, bad = data[at : at + error.start].decode(encoding), error.end - error.start
        for character in good:
            yield ord(character), at
            at += len(character.encode(encoding))
        if bad and errors == "strict":
            raise InvalidArgumentError("Invalid formatting on input string")
        if bad and errors == "replace":
            yield replacement, at
        at += bad


def encoded(points: Sequence[int], encoding: str, errors: str, replacement: int) -> bytes:
    """Encodes characters, given as code points.

    Raises:
      InvalidArgumentError: ``errors`` is "strict" and a number is not a character.
    """
    text: list[str] = []
    for point in points:
        valid = 0 <= point <= 0x10FFFF and not 0xD800 <= point <= 0xDFFF
        if not valid and errors == "strict":
            raise InvalidArgumentError("Code point is out of range for Unicode, or a noncharacter.")
        if valid or errors == "replace":
            text.append(chr(point if valid else replacement))
    return "".join(text).encode(encoding)


def _without_controls(
    data: bytes, encoding: str, errors: str, replacement: int, replaces: bool
) -> Iterator[tuple[int, int]]:
    """`characters`; if ``replaces``, control characters are ignored if invalid bytes are, and else replaced."""
    for point, place in characters(data, encoding, errors, replacement):
        if not (replaces and point < 0x20):
            yield point, place
        elif errors != "ignore":
            yield replacement, place


def _texts(values: Sequence[bytes]) -> HostArray:
    found = np.empty(len(values), object)
    found[:] = values
    return found


def more(inference: Inference, index: int, further: int) -> tuple[int | None]:
    """Returns the shape of a vector with ``further`` elements more than input ``index``."""
    dims = inference.inputs[index].dims
    return (None if not dims or dims[0] is None else dims[0] + further,)


def _decoded_specs(inference: Inference) -> Sequence[Spec]:
    return [Spec(int64, more(inference, 0, 1)), Spec(int32, (None,)), Spec(int64, (None,))]


@host("UnicodeDecodeWithOffsets", inputs="input:string", infer=_decoded_specs)
def decode_with_offsets(
    input: HostArray,
    *,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
) -> tuple[HostArray, HostArray, HostArray]:
    """Decodes a vector of strings; returns splits, characters, and the offsets of their first bytes."""
    encoding = _codec(input_encoding)
    more_settings = (errors, replacement_char, replace_control_characters)
    rows = [list(_without_controls(bytes(text), encoding, *more_settings)) for text in input]
    points = [point for row in rows for point, _ in row]
    splits = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    places = [place for row in rows for _, place in row]
    return splits, np.array(points, np.int32), np.array(places, np.int64)


def _encoded_specs(inference: Inference) -> Sequence[Spec]:
    return [Spec(string, more(inference, 1, -1))]


@host("UnicodeEncode", inputs="input_values:int32, input_splits:Tsplits|index", infer=_encoded_specs)
def encode(
    input_values: HostArray,
    input_splits: HostArray,
    *,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
) -> HostArray:
    """Encodes each row of characters as a string."""
    encoding = _codec(output_encoding)
    pairs = itertools.pairwise(input_splits)
    return _texts(
        [encoded(input_values[begin:end].tolist(), encoding, errors, replacement_char) for begin, end in pairs]
    )


@host("UnicodeTranscode", inputs="input:string", infer=lambda inference: [inference.inputs[0]])
def transcode(
    input: HostArray,
    *,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
) -> HostArray:
    """Converts strings to another encoding."""
    source, target = _codec(input_encoding), _codec(output_encoding)
    more_settings = (errors, replacement_char, replace_control_characters)
    texts = [bytes(text) for text in input.flat] if errors == "strict" and replace_control_characters else []
    if any(point < 0x20 for text in texts for point, _ in characters(text, source, errors, replacement_char)):
        raise InvalidArgumentError("Invalid formatting on input string")
    found = [
        encoded(
            [point for point, _ in _without_controls(bytes(text), source, *more_settings)],
            target,
            errors,
            replacement_char,
        )
        for text in input.ravel()
    ]
    return _texts(found).reshape(input.shape)


def _bytes_specs(inference: Inference) -> Sequence[Spec]:
    return [Spec(string, (None,)), Spec(int64, more(inference, 0, 1))]


@host("StringSplitBytes", inputs="input:string", infer=_bytes_specs)
def split_bytes(input: HostArray) -> tuple[HostArray, HostArray]:
    """Returns the bytes and the splits of a vector of strings."""
    rows = [bytes(text) for text in input]
    splits = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return _texts([row[at : at + 1] for row in rows for at in range(len(row))]), splits


@functools.cache
def _scripts() -> tuple[HostArray, HostArray]:
    """Returns the first character of each run of characters of one script, and the script's number in ICU."""
    text = (Path(__file__).parent / "unicode_scripts.txt").read_text("ascii").partition("\n")[2]
    runs = [run.partition(".") for run in text.split()]
    begins = np.cumsum([int(gap, 16) for gap, _, _ in runs])
    return begins, np.asarray([int(number) for _, _, number in runs], np.int32)


def _same_shape_of_numbers(inference: Inference) -> Sequence[Spec]:
    return [Spec(int32, inference.inputs[0].dims)]


@host("UnicodeScript", inputs="input:int32", infer=_same_shape_of_numbers)
def unicode_script(input: HostArray) -> HostArray:
    """Returns the script of each character, by ICU's number; -1 for invalid code points."""
    begins, numbers = _scripts()
    found = numbers[np.searchsorted(begins, np.maximum(input, 0), "right") - 1]
    return np.where((input < 0) | (input > 0x10FFFF), np.int32(-1), found).astype(np.int32)
