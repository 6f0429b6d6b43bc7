"""A private directory of a running task, for its Unix sockets."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

_PREFIX = "headwater-task-"
_LOCK = "lock"
#: Minimum age of a directory that is removed because its lock is not held, in seconds: a new directory is not locked
#: yet.
_LOCK_TIMEOUT_S = 60.0
#: Unix socket paths are at most 107 bytes long on Linux; the names in the directory are shorter than this.
_MAX_PATH = 80


class Workplace:
    """A directory that only this user can enter. Removed by `close`.

    A killed process leaves its directory behind, but the kernel releases the lock in it. A task that creates a
    directory also removes all directories whose lock is not held.
    """

    def __init__(self) -> None:
        parent = tempfile.gettempdir()
        if len(parent) > _MAX_PATH:
            parent = "/tmp"
        _sweep(Path(parent))
        self.path: Path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        self._lock = os.open(self.path / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Removes the directory. Idempotent."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def _sweep(parent: Path) -> None:
    for path in parent.glob(_PREFIX + "*"):
        with contextlib.suppress(OSError):
            status = path.lstat()
            young = time.time() - status.st_mtime < _LOCK_TIMEOUT_S
            # The parent is shared by all users: touch no links, and no directories of others.
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not young:
                _remove_if_left(path)


def _remove_if_left(path: Path) -> None:
    lock = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)
