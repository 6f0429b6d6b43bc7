"""A real file system of a few megabytes, which tests can fill."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class SmallDisk:
    """A folder on a file system of its own.

    Attributes:
      path: the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, leave: int = 0) -> None:
        """Fills the disk, except ``leave`` bytes."""
        with self._ballast.open("wb", buffering=0) as file:
            status = os.statvfs(self.path)
            file.write(bytes(max(0, status.f_bavail * status.f_bsize - leave)))

    def free(self) -> None:
        """Frees the space that `fill` has taken."""
        self._ballast.unlink()


@contextmanager
def small_disk(path: Path, size: str = "4m") -> Iterator[SmallDisk]:
    """A disk of ``size`` at ``path``; skips the test if this user may not mount one."""
    path.mkdir(exist_ok=True)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], capture_output=True)
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.decode().strip()}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
