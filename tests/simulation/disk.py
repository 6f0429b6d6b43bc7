"""The disk of a history, with faults.

The disk may be full temporarily; a write may be incomplete because its process is killed; and a bit of a file may flip.
"""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path

from headwater.data.io.disk import Change, Disk
from tests.simulation.scheduler import Simulation, simulation
from tests.support.faulty_disk import Stream


class SimulatedDisk(Disk):
    """A disk on which a process may be killed or preempted before each change and each written piece.

    Args:
      history: the history.
      folder: the folder with its files.

    Attributes:
      full: whether the disk is full now.
      was_full: whether it has been full at some time.
      damaged: whether a bit has flipped.
    """

    def __init__(self, history: Simulation, folder: str) -> None:
        self.full = self.was_full = False
        self.damaged = False
        self._history = history
        self._folder = Path(folder)

    def fill(self, seconds: float) -> None:
        """Makes the disk full for some time."""
        self._history.note(f"the disk is full for {seconds:.2f} s")
        self.full = self.was_full = True

        def has_room() -> None:
            self.full = False

        self._history.after(seconds, has_room)

    def flip(self) -> None:
        """Flips a random bit of a random file."""
        chance = self._history.random
        found = sorted(path for path in self._folder.rglob("*") if path.is_file() and path.stat().st_size)
        if found:
            path = found[chance.randrange(len(found))]
            data = bytearray(path.read_bytes())
            at = chance.randrange(len(data))
            data[at] ^= 1 << chance.randrange(8)
            path.write_bytes(data)
            self.damaged = True
            self._history.note(f"a bit of byte {at} of {path.name} flips")

    def check_change(self, change: Change, path: str) -> None:
        del path
        self._delay()
        if change == "create":
            self.check()

    def stream(self, raw: io.FileIO, path: str) -> io.RawIOBase:
        del path
        return Stream(self.write, raw)

    def check(self) -> None:
        """Raises OSError while the disk is full."""
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write(self, raw: io.FileIO, data: memoryview) -> int:
        """Writes a piece in two parts, between which the process may be killed."""
        if simulation() is not None and not self._history.is_alive():
            return len(data)  # the process was killed, and its threads only unwind: discard their data
        self.check()
        half = len(data) // 2
        raw.write(data[:half])
        self._delay()
        self.check()
        raw.write(data[half:])
        return len(data)

    def _delay(self) -> None:
        if simulation() is not None:
            self._history.pause()
            self._history.sleep(self._history.random.expovariate(1.0 / 0.0005))
