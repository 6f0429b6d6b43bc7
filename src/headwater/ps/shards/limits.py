"""Configurations that do not support shards that move."""

from __future__ import annotations

import os

from headwater.cluster.variables import FIRST_PS, SHARDS


def shards_of(shards: int | None, servers: int, *, replicas: int, saves: bool) -> int | None:
    """Returns the number of shards of a set; None if it has a part on each ``ps``, which does not move.

    Args:
      shards: the program's choice; None for the value of the environment variable.
      servers: number of ``ps``; 0 without a cluster.
      replicas: number of replicas of each part.
      saves: whether each ``ps`` saves its own state.

    Raises:
      ValueError: the set cannot have shards.
    """
    value = os.environ.get(SHARDS, "")
    says = f"shards={shards}"
    if shards is None:
        if not value:
            return None
        if not value.isdecimal():
            raise ValueError(f"{SHARDS} must be a number of shards, but is {value!r}")
        shards, says = int(value), f"{SHARDS}={value}"
    if isinstance(shards, bool) or shards < 1:
        raise ValueError(f"shards must be at least 1, but is {shards!r}")
    first = first_servers(servers)
    # The replicas of a shard must be on different ps. With more ps than shards, some ps would never be a primary.
    if replicas > 1 and servers and not 2 <= first <= shards:
        raise ValueError(
            f"{says} and replicas={replicas} cannot be combined with {first} initial ps: there must be at least "
            "two for the two replicas of each shard, and at most as many as shards"
        )
    if saves:
        raise ValueError(
            f"{says} and recovery='own' (a folder in saves) cannot be combined: a saved state belongs to one ps, and a "
            "shard may be on another ps when it is needed. Remove one of them"
        )
    return shards if servers else None


def first_servers(servers: int) -> int:
    """Returns the number of ``ps`` that have the shards at the beginning, given the number of ``ps`` that this task
    knows."""
    # A ps that joins later has a longer cluster spec than the initial tasks. Initial locations must not depend on that,
    # so the variable has the initial number.
    value = os.environ.get(FIRST_PS, "")
    return min(servers, int(value)) if value.isdecimal() and int(value) else servers


def require_no_sums(what: str, *, shards: int | None, replicas: int) -> None:
    """Checks that parts do not move, for a feature that takes a norm over all gradients of a round.

    The ``ps`` compute that norm together: each contributes a sum over its own part.

    Args:
      what: the feature that takes such a norm.
      shards: number of shards that move; None if parts do not move.
      replicas: number of replicas of each part.

    Raises:
      ValueError: a part may be on another ``ps`` when its share of the norm is requested.
    """
    if shards is None and replicas == 1:
        return
    name, value = ("replicas", replicas) if shards is None else ("shards", shards)
    raise ValueError(
        f"{name}={value} and consistency 'sync' cannot be combined with {what}: the ps compute that norm together, "
        f"and a part may have migrated to another ps by then. Clip each gradient separately, or remove {name}"
    )
