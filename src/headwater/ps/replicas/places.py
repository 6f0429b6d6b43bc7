"""Placement of the replicas of each shard. Pure.

Two replicas of a shard cause about the same work and take about the same memory, so the replicas are balanced first,
whatever their roles. Then the roles are balanced, because a primary also communicates with the workers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, MutableMapping
from typing import Final, NamedTuple

#: Ignore moves that reduce the maximum load by less than this fraction (floating-point noise).
SLACK: Final = 1e-9


class Pair(NamedTuple):
    """The ``ps`` of the replicas of a shard: the primary's, and the backup's (None without a backup)."""

    primary: str
    backup: str | None


class CopyMove(NamedTuple):
    """A change of the placement of a shard's replicas."""

    shard: int
    before: Pair
    after: Pair


def plan_copies(
    pairs: Mapping[int, Pair], loads: Mapping[int, float], servers: Collection[str], replicas: int = 2
) -> list[CopyMove]:
    """Plans the placement of all replicas on ``servers``, with about equal loads.

    The plan has three steps. First each replica that is missing, or is on a ``ps`` outside ``servers``, is placed on
    the least loaded server, the largest replicas first. Then replicas move from one server to another, as long as each
    move reduces the larger one of the two loads. Finally primary and backup of shards swap roles, as long as each swap
    reduces the larger load of primaries.

    Args:
      pairs: current placement, by shard.
      loads: load of a replica, by shard, in any unit.
      servers: ``ps`` that may have replicas; at least ``replicas``.
      replicas: number of replicas of each shard, 1 or 2.

    Returns:
      The changes, sorted by shards.
    """
    ranked = sorted(servers)
    total = dict.fromkeys(ranked, 0.0)
    held = {shard: {server for server in pair if server in total} for shard, pair in pairs.items()}
    for shard, having in held.items():
        for server in having:
            total[server] += loads.get(shard, 0.0)
    for shard in sorted(held, key=lambda shard: (-loads.get(shard, 0.0), shard)):
        while len(held[shard]) < replicas:
            least = min((server for server in ranked if server not in held[shard]), key=lambda server: total[server])
            held[shard].add(least)
            total[least] += loads.get(shard, 0.0)
    while _move_one(held, loads, total):
        pass
    serving = {
        shard: next((server for server in pair if server is not None and server in held[shard]), min(held[shard]))
        for shard, pair in pairs.items()
    }
    if replicas > 1:
        _balance_primaries(serving, held, loads)
    placements = {shard: Pair(primary, next(iter(held[shard] - {primary}), None)) for shard, primary in serving.items()}
    return [
        CopyMove(shard, pairs[shard], placements[shard]) for shard in sorted(pairs) if placements[shard] != pairs[shard]
    ]


def _move_one(held: Mapping[int, set[str]], loads: Mapping[int, float], total: MutableMapping[str, float]) -> bool:
    """Moves one replica from a busier ``ps`` to a less busy one; returns False if no move reduces the larger load."""
    by_load = sorted(total, key=lambda server: (total[server], server))
    for busy in reversed(by_load):
        for idle in by_load:
            gap = total[busy] - total[idle]
            useful = [
                shard
                for shard, having in held.items()
                if busy in having and idle not in having and 0 < loads.get(shard, 0.0) < gap * (1 - SLACK)
            ]
            if useful:
                # A replica of half the gap makes both loads equal.
                best = min(useful, key=lambda shard: (abs(gap - 2 * loads[shard]), shard))
                held[best].remove(busy)
                held[best].add(idle)
                total[busy] -= loads[best]
                total[idle] += loads[best]
                return True
    return False


def _balance_primaries(
    serving: MutableMapping[int, str], held: Mapping[int, set[str]], loads: Mapping[int, float]
) -> None:
    """Swaps the roles of replicas as long as that balances the primaries."""
    total: dict[str, float] = {}
    for shard, having in held.items():
        for server in having:
            total.setdefault(server, 0.0)
        total[serving[shard]] += loads.get(shard, 0.0)
    changed = True
    while changed:
        changed = False
        for shard in sorted(serving):
            load, now = loads.get(shard, 0.0), serving[shard]
            (other,) = held[shard] - {now}
            if 0 < load < (total[now] - total[other]) * (1 - SLACK):
                serving[shard] = other
                total[now] -= load
                total[other] += load
                changed = True
