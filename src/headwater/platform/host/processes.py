"""Processes of this machine: who they are, what they started, what they use, how they ended."""

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
# Positions in /proc/PID/stat after the command's name, which may hold blanks and brackets itself.
_STATE, _PARENT, _UTIME, _CSTIME, _START = 0, 1, 11, 14, 19


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessIdentity:
    """One process, told apart from any other that ever had its number.

    Attributes:
      pid: its number.
      start: when it started, in clock ticks since its machine started.
      boot: which start of the machine that was.
    """

    pid: int
    start: int
    boot: str

    def is_alive(self) -> bool:
        """Whether the process is there, on this machine, and has not ended."""
        if self.boot != boot_id():
            return False
        stat = _stat(self.pid)
        return stat is not None and int(stat[_START]) == self.start and stat[_STATE] not in ("Z", "X")

    def send(self, signum: signal.Signals) -> bool:
        """Sends ``signum``, unless the process has ended; whether it was there to get it.

        Raises:
          PermissionError: it is another user's.
        """
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            # The descriptor pins the number, so what is alive under it now is what gets the signal.
            if not self.is_alive():
                return False
            signal.pidfd_send_signal(descriptor, signum)
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)
        return True


def identity(pid: int) -> ProcessIdentity:
    """The identity of the process that has the number ``pid`` now; ProcessLookupError where none has."""
    stat = _stat(pid)
    if stat is None:
        raise ProcessLookupError(f"there is no process {pid}")
    return ProcessIdentity(pid=pid, start=int(stat[_START]), boot=boot_id())


def adopt_orphans() -> None:
    """Makes this process the parent of all descendants that lose theirs, so that they stay its descendants."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def boot_id() -> str:
    """Differs from one start of the machine to the next."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


class ProcessTable:
    """Who started whom, at one moment."""

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
        """The process that ``pid`` is a child of; 0 where there was no process ``pid``."""
        return self._parents.get(pid, 0)

    def descendants(self, pid: int) -> list[int]:
        """The processes that ``pid`` started, and those that they started, without itself."""
        found: list[int] = []
        pending = [pid]
        while pending:
            below = self._children.get(pending.pop(), [])
            found += below
            pending += below
        return found


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessSignals:
    """What a process does about signals.

    Attributes:
      command: the name of its program, at most 15 characters.
      caught: signals for which it has a handler.
      ignored: signals that it ignores.
    """

    command: str
    caught: frozenset[int]
    ignored: frozenset[int]


def signals_of(pid: int) -> ProcessSignals | None:
    """What process ``pid`` does about signals; None where it has ended."""
    try:
        text = (_PROC / str(pid) / "status").read_text(errors="replace")
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return ProcessSignals(
        command=fields["Name"].strip(), caught=_signal_set(fields["SigCgt"]), ignored=_signal_set(fields["SigIgn"])
    )


def _signal_set(mask: str) -> frozenset[int]:
    """The numbers of the signals in a mask of /proc/PID/status, whose lowest bit is signal 1."""
    bits = int(mask, 16)
    return frozenset(number for number in range(1, 65) if bits >> (number - 1) & 1)


def resident_bytes(pids: Iterable[int]) -> int:
    """Memory of these processes, in bytes; pages that several of them share count for each."""
    return sum(_resident_pages(pid) for pid in pids) * _PAGE_BYTES


def proportional_bytes(pids: Iterable[int]) -> int:
    """Memory of these processes, in bytes; of pages that several processes share, each counts its part.

    Takes milliseconds for a large process, unlike `resident_bytes`.
    """
    total = 0
    for pid in pids:
        try:
            lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
        except OSError:  # ended, or a kernel without this file
            total += _resident_pages(pid) * _PAGE_BYTES
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
    return total


def cpu_seconds(pids: Iterable[int]) -> float:
    """CPU time of these processes and of those of their children that have ended."""
    stats = [stat for pid in pids if (stat := _stat(pid)) is not None]
    return sum(int(ticks) for stat in stats for ticks in stat[_UTIME : _CSTIME + 1]) / _TICKS_PER_S


def memory_of_machine() -> int:
    """This machine's memory, in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * _PAGE_BYTES


def how_it_ended(returncode: int) -> str:
    """In words: ``exit code 3``; ``killed by SIGSEGV`` for -11."""
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
    except OSError:  # no such process, or it ended while we looked
        return None
    return text.rpartition(")")[2].split() or None
