"""Eviction from a full table: ranks many of a shard's least used rows at once, and removes a few at a time.

Rows are removed from the shards with the most rows, so that all shards stay about equally large. A shard keeps the
memory of its largest size. If rows were removed from the shards in turn, the sizes of shards would differ, and more
memory would be unused.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from headwater.tables import fields as f
from headwater.tables.compiled import Words
from headwater.tables.policies import Eviction
from headwater.tables.shards import Shards

#: One of this many rows of a shard is ranked at once.
_RANKED_PART: Final = 16
#: One of this many rows of a shard is removed at once.
_REMOVED_PART: Final = 256
#: Least number of rows that are removed at once, because a removal has a fixed cost.
_LEAST_REMOVED: Final = 64
#: Size of a ranked row, in bytes: its number (32 bits) and its use (64 bits).
_BYTES: Final = 12


class RowEvictor:
    """Makes room in a table by evicting rows. Only the thread that has locked a shard uses the shard's ranking.

    Args:
      shards: the shards of the table.
      eviction: the policy that ranks rows.
    """

    def __init__(self, shards: Shards, eviction: Eviction) -> None:
        self._shards = shards
        self._eviction = eviction
        #: For each shard the ranked rows, and the use of each at the time of the ranking. The next row to be removed is
        #: the last element.
        self._ranked: list[tuple[np.ndarray[tuple[int], np.dtype[np.uint32]], Words]] = []
        self.clear()

    def clear(self) -> None:
        """Discards all rankings."""
        nothing = np.empty(0, np.uint32), np.empty(0, np.int64)
        self._ranked = [nothing for _ in range(len(self._shards))]

    @property
    def nbytes(self) -> int:
        """Size of the rankings, in bytes."""
        return _BYTES * sum(len(rows) for rows, _ in self._ranked)

    def make_space(self, wanted: int, now: int) -> None:
        """Removes rows: at least one, if there are any, but only a small fraction of them.

        Args:
          wanted: the number of rows to be made.
          now: the current step.
        """
        live = self._shards.directory[:-1, f.LIVE]
        total = int(live.sum())
        wanted = min(wanted, max(1, total // _RANKED_PART), max(total // _REMOVED_PART, _LEAST_REMOVED))
        for s in np.argsort(-live).tolist():
            with self._shards.locked(s):
                wanted -= self._remove_some(s, wanted, now)
            if wanted <= 0:
                return

    def _remove_some(self, s: int, wanted: int, now: int) -> int:
        """Removes at most ``wanted`` rows of a locked shard, or all expired ones; returns the number."""
        live = int(self._shards.directory[s, f.LIVE])
        count = max(1, min(wanted, live // _RANKED_PART, max(live // _REMOVED_PART, _LEAST_REMOVED)))
        gone = self._least_used(s, count)
        if not len(gone):
            rows, counts, steps = self._shards.uses(self._shards.directory[s])
            gone = rows[self._eviction.expired(counts, steps, now)]
            if not len(gone):
                order = self._eviction.victims(counts, steps, max(1, live // _RANKED_PART))[::-1]
                self._ranked[s] = rows[order].astype(np.uint32), _use(counts[order], steps[order])
                gone = self._least_used(s, count)
        self._shards.remove(s, gone)
        return len(gone)

    def _least_used(self, s: int, count: int) -> Words:
        """Returns the first rows of a shard's ranking that were not used since the ranking was made."""
        rows, uses = self._ranked[s]
        chosen: list[Words] = []
        while count and len(rows):
            # If a row was used or freed after the ranking, its use word has changed and its rank is outdated: skip it.
            next_rows, next_uses = rows[-count:].astype(np.int64), uses[-count:]
            rows, uses = rows[:-count], uses[:-count]
            as_before = next_rows[_use(*self._shards.uses_of(s, next_rows)) == next_uses]
            chosen.append(as_before[::-1])
            count -= len(as_before)
        self._ranked[s] = rows, uses
        return np.concatenate(chosen) if chosen else np.empty(0, np.int64)


def _use(counts: Words, steps: Words) -> Words:
    """Packs the numbers of uses and the steps of the last ones in words."""
    return (steps << f.STEP_SHIFT) | counts
