"""Feeds are copied to where XLA computes on them in place, and the memory of the copies serves again."""

from __future__ import annotations

from typing import Any

import numpy as np

from headwater.graph.runtime.aligned import ALIGNMENT, FROM_BYTES, AlignedCopies

ELEMENTS = FROM_BYTES // 4


def placed(offset_bytes: int, count: int = ELEMENTS) -> Any:
    """An array that starts so many bytes after a multiple of `ALIGNMENT`."""
    memory = np.zeros(4 * count + 2 * ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT + offset_bytes
    array = memory[start : start + 4 * count].view(np.float32)
    array[:] = np.arange(count)
    return array


def test_a_large_array_that_starts_elsewhere_is_copied() -> None:
    given = placed(16)
    arrays = [given]
    AlignedCopies([0]).replace(arrays)
    assert arrays[0] is not given
    assert arrays[0].ctypes.data % ALIGNMENT == 0
    np.testing.assert_array_equal(arrays[0], given)


def test_a_part_of_the_columns_is_copied() -> None:
    given = placed(0, 2 * ELEMENTS).reshape(-1, 256)[:, 1:]
    arrays = [given]
    AlignedCopies([0]).replace(arrays)
    assert arrays[0].ctypes.data % ALIGNMENT == 0
    np.testing.assert_array_equal(arrays[0], given)


def test_arrays_used_in_place_by_xla_are_kept() -> None:
    texts = np.full(ELEMENTS, b"text", object)
    arrays = [placed(0), placed(16, ELEMENTS - 1), texts, placed(16)]
    before = list(arrays)
    assert AlignedCopies([0, 1, 2]).replace(arrays) == []
    assert all(now is then for now, then in zip(arrays, before, strict=True))


def test_memory_serves_again_when_nothing_refers_to_it() -> None:
    copies = AlignedCopies([0])
    arrays = [placed(16)]
    first = copies.replace(arrays)
    address = first[0].ctypes.data
    copies.recycle(first)
    del arrays[:], first[:]
    assert copies.replace([placed(16)])[0].ctypes.data == address


def test_memory_with_an_array_over_it_is_not_used() -> None:
    copies = AlignedCopies([0])
    arrays = [placed(16)]
    first = copies.replace(arrays)
    copies.recycle(first)
    kept = arrays[0]
    again = [placed(32)]
    assert copies.replace(again)[0] is not first[0]
    again[0][:] = 0
    assert kept[1] == 1
