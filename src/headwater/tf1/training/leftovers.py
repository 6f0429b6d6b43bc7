"""Leftovers of savers that were killed while saving, and their distinction from files of running savers.

A saver holds a lock on the file ``.BASENAME.saving`` beside its checkpoints while it saves. The kernel releases the
lock when the process ends, even after a crash. So a saver that gets the exclusive lock knows that no other saver of
these checkpoints is running, and that existing temporary folders of shards and files without their final name are
leftovers.

Not every shared file system propagates locks between machines. On a file system that is not local to this machine,
leftovers are deleted only if they have also been unchanged for ten minutes by this process's monotonic clock.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import time
from collections.abc import Callable, Generator
from typing import Final

from headwater.data.io import files, remote
from headwater.errors import OpError

_logger: Final = logging.getLogger(__name__)
_UNCHANGED_S: Final = 600.0
_LOCAL_FILE_SYSTEMS: Final = frozenset(
    {"btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "ramfs", "tmpfs", "xfs", "zfs"}
)
"""File systems of one machine, on which its kernel keeps the locks."""

_TEMPORARY: Final = re.compile(r"(-\d+)?_temp_[0-9a-f]{32}")
_UNNAMED: Final = re.compile(r"(-\d+)?\.(index|meta|data-\d{5}-of-\d{5})\.[0-9a-f]{12}\.tmp")


class Leftovers:
    """Deletes files that dead savers left behind.

    Args:
      clock: returns seconds since any origin.
      is_own: whether a folder is on a file system of this machine alone.
    """

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, is_own: Callable[[str], bool] | None = None
    ) -> None:
        self._clock = clock
        self._is_own = is_own or on_own_disk
        self._seen: dict[str, tuple[object, float]] = {}

    @contextlib.contextmanager
    def saving(self, save_path: str) -> Generator[None]:
        """Returns a context for saving a checkpoint; deletes leftovers of dead savers of these checkpoints on entry.

        Args:
          save_path: path of the checkpoints, without the step.
        """
        folder, base = os.path.split(save_path)
        folder = folder or "."
        if remote.is_url(save_path) or not os.path.isdir(folder):
            yield
            return
        path = os.path.join(folder, f".{base}.saving")
        try:
            lock, alone = _lock(path)
        except OSError as error:  # a full disk, or a file system without locks: delete nothing
            _logger.debug("%s: no lock: %s", path, error)
            yield
            return
        try:
            if alone:
                self._delete(folder, base)
                fcntl.flock(lock, fcntl.LOCK_SH)  # downgrade, so that other savers can save at the same time
            yield
        finally:
            _unlock(lock, path)

    def _delete(self, folder: str, base: str) -> None:
        own = self._is_own(folder)
        found: set[str] = set()
        for name in os.listdir(folder):
            if not _is_left(name, base):
                continue
            path = os.path.join(folder, name)
            found.add(path)
            if not own and not self._is_unchanged(path):
                continue
            try:
                if os.path.isdir(path):
                    files.rmtree(path)
                else:
                    files.remove(path)
            except OpError as error:
                _logger.warning("%s of an ended saver could not be deleted: %s", path, error.message)
            else:
                _logger.info("%s deleted: its saver has ended", path)
        self._seen = {path: seen for path, seen in self._seen.items() if path in found}

    def _is_unchanged(self, path: str) -> bool:
        state = _state(path)
        seen, since = self._seen.get(path, (None, 0.0))
        if seen != state:
            self._seen[path] = state, self._clock()
            return False
        return self._clock() - since >= _UNCHANGED_S


def _lock(path: str) -> tuple[int, bool]:
    """Locks the file at ``path`` and returns its descriptor and whether the lock is exclusive.

    Concurrent savers share the lock; a saver holds it exclusively while it searches for leftovers.
    """
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        alone = True
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                alone = False
                fcntl.flock(lock, fcntl.LOCK_SH)
            if _is_at(lock, path):
                return lock, alone
        except OSError:
            os.close(lock)
            raise
        os.close(lock)  # the previous holder has just removed this file: lock its successor


def _unlock(lock: int, path: str) -> None:
    """Releases a lock, and removes its file if no other saver holds the lock."""
    with contextlib.suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(lock, path):
            os.unlink(path)
    os.close(lock)


def _is_at(lock: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(lock), os.stat(path))
    except FileNotFoundError:
        return False


def _is_left(name: str, base: str) -> bool:
    """Returns whether a name is one of the temporary files or folders of a save, which are renamed or deleted."""
    if name.startswith(base):
        return _TEMPORARY.fullmatch(name[len(base) :]) is not None
    return name.startswith(f".{base}") and _UNNAMED.fullmatch(name[len(base) + 1 :]) is not None


def _state(path: str) -> object:
    """Returns a value that changes when a file or folder changes: sizes, modification times and inodes."""
    names = sorted(os.listdir(path)) if os.path.isdir(path) else []
    changed: list[object] = []
    for each in (path, *(os.path.join(path, name) for name in names)):
        with contextlib.suppress(FileNotFoundError):
            status = os.stat(each)
            changed.append((each, status.st_size, status.st_mtime_ns, status.st_ino))
    return changed


def on_own_disk(folder: str) -> bool:
    """Returns whether ``folder`` is on a file system of this machine alone; False if that is not known."""
    place = os.path.realpath(folder)
    best, kind = "", ""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                before, _, after = line.partition(" - ")
                mount = before.split(" ")[4].replace("\\040", " ")
                if len(mount) >= len(best) and (place == mount or place.startswith(mount.rstrip("/") + "/")):
                    best, kind = mount, after.split(" ")[0]
    except OSError:
        return False
    return kind in _LOCAL_FILE_SYSTEMS
