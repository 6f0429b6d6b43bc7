"""A persistent cache of compiled programs, so that restarted tasks, and several tasks, need not compile them again.

JAX's persistent compilation cache finds a program by its content. Its own files are written in place, so that a process
may read an entry that another one is writing, or a partial one of a killed process. Here entries are written to
temporary files and renamed, and any process may delete them: no locks are needed, even between machines that share the
folder.

`HEADWATER_COMPILATION_CACHE` names a folder in place of ``headwater/compiled`` in the user's cache folder, or is
``off``. Where JAX has its own setting (``JAX_COMPILATION_CACHE_DIR``), this module does nothing.
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
MAX_BYTES: Final = 1 << 30
#: Minimum compilation time of an entry, in seconds.
_MIN_COMPILATION_S: Final = 0.03


def keep_compiled(jax: Any) -> None:
    """Enables the cache in JAX, which was just imported."""
    if jax.config.jax_compilation_cache_dir is not None:
        return
    path = folder()
    if path is None:
        return
    module: Any = sys.modules["jax._src.compilation_cache"]
    entries = Entries(path)

    def get_file_cache(path: str) -> tuple[Entries, str]:
        return entries, path

    module.get_file_cache = get_file_cache
    jax.config.update("jax_compilation_cache_dir", str(path))
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _MIN_COMPILATION_S)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def folder() -> Path | None:
    """Returns the folder for this kind of machine; None if the cache is off, the folder cannot be made, or others can
    write to it."""
    if os.environ.get(FOLDER, "").lower() in OFF:
        return None
    chosen = os.environ.get(FOLDER)
    try:
        base = Path(chosen) if chosen else _user_folder() / "headwater" / "compiled"
        path = base / f"{platform.machine()}-{_instructions()}"
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    # Others who can write to the folder could make this process run their code.
    status = path.stat()
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        return None
    return path


def _user_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _instructions() -> str:
    """Returns a digest of the processor's instruction sets, for which XLA compiles."""
    try:
        with Path("/proc/cpuinfo").open() as file:
            lines = sorted({line for line in file if line.startswith(("flags", "Features", "model name"))})
    except OSError:
        lines = [platform.processor()]
    return hashlib.blake2b("".join(lines).encode(), digest_size=6).hexdigest()


def _name(key: str) -> str:
    """Returns the file name of a key: the digest at its end, as whole keys may be too long for file systems."""
    return key[-64:]


class Entries:
    """A folder of entries, each a file. Replaces JAX's own cache of files; no method raises `OSError`.

    Args:
      folder: the folder, which exists.
      most: maximum size, see `MAX_BYTES`.
    """

    def __init__(self, folder: Path, most: int = MAX_BYTES) -> None:
        self.folder: Final = folder
        self._most = most
        self._unseen = most  # bytes added since this process last checked the total size

    def get(self, key: str) -> bytes | None:
        """Returns an entry, or None if there is none."""
        path = self.folder / _name(key)
        try:
            value = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        return value

    def has(self, key: str) -> bool:
        """Returns whether there is an entry."""
        return (self.folder / _name(key)).exists()

    def remove(self, key: str) -> None:
        """Removes an entry, if there is one."""
        with contextlib.suppress(OSError):
            (self.folder / _name(key)).unlink()

    def put(self, key: str, value: bytes) -> None:
        """Adds an entry, and deletes the least recently used entries if the total size exceeds the maximum."""
        if len(value) > self._most // 4:
            return
        with contextlib.suppress(OSError):
            descriptor, name = tempfile.mkstemp(dir=self.folder)
            try:
                with open(descriptor, "wb") as file:
                    file.write(value)
                Path(name).replace(self.folder / _name(key))
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise
            self._unseen += len(value)
            if self._unseen >= self._most // 16:
                self._unseen = 0
                self._bound()

    def _bound(self) -> None:
        found: list[tuple[float, int, str]] = []
        with os.scandir(self.folder) as entries:
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
