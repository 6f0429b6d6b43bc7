"""``tf.resource_loader``: files beside a program's own modules."""

from __future__ import annotations

import inspect
import os

__all__ = [
    "get_data_files_path",
    "get_path_to_datafile",
    "get_root_dir_with_all_resources",
    "load_resource",
    "readahead_file_path",
]


def _caller() -> str:
    """Returns the folder of the module that called the calling function."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return os.path.dirname(os.path.abspath(frame.f_code.co_filename)) if frame is not None else os.getcwd()


def get_data_files_path() -> str:
    """The folder of the module that calls this."""
    return _caller()


def get_path_to_datafile(path: str) -> str:
    """The file ``path``, relative to the folder of the module that calls this."""
    return os.path.join(_caller(), path)


def get_root_dir_with_all_resources() -> str:
    """Returns the parent folder of the calling module's package; in a Bazel build the folder ``.runfiles``."""
    folder = _caller()
    before, found, _ = folder.partition(".runfiles" + os.sep)
    return before + ".runfiles" if found else folder


def load_resource(path: str) -> bytes:
    """Returns the content of the file ``path``, relative to the calling module's folder; OSError if missing."""
    with open(os.path.join(_caller(), path), "rb") as file:
        return file.read()


def readahead_file_path(path: str, readahead: str = "128M") -> str:
    """Returns ``path``: the operating system controls reading ahead."""
    del readahead
    return path
