"""Compiled programs kept on disk, so that a task that starts again, or beside others, need not compile them.

JAX's persistent compilation cache finds a program by its content. Its own files are written in place, so that a process
reads what another one has half written, and what a killed one has left. Here an entry appears as a whole, by renaming,
and any process may delete it: no locks are needed, also between machines that share the folder.

`HEADWATER_COMPILATION_CACHE` names another folder than ``headwater/compiled`` in the user's cache folder, or is
``off``. Where JAX has been given a folder (``JAX_COMPILATION_CACHE_DIR``), all is left to JAX.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

FOLDER: Final = "HEADWATER_COMPILATION_CACHE"
OFF: Final = ("off", "0")
#: Size of all entries, in bytes; above it the least recently used are deleted, a quarter of the size at once.
MOST_BYTES: Final = 1 << 30
#: What compiles faster is not worth a file, in seconds.
_LEAST_S: Final = 0.03


def keep_compiled(jax: Any) -> None:
    """Has JAX, just imported, keep what it compiles."""
    if jax.config.jax_compilation_cache_dir is not None or os.environ.get(FOLDER, "").lower() in OFF:
        return
    folder = _folder()
    if folder is None:
        return
    module: Any = sys.modules["jax._src.compilation_cache"]
    entries = Entries(folder)

    def get_file_cache(path: str) -> tuple[Entries, str]:
        return entries, path

    module.get_file_cache = get_file_cache
    jax.config.update("jax_compilation_cache_dir", str(folder))
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _LEAST_S)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _folder() -> Path | None:
    """The folder of this kind of machine; None where this user can have none."""
    chosen = os.environ.get(FOLDER)
    try:
        base = Path(chosen) if chosen else _user_folder() / "headwater" / "compiled"
        folder = base / f"{platform.machine()}-{_instructions()}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    # Code from a folder that others can write would be theirs.
    status = folder.stat()
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        return None
    return folder


def _user_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _instructions() -> str:
    """A digest of what instructions the processor has: XLA compiles for exactly these."""
    try:
        with Path("/proc/cpuinfo").open() as file:
            lines = sorted({line for line in file if line.startswith(("flags", "Features", "model name"))})
    except OSError:
        lines = [platform.processor()]
    return hashlib.blake2b("".join(lines).encode(), digest_size=6).hexdigest()


def _name(key: str) -> str:
    """A file's name, which is no longer than file systems allow: of a key the digest that it ends with."""
    return key[-64:]


class Entries:
    """A folder of entries, each a file. Stands in for JAX's own cache of files; no method raises `OSError`.

    Args:
      folder: exists.
      most: as `MOST_BYTES`.
    """

    def __init__(self, folder: Path, most: int = MOST_BYTES) -> None:
        self._path = folder
        self._most = most
        self._unseen = most  # bytes added since this process last looked at the size of all

    def get(self, key: str) -> bytes | None:
        """The entry, or None where there is none."""
        path = self._path / _name(key)
        try:
            value = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        return value

    def put(self, key: str, value: bytes) -> None:
        """Adds an entry, and deletes those that were not used for longest where there are too many."""
        if len(value) > self._most // 4:
            return
        with contextlib.suppress(OSError):
            descriptor, name = tempfile.mkstemp(dir=self._path)
            try:
                with open(descriptor, "wb") as file:
                    file.write(value)
                Path(name).replace(self._path / _name(key))
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise
            self._unseen += len(value)
            if self._unseen >= self._most // 16:
                self._unseen = 0
                self._bound()

    def _bound(self) -> None:
        found: list[tuple[float, int, str]] = []
        with os.scandir(self._path) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat()
                    found.append((status.st_mtime, status.st_size, entry.path))
        total = sum(size for _, size, _ in found)
        if total <= self._most:
            return
        for _, size, path in sorted(found):
            Path(path).unlink(missing_ok=True)
            total -= size
            if total <= self._most * 3 // 4:
                break
