"""Known places of shards. Pure.

Each shard has a *place*: the ``ps`` of its primary, and the *term* of the view that names it. If two places of a shard
are known, the place with the later term is current. So tasks may exchange their knowledge in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headwater.errors import InvalidArgumentError


class ShardPlace(NamedTuple):
    """The place of a shard.

    Attributes:
      term: the term of the view that names its primary.
      task: the ``ps`` of its primary.
    """

    term: int
    task: str


@dataclass(kw_only=True, slots=True)
class Places:
    """A task's knowledge of places.

    Attributes:
      shards: place of each shard, by its number.
      addresses: the addresses of all known ``ps``, by name.
    """

    shards: dict[int, ShardPlace] = field(default_factory=dict[int, ShardPlace])
    addresses: dict[str, str] = field(default_factory=dict[str, str])

    def merge(self, other: Places) -> list[int]:
        """Adopts the knowledge of another task; returns the shards whose known place has changed."""
        moved = [
            shard
            for shard, place in other.shards.items()
            if (known := self.shards.get(shard)) is None or known.term < place.term
        ]
        self.shards |= {shard: other.shards[shard] for shard in moved}
        # Keep known addresses, as the other task's may be older.
        self.addresses = {**other.addresses, **self.addresses}
        for shard in moved:  # a ps that has returned may have another address
            task = other.shards[shard].task
            if task in other.addresses:
                self.addresses[task] = other.addresses[task]
        return moved

    def words(self) -> Any:
        """Returns the knowledge in a form that `Places.of` reads."""
        shards = [(shard, place.term, place.task) for shard, place in sorted(self.shards.items())]
        return shards, sorted(self.addresses.items())

    @staticmethod
    def of(words: Any) -> Places:
        """Parses the result of `words`.

        Raises:
          InvalidArgumentError: ``words`` is malformed.
        """
        try:
            shards, addresses = words
            return Places(
                shards={int(shard): ShardPlace(int(term), str(task)) for shard, term, task in shards},
                addresses={str(task): str(address) for task, address in addresses},
            )
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"malformed shard locations: {error}") from error


def excess(loads: Mapping[str, float]) -> float:
    """Returns the excess of the largest load over the mean, as a fraction of the mean; 0 without any load.

    Args:
      loads: the load of each ``ps``, in any unit; at least one.
    """
    mean = sum(loads.values()) / len(loads)
    return max(loads.values()) / mean - 1 if mean else 0.0


class Move(NamedTuple):
    """The move of a replica of a shard to another ``ps``."""

    shard: int
    source: str
    target: str
