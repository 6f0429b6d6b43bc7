"""What shards that move cannot be had for."""

from __future__ import annotations

import os

from headwater.cluster.variables import FIRST_PS, SHARDS


def shards_of(shards: int | None, servers: int, *, replicas: int, saves: bool) -> int | None:
    """How many shards a set has; None where it has a part for each ``ps``, which stays there.

    Args:
      shards: what the program says; None for what the environment does.
      servers: how many ``ps`` it knows; 0 without a cluster.
      replicas: how many copies there are of each part.
      saves: whether each ``ps`` saves its own state.

    Raises:
      ValueError: it cannot have shards.
    """
    told = os.environ.get(SHARDS, "")
    says = f"shards={shards}"
    if shards is None:
        if not told:
            return None
        if not told.isdecimal():
            raise ValueError(f"{SHARDS} must be a number of shards, but is {told!r}")
        shards, says = int(told), f"{SHARDS}={told}"
    if isinstance(shards, bool) or shards < 1:
        raise ValueError(f"shards must be at least 1, but is {shards!r}")
    if replicas > 1:
        raise ValueError(
            f"{says} and replicas={replicas} cannot be had together: a part with a second copy stays where it is. "
            "Leave one of them away"
        )
    if saves:
        raise ValueError(
            f"{says} and recovery='own' (a folder in saves) cannot be had together: a state is one ps's, and a shard "
            "may be on another one when it is needed. Leave one of them away"
        )
    return shards if servers else None


def first_servers(servers: int) -> int:
    """How many ``ps`` have the shards at the beginning, of those that a task knows."""
    told = os.environ.get(FIRST_PS, "")
    return min(servers, int(told)) if told.isdecimal() and int(told) else servers


def require_no_rows(shards: int, tables: list[str]) -> None:
    """Looks whether a model has tables, which do not move.

    Raises:
      ValueError: it has some.
    """
    if tables:
        raise ValueError(
            f"shards={shards} moves variables between ps, which tables do not, and the model has {', '.join(tables)}: "
            "leave shards away, or have embeddings used whole (a greater table_bytes)"
        )


def require_no_sums(shards: int, what: str) -> None:
    """Refuses a norm over all gradients of a round, which the ``ps`` find together and each for its own part.

    Raises:
      ValueError: always.
    """
    raise ValueError(
        f"shards={shards} and consistency 'sync' cannot be had with {what}: the ps find that norm together, each its "
        "own part, and a shard may be on its way. Clip each gradient for itself, or leave shards away"
    )
