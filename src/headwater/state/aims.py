"""On which ``ps`` the copies of a shard should be, and what its primary does next to have them there. Pure.

Copies move one at a time, while the shard is served: a primary fills a third copy up, which takes the second's place;
and it hands over to its second. So a shard goes to any two ``ps`` without ever having fewer than two copies.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Sequence
from typing import NamedTuple

from headwater.state.views import View


class Aim(NamedTuple):
    """The numbers of the ``ps`` that should have the primary and the second; None where one copy is wanted."""

    primary: int
    second: int | None


class Move(enum.Enum):
    """What a primary does next: nothing; drop its second; have another second; have the second serve in its place."""

    STAY = 0
    DROP = 1
    BRING = 2
    HAND_OVER = 3


class Step(NamedTuple):
    """The next step of a primary: what, and with which ``ps``."""

    move: Move
    ps: int | None = None


def settle(view: View, aim: Aim | None, beside: int, staying: Sequence[int]) -> Aim:
    """Where copies should be, given that some ``ps`` are about to end.

    Args:
      view: the present one.
      aim: where they were said to be; None where nothing was said: they stay where they are.
      beside: of which ``ps`` the second is where there is none.
      staying: the ``ps`` that are not about to end.
    """
    now = Aim(view.primary.ps, beside if view.second is None else view.second.ps)
    if not staying:
        return now
    primary, second = aim or now
    alone = aim is not None and second is None and primary in staying
    if primary not in staying:
        found = second if second in staying else _after(primary, (), staying)
        if found is not None:
            primary, second = found, second if second != found else None
    if alone or (second in staying and second != primary):
        return Aim(primary, second)
    return Aim(primary, _after(primary, (primary,), staying))


def _after(ps: int, but: Collection[int], staying: Sequence[int]) -> int | None:
    """The first after ``ps`` in a ring of those that stay."""
    ring = [*(each for each in staying if each > ps), *(each for each in staying if each <= ps)]
    return next((each for each in ring if each not in but), None)


def next_step(view: View, aim: Aim) -> Step:
    """What the primary of ``view`` does next, to have copies where ``aim`` says."""
    me, second = view.primary.ps, None if view.second is None else view.second.ps
    if aim.primary != me:
        return Step(Move.HAND_OVER) if second == aim.primary else Step(Move.BRING, aim.primary)
    if second == aim.second:
        return Step(Move.STAY)
    return Step(Move.DROP) if aim.second is None else Step(Move.BRING, aim.second)


def spread(homes: Sequence[int], staying: Sequence[int]) -> list[Aim]:
    """Where the copies of shards should be, so that each ``ps`` has about as many as the others, and few move.

    Args:
      homes: by shard the number of the ``ps`` that serves it at the beginning.
      staying: those that there are, at least one.

    >>> spread([0, 1], [0, 1])
    [Aim(primary=0, second=1), Aim(primary=1, second=0)]
    >>> spread([0, 1], [0, 1, 2])
    [Aim(primary=0, second=2), Aim(primary=1, second=0)]
    >>> spread([0, 1], [1, 2])
    [Aim(primary=2, second=1), Aim(primary=1, second=2)]
    >>> spread([0, 1], [1])
    [Aim(primary=1, second=None), Aim(primary=1, second=None)]
    """
    copies = dict.fromkeys(staying, 0)
    primaries: dict[int, int] = {}
    for shard, home in sorted(enumerate(homes), key=lambda each: each[1] not in copies):
        primaries[shard] = home if home in copies else min(staying, key=lambda ps: (copies[ps], ps))
        copies[primaries[shard]] += 1
    found: list[Aim] = []
    for shard in range(len(homes)):
        others = [ps for ps in staying if ps != primaries[shard]]
        beside = homes[(shard + 1) % len(homes)]
        second = min(others, key=lambda ps: (copies[ps], ps != beside, ps), default=None)
        if second is not None:
            copies[second] += 1
        found.append(Aim(primaries[shard], second))
    return found
