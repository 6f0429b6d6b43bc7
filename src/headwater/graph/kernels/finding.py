"""Finds equal numbers by sorting, without compiled loops: distinct elements, and runs of equal elements."""

from __future__ import annotations

from typing import Final

import numpy as np

from headwater.graph.registry import HostArray

_BITS: Final = 63


def in_order(x: HostArray) -> tuple[HostArray, HostArray]:
    """Returns the stable sort order of a vector, and the sorted elements."""
    places = max(len(x) - 1, 1).bit_length()
    if x.dtype.kind in "iu" and len(x) and x.min() >= 0 and int(x.max()) < 1 << (_BITS - places):
        # Sort integers that combine an element with its index, which is much faster than `argsort`.
        packed = x.astype(np.int64) << places
        packed |= np.arange(len(x))
        packed.sort()
        return packed & ((1 << places) - 1), (packed >> places).astype(x.dtype, copy=False)
    order = np.argsort(x, kind="stable")
    return order, x[order]


def run_starts(ordered: HostArray) -> HostArray:
    """Returns, for each element of a sorted vector, whether it is the first of a run of equal elements."""
    starts = np.empty(len(ordered), bool)
    starts[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    return starts


def distinct(x: HostArray) -> tuple[HostArray, HostArray, HostArray]:
    """Returns the distinct elements of a vector in the order of first occurrence, the index of each element among them,
    and their counts. Each NaN is distinct."""
    order, ordered = in_order(x)
    starts = run_starts(ordered)
    first = order[starts]
    is_first = np.zeros(len(x), bool)
    is_first[first] = True
    number = (np.cumsum(is_first) - 1)[first]
    places = np.empty(len(x), np.int64)
    places[order] = number[np.cumsum(starts) - 1]
    return x[is_first], places, np.bincount(places, minlength=len(first))
