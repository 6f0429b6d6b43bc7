"""Configurations that do not support replication."""

from __future__ import annotations

from headwater.ps.consistency import Consistency, KOfN


def require_replicas(replicas: int, servers: int, choice: Consistency, *, saves: bool = False) -> None:
    """Checks that a program's configuration supports this number of replicas of each part.

    Args:
      replicas: number of replicas.
      servers: number of ``ps``.
      choice: the consistency between workers.
      saves: whether each ``ps`` saves its own state.

    Raises:
      ValueError: the configuration does not support it; the message names the conflicting setting.
    """
    if replicas not in (1, 2):
        raise ValueError(f"replicas must be 1 or 2, not {replicas!r}")
    if replicas == 1:
        return
    if servers < 2:
        raise ValueError(
            f"replicas={replicas} needs a second ps for the backup, and this program has {servers}: start "
            "it with --ps 2, or remove replicas"
        )
    if saves:
        raise ValueError(
            f"replicas={replicas} and recovery='own' (a folder in saves) cannot be combined: a restarted ps receives a "
            "snapshot of the other replica. Remove one of them"
        )
    if isinstance(choice, KOfN):
        raise ValueError(
            f"replicas={replicas} and consistency {str(choice)!r} cannot be combined: a worker continues while its "
            "gradient waits for a round, and the backup has no waiting gradients. Use consistency 'async', "
            "'sync' or 'staleness=...', or remove replicas"
        )
