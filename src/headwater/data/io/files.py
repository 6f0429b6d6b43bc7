"""Files and folders, with TensorFlow's errors instead of `OSError`, and files that are written atomically.

Paths are ``str``, ``bytes`` or `os.PathLike`; URLs that fsspec supports are paths, too (`headwater.data.io.remote`).
The functions behave like TensorFlow 1.15's ``tf.io.gfile``.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import glob as std_glob
import io
import os
import secrets
import shutil
import stat as std_stat
import tempfile
from collections.abc import Callable, Generator, Iterator
from typing import Any, BinaryIO, Final, cast

from headwater.data.io import remote
from headwater.data.io.disk import Disk, disk_of
from headwater.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
    UnknownError,
)

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]

BUFFER_BYTES: Final = 256 << 10
"""Size of the buffer behind a file that is written or read from start to end."""

_ERROR_OF_ERRNO: Final[dict[int, Callable[[str], OpError]]] = {
    errno.ENOENT: NotFoundError,
    errno.EEXIST: AlreadyExistsError,
    errno.EACCES: PermissionDeniedError,
    errno.EPERM: PermissionDeniedError,
    errno.EROFS: PermissionDeniedError,
    errno.ENOTDIR: FailedPreconditionError,
    errno.EISDIR: FailedPreconditionError,
    errno.ENOTEMPTY: FailedPreconditionError,
    errno.EBUSY: UnavailableError,
    errno.EINVAL: InvalidArgumentError,
    errno.ENAMETOOLONG: InvalidArgumentError,
    errno.ELOOP: InvalidArgumentError,
    errno.ENOSPC: ResourceExhaustedError,
    errno.EDQUOT: ResourceExhaustedError,
    errno.EFBIG: ResourceExhaustedError,
    errno.EMFILE: ResourceExhaustedError,
    errno.ENFILE: ResourceExhaustedError,
    errno.ENOMEM: ResourceExhaustedError,
    errno.EXDEV: UnimplementedError,
    errno.ENOTSUP: UnimplementedError,
}


def as_path(path: Path) -> str:
    """Returns ``path`` as text, without ``file://``; TypeError when it is not a path."""
    return os.fsdecode(path).removeprefix("file://")


def as_op_error(error: OSError, path: str) -> OpError:
    """Converts ``error`` to the corresponding error of Headwater, with the file's name."""
    make = _ERROR_OF_ERRNO.get(error.errno or 0, UnknownError)
    return make(f"{path}: {error.strerror or error}")


@contextlib.contextmanager
def translated(path: Path) -> Generator[str]:
    """Converts every `OSError` of the context to an `OpError`; yields ``path`` as text."""
    name = as_path(path)
    try:
        yield name
    except OSError as error:
        raise as_op_error(error, name) from error


class FileStatistics:
    """Status of a file.

    Attributes:
      length: size in bytes.
      mtime_nsec: time of the last change, in nanoseconds since 1970.
      is_directory: whether the path is a folder.
    """

    __slots__ = ("is_directory", "length", "mtime_nsec")

    def __init__(self, length: int, mtime_nsec: int, is_directory: bool) -> None:
        self.length: int = length
        self.mtime_nsec: int = mtime_nsec
        self.is_directory: bool = is_directory

    def __repr__(self) -> str:
        return f"FileStatistics(length={self.length}, mtime_nsec={self.mtime_nsec}, is_directory={self.is_directory})"


def exists(path: Path) -> bool:
    """Returns whether there is a file or folder at ``path``."""
    name = as_path(path)
    return remote.exists(name) if remote.is_url(name) else os.path.exists(name)


def isdir(path: Path) -> bool:
    """Returns whether ``path`` is a folder."""
    name = as_path(path)
    return remote.isdir(name) if remote.is_url(name) else os.path.isdir(name)


def stat(path: Path) -> FileStatistics:
    """Returns size, time and kind of a file; NotFoundError when there is none."""
    with translated(path) as name:
        if remote.is_url(name):
            return FileStatistics(*remote.info(name))
        found = os.stat(name)
    return FileStatistics(found.st_size, found.st_mtime_ns, std_stat.S_ISDIR(found.st_mode))


def mkdir(path: Path) -> None:
    """Creates one folder, unless it exists. NotFoundError when its parent does not exist."""
    with translated(path) as name, contextlib.suppress(FileExistsError):
        if remote.is_url(name):
            remote.makedirs(name)
        else:
            disk_of(name).check_change("create", name)
            os.mkdir(name)


def makedirs(path: Path) -> None:
    """Creates a folder and its parents, unless they exist.

    Raises:
      FailedPreconditionError: a file is in the way.
    """
    with translated(path) as name:
        if remote.is_url(name):
            remote.makedirs(name)
            return
        if not os.path.isdir(name):
            disk_of(name).check_change("create", name)
        try:
            os.makedirs(name, exist_ok=True)
        except FileExistsError:
            raise FailedPreconditionError(f"{name}: a file of that name is in the way") from None


