"""Which keys get a row, which rows go, and which stay in memory. Functions of their arguments and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from headwater.tables.compiled import inlined
from headwater.tables.hashing import U64, mix

Numbers = NDArray[np.int64]

ALWAYS: Final = 0
SIGHTINGS: Final = 1
CHANCE: Final = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Admission:
    """Which keys get a row of their own. Until then a key's initial row is read, and its gradients are dropped.

    Attributes:
      sightings: with how many lookups (those that are for training) a key gets its row.
      probability: the chance of a row at each sighting; it depends on seed, key and step only.
      candidates: how many keys without a row are counted at most. Beyond it, all counts are halved, and those of one
        sighting forgotten.
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
        """The number by which compiled functions know it."""
        return SIGHTINGS if self.sightings > 1 else CHANCE if self.probability < 1.0 else ALWAYS


@inlined
def admitted_by_chance(seed: int, key: int, step: int, probability: float) -> Any:
    """Whether ``key`` gets a row at this sighting."""
    word = mix(np.int64(mix(np.int64(mix(key) ^ U64(seed))) ^ U64(step)))
    return np.float64(word >> U64(11)) * (1.0 / 9007199254740992.0) < probability


@inlined
def promoted(used_before: int, least_used: int) -> bool:
    """Whether a row in a file takes the place of a row in memory, now that it is used once more.

    It does if even its use before this one is more recent than the other row's last: a row that is used only once, as
    in a scan of all rows, drives nothing out.

    Args:
      used_before: step of its use before this one.
      least_used: step of the last use of the row in memory.
    """
    return used_before > least_used


class Eviction(Protocol):
    """Says which rows go."""

    def expired(self, counts: Numbers, steps: Numbers, now: int) -> NDArray[np.bool_]:
        """By row, whether it goes whatever space there is.

        Args:
          counts: how often each was looked up.
          steps: at which step last.
          now: the present step.
        """
        ...

    def victims(self, counts: Numbers, steps: Numbers, count: int) -> Numbers:
        """Which ``count`` rows go first, when there is no space, in the order in which they go."""
        ...


def _least(first: Numbers, second: Numbers, bits: int, count: int) -> Numbers:
    """Rows with the least of ``first``, of equal ones of ``second`` below ``2**bits``, ascending."""
    keys = (first << bits) | second
    if count < len(keys):
        some = np.sort(np.argpartition(keys, count - 1)[:count])
        return some[np.argsort(keys[some], kind="stable")]
    return np.argsort(keys, kind="stable")[:count]


@dataclass(frozen=True, slots=True)
class LeastRecent:
    """What was not used for longest goes first."""

    def expired(self, counts: Numbers, steps: Numbers, now: int) -> NDArray[np.bool_]:
        return np.zeros(len(counts), np.bool_)

    def victims(self, counts: Numbers, steps: Numbers, count: int) -> Numbers:
        return _least(steps, counts, 30, count)


@dataclass(frozen=True, slots=True)
class LeastFrequent:
    """What was used least often goes first; of these, what was not used for longest."""

    def expired(self, counts: Numbers, steps: Numbers, now: int) -> NDArray[np.bool_]:
        return np.zeros(len(counts), np.bool_)

    def victims(self, counts: Numbers, steps: Numbers, count: int) -> Numbers:
        return _least(counts, steps, 32, count)


@dataclass(frozen=True, slots=True)
class Age:
    """What was not used for more than ``steps`` steps goes; without space, what was not used for longest goes first."""

    steps: int

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"eviction by age: steps must be at least 1, not {self.steps}")

    def expired(self, counts: Numbers, steps: Numbers, now: int) -> NDArray[np.bool_]:
        return now - steps > self.steps

    def victims(self, counts: Numbers, steps: Numbers, count: int) -> Numbers:
        return _least(steps, counts, 30, count)
