"""On which ``ps`` the two copies of each shard should be. Pure.

Both copies of a shard make about equally much work and take equally much memory, so all copies are evened out first;
then which of both serves, as that one talks to the workers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, MutableMapping
from typing import NamedTuple

from headwater.ps.shards.places import SLACK


class Pair(NamedTuple):
    """The ``ps`` that have the copies of a shard: the one that serves, and the other one; None where there is none."""

    primary: str
    second: str | None


class CopyMove(NamedTuple):
    """The copies of a shard are to be elsewhere."""

    shard: int
    before: Pair
    after: Pair


def plan_copies(pairs: Mapping[int, Pair], loads: Mapping[int, float], servers: Collection[str]) -> list[CopyMove]:
    """Where to have the copies of shards, so that ``servers`` have about equally much to do, and others nothing.

    First copies that other ``ps`` have, or that are missing, go to whichever has least, the greatest first. Then, while
    that makes the busier of two less busy, a copy goes from there to the other one. Then of two copies the other one
    serves, while that makes the serving of the busier one less.

    Args:
      pairs: by shard where its copies are.
      loads: by shard what a copy makes its ``ps`` do, in any unit.
      servers: those that may have copies; at least two.

    Returns:
      What is to change, sorted by shards.
    """
    ranked = sorted(servers)
    total = dict.fromkeys(ranked, 0.0)
    held = {shard: {server for server in pair if server in total} for shard, pair in pairs.items()}
    for shard, having in held.items():
        for server in having:
            total[server] += loads.get(shard, 0.0)
    for shard in sorted(held, key=lambda shard: (-loads.get(shard, 0.0), shard)):
        while len(held[shard]) < 2:
            least = min((server for server in ranked if server not in held[shard]), key=lambda server: total[server])
            held[shard].add(least)
            total[least] += loads.get(shard, 0.0)
    while _move_one(held, loads, total):
        pass
    serving = {
        shard: next((server for server in pair if server is not None and server in held[shard]), min(held[shard]))
        for shard, pair in pairs.items()
    }
    _even_out(serving, held, loads)
    found = {shard: Pair(primary, next(iter(held[shard] - {primary}))) for shard, primary in serving.items()}
    return [CopyMove(shard, pairs[shard], found[shard]) for shard in sorted(pairs) if found[shard] != pairs[shard]]


def _move_one(held: Mapping[int, set[str]], loads: Mapping[int, float], total: MutableMapping[str, float]) -> bool:
    """Moves one copy from a busier ``ps`` to an idler one; False where that does not help."""
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
                best = min(useful, key=lambda shard: (abs(gap - 2 * loads[shard]), shard))
                held[best].remove(busy)
                held[best].add(idle)
                total[busy] -= loads[best]
                total[idle] += loads[best]
                return True
    return False


def _even_out(serving: MutableMapping[int, str], held: Mapping[int, set[str]], loads: Mapping[int, float]) -> None:
    """Has the other copy of a shard serve, as long as that helps."""
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
