"""Assigns each process of a machine its own share of the cores.

XLA starts a thread for each core that it may use, and every operation waits for all of its threads. If two processes
both used all cores, an operation would often wait for a thread whose core the other process occupies
(docs/decisions/cores-of-a-machine.md).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from headwater.keras.collectives.group import GroupMember

#: ``shared`` keeps all processes on all cores.
CORES = "HEADWATER_CORES"


def share_of(cores: Sequence[int], place: int, sharing: int) -> list[int]:
    """Returns the cores of process ``place`` of ``sharing`` on a machine; all cores if there are too few."""
    if sharing <= 1 or len(cores) < sharing:
        return list(cores)
    low, high = place * len(cores) // sharing, (place + 1) * len(cores) // sharing
    return list(cores[low:high])


def neighbours(members: Sequence[GroupMember], rank: int) -> tuple[int, int]:
    """Returns this process's index among the processes on its machine, and their number. Processes whose addresses have
    the same host are on the same machine."""
    places = [_place(member.address.host) for member in members]
    same_host = [other for other, place in enumerate(places) if place == places[rank]]
    return same_host.index(rank), len(same_host)


def restrict_to_own_cores(
    members: Sequence[GroupMember], rank: int, environ: Mapping[str, str] | None = None
) -> list[int]:
    """Confines all threads of this process to its share of the cores, and returns these cores.

    Call this before JAX computes anything, so that JAX starts only as many threads as this process has cores.

    Raises:
      ValueError: the environment variable ``HEADWATER_CORES`` is neither ``own`` nor ``shared``.
    """
    setting = (os.environ if environ is None else environ).get(CORES, "").strip().lower() or "own"
    if setting not in ("own", "shared"):
        raise ValueError(f"{CORES} must be 'own' or 'shared', not {setting!r}")
    cores = sorted(os.sched_getaffinity(0))
    share = share_of(cores, *neighbours(members, rank))
    if setting == "shared" or share == cores:
        return cores
    for thread in Path("/proc/self/task").iterdir():
        try:
            os.sched_setaffinity(int(thread.name), share)
        except ProcessLookupError:  # the thread has ended in the meantime
            continue
    return share


def _place(host: str) -> str:
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:  # the task that connects to this address reports the error with a better message
        return host
