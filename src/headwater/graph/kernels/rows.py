"""Reading, writing and adding up rows of an array by index. An index outside of the array updates nothing.

Rows are added one after the other in the given order, as in `headwater.tables.xla_calls`, so that both results are bit
for bit equal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from headwater.graph.kernels.finding import in_order, run_starts
from headwater.graph.registry import HostArray
from headwater.tables import row_loops
from headwater.tables.compiled import Compiled

_PAIRS: Final = {np.dtype(np.float32): np.dtype(np.complex64), np.dtype(np.float64): np.dtype(np.complex128)}
"""Maps real types to complex types: viewed as one complex number, two real numbers are added at once."""
_CHOSEN_NS: Final = 30_000
"""The fixed time of the NumPy calls that check row numbers, select rows and add them."""
_ADDED_NS: Final = 10
"""The additional time of these calls for each number of a row."""


def outside(indices: HostArray, size: int) -> HostArray | None:
    """Returns which of the ``indices`` are not in [0, size); None if all are."""
    if not indices.size:
        return None
    if indices.size == 1 and 0 <= indices.item() < size:
        return None
    if indices.dtype.kind == "i" and indices.flags.c_contiguous:
        # Viewed as an unsigned number, a negative index is greater than any size, so one comparison finds both.
        if np.maximum.reduce(indices.view(f"u{indices.dtype.itemsize}"), axis=None) < size:
            return None
    elif indices.min() >= 0 and indices.max() < size:
        return None
    return (indices < 0) | (indices >= size)


def take(array: HostArray, indices: HostArray, axis: int = 0) -> HostArray:
    """Returns the slices of ``array`` at ``indices`` along ``axis``; zeros for an index out of range."""
    size = array.shape[axis]
    if not size:
        return np.zeros((*array.shape[:axis], *indices.shape, *array.shape[axis + 1 :]), array.dtype)
    found = array.take(indices, axis, mode="clip")
    bad = outside(indices, size)
    if bad is not None:
        found[(slice(None),) * axis + (bad,)] = 0
    return found


def take_nearest(array: HostArray, indices: HostArray) -> HostArray:
    """Returns ``array[indices]`` along the first dimension; the nearest row for an index out of range."""
    return array.take(indices, 0, mode="clip")


def inside(indices: HostArray, rows: HostArray, size: int) -> tuple[HostArray, HostArray]:
    """Returns the flat ``indices`` in [0, size), and their rows."""
    bad = outside(indices, size)
    if bad is None:
        return indices, rows
    good = ~bad
    return indices[good], rows[good]


def add_rows(array: HostArray, indices: HostArray, rows: HostArray) -> None:
    """``array[indices] += rows``, one after the other, in place.

    Args:
      array: contiguous.
      indices: ``[n]``.
      rows: ``[n, …]``.
    """
    indices, rows = inside(indices, rows, array.shape[0])
    combine_rows(np.add, array, indices, rows)


def combine_rows(combine: Any, array: HostArray, indices: HostArray, rows: HostArray) -> None:
    """``array[indices] = combine(array[indices], rows)``, one after the other, in place. All indices are in range."""
    if not indices.size or not array.size:
        return
    if indices.size == 1:  # the usual case in loops, which update one row per iteration
        row = array[indices.item()]
        array[indices.item()] = combine(row, rows.reshape(row.shape))
        return
    if not array.flags.c_contiguous:
        combine.at(array, indices, rows)
        return
    width = math.prod(array.shape[1:])
    flat, given = array.reshape(-1), np.ascontiguousarray(rows, array.dtype).reshape(-1)
    places = indices.astype(np.int64, copy=False)
    if combine is np.add and array.dtype == np.float32 and row_loops.add_rows.pays(_ADDED_NS * given.size):
        row_loops.add_rows(flat, row_loops.flat(places, np.int64), row_loops.flat(given, np.float32), width)
        return
    if combine is np.add and not width % 2 and array.dtype in _PAIRS:
        flat, given, width = flat.view(_PAIRS[array.dtype]), given.view(_PAIRS[array.dtype]), width // 2
    # A call of `at` with one dimension is several times faster than with rows.
    if width > 1:
        places = (places[:, np.newaxis] * width + np.arange(width)).reshape(-1)
    combine.at(flat, places, given)


def sum_chosen_rows(
    data: HostArray, chosen: HostArray, segments: HostArray, count: int | None, power: float
) -> HostArray | None:
    """Adds up rows by segment in a compiled loop, as `headwater.tables.row_loops.sum_segments` does.

    Returns:
      The sums, ``[segments, …]``; None if a compiled loop would not save time, or if indices are out of range or
      segment ids are not in ascending order.
    """
    shape, width = data.shape[1:], math.prod(data.shape[1:])
    if not _pays(row_loops.sum_segments, data, chosen, segments, width) or (count is not None and count < 0):
        return None
    numbers = row_loops.flat(chosen, np.int64), row_loops.flat(segments, np.int64)
    most = -1 if count is None else count
    good, sums = row_loops.sum_segments(
        row_loops.flat(data, np.float32), len(data), width, *numbers, most, float(power)
    )
    return sums.reshape(-1, *shape) if good else None


def share_chosen_rows(
    grad: HostArray, chosen: HostArray, segments: HostArray, rows: int, power: float
) -> HostArray | None:
    """Returns the gradient of the data of `sum_chosen_rows`, ``[rows, …]``; None under the same conditions."""
    shape, width = grad.shape[1:], math.prod(grad.shape[1:])
    if not _pays(row_loops.share_segments, grad, chosen, segments, width):
        return None
    numbers = row_loops.flat(chosen, np.int64), row_loops.flat(segments, np.int64)
    flat = row_loops.flat(grad, np.float32)
    good, found = row_loops.share_segments(flat, len(grad), width, *numbers, rows, float(power))
    return found.reshape(rows, *shape) if good else None


def _pays(loop: Compiled, data: HostArray, chosen: HostArray, segments: HostArray, width: int) -> bool:
    return (
        data.dtype == np.float32
        and width > 0
        and chosen.shape == segments.shape
        and chosen.ndim == 1
        and loop.pays(_CHOSEN_NS + _ADDED_NS * width * chosen.size)
    )


def turns(indices: HostArray) -> Sequence[HostArray | slice]:
    """Divides the positions of a vector of indices into groups, each with distinct indices: the n-th group has the
    position of the n-th occurrence of each index."""
    if (indices[1:] > indices[:-1]).all():
        return (slice(None),)
    order, ordered = in_order(indices)
    starts = run_starts(ordered)
    if starts.all():
        return (slice(None),)
    places = np.arange(len(indices))
    earlier = places - np.maximum.accumulate(np.where(starts, places, 0))
    by_turn = np.argsort(earlier, kind="stable")
    return np.split(order[by_turn], np.cumsum(np.bincount(earlier))[:-1])


def sum_equal_rows(values: HostArray, indices: HostArray) -> tuple[HostArray, HostArray]:
    """Adds up rows with the same index; the sums are first; the remaining rows are zeros, with the largest integer as
    index."""
    if indices.size < 2:
        return values, indices
    order, ordered = in_order(indices)
    begins = run_starts(ordered)
    count = np.count_nonzero(begins)
    if count == len(indices):
        return values, indices
    segment = np.empty(len(ordered), np.int64)
    segment[order] = np.cumsum(begins) - 1
    sums = np.zeros(values.shape, values.dtype)
    combine_rows(np.add, sums, segment, values)
    distinct = np.full(indices.shape, np.iinfo(indices.dtype).max, indices.dtype)
    distinct[:count] = ordered[begins]
    return sums, distinct


def flat_places(indices: HostArray, shape: tuple[int, ...]) -> tuple[HostArray, HostArray | None]:
    """Converts vectors of ``indices`` along the last dimension to places in a flattened array of ``shape``.

    Returns:
      The places, ``indices.shape[:-1]``, and which of them are out of range, or None if none is.
    """
    sizes = shape[: indices.shape[-1]]
    if len(sizes) == 1:
        places = indices[..., 0].astype(np.int64, copy=False)
        return places, outside(places, sizes[0])
    bad = None
    places = np.zeros(indices.shape[:-1], np.int64)
    for axis, size in enumerate(sizes):
        part = indices[..., axis]
        wrong = outside(part, size)
        if wrong is not None:
            bad = wrong if bad is None else bad | wrong
        places = places * size + part
    return places, bad


def rows_of(array: HostArray, depth: int) -> HostArray:
    """Returns ``array`` with its first ``depth`` dimensions flattened to one."""
    return array.reshape((math.prod(array.shape[:depth]), *array.shape[depth:]))
