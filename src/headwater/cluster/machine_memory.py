"""Memory of this machine, as Linux reports it (``proc_meminfo(5)``)."""

from __future__ import annotations


def machine_memory(*entries: str) -> int:
    """Returns the sum of ``entries`` of ``/proc/meminfo``, e.g. ``MemAvailable``, in bytes."""
    with open("/proc/meminfo", encoding="ascii") as file:
        sizes = dict(line.split(":") for line in file)
    return sum(int(sizes[entry].removesuffix(" kB\n")) for entry in entries) * 1024
