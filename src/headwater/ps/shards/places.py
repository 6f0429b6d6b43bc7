"""Known places of shards, and the planning of moves. Pure.

Each shard has a *place*: a ``ps``, and a *term* that increases with every move. Only the owner of a shard sends it to
another ``ps``. So if two places of a shard are known, the place with the later term is current, and tasks may exchange
their knowledge in any order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from headwater.errors import InvalidArgumentError

#: Ignore moves that reduce the maximum load by less than this fraction (floating-point noise).
SLACK: Final = 1e-9


class ShardPlace(NamedTuple):
    """The place of a shard.

    Attributes:
      term: number of its moves.
      task: the ``ps`` that owns it.
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
            raise InvalidArgumentError(None, None, f"malformed shard locations: {error}") from error


def first_places(shards: int, servers: Sequence[str]) -> dict[int, ShardPlace]:
    """Returns the initial places of the shards of a set on ``servers``."""
    return {shard: ShardPlace(0, servers[shard % len(servers)]) for shard in range(shards)}


def excess(loads: Mapping[str, float]) -> float:
    """Returns the excess of the largest load over the mean, as a fraction of the mean; 0 without any load.

    Args:
      loads: by ``ps``, in any unit; of at least one.
    """
    mean = sum(loads.values()) / len(loads)
    return max(loads.values()) / mean - 1 if mean else 0.0


class Move(NamedTuple):
    """The move of a shard to another ``ps``."""

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
    """Plans moves so that ``servers`` have about equal loads, and others none.

    First, the shards on ``ps`` outside ``servers`` move to the least loaded server, the largest shards first. Then
    shards move from the most loaded server to the least loaded one, as long as that reduces the larger of the two
    loads. Each time, the plan moves the shard that makes the two loads most equal.

    Args:
      places: the ``ps`` of each shard, by shard.
      loads: load of each shard, by shard, in any unit; 0 where it is missing.
      servers: ``ps`` that may have shards; at least one.
      fixed: shards that must not move.

    Returns:
      The moves, at most one of each shard, sorted by shard.
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
    # Each move makes the loads more equal, so moves end by themselves; the limit guards against rounding errors.
    for _ in range(len(places) * len(total)):
        busiest = max(total, key=lambda server: (total[server], server))
        least = min(total, key=lambda server: (total[server], server))
        gap = total[busiest] - total[least]
        # Among the moves that reduce the larger of the two loads, choose the move that makes the loads most equal.
        useful = [shard for shard in free if now[shard] == busiest and 0 < load(shard) < gap * (1 - SLACK)]
        if not useful:
            break
        best = min(useful, key=lambda shard: (abs(gap - 2 * load(shard)), shard))
        now[best] = least
        total[busiest] -= load(best)
        total[least] += load(best)
    return [Move(shard, places[shard], now[shard]) for shard in sorted(places) if now[shard] != places[shard]]
