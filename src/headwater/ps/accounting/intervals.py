"""Sets of whole numbers, stored as ranges: memory grows with the number of gaps, not with the number of elements."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

Span = tuple[int, int]
"""The numbers from the first up to, but excluding, the second."""


class Intervals:
    """A set of whole numbers.

    Args:
      spans: initial contents.
    """

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []
        for start, stop in spans:
            self.add(start, stop)

    def add(self, start: int, stop: int) -> None:
        """Adds the numbers from ``start`` up to, but excluding, ``stop``; ``stop`` must be greater than ``start``."""
        first = bisect_left(self._stops, start)
        behind = bisect_right(self._starts, stop)
        if first < behind:  # merge the ranges that the new range touches
            start, stop = min(start, self._starts[first]), max(stop, self._stops[behind - 1])
        self._starts[first:behind] = [start]
        self._stops[first:behind] = [stop]

    def __iter__(self) -> Iterator[Span]:
        return iter(zip(self._starts, self._stops, strict=True))

    def __len__(self) -> int:
        """Number of elements."""
        return sum(self._stops) - sum(self._starts)

    @property
    def end(self) -> int:
        """One more than the greatest number; 0 for an empty set."""
        return self._stops[-1] if self._stops else 0

    def gaps(self, start: int, stop: int) -> list[Span]:
        """Returns the numbers of a range that are not in the set."""
        gaps: list[Span] = []
        at = bisect_right(self._stops, start)
        while start < stop and at < len(self._starts):
            if start < self._starts[at]:
                gaps.append((start, min(stop, self._starts[at])))
            start = max(start, self._stops[at])
            at += 1
        if start < stop:
            gaps.append((start, stop))
        return gaps

    def next_absent(self, number: int) -> int:
        """Returns the first number from ``number`` on that is not in the set."""
        at = bisect_right(self._starts, number) - 1
        return max(number, self._stops[at]) if at >= 0 else number
