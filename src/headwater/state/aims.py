"""Desired placement of a shard's replicas, and the primary's next step towards it. Pure: no threads, no clocks.

Replicas move one at a time, while the primary serves the shard. There are two kinds of steps: the primary fills a third
replica, which then replaces the backup; or the primary hands off to its backup. A sequence of such steps moves a shard
to any two ``ps``, and the shard has two replicas at all times.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Sequence
from typing import NamedTuple

from headwater.state.views import View


class Placement(NamedTuple):
    """The desired placement: the number of the ``ps`` for the primary, and for the backup (None: no backup)."""

    primary: int
    backup: int | None


class Move(enum.Enum):
    """Next action of a primary: nothing; drop its backup; fill another replica and make it the backup; hand off to its
    backup."""

    STAY = 0
    DROP = 1
    BRING = 2
    HAND_OFF = 3


class Step(NamedTuple):
    """The next step of a primary: the action, and the ``ps`` that it concerns."""

    move: Move
    ps: int | None = None


def feasible_placement(view: View, aim: Placement | None, beside: int | None, staying: Sequence[int]) -> Placement:
    """Returns the placement to aim for, given that some ``ps`` are shutting down.

    Args:
      view: the current view.
      aim: the requested placement; None if none was requested: no replica moves.
      beside: the ``ps`` for the backup if the view has none. None for a shard with one replica, which has a backup
        only while it moves.
      staying: the ``ps`` that are not shutting down.
    """
    now = Placement(view.primary.ps, beside if beside is None or view.backup is None else view.backup.ps)
    if not staying:
        return now
    primary, backup = aim or now
    alone = beside is None or (aim is not None and backup is None and primary in staying)
    # If the primary's ps shuts down, prefer the backup as the new primary: it already has the whole state.
    if primary not in staying:
        substitute = backup if backup in staying else _next_after(primary, (), staying)
        if substitute is not None:
            primary, backup = substitute, backup if backup != substitute else None
    if alone or (backup in staying and backup != primary):
        return Placement(primary, backup)
    return Placement(primary, _next_after(primary, (primary,), staying))


def _next_after(ps: int, excluded: Collection[int], staying: Sequence[int]) -> int | None:
    """Returns the next number of ``staying`` after ``ps`` that is not ``excluded``; None if there is none.

    The lowest number follows the highest one.
    """
    ring = [*(each for each in staying if each > ps), *(each for each in staying if each <= ps)]
    return next((each for each in ring if each not in excluded), None)


def next_step(view: View, aim: Placement) -> Step:
    """Returns the next step of the primary of ``view`` towards the placement ``aim``."""
    me, backup = view.primary.ps, None if view.backup is None else view.backup.ps
    if aim.primary != me:
        return Step(Move.HAND_OFF) if backup == aim.primary else Step(Move.BRING, aim.primary)
    if backup == aim.backup:
        return Step(Move.STAY)
    return Step(Move.DROP) if aim.backup is None else Step(Move.BRING, aim.backup)


def distribute_replicas(homes: Sequence[int], staying: Sequence[int]) -> list[Placement]:
    """Returns a placement of all shards that balances the number of replicas per ``ps`` and moves few replicas.

    Args:
      homes: for each shard, the number of the ``ps`` that serves the shard when the job starts.
      staying: the numbers of the available ``ps``, at least one.

    >>> distribute_replicas([0, 1], [0, 1])
    [Placement(primary=0, backup=1), Placement(primary=1, backup=0)]
    >>> distribute_replicas([0, 1], [0, 1, 2])
    [Placement(primary=0, backup=2), Placement(primary=1, backup=0)]
    >>> distribute_replicas([0, 1], [1, 2])
    [Placement(primary=2, backup=1), Placement(primary=1, backup=2)]
    >>> distribute_replicas([0, 1], [1])
    [Placement(primary=1, backup=None), Placement(primary=1, backup=None)]
    """
    copies = dict.fromkeys(staying, 0)
    primaries: dict[int, int] = {}
    # First place the shards whose home stays. The other shards then fill the ps with the fewest replicas.
    for shard, home in sorted(enumerate(homes), key=lambda each: each[1] not in copies):
        primaries[shard] = home if home in copies else min(staying, key=lambda ps: (copies[ps], ps))
        copies[primaries[shard]] += 1
    placements: list[Placement] = []
    for shard in range(len(homes)):
        others = [ps for ps in staying if ps != primaries[shard]]
        beside = homes[(shard + 1) % len(homes)]
        backup = min(others, key=lambda ps: (copies[ps], ps != beside, ps), default=None)
        if backup is not None:
            copies[backup] += 1
        placements.append(Placement(primaries[shard], backup))
    return placements
