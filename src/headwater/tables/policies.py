"""Policies for the admission of keys, the eviction of rows, and the rows kept in memory. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from headwater.tables.compiled import U64, compiled
from headwater.tables.hashing import mix

Numbers = NDArray[np.int64]

ALWAYS: Final = 0
SIGHTINGS: Final = 1
CHANCE: Final = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Admission:
    """Policy for the admission of keys to a table.

    Before a key is admitted, lookups return its initial row, and its gradients are dropped.

    Attributes:
      sightings: the number of lookups for training after which a key is admitted.
      probability: the probability of admission at each sighting; the decision depends on seed, key and step only.
      candidates: maximum number of counted keys without a row. Beyond this number, all counts are halved, and counts of
        one are dropped.
    """

    sightings: int = 1
    probability: float = 1.0
    candidates: int = 1 << 20

    def __post_init__(self) -> None:
        if self.sightings < 1:
            raise ValueError(f"admission: sightings must be at least 1, not {self.sightings}")
        if not 0.0 < self.probability <= 1.0:
            raise ValueError(f"admission: probability must be above 0 and at most 1, not {self.probability}")
        if self.sightings > 1 and self.probability < 1.0:
            raise ValueError("admission: either sightings or a probability, not both")
        if self.candidates < 1024:
            raise ValueError(f"admission: candidates must be at least 1024, not {self.candidates}")

    @property
    def kind(self) -> int:
        """The number of the policy in compiled functions."""
        return SIGHTINGS if self.sightings > 1 else CHANCE if self.probability < 1.0 else ALWAYS


@compiled
def admitted_by_chance(seed: int, key: int, step: int, probability: float) -> bool:
    """Returns whether ``key`` is admitted at this sighting."""
    word = mix(np.int64(mix(np.int64(mix(key) ^ U64(seed))) ^ U64(step)))
    return bool(np.float64(word >> U64(11)) * (1.0 / 9007199254740992.0) < probability)


@compiled
def should_promote(used_before: int, least_used: int) -> bool:
    """Returns whether a row in the file, which is used now, replaces a row in memory.

    The row in the file replaces the other row if its *previous* use is more recent than the last use of the row in
    memory. The present use does not count; otherwise a scan, which uses each row once, would replace all rows in
    memory.

    Args:
      used_before: the step of the previous use of the row in the file.
      least_used: the step of the last use of the row in memory.
    """
    return used_before > least_used


class Eviction(Protocol):
    """A policy that selects rows to evict."""

    def expired(self, counts: Numbers, steps: Numbers, now: int) -> NDArray[np.bool_]:
        """Returns for each row whether it is evicted regardless of space.

        Args:
          counts: the number of lookups of each row.
          steps: the step of the last lookup of each row.
          now: the current step.
        """
        ...

    def victims(self, counts: Numbers, steps: Numbers, count: int) -> Numbers:
        """Returns the first ``count`` rows to evict for lack of space, in order."""
        ...


def _least(first: Numbers, second: Numbers, bits: int, count: int) -> Numbers:
    """Returns the ``count`` rows with the least (``first``, ``second``), ascending; ``second`` is below ``2**bits``."""
    keys = (first << bits) | second
    if count < len(keys):
        some = np.sort(np.argpartition(keys, count - 1)[:count])
        return some[np.argsort(keys[some], kind="stable")]
    return np.argsort(keys, kind="stable")[:count]


@dataclass(frozen=True, slots=True)
class LeastRecent:
    """Evicts the least recently used rows first."""

    def expired(self, counts: Numbers, steps: Numbers, now: int) -> NDArray[np.bool_]:
        return np.zeros(len(counts), np.bool_)

    def victims(self, counts: Numbers, steps: Numbers, count: int) -> Numbers:
        return _least(steps, counts, 30, count)


@dataclass(frozen=True, slots=True)
class LeastFrequent:
    """Evicts the least frequently used rows first; of equally used ones the least recently used."""

    def expired(self, counts: Numbers, steps: Numbers, now: int) -> NDArray[np.bool_]:
        return np.zeros(len(counts), np.bool_)

    def victims(self, counts: Numbers, steps: Numbers, count: int) -> Numbers:
        return _least(counts, steps, 32, count)


@dataclass(frozen=True, slots=True)
class Age:
    """Evicts rows unused for more than ``steps`` steps; for lack of space, the least recently used rows first."""

    steps: int

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"eviction by age: steps must be at least 1, not {self.steps}")

    def expired(self, counts: Numbers, steps: Numbers, now: int) -> NDArray[np.bool_]:
        return now - steps > self.steps

    def victims(self, counts: Numbers, steps: Numbers, count: int) -> Numbers:
        return _least(steps, counts, 30, count)
