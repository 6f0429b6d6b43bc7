"""Divides operations on large arrays into pieces, computed in threads.

The temporary arrays of a piece fit into a core's cache. The division depends only on sizes, not on the number of
threads, and each piece writes other elements of the result or has its own sum, so results do not depend on the number
of cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import numpy as np

from headwater.cores import usable_cores

T = TypeVar("T")

#: Bytes of temporary arrays in a piece. A core's second-level cache has one or two megabytes.
PIECE_BYTES: Final = 1 << 18
#: Smaller arrays are not divided.
_LARGE_BYTES: Final = 1 << 20
_MAX_HELPERS: Final = 15
_limit: int | None = None
_pool: ThreadPoolExecutor | None = None


def limit_threads(count: int) -> None:
    """Limits the number of threads that compute pieces, for a process that shares its machine's cores with others."""
    global _limit
    _limit = count


def _threads() -> int:
    given = os.environ.get("NPROC", "")  # XLA's variable for the same purpose
    return int(given) if given.isdecimal() else _limit or usable_cores()


def pieces_of(count: int, nbytes: int, least: int = 1) -> Sequence[slice]:
    """Divides ``count`` rows, each with ``nbytes`` of temporary arrays, into slices of equal size, at least ``least``,
    except for the last."""
    size = max(least, PIECE_BYTES // max(nbytes, 1))
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def divided(count: int, pieces: int) -> Sequence[slice]:
    """Divides ``count`` rows into this number of slices, whose sizes differ by one at most."""
    return [slice(index * count // pieces, (index + 1) * count // pieces) for index in range(pieces)]


def compute_pieces(compute: Callable[[T], object], pieces: Sequence[T]) -> None:
    """Calls ``compute`` for each piece, in several threads if there are several pieces and cores."""
    helpers = min(len(pieces), _threads(), _MAX_HELPERS + 1) - 1
    if helpers < 1:
        for piece in pieces:
            compute(piece)
        return
    global _pool
    pool = _pool
    if pool is None:
        pool = _pool = ThreadPoolExecutor(_MAX_HELPERS, "pieces")
    rest = iter(pieces)
    started = [pool.submit(_compute_rest, compute, rest) for _ in range(helpers)]
    try:
        _compute_rest(compute, rest)
    finally:
        # A helper that has not started, because all cores are busy, is not waited for: no piece is left.
        for helper in started:
            if not helper.cancel():
                helper.result()


def by_rows(compute: Callable[..., Any], *arrays: Any) -> Any:
    """Returns ``compute(*arrays)``, computed in pieces if the arrays are large.

    Args:
      compute: a function of arrays that broadcast. It returns an array or a tuple of arrays, and computes each row of
        the first dimension independently.
      arrays: its arguments.
    """
    largest = arrays[0]
    for array in arrays[1:]:
        if array.nbytes > largest.nbytes:
            largest = array
    if largest.nbytes < _LARGE_BYTES:
        return compute(*arrays)
    count, rank = len(largest), largest.ndim
    sizes = {len(array) for array in arrays if array.ndim == rank}
    if count < 2 or not sizes <= {1, count} or any(array.ndim > rank for array in arrays):
        return compute(*arrays)

    def compute_rows(rows: slice) -> Any:
        return compute(*[array[rows] if array.ndim == rank and len(array) == count else array for array in arrays])

    first, *rest = pieces_of(count, largest.nbytes // count)
    found = compute_rows(first)
    results = [np.empty((count, *value.shape[1:]), value.dtype) for value in _as_tuple(found)]

    def fill(rows: slice, found: object = None) -> None:
        for result, value in zip(results, _as_tuple(compute_rows(rows) if found is None else found), strict=True):
            result[rows] = value

    fill(first, found)
    compute_pieces(fill, rest)
    return tuple(results) if isinstance(found, tuple) else results[0]


def _as_tuple(value: object) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _compute_rest(compute: Callable[[T], object], rest: Iterator[T]) -> None:
    # NumPy's settings for errors belong to a thread.
    with np.errstate(all="ignore"):
        for piece in rest:
            compute(piece)


def _forget_threads() -> None:
    """Drops the threads, which do not exist in a forked process."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
