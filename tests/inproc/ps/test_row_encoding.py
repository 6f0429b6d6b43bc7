"""Encodings of rows of fixed tables in transit: their sizes, and the rejection of malformed rows."""

from __future__ import annotations

import numpy as np
import pytest

from headwater.errors import InvalidArgumentError
from headwater.ps.row_encoding import decode_numbers, decode_rows, encode_numbers, encode_rows


@pytest.mark.parametrize(("rows", "nbytes"), [(0, 1), (256, 1), (257, 2), (1 << 16, 2), (1 << 17, 4), (1 << 33, 8)])
def test_numbers_of_rows_take_as_few_bytes_as_the_table_needs(rows: int, nbytes: int) -> None:
    numbers = np.array([0, rows - 1] if rows else [], np.int64)
    small = encode_numbers(numbers, rows)
    assert small.dtype.itemsize == nbytes
    np.testing.assert_array_equal(decode_numbers(small), numbers)


def test_rows_of_another_type_travel_as_they_are() -> None:
    rows = np.ones((3, 4), np.float16)
    assert encode_rows(rows, "int8") is rows
    assert decode_rows(rows, 4) is rows


@pytest.mark.parametrize("form", ["bfloat16", "int8"])
def test_rows_survive_transfer_with_a_bounded_error(form: str) -> None:
    rows = np.random.default_rng(1).normal(size=(50, 16)).astype(np.float32)
    travelling = encode_rows(rows, form)
    assert travelling.nbytes < rows.nbytes * 0.51
    bound = np.abs(rows) * 2**-8 if form == "bfloat16" else np.abs(rows).max(axis=1, keepdims=True) / 253
    assert (np.abs(decode_rows(travelling, 16) - rows) <= bound).all()


def test_malformed_rows_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="numbers of rows arrived as float32"):
        decode_numbers(np.zeros(3, np.float32))
    with pytest.raises(InvalidArgumentError, match="rows of 16 numbers as int8 arrived as int8 of shape"):
        decode_rows(np.zeros((3, 7), np.int8), 16)
    with pytest.raises(InvalidArgumentError, match="wire is 'int4'"):
        encode_rows(np.zeros((3, 7), np.float32), "int4")
