"""Safe unpacking of program archives: nothing is written outside the target folder."""

from __future__ import annotations

import copy
import gzip
import hashlib
import lzma
import os
import re
import shutil
import stat
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath

MAX_BYTES = 4 << 30
MAX_MEMBERS = 100_000
_PIECE = 1 << 20
_DIGEST = re.compile(r"[0-9a-f]{64}$")

# zipfile raises the last two for unknown compression and encryption methods.
_DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    RuntimeError,
)


class ArchiveError(ValueError):
    """The archive cannot or must not be unpacked; the message names the archive and the member."""


def unpack(archive: Path, folder: Path, *, max_bytes: int = MAX_BYTES, max_members: int = MAX_MEMBERS) -> None:
    """Unpacks a tar file, compressed or not, or a zip file into ``folder``, which exists.

    Nothing is written outside of ``folder``: members with absolute paths, with ``..``, or with links that lead out of
    it are refused, and so are devices. Owners are dropped, and all permissions except execution.

    Args:
      max_bytes: the maximum size of the unpacked content, in bytes.
      max_members: the maximum number of files and folders.

    Raises:
      ArchiveError: the file is not a tar or zip archive, is damaged, is too large, or has a forbidden member. If the
        file's name ends with 64 hexadecimal digits, these must be the SHA-256 of its content.
      OSError: the file cannot be read, or the folder cannot be written.
    """
    digest = _DIGEST.search(archive.name)
    if digest is not None:
        with archive.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest[0]:
                raise ArchiveError(f"{archive} is damaged: its content does not match its name; upload it again")
    try:
        if zipfile.is_zipfile(archive):
            _unpack_zip(archive, folder, max_bytes, max_members)
        else:
            _unpack_tar(archive, folder, max_bytes, max_members)
    except _DAMAGED as error:
        raise ArchiveError(f"{archive} cannot be unpacked: {error}") from error


def _unpack_tar(archive: Path, folder: Path, max_bytes: int, max_members: int) -> None:
    size = members = 0
    with tarfile.open(archive, "r:*") as tar:
        # Member by member, so that an excessive size is noticed before it is written.
        for member in tar:
            size, members = size + member.size, members + 1
            _check_size(archive, size, members, max_bytes, max_members)
            if hasattr(tarfile, "data_filter"):
                tar.extract(member, folder, filter="data")
            else:  # Python before 3.11.4, as in Debian 12
                tar.extraction_filter = _unchanged_member
                tar.extract(_as_data(member, folder), folder)
        # tarfile stops after the last member. Read to the end of the file, so that the checksum there is verified.
        rest = 0
        while piece := tar.fileobj.read(_PIECE):
            rest += len(piece)
            _check_size(archive, rest, members, max(max_bytes, _PIECE), max_members)


def _unchanged_member(member: tarfile.TarInfo, _folder: str) -> tarfile.TarInfo:
    return member


def _as_data(member: tarfile.TarInfo, folder: Path) -> tarfile.TarInfo:
    """Returns ``member`` as `tarfile.data_filter` would: within ``folder``, with the permissions of a plain file."""
    root = folder.resolve()
    name = member.name.lstrip("/")
    target = (root / name).resolve()
    if not target.is_relative_to(root):
        raise tarfile.TarError(f"{member.name!r} would be outside of the folder, at {target}")
    if member.islnk() or member.issym():
        # A hard link's target is relative to the archive's root, a symbolic link's target to the folder of the link.
        beside = (root / name).parent if member.issym() else root
        if PurePosixPath(member.linkname).is_absolute() or not (beside / member.linkname).resolve().is_relative_to(
            root
        ):
            raise tarfile.TarError(f"{member.name!r} is a link out of the folder, to {member.linkname!r}")
    elif not (member.isreg() or member.isdir()):
        raise tarfile.TarError(f"{member.name!r} is a special file")
    checked = copy.copy(member)
    checked.name, checked.uid, checked.gid = name, os.getuid(), os.getgid()
    checked.uname = checked.gname = ""
    executable = member.isdir() or member.mode & stat.S_IXUSR
    checked.mode = 0o755 if executable else 0o644
    return checked


def _unpack_zip(archive: Path, folder: Path, max_bytes: int, max_members: int) -> None:
    with zipfile.ZipFile(archive) as zipped:
        entries = zipped.infolist()
        # Python reads at most the size that the archive declares for a member, so the declared sizes can be trusted.
        _check_size(archive, sum(entry.file_size for entry in entries), len(entries), max_bytes, max_members)
        for entry in entries:
            path = PurePosixPath(entry.filename)
            if path.is_absolute() or ".." in path.parts or "\\" in entry.filename:
                raise ArchiveError(f"{archive} has a member {entry.filename!r}, which is outside of it")
            mode = entry.external_attr >> 16
            if mode and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_IFMT(mode) == 0):
                raise ArchiveError(f"{archive} has a member {entry.filename!r} that is neither a file nor a folder")
            target = folder / path
            if entry.is_dir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with zipped.open(entry) as source, target.open("wb") as file:
                shutil.copyfileobj(source, file)
            if mode & stat.S_IXUSR:
                target.chmod(0o755)


def _check_size(archive: Path, size: int, members: int, max_bytes: int, max_members: int) -> None:
    if members > max_members:
        raise ArchiveError(f"{archive} has more than {max_members} members")
    if size > max_bytes:
        raise ArchiveError(f"{archive} would need more than {max_bytes} bytes")


def main() -> int:
    """Unpacks ``ARCHIVE FOLDER`` from the command line; pods fetch their program with it."""
    archive, folder = map(Path, sys.argv[1:])
    try:
        unpack(archive, folder)
    except ArchiveError as error:
        print(f"headwater: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