def remove(path: Path) -> None:
    """Deletes one file. NotFoundError when there is none, FailedPreconditionError for a folder."""
    with translated(path) as name:
        if remote.is_url(name):
            remote.remove(name)
        else:
            disk_of(name).check_change("remove", name)
            os.remove(name)


def rmtree(path: Path) -> None:
    """Deletes a folder with its contents. NotFoundError when there is none, FailedPreconditionError for a file."""
    with translated(path) as name:
        if remote.is_url(name):
            remote.rmtree(name)
        else:
            disk_of(name).check_change("remove", name)
            shutil.rmtree(name)


def truncate(path: Path, length: int) -> None:
    """Truncates a file to ``length`` bytes; does nothing to a file at a URL."""
    with translated(path) as name:
        if not remote.is_url(name):
            os.truncate(name, length)


def copy(src: Path, dst: Path, overwrite: bool = False) -> None:
    """Copies one file; AlreadyExistsError when ``dst`` exists, unless ``overwrite``."""
    with translated(dst) as to:
        if not overwrite and exists(to):
            raise AlreadyExistsError(f"{to}: file already exists")
        with open_file(src, "rb") as reading, open_file(to, "wb") as writing:
            shutil.copyfileobj(reading, writing, BUFFER_BYTES)


def rename(src: Path, dst: Path, overwrite: bool = False) -> None:
    """Renames a file or folder; AlreadyExistsError when ``dst`` exists, unless ``overwrite``."""
    to = as_path(dst)
    if not overwrite and exists(to):
        raise AlreadyExistsError(f"{to}: file already exists")
    with translated(src) as name:
        if remote.is_url(name) != remote.is_url(to):
            copy(name, to, overwrite)
            remove(name)
        elif remote.is_url(name):
            remote.rename(name, to)
        else:
            disk_of(to).check_change("name", to)
            os.replace(name, to)


def listdir(path: Path) -> list[str]:
    """Returns the names in a folder, also hidden ones, in no order; NotFoundError when there is no such folder."""
    name = as_path(path)
    if not isdir(name):
        raise NotFoundError(f"{name}: could not find that folder")
    with translated(name):
        return remote.listdir(name) if remote.is_url(name) else os.listdir(name)


