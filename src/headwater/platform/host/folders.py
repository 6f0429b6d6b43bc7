"""Folders and files that only their owner may read, even if they existed before with other permissions."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def private_folder(path: Path) -> Path:
    """Makes ``path`` a folder of this user that no other user may access.

    An existing folder of this user is kept; permissions of others are removed.

    Raises:
      PermissionError: ``path`` belongs to another user, or is a link or a file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # In folders where others may create files, such as the temporary folder, another user may have created ``path``
    # first.
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
    """Removes the permissions of other users from a file, if it exists."""
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


#: The umask of this process at its start. Read from /proc, since os.umask would change it for a moment, for files of
#: other threads, too.
UMASK_AT_START = _umask()
