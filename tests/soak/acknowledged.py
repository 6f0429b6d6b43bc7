"""How a worker's steps were answered, in files that outlive it, so that its later lives and others can count them."""

from __future__ import annotations

import os
from pathlib import Path


class Acknowledged:
    """The steps of one life of a worker, a byte each: applied, or dropped.

    Args:
      folder: of all workers.
      worker: its number.
    """

    def __init__(self, folder: Path, worker: int) -> None:
        incarnation = len(list(folder.glob(f"acknowledged-{worker}-*")))
        self._file = os.open(folder / f"acknowledged-{worker}-{incarnation}", os.O_CREAT | os.O_EXCL | os.O_WRONLY)

    def add(self, applied: bool = True) -> None:
        """Another step was answered."""
        os.write(self._file, b"." if applied else b"-")


class Counted:
    """What all lives of a worker have acknowledged so far.

    Args:
      folder: of all workers.
      worker: its number.

    Attributes:
      applied: steps that were answered as applied.
      dropped: steps that were answered as dropped.
      killed: earlier lives, each of which may have had one step under way.
    """

    def __init__(self, folder: Path, worker: int) -> None:
        incarnations = [path.read_bytes() for path in sorted(folder.glob(f"acknowledged-{worker}-*"))]
        self.applied: int = sum(incarnation.count(b".") for incarnation in incarnations)
        self.dropped: int = sum(incarnation.count(b"-") for incarnation in incarnations)
        self.killed: int = max(len(incarnations) - 1, 0)

    def check(self, found: list[int], worker: int) -> None:
        """That each acknowledged step was applied once on every ``ps``, and nothing else but what was under way.

        A step that the first ``ps`` drops, others may have taken.

        Raises:
          AssertionError: it was not so.
        """
        most = self.applied + self.killed
        right = all(self.applied <= count <= most + self.dropped for count in found) and found[0] <= most
        assert right, (
            f"the ps have applied {found} steps of worker {worker}; {self.applied} were acknowledged, {self.dropped} "
            f"dropped, and {self.killed} may have been under way when it was killed"
        )
