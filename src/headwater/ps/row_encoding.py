"""Encoding of rows of fixed tables between a worker and a ``ps``.

Row numbers take as few bytes as the table's size allows; rows are sent in the requested form
(`headwater.tables.row_formats`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwater.errors import InvalidArgumentError
from headwater.ps.updater import Array

if TYPE_CHECKING:
    from headwater.tables.row_formats import Format


def encode_numbers(numbers: Array, rows: int) -> Array:
    """Encodes row numbers of a table with ``rows`` rows in 1, 2, 4 or 8 bytes each."""
    # A number is sent with each row. For narrow rows, 8 bytes per number would be a large part of the traffic.
    return numbers.astype(np.min_scalar_type(max(0, rows - 1)), copy=False)


def decode_numbers(arrived: Array) -> Array:
    """Decodes the result of `encode_numbers` to int64.

    Raises:
      InvalidArgumentError: the array does not hold row numbers.
    """
    if arrived.ndim != 1 or arrived.dtype.kind not in "iu":
        raise InvalidArgumentError(f"numbers of rows arrived as {arrived.dtype} of shape {list(arrived.shape)}")
    return arrived.astype(np.int64, copy=False)


def encode_rows(rows: Array, form: str) -> Array:
    """Encodes rows [n, dim] of a table for sending; rows that are not float32 are unchanged.

    Raises:
      InvalidArgumentError: there is no such form.
    """
    if form == "float32" or rows.dtype != np.float32 or rows.ndim != 2:
        return rows
    from headwater.tables import row_formats  # noqa: PLC0415  only for programs that ask for a form

    try:
        return row_formats.encode(rows, row_formats.require_format(form, "wire"))
    except ValueError as error:
        raise InvalidArgumentError(str(error)) from error


def decode_rows(arrived: Array, dim: int) -> Array:
    """Decodes the result of `encode_rows` for rows of ``dim`` numbers.

    Raises:
      InvalidArgumentError: the array has none of the forms.
    """
    # The element type identifies the form, so workers with different wire formats can share a table.
    form: Format = "bfloat16" if arrived.dtype == np.uint16 else "int8" if arrived.dtype == np.int8 else "float32"
    if form == "float32":
        return arrived
    from headwater.tables import row_formats  # noqa: PLC0415  as above

    try:
        return row_formats.decode(arrived, dim, form)
    except ValueError as error:
        raise InvalidArgumentError(str(error)) from error
