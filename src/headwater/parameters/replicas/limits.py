"""What replicas cannot be had for."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.consistency import Consistency, KOfN


def require_replicas(replicas: int, servers: int, choice: Consistency, *, saves: bool = False) -> None:
    """Looks whether there can be that number of copies of each part.

    Args:
      replicas: how many.
      servers: how many ``ps`` there are.
      choice: how closely workers keep together.
      saves: whether each ``ps`` saves its own state.

    Raises:
      ValueError: there cannot be.
    """
    if replicas not in (1, 2):
        raise ValueError(f"replicas must be 1 or 2, not {replicas!r}")
    if replicas == 1:
        return
    if servers < 2:
        raise ValueError(
            f"replicas={replicas} needs a second ps to keep the other copy on, and this program has {servers}: start "
            "it with --ps 2, or leave replicas away"
        )
    if saves:
        raise ValueError(
            f"replicas={replicas} and recovery='own' (a folder in saves) cannot be had together: a ps that comes back "
            "is filled up from the other copy. Leave one of them away"
        )
    if isinstance(choice, KOfN):
        raise ValueError(
            f"replicas={replicas} and consistency {str(choice)!r} cannot be had together: a worker whose gradient "
            "waits for those of others goes on, and the second copy has no gradients that wait. Use consistency "
            "'async', 'sync' or 'staleness=...', or leave replicas away"
        )


def require_no_tables(replicas: int, dynamic: Sequence[str]) -> None:
    """Looks whether a model has tables that grow, which have no second copy.

    Args:
      replicas: how many copies of each part there are to be.
      dynamic: the layers whose tables grow, by name.

    Raises:
      ValueError: it has some.
    """
    if dynamic:
        raise ValueError(
            f"replicas={replicas} keeps no second copy of tables that grow, and the model has {', '.join(dynamic)}: "
            "leave replicas away, or use keras.layers.Embedding"
        )
