"""The user token: a secret that only programs of one user on this machine can read.

The token consists of 32 random bytes in hexadecimal, in a file that only its owner can read. The first program that
needs a token writes the file under a temporary name, and links it to the final name when it is complete. So programs
that start at the same time use the same token.

The file is ``headwater/token`` in the user's runtime folder (``XDG_RUNTIME_DIR``, else ``/run/user/UID``), which the
system creates for one user and empties when that user has logged out. Without such a folder, the file is ``token`` in
``/tmp/headwater-UID``. A folder that belongs to another user, or that others may enter, is rejected, as another user
could read the secret.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from headwater.cluster.transport.problems import NO_DESCRIPTORS, failure_of
from headwater.errors import PermissionDeniedError

_RUNTIME = "XDG_RUNTIME_DIR"
_SHARED = Path("/tmp")
_NAME = "token"
_TOKEN = re.compile(r"[0-9a-f]{64}")
_GROUP_OR_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def user_token(environ: Mapping[str, str] | None = None) -> str:
    """Returns the token of this process's user, and creates it if there is none yet.

    Args:
      environ: the process's own environment unless given.

    Raises:
      PermissionDeniedError: the folder or the file is accessible to others, or cannot be created; the message names it
        and the remedy.
      ResourceExhaustedError: the process has reached its limit of open files.
    """
    folder = token_folder(os.environ if environ is None else environ)
    path = folder / _NAME
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        _check_owned(folder, folder.lstat(), stat.S_IFDIR)
        with contextlib.suppress(FileNotFoundError):
            return _read(path)
        _make(path)
        return _read(path)
    except OSError as error:
        if error.errno in NO_DESCRIPTORS:
            raise failure_of(error).as_error(f"{path} cannot be read") from error
        raise _cannot(path, f"it cannot be opened: {error.strerror or error}") from error


def token_folder(environ: Mapping[str, str]) -> Path:
    """Returns the folder of the file, which may not exist yet."""
    user = os.geteuid()
    for runtime in (environ.get(_RUNTIME, ""), f"/run/user/{user}"):
        if os.path.isabs(runtime) and _is_ours_alone(runtime, user):
            return Path(runtime, "headwater")
    shared = _SHARED if os.access(_SHARED, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
    return shared / f"headwater-{user}"


def _is_ours_alone(folder: str, user: int) -> bool:
    try:
        status = os.stat(folder)
    except OSError:
        return False
    return status.st_uid == user and not status.st_mode & _GROUP_OR_OTHERS and os.access(folder, os.W_OK | os.X_OK)


def _check_owned(path: Path, status: os.stat_result, kind: int) -> None:
    if stat.S_IFMT(status.st_mode) != kind:
        raise _cannot(path, "it was not created by Headwater")
    if status.st_uid != os.geteuid():
        raise _cannot(path, f"it belongs to user {status.st_uid}, who could read or replace the secret")
    if status.st_mode & _GROUP_OR_OTHERS:
        raise _cannot(path, f"other users may enter or read it (its mode is {stat.S_IMODE(status.st_mode):04o})")


def _read(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, encoding="ascii", errors="replace") as file:
        _check_owned(path, os.fstat(descriptor), stat.S_IFREG)
        text = file.read(256).strip()
    if not _TOKEN.fullmatch(text):
        raise _cannot(path, "it does not hold 64 hexadecimal digits")
    return text


def _make(path: Path) -> None:
    written = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")
            file.flush()
            os.fsync(descriptor)
        # Link the file instead of renaming it: of several programs, the first wins, as a link replaces no file.
        with contextlib.suppress(FileExistsError):
            os.link(written, path)
    finally:
        written.unlink()


def _cannot(path: Path, why: str) -> PermissionDeniedError:
    return PermissionDeniedError(
        f"the secret of this user's programs should be in {path}, but {why}. Remove it, or set HEADWATER_TOKEN to the "
        "same secret for all tasks"
    )
