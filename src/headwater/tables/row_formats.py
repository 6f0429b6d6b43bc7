"""Compressed formats of rows between workers and ``ps``. Tables themselves keep full precision.

``bfloat16``
    The upper half of each number, rounded to nearest, ties to even: a relative error of at most 2^-8.
``int8``
    q = round(127 x / m) in 8 bits, where m is the row's greatest magnitude, followed by m: an error of at most m / 254.
    A row with a number that is not finite is decoded as NaN.
"""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from headwater.tables.compiled import Matrix, Reals, compiled

Format = Literal["float32", "bfloat16", "int8"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)

_SCALE_BYTES: Final = 4


def require_format(name: object, what: str) -> Format:
    """Returns ``name`` if it is a format.

    Raises:
      ValueError: ``name`` is not a format; ``what`` names the argument in the message.
    """
    for known in FORMATS:
        if name == known:
            return known
    raise ValueError(f"{what} is {name!r}, not one of {', '.join(FORMATS)}")


def row_bytes(dim: int, form: Format) -> int:
    """Returns the size of an encoded row, in bytes."""
    return {"float32": 4 * dim, "bfloat16": 2 * dim, "int8": dim + _SCALE_BYTES}[form]


def encode(rows: Reals, form: Format) -> NDArray[Any]:
    """Encodes rows [n, dim]: as numbers, as their upper halves [n, dim], or as bytes [n, dim + 4]."""
    if form == "float32":
        return rows
    rows = np.ascontiguousarray(rows)
    return _halves(rows.view(np.uint32)) if form == "bfloat16" else _bytes(rows)


def decode(arrived: NDArray[Any], dim: int, form: Format) -> Reals:
    """Decodes the output of `encode` to rows [n, dim].

    Raises:
      ValueError: the data are malformed.
    """
    dtype, width = {"float32": (np.float32, dim), "bfloat16": (np.uint16, dim), "int8": (np.int8, dim + _SCALE_BYTES)}[
        form
    ]
    if arrived.dtype != dtype or arrived.ndim != 2 or arrived.shape[1] != width:
        raise ValueError(f"rows of {dim} numbers as {form} arrived as {arrived.dtype} of shape {arrived.shape}")
    if form == "float32":
        return arrived
    if form == "bfloat16":
        return (arrived.astype(np.uint32) << np.uint32(16)).view(np.float32)
    scales = np.ascontiguousarray(arrived[:, dim:]).view(np.float32)
    return arrived[:, :dim] * scales


@compiled
def _halves(bits: Matrix[np.uint32]) -> Matrix[np.uint16]:
    out = np.empty(bits.shape, np.uint16)
    for i in range(bits.shape[0]):
        for j in range(bits.shape[1]):
            word = np.int64(bits[i, j])
            if (word & 0x7FFFFFFF) > 0x7F800000:  # rounding could turn a NaN into a number
                out[i, j] = (word >> 16) | 0x40
            else:
                out[i, j] = (word + 0x7FFF + ((word >> 16) & 1)) >> 16
    return out


@compiled
def _bytes(rows: Matrix[np.float32]) -> Matrix[np.int8]:
    n, dim = rows.shape
    out = np.empty((n, dim + 4), np.int8)
    scale = np.empty(1, np.float32)
    parts = scale.view(np.int8)
    for i in range(n):
        most = np.float32(0.0)
        bad = False
        for j in range(dim):
            most = max(most, abs(rows[i, j]))
            bad = bad or not np.isfinite(rows[i, j])
        factor = np.float64(127.0) / most if most > 0 and not bad else 0.0
        for j in range(dim):
            out[i, j] = np.int8(np.rint(rows[i, j] * factor)) if factor > 0 else 0
        scale[0] = np.float32(np.nan) if bad else most / np.float32(127.0)
        for j in range(4):
            out[i, dim + j] = parts[j]
    return out
