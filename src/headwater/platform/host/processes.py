"""Processes of this machine: identities, descendants, resource usage, exit reasons."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_PR_SET_CHILD_SUBREAPER = 36
# Positions in /proc/PID/stat after the command's name, which may itself contain spaces and parentheses.
_STATE, _PARENT, _UTIME, _CSTIME, _START = 0, 1, 11, 14, 19


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessIdentity:
    """A process, distinguished from other processes that have had the same number.

    Attributes:
      start: its start time, in clock ticks since the machine started.
      boot: the id of the start of the machine from which ``start`` counts.
    """

    pid: int
    start: int
    boot: str

    def is_alive(self) -> bool:
        """Returns whether the process runs on this machine and has not ended."""
        if self.boot != boot_id():
            return False
        stat = _stat(self.pid)
        return stat is not None and int(stat[_START]) == self.start and stat[_STATE] not in ("Z", "X")

    def send(self, signum: signal.Signals) -> bool:
        """Sends ``signum``; returns whether the process was alive to receive it.

        Raises:
          PermissionError: the process belongs to another user.
        """
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            # The descriptor pins the process, so the signal reaches the process whose identity is checked here.
            if not self.is_alive():
                return False
            signal.pidfd_send_signal(descriptor, signum)
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)
        return True


def identity(pid: int) -> ProcessIdentity:
    """Returns the identity of the process that has the number ``pid`` now; ProcessLookupError if there is none."""
    stat = _stat(pid)
    if stat is None:
        raise ProcessLookupError(f"there is no process {pid}")
    return ProcessIdentity(pid=pid, start=int(stat[_START]), boot=boot_id())


def adopt_orphans() -> None:
    """Makes this process the parent of descendants whose parents end, so that they remain its descendants."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def boot_id() -> str:
    """Returns an id that changes with each start of the machine."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


class ProcessTable:
    """Parents and children of all processes, at one moment."""

    def __init__(self) -> None:
        self._children: dict[int, list[int]] = {}
        self._parents: dict[int, int] = {}
        for entry in os.listdir(_PROC):
            if entry.isdecimal():
                stat = _stat(int(entry))
                if stat is not None:
                    self._parents[int(entry)] = int(stat[_PARENT])
                    self._children.setdefault(int(stat[_PARENT]), []).append(int(entry))

    def parent(self, pid: int) -> int:
        """Returns the parent of process ``pid``; 0 if there was no process ``pid``."""
        return self._parents.get(pid, 0)

    def descendants(self, pid: int) -> list[int]:
        """Returns all descendants of ``pid``, without itself."""
        pids: list[int] = []
        pending = [pid]
        while pending:
            below = self._children.get(pending.pop(), [])
            pids += below
            pending += below
        return pids


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessSignals:
    """Signal handling of a process.

    Attributes:
      command: the name of its program, at most 15 characters.
      caught: signals for which it has a handler.
      ignored: signals that it ignores.
    """

    command: str
    caught: frozenset[int]
    ignored: frozenset[int]


def signals_of(pid: int) -> ProcessSignals | None:
    """Returns the signal handling of process ``pid``; None if it has ended."""
    try:
        text = (_PROC / str(pid) / "status").read_text(errors="replace")
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return ProcessSignals(
        command=fields["Name"].strip(), caught=_signal_set(fields["SigCgt"]), ignored=_signal_set(fields["SigIgn"])
    )


def _signal_set(mask: str) -> frozenset[int]:
    """Returns the signal numbers in a mask of /proc/PID/status; the lowest bit is signal 1."""
    bits = int(mask, 16)
    return frozenset(number for number in range(1, 65) if bits >> (number - 1) & 1)


def resident_bytes(pids: Iterable[int]) -> int:
    """Returns the resident memory of these processes, in bytes; shared pages count once per process."""
    return sum(_resident_pages(pid) for pid in pids) * _PAGE_BYTES


def proportional_bytes(pids: Iterable[int]) -> int:
    """Returns the memory of these processes, in bytes; shared pages count in proportion to their users.

    Takes milliseconds for a large process, unlike `resident_bytes`.
    """
    total = 0
    for pid in pids:
        try:
            lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
        except OSError:  # the process has ended, or the kernel lacks this file
            total += _resident_pages(pid) * _PAGE_BYTES
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
    return total


def cpu_seconds(pids: Iterable[int]) -> float:
    """Returns the CPU time of these processes and of their children that have ended."""
    stats = [stat for pid in pids if (stat := _stat(pid)) is not None]
    return sum(int(ticks) for stat in stats for ticks in stat[_UTIME : _CSTIME + 1]) / _TICKS_PER_S


def memory_of_machine() -> int:
    """Returns this machine's memory, in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * _PAGE_BYTES


def how_it_ended(returncode: int) -> str:
    """Describes a return code: ``exit code 3``; ``killed by SIGSEGV`` for -11."""
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        return f"killed by {signal.Signals(-returncode).name}"
    except ValueError:  # a real-time signal has a number only
        return f"killed by signal {-returncode}"


def _resident_pages(pid: int) -> int:
    try:
        return int((_PROC / str(pid) / "statm").read_text().split()[1])
    except (OSError, IndexError):  # ended
        return 0


def _stat(pid: int) -> list[str] | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:  # there is no such process, or it has just ended
        return None
    return text.rpartition(")")[2].split() or None
