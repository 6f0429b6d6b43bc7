"""``tf.gfile``: files under the names of TensorFlow 1.x."""

from __future__ import annotations

from headwater.data.io.file_object import GFile
from headwater.data.io.files import (
    Path,
    copy,
    exists,
    glob,
    isdir,
    listdir,
    makedirs,
    mkdir,
    remove,
    rename,
    rmtree,
    stat,
    walk,
)

__all__ = [
    "Copy",
    "DeleteRecursively",
    "Exists",
    "FastGFile",
    "GFile",
    "Glob",
    "IsDirectory",
    "ListDirectory",
    "MakeDirs",
    "MkDir",
    "Open",
    "Remove",
    "Rename",
    "Stat",
    "Walk",
]

Open = FastGFile = GFile


def Copy(oldpath: Path, newpath: Path, overwrite: bool = False) -> None:
    copy(oldpath, newpath, overwrite)


def DeleteRecursively(dirname: Path) -> None:
    rmtree(dirname)


def Exists(filename: Path) -> bool:
    return exists(filename)


def Glob(filename: Path | list[Path]) -> list[str]:
    return glob(filename)


def IsDirectory(dirname: Path) -> bool:
    return isdir(dirname)


def ListDirectory(dirname: Path) -> list[str]:
    return listdir(dirname)


def MakeDirs(dirname: Path) -> None:
    makedirs(dirname)


def MkDir(dirname: Path) -> None:
    mkdir(dirname)


def Remove(filename: Path) -> None:
    remove(filename)


def Rename(oldname: Path, newname: Path, overwrite: bool = False) -> None:
    rename(oldname, newname, overwrite)


def Stat(filename: Path):
    return stat(filename)


def Walk(top: Path, in_order: bool = True):
    return walk(top, in_order)
