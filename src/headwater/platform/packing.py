"""Packs a working folder into an archive, to be uploaded with a job."""

from __future__ import annotations

import tarfile
from pathlib import Path

MAX_BYTES = 1 << 30
# Folders that are generated or belong to tools. They are often larger than all other files.
_EXCLUDED_FOLDERS = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", "__pycache__", "node_modules", ".ipynb_checkpoints"}
)


def pack(folder: Path, archive: Path) -> None:
    """Writes the files of ``folder`` to a gzipped tar file; without version control, environments and caches.

    Links within the folder are kept as links; other links are omitted.

    Raises:
      ValueError: the folder has more than `MAX_BYTES`.
      OSError: a file cannot be read.
    """
    size = 0

    def chosen(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        nonlocal size
        if Path(member.name).name in _EXCLUDED_FOLDERS or not (member.isfile() or member.isdir() or member.issym()):
            return None
        if member.issym() and not _stays_within(folder, member):
            return None
        size += member.size
        if size > MAX_BYTES:
            raise ValueError(f"{folder} has more than {MAX_BYTES} bytes: provide an archive with fewer files")
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    with tarfile.open(archive, "w:gz", compresslevel=3) as file:
        file.add(folder, arcname=".", filter=chosen)


def _stays_within(folder: Path, member: tarfile.TarInfo) -> bool:
    if member.linkname.startswith("/"):
        return False
    root = folder.resolve()
    return (root / Path(member.name).parent / member.linkname).resolve().is_relative_to(root)
