"""Vectorised host operations: their inputs and outputs have a row for each element of a block."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headwater.graph.ops.parsing import all_fixed, parse_examples_alike
from headwater.graph.registry import HostArray, Kind, OpDef, as_outputs, lookup

RowForm = Callable[[Any, Sequence[Any]], Sequence[Any]]
"""``form(context, inputs)``: returns an operation's outputs for many elements."""

_ELEMENTWISE = frozenset(
    {
        "AsString",
        "DecodeBase64",
        "DecodeCSV",
        "DecodeCompressed",
        "DecodeRaw",
        "EncodeBase64",
        "StringLower",
        "StringStrip",
        "StringToNumber",
        "StringUpper",
    }
)
"""Operations that support additional leading dimensions, if only their first input differs between elements."""
_FUNCTIONS = frozenset(
    {
        "DecodeAndCropJpeg",
        "DecodeBmp",
        "DecodeGif",
        "DecodeImage",
        "DecodeJpeg",
        "DecodePng",
        "EncodeJpeg",
        "EncodePng",
        "ExtractJpegShape",
        "IsJpeg",
        "ParseTensor",
        "ReadFile",
        "ReduceJoin",
        "RegexReplace",
        "SerializeTensor",
        "StaticRegexReplace",
        "StringJoin",
        "StringLength",
        "Substr",
    }
)
"""Operations whose outputs depend only on their inputs."""


def row_form(op_type: str, attrs: Mapping[str, object], varying: tuple[bool, ...]) -> RowForm | None:
    """Returns the vectorised form of an operation; None if the operation has to run once per element.

    Args:
      op_type: the operation's type.
      attrs: its attributes.
      varying: for each input, whether it has a row for each element (else it is the same for all).
    """
    definition = lookup(op_type)
    taken = {key: value for key, value in attrs.items() if key in definition.attrs}
    only_first = varying[:1] == (True,) and not any(varying[1:])
    if op_type == "ParseSingleExample":
        if not (only_first and all_fixed(attrs)):
            return None
        return lambda context, inputs: parse_examples_alike(*inputs, **taken)
    if op_type in _ELEMENTWISE and only_first:
        return lambda context, inputs: as_outputs(definition.lower(context, *inputs, **taken))
    if op_type in _FUNCTIONS or op_type in _ELEMENTWISE:
        return _each(lambda context, inputs: definition.lower(context, *inputs, **taken), varying)
    strings = _string_form(definition)
    if strings is not None:
        return _each(lambda context, inputs: strings(*inputs, **taken), varying)
    return None


def _string_form(definition: OpDef) -> Callable[..., object] | None:
    return definition.string_lower if definition.kind is Kind.PURE else None


def _each(function: Callable[[object, Sequence[object]], object], varying: tuple[bool, ...]) -> RowForm:
    def form(context: object, inputs: Sequence[HostArray]) -> Sequence[HostArray]:
        count = len(next(value for value, varies in zip(inputs, varying, strict=True) if varies))
        rows = [
            as_outputs(
                function(
                    context,
                    [_row(value, i) if varies else value for value, varies in zip(inputs, varying, strict=True)],
                )
            )
            for i in range(count)
        ]
        return [_stacked(column) for column in zip(*rows, strict=True)]

    return form


def _row(value: HostArray, index: int) -> HostArray:
    row = value[index]
    if isinstance(row, np.ndarray):
        return row  # pyright: ignore[reportUnknownVariableType]
    scalar = np.empty((), value.dtype)
    scalar[()] = row
    return scalar


def _stacked(values: Sequence[HostArray]) -> HostArray:
    if isinstance(values[0], bytes):
        column = np.empty(len(values), object)
        column[:] = values
        return column
    return np.stack(values)