def walk(
    top: Path, topdown: bool = True, onerror: Callable[[OpError], object] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yields all folders below ``top``: (path, names of folders, names of files); nothing when it is not a folder.

    Args:
      top: the folder to begin with.
      topdown: whether a folder is yielded before the folders in it, rather than after them.
      onerror: called with the error of a folder that cannot be listed, which is then skipped.
    """
    path = as_path(top)
    if not isdir(path):
        return
    if remote.is_url(path):
        yield from _walk_url(path, topdown)
        return

    def report(error: OSError) -> None:
        if onerror is not None:
            onerror(as_op_error(error, error.filename or path))

    yield from os.walk(path, topdown=topdown, onerror=report)


def _walk_url(url: str, topdown: bool) -> Iterator[tuple[str, list[str], list[str]]]:
    paths = {name: os.path.join(url, name) for name in listdir(url)}
    folders = [name for name, path in paths.items() if isdir(path)]
    here = (url, folders, [name for name in paths if name not in folders])
    if topdown:
        yield here
    for name in folders:
        yield from _walk_url(paths[name], topdown)
    if not topdown:
        yield here


def glob(pattern: Path | list[Path] | tuple[Path, ...]) -> list[str]:
    """Returns paths that match a pattern, or several patterns; each pattern's are sorted.

    ``*``, ``?`` and ``[...]`` match within one name, also names that begin with a dot; ``**`` means ``*``.
    """
    if isinstance(pattern, list | tuple):
        return [path for one in pattern for path in glob(one)]
    text = as_path(pattern)
    if not std_glob.has_magic(text):
        return [text] if exists(text) else []
    folder, name = os.path.split(text)
    found: list[str] = []
    for parent in glob(folder) if folder and folder != text else [folder]:
        if not std_glob.has_magic(name):
            candidates = [name]
        else:
            try:
                candidates = fnmatch.filter(listdir(parent or "."), name)
            except NotFoundError:
                continue
        paths = (os.path.join(parent, candidate) for candidate in candidates)
        found.extend(path for path in paths if exists(path))
    return sorted(found)


def open_file(path: Path, mode: str) -> BinaryIO:
    """Opens a buffered file; NotFoundError when it does not exist, FailedPreconditionError for a folder.

    Args:
      mode: a binary mode of `open`, e.g. ``rb``.
    """
    with translated(path) as name:
        if remote.is_url(name):
            return remote.open_file(name, mode, BUFFER_BYTES)
        disk = disk_of(name)
        if mode in ("wb", "ab", "xb"):
            disk.check_change("create", name)
            return _buffered(disk, io.FileIO(name, mode.replace("b", "")), name)
        return cast("BinaryIO", open(name, mode, BUFFER_BYTES))


def _buffered(disk: Disk, raw: io.FileIO, path: str) -> BinaryIO:
    """Returns a file for writing, with a buffer in front of the disk's stream."""
    return cast("BinaryIO", io.BufferedWriter(disk.stream(raw, path), BUFFER_BYTES))


def open_descriptor(path: Path) -> int:
    """Returns a descriptor for reading a file at any position, which the caller closes; for a URL, of a downloaded
    copy."""
    with translated(path) as name:
        if not remote.is_url(name):
            return os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        with remote.download(name) as held:
            return os.dup(held.fileno())


def create(path: Path) -> None:
    """Creates an empty file; AlreadyExistsError if there is one."""
    with translated(path) as name:
        if not remote.is_url(name):
            disk_of(name).check_change("create", name)
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
            return
        if remote.exists(name):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        remote.open_file(name, "wb", BUFFER_BYTES).close()


def remove_empty_folder(path: Path) -> None:
    """Deletes a folder if it is empty."""
    name = as_path(path)
    if not remote.is_url(name):
        with contextlib.suppress(OSError):
            os.rmdir(name)


def _open_folder(path: str) -> int:
    return os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


class AtomicFile:
    """A new file that gets its name only once all its data are on the disk.

    Until `commit` the file has no name if the file system supports files without names, so that a killed process leaves
    nothing behind; otherwise, the file has a hidden name (``.NAME.RANDOM.tmp``) in the same folder. A file at a URL is
    uploaded at `commit`. As a context manager, the file is committed at the end of the block, and discarded after an
    exception.

    Attributes:
      path: the final name of the file.
      stream: the binary file to write to.
      closed: whether the file was committed or discarded.

    Raises:
      NotFoundError: the folder does not exist.
      ResourceExhaustedError: the disk is full, from `write` and `commit`; an earlier file at ``path`` is unchanged.
    """

    def __init__(self, path: Path) -> None:
        self.path: str = as_path(path)
        self.closed = False
        self._remote = remote.is_url(self.path)
        if self._remote:
            self._upload = tempfile.NamedTemporaryFile(prefix="headwater-upload-", buffering=BUFFER_BYTES)  # noqa: SIM115
            self.stream: Any = self._upload
            return
        self._disk = disk_of(self.path)
        folder, self._name = os.path.split(self.path)
        self._temporary = f".{self._name}.{secrets.token_hex(6)}.tmp"
        with translated(self.path):
            self._disk.check_change("create", self.path)
            self._folder = _open_folder(folder)
            try:
                descriptor, self._temporary_exists = self._open()
            except OSError:
                os.close(self._folder)
                raise
        self.stream = _buffered(self._disk, io.FileIO(descriptor, "w"), self.path)

    @property
    def _temporary_path(self) -> str:
        return os.path.join(os.path.dirname(self.path), self._temporary)

    def _open(self) -> tuple[int, bool]:
        try:
            return os.open(".", os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o666, dir_fd=self._folder), False
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                raise
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        return os.open(self._temporary, flags, 0o666, dir_fd=self._folder), True

    def write(self, data: object) -> None:
        """Appends ``data``, any C-contiguous buffer of bytes."""
        try:
            self.stream.write(data)
        except OSError as error:  # the `translated` context would take longer than a small write
            raise as_op_error(error, self.path) from error

    def sync(self) -> None:
        """Writes the data so far to the disk."""
        with translated(self.path):
            self.stream.flush()
            if not self._remote:
                self._disk.check_change("sync", self.path)
            os.fsync(self.stream.fileno())

    def commit(self) -> None:
        """Writes all data to the disk, then renames the file to its name, replacing an earlier file."""
        with translated(self.path):
            try:
                self.stream.flush()
                if self._remote:
                    remote.upload(self._upload.name, self.path)
                    return
                self._disk.check_change("sync", self.path)
                # The data must be durable before the name, or a crash of the machine could leave a named, incomplete
                # file.
                os.fsync(self.stream.fileno())
                if not self._temporary_exists:
                    self._disk.check_change("name", self._temporary_path)
                    # Python follows the link in /proc to the file only if dst_dir_fd or src_dir_fd is given.
                    os.link(f"/proc/self/fd/{self.stream.fileno()}", self._temporary, dst_dir_fd=self._folder)
                    self._temporary_exists = True
                self._disk.check_change("name", self.path)
                os.replace(self._temporary, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
                self._temporary_exists = False
                # Makes the new name durable, too.
                os.fsync(self._folder)
            finally:
                self.discard()

    def discard(self) -> None:
        """Deletes the file; does nothing after `commit`."""
        if self.closed:
            return
        self.closed: bool = True
        with contextlib.suppress(OSError):  # a full disk refuses the rest of the buffer once more
            self.stream.close()
        if self._remote:
            return
        if self._temporary_exists:
            with contextlib.suppress(OSError):
                self._disk.check_change("remove", self._temporary_path)
                os.remove(self._temporary, dir_fd=self._folder)
        os.close(self._folder)

    def __enter__(self) -> AtomicFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and not self.closed:
            self.commit()
        else:
            self.discard()


def atomic_write(path: Path) -> AtomicFile:
    """``with atomic_write(path) as file: file.write(data)``: ``path`` gets all data, or is unchanged."""
    return AtomicFile(path)
