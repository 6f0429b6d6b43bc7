"""Folders and files that their owner alone may read, whatever was there before."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def private_folder(path: Path) -> Path:
    """Makes sure that ``path`` is a folder of this user, which no other user may look into.

    One that is there is kept if it is ours; what others may do with it is taken back.

    Raises:
      PermissionError: it is somebody else's, or no folder but a link or a file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Somebody else may have been here first, where others may make files, as in the folder of temporary ones.
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise PermissionError(f"{path} must be a folder, but is a link or a file: remove it, or name another folder")
    if status.st_uid != os.getuid():
        raise PermissionError(
            f"{path} belongs to user {status.st_uid}, not to user {os.getuid()}: remove it, or name another folder"
        )
    if status.st_mode & _OTHERS:
        path.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)
    return path


def private_file(path: Path) -> None:
    """Takes back what others may do with a file, where there is one."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return
    if status.st_uid == os.getuid() and status.st_mode & _OTHERS:
        path.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)


def _umask() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    return 0o022


#: The bits that new files of this process did not get when it started. Read without changing them, which would concern
#: the files that other threads make meanwhile.
UMASK_AT_START = _umask()
