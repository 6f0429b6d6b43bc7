"""Uploaded archives of jobs, named by the digest of their content."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

from headwater.platform.archives import ArchiveError
from headwater.platform.host.folders import private_folder

_DIGEST = re.compile(r"[0-9a-f]{64}")
# The first bytes of gzip, zip, bzip2, xz and zstandard; a plain tar has its magic bytes at offset 257.
_MAGIC = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")
_TAR_AT, _TAR = 257, b"ustar"


class TooLarge(ArchiveError):
    """An archive larger than the limit."""


class ArchiveStore:
    """A folder of archives.

    Args:
      folder: the folder; created on first use.
      max_bytes: the maximum size of an archive.

    Attributes:
      max_bytes: the maximum size of an archive.
    """

    def __init__(self, folder: Path, max_bytes: int = 1 << 30) -> None:
        self._folder = folder
        self.max_bytes = max_bytes
        self._unused: dict[Path, tuple[int, float]] = {}

    async def put(self, chunks: AsyncIterator[bytes]) -> str:
        """Stores an archive and returns its digest.

        Raises:
          TooLarge: the archive is larger than ``max_bytes``.
          ArchiveError: the first bytes are not those of a tar file, a compressed file or a zip file.
        """
        private_folder(self._folder)
        digest, size, head = hashlib.sha256(), 0, b""
        # A temporary name: an archive must not be found under its digest before it is complete.
        path = self._folder / f".{secrets.token_hex(8)}"
        try:
            with path.open("wb") as file:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > self.max_bytes:
                        raise TooLarge(f"the archive has more than {self.max_bytes} bytes")
                    head = (head + chunk)[:512] if len(head) < 512 else head
                    digest.update(chunk)
                    file.write(chunk)
            if not head.startswith(_MAGIC) and head[_TAR_AT : _TAR_AT + len(_TAR)] != _TAR:
                raise ArchiveError("the archive is neither a tar nor a zip file")
            os.replace(path, self._folder / digest.hexdigest())
        finally:
            path.unlink(missing_ok=True)
        return digest.hexdigest()

    def has(self, digest: str) -> bool:
        """Returns whether an archive of this digest is stored.

        If so, restarts the time after which it may be removed.
        """
        if _DIGEST.fullmatch(digest) is None:
            return False
        try:
            os.utime(self._folder / digest)
        except FileNotFoundError:
            return False
        return True

    def remove_unused(self, digests: set[str], *, now: float, after_s: float) -> None:
        """Removes archives and unfinished uploads that no job has needed for ``after_s`` seconds.

        An archive uploaded or looked up recently is kept, since its job may be about to be submitted. The time for
        which a file has been unused is counted from the first call that finds the file unused, and measured with
        ``now``. The file's modification time is not used, because the system clock may have been changed after the
        upload.

        Args:
          digests: digests of the archives that jobs need.
          now: the current time in seconds of a clock with an arbitrary origin; all calls must use the same clock.
          after_s: time for which a file must have been unused before it is removed, in seconds.
        """
        unused: dict[Path, tuple[int, float]] = {}
        if self._folder.is_dir():
            for path in self._folder.iterdir():
                with contextlib.suppress(FileNotFoundError):
                    if path.name in digests:
                        continue
                    touched = path.stat().st_mtime_ns
                    known, since = self._unused.get(path, (None, now))
                    since = since if known == touched else now
                    if now - since >= after_s:
                        path.unlink()
                    else:
                        unused[path] = touched, since
        self._unused = unused
