"""Which ``ps`` has which shard, as far as a task knows, and which shards are to move. Pure.

Each shard has a *place*: a ``ps``, and a *term* that grows with every move. Only the ``ps`` that has a shard gives it
away, so of two places of one shard that with the later term is right, and tasks tell each other what they know in any
order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from headwater.errors import InvalidArgumentError

#: A move that makes the busiest ps less busy by no more than this part is none; sums are only so exact.
SLACK: Final = 1e-9


class Place(NamedTuple):
    """Where a shard is.

    Attributes:
      term: how often it has moved; 0 at the beginning.
      task: the ``ps`` that has it.
    """

    term: int
    task: str


@dataclass(kw_only=True, slots=True)
class Places:
    """What a task knows.

    Attributes:
      shards: by number where each is.
      addresses: of every ``ps`` that was heard of, by name.
    """

    shards: dict[int, Place] = field(default_factory=dict[int, Place])
    addresses: dict[str, str] = field(default_factory=dict[str, str])

    def learn(self, other: Places) -> list[int]:
        """Takes what another task knows; the shards that are elsewhere than was known."""
        moved = [
            shard
            for shard, place in other.shards.items()
            if (known := self.shards.get(shard)) is None or known.term < place.term
        ]
        self.shards |= {shard: other.shards[shard] for shard in moved}
        self.addresses = {**other.addresses, **self.addresses}
        for shard in moved:  # a ps that comes again may be elsewhere
            task = other.shards[shard].task
            if task in other.addresses:
                self.addresses[task] = other.addresses[task]
        return moved

    def words(self) -> Any:
        """What another task takes with `Places.of`."""
        shards = [(shard, place.term, place.task) for shard, place in sorted(self.shards.items())]
        return shards, sorted(self.addresses.items())

    @staticmethod
    def of(words: Any) -> Places:
        """What `words` gave.

        Raises:
          InvalidArgumentError: these are none.
        """
        try:
            shards, addresses = words
            return Places(
                shards={int(shard): Place(int(term), str(task)) for shard, term, task in shards},
                addresses={str(task): str(address) for task, address in addresses},
            )
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(None, None, f"these are no places of shards: {error}") from error


def first_places(shards: int, servers: Sequence[str]) -> dict[int, Place]:
    """Where the shards of a set are that begins on ``servers``."""
    return {shard: Place(0, servers[shard % len(servers)]) for shard in range(shards)}


def excess(loads: Mapping[str, float]) -> float:
    """By which share of the mean the busiest ``ps`` has more to do than that; 0 where there is nothing to do.

    Args:
      loads: by ``ps`` what it has to do, in any unit; of at least one.
    """
    mean = sum(loads.values()) / len(loads)
    return max(loads.values()) / mean - 1 if mean else 0.0


class Move(NamedTuple):
    """A shard is to go to another ``ps``."""

    shard: int
    source: str
    target: str


def plan_moves(
    places: Mapping[int, str],
    loads: Mapping[int, float],
    servers: Collection[str],
    *,
    fixed: Collection[int] = (0,),
) -> list[Move]:
    """Which shards to move so that ``servers`` have about equally much to do, and others nothing.

    First what other ``ps`` have goes, the greatest first, to whichever has least. Then, while that makes the busiest
    one less busy, the shard whose move does so most goes from there to the one with least to do.

    Args:
      places: by shard which ``ps`` has it.
      loads: by shard what it makes that ``ps`` do, in any unit; 0 where it is missing.
      servers: those that may have shards; at least one.
      fixed: shards that stay where they are.

    Returns:
      The moves, of each shard one at most, sorted by their number.
    """
    now = dict(places)
    total = dict.fromkeys(sorted(servers), 0.0)
    free = [shard for shard in sorted(places) if shard not in fixed]

    def load(shard: int) -> float:
        return loads.get(shard, 0.0)

    for shard, server in places.items():
        if server in total:
            total[server] += load(shard)
    homeless = [shard for shard in free if places[shard] not in total]
    for shard in sorted(homeless, key=lambda shard: (-load(shard), shard)):
        least = min(total, key=lambda server: (total[server], server))
        now[shard] = least
        total[least] += load(shard)
    for _ in range(len(places) * len(total)):
        busiest = max(total, key=lambda server: (total[server], server))
        least = min(total, key=lambda server: (total[server], server))
        gap = total[busiest] - total[least]
        # Of those that make the greater of the two less, the one that leaves them most alike.
        useful = [shard for shard in free if now[shard] == busiest and 0 < load(shard) < gap * (1 - SLACK)]
        if not useful:
            break
        best = min(useful, key=lambda shard: (abs(gap - 2 * load(shard)), shard))
        now[best] = least
        total[busiest] -= load(best)
        total[least] += load(best)
    return [Move(shard, places[shard], now[shard]) for shard in sorted(places) if now[shard] != places[shard]]
