"""``tensorflow.python.lib.io.file_io``: files under the names that TensorFlow's own sources use."""

from __future__ import annotations

from headwater.data.io.file_object import GFile as FileIO
from headwater.data.io.files import Path, atomic_write, copy, isdir, rename, stat, walk
from headwater.data.io.files import exists as file_exists
from headwater.data.io.files import glob as get_matching_files
from headwater.data.io.files import listdir as list_directory
from headwater.data.io.files import makedirs as recursive_create_dir
from headwater.data.io.files import mkdir as create_dir
from headwater.data.io.files import remove as delete_file
from headwater.data.io.files import rmtree as delete_recursively
from headwater.errors import AlreadyExistsError

__all__ = [
    "FileIO",
    "atomic_write_string_to_file",
    "copy",
    "create_dir",
    "delete_file",
    "delete_recursively",
    "file_exists",
    "get_matching_files",
    "is_directory",
    "list_directory",
    "read_file_to_string",
    "recursive_create_dir",
    "rename",
    "stat",
    "walk",
    "write_string_to_file",
]

is_directory = isdir


def read_file_to_string(filename: Path, binary_mode: bool = False) -> str | bytes:
    """Returns the content of a file, as bytes in binary mode; NotFoundError if it does not exist."""
    with FileIO(filename, "rb" if binary_mode else "r") as file:
        return file.read()


def write_string_to_file(filename: Path, file_content: str | bytes) -> None:
    """Writes the whole file."""
    with FileIO(filename, "w") as file:
        file.write(file_content)


def atomic_write_string_to_file(filename: Path, contents: str | bytes, overwrite: bool = True) -> None:
    """Writes a file atomically; AlreadyExistsError if it exists and ``overwrite`` is False."""
    if not overwrite and file_exists(filename):
        raise AlreadyExistsError(f"{filename} already exists")
    with atomic_write(filename) as file:
        file.write(contents.encode() if isinstance(contents, str) else contents)
