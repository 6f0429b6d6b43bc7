"""Equal numbers found by sorting, which takes no compiled loop: distinct ones, and runs of equal ones."""

from __future__ import annotations

import numpy as np

from headwater.graph.registry import HostArray


def run_starts(ordered: HostArray) -> HostArray:
    """Whether each element of a sorted vector is the first of its run of equals."""
    starts = np.empty(len(ordered), bool)
    starts[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    return starts


def distinct(x: HostArray) -> tuple[HostArray, HostArray, HostArray]:
    """The distinct elements of a vector in the order in which each comes first, for each element the number of its
    equal among them, and for each of them the number of its equals. Each NaN is an element of its own."""
    order = np.argsort(x, kind="stable")
    starts = run_starts(x[order])
    first = order[starts]
    by_place = np.argsort(first)
    number = np.empty(len(first), np.int64)
    number[by_place] = np.arange(len(first))
    places = np.empty(len(x), np.int64)
    places[order] = number[np.cumsum(starts) - 1]
    return x[first[by_place]], places, np.bincount(places, minlength=len(first))
