"""Files at URLs (``s3://``, ``gs://``, ``hdfs://`` …), through fsspec and its installed drivers.

Data are written to a temporary file on this machine, which is uploaded as a whole when the file is closed or committed.
So a reader finds the complete new file, or the earlier one. If a store has no folders, files can be written to any
folder, and a folder exists as long as it is not empty.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import shutil
import tempfile
from collections.abc import Generator
from typing import Any, BinaryIO, Final, cast

from headwater.errors import FailedPreconditionError, OpError, UnavailableError, UnimplementedError

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_ERRNO_OF_CLASS: Final = (
    (FileNotFoundError, errno.ENOENT),
    (FileExistsError, errno.EEXIST),
    (PermissionError, errno.EACCES),
    (IsADirectoryError, errno.EISDIR),
    (NotADirectoryError, errno.ENOTDIR),
)


def is_url(path: str) -> bool:
    """Returns whether ``path`` is a URL."""
    return _URL.match(path) is not None


def _system(url: str) -> object:
    """Returns the file system of a URL, with an empty cache of listings.

    Raises:
      UnimplementedError: fsspec, or its driver for such URLs, is not installed.
    """
    protocol = url.partition("://")[0]
    try:
        import fsspec  # noqa: PLC0415 - an optional dependency

        module: Any = fsspec
        system = module.filesystem(protocol)
    except ImportError as error:
        raise UnimplementedError(
            f"{url}: {protocol}:// needs a package that is not installed ({error}); install "
            "headwater[urls] and fsspec's driver for it, e.g. s3fs, gcsfs"
        ) from error
    except ValueError as error:
        raise UnimplementedError(f"{url}: fsspec knows no {protocol}:// ({error})") from error
    system.invalidate_cache()
    return system


@contextlib.contextmanager
def translated(url: str) -> Generator[Any]:
    """Yields the file system of a URL; converts its errors to `OSError` with a number, others to UnavailableError."""
    system = _system(url)
    try:
        yield system
    except OpError:
        raise
    except OSError as error:
        number = error.errno or next((n for kind, n in _ERRNO_OF_CLASS if isinstance(error, kind)), 0)
        if not number:
            raise UnavailableError(f"{url}: {error}") from error
        raise OSError(number, os.strerror(number) if not error.strerror else error.strerror) from error
    except Exception as error:  # each driver has errors of its own, of no common class
        raise UnavailableError(f"{url}: {type(error).__name__}: {error}") from error


def exists(url: str) -> bool:
    with translated(url) as system:
        return bool(system.exists(url))


def isdir(url: str) -> bool:
    with translated(url) as system:
        return bool(system.isdir(url))


def info(url: str) -> tuple[int, int, bool]:
    """Returns size in bytes, time of the last change in nanoseconds (0 if unknown), and whether the URL is a folder."""
    with translated(url) as system:
        found = system.info(url)
        changed = found.get("LastModified") or found.get("mtime") or found.get("created")
        seconds = changed.timestamp() if hasattr(changed, "timestamp") else float(changed or 0)
        return int(found.get("size") or 0), int(seconds * 1e9), found["type"] == "directory"


def makedirs(url: str) -> None:
    with translated(url) as system:
        if system.isfile(url):
            raise FailedPreconditionError(f"{url}: a file of that name is in the way")
        system.makedirs(url, exist_ok=True)


def remove(url: str) -> None:
    with translated(url) as system:
        if not system.exists(url):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if not system.isfile(url):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        system.rm_file(url)


def rmtree(url: str) -> None:
    with translated(url) as system:
        if not system.exists(url):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        system.rm(url, recursive=True)


def rename(source: str, target: str) -> None:
    """Moves a file, or a folder with its contents, within one file system. An object store copies the data, and then
    deletes the original."""
    with translated(source) as system:
        system.mv(source, target, recursive=bool(system.isdir(source)))


def listdir(url: str) -> list[str]:
    with translated(url) as system:
        own = system._strip_protocol(url).rstrip("/")
        # A store may keep an empty file for the folder itself.
        paths = {str(name).rstrip("/") for name in system.ls(url, detail=False)} - {own}
        return sorted(path.rpartition("/")[2] for path in paths)


def upload(local: str, url: str) -> None:
    """Uploads a file of this machine to a URL at once."""
    with translated(url) as system:
        system.put_file(local, url)


def download(url: str) -> BinaryIO:
    """Returns an unnamed local file with the contents of a URL, positioned at its start."""
    held = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - the caller closes it
    try:
        with translated(url) as system, system.open(url, "rb") as source:
            shutil.copyfileobj(source, held, 1 << 20)
    except BaseException:
        held.close()
        raise
    held.seek(0)
    return held


class RemoteFile(io.RawIOBase):
    """A file at a URL for writing, or reading and writing: a temporary local file, uploaded when flushed or closed.

    Args:
      url: the target of the upload.
      mode: a binary mode of `open` for writing.
    """

    def __init__(self, url: str, mode: str) -> None:
        self._url = url
        self._mode = mode
        self._local = tempfile.NamedTemporaryFile(prefix="headwater-upload-")  # noqa: SIM115 - closed in `close`
        self._changed = mode[0] == "w"
        if mode[0] in "ar" and (mode[0] == "r" or exists(url)):
            with download(url) as before:
                shutil.copyfileobj(before, self._local)
            if mode[0] == "r":
                self._local.seek(0)

    def readable(self) -> bool:
        return "r" in self._mode or "+" in self._mode

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        return cast("Any", self._local).readinto(buffer)

    def write(self, data: Any) -> int:
        self._changed = True
        if self._mode[0] == "a":
            self._local.seek(0, os.SEEK_END)
        return self._local.write(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._local.seek(offset, whence)

    def tell(self) -> int:
        return self._local.tell()

    def flush(self) -> None:
        """Uploads the data so far, so that readers find them."""
        if self.closed or not self._changed:
            return
        self._local.flush()
        upload(self._local.name, self._url)
        self._changed = False

    def close(self) -> None:
        if self.closed:
            return
        try:
            super().close()  # flushes
        finally:
            self._local.close()


def open_file(url: str, mode: str, buffer_bytes: int) -> BinaryIO:
    """Opens a buffered file at a URL."""
    if mode.replace("b", "") == "r":
        with translated(url) as system:
            if system.isdir(url):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            return cast("BinaryIO", system.open(url, "rb", block_size=max(buffer_bytes, 5 << 20)))
    raw = RemoteFile(url, mode.replace("b", ""))
    made: object = io.BufferedRandom(raw, buffer_bytes) if "+" in mode else io.BufferedWriter(raw, buffer_bytes)
    return made
