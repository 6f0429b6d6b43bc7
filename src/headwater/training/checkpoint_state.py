"""Which checkpoints a folder has, and which is the newest: the text file ``checkpoint`` beside them.

The file is a ``CheckpointState`` message in text form. A path in it that is not absolute is relative to its folder.
"""

from __future__ import annotations

import glob
import logging
import os
from collections.abc import Iterable, Sequence
from typing import Any, Final

from google.protobuf import text_format

from headwater.errors import NotFoundError
from headwater.io import files
from headwater.io.files import Path, as_path
from headwater.io.protos.checkpoint_state_pb2 import CheckpointState
from headwater.io.tensor_bundle import index_path

_logger: Final = logging.getLogger(__name__)
_DEFAULT_FILENAME: Final = "checkpoint"
_NANOSECONDS: Final = 1_000_000_000
_ANY_DATA_FILE: Final = ".data-?????-of-?????"
_VERSION_2: Final = 2


def checkpoint_state_path(save_dir: Path, latest_filename: str | None = None) -> str:
    """Path of the state file of a folder."""
    return os.path.join(as_path(save_dir), latest_filename or _DEFAULT_FILENAME)


def generate_checkpoint_state_proto(
    save_dir: Path,
    model_checkpoint_path: Path,
    all_model_checkpoint_paths: Iterable[Path] | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> CheckpointState:
    """The state of a folder.

    When ``save_dir`` is relative, relative paths are made relative to it.

    Args:
      save_dir: the folder.
      model_checkpoint_path: the newest checkpoint.
      all_model_checkpoint_paths: all of them, oldest first; the newest is appended if it is not the last.
      all_model_checkpoint_timestamps: when each was saved, in seconds since 1970.
      last_preserved_timestamp: when one was last saved that is kept for good, in seconds since 1970.

    Raises:
      ValueError: there are not as many timestamps as checkpoints.
    """
    folder = as_path(save_dir)
    newest = as_path(model_checkpoint_path)
    paths = [as_path(path) for path in all_model_checkpoint_paths or ()]
    if not paths or paths[-1] != newest:
        paths.append(newest)
    if all_model_checkpoint_timestamps and len(all_model_checkpoint_timestamps) != len(paths):
        raise ValueError(
            f"all_model_checkpoint_timestamps has {len(all_model_checkpoint_timestamps)} elements, "
            f"there are {len(paths)} checkpoints"
        )
    if not os.path.isabs(folder):
        paths = [path if os.path.isabs(path) else os.path.relpath(path, folder) for path in paths]
    return CheckpointState(
        model_checkpoint_path=paths[-1],
        all_model_checkpoint_paths=paths,
        all_model_checkpoint_timestamps=all_model_checkpoint_timestamps,
        last_preserved_timestamp=last_preserved_timestamp,
    )


def update_checkpoint_state(
    save_dir: Path,
    model_checkpoint_path: Path,
    all_model_checkpoint_paths: Iterable[Path] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
    *,
    save_relative_paths: bool = False,
) -> None:
    """Writes the state file of a folder, whole or not at all.

    Args:
      save_dir: the folder.
      model_checkpoint_path: as `generate_checkpoint_state_proto` says, and the following too.
      all_model_checkpoint_paths: ...
      latest_filename: name of the state file; ``checkpoint`` by default.
      all_model_checkpoint_timestamps: ...
      last_preserved_timestamp: ...
      save_relative_paths: write absolute paths relative to ``save_dir``, so that the folder can move.

    Raises:
      RuntimeError: the newest checkpoint has the name of the state file.
      NotFoundError: there is no such folder.
      ResourceExhaustedError: the disk is full; the file is what it was.
    """
    path = checkpoint_state_path(save_dir, latest_filename)
    newest = as_path(model_checkpoint_path)
    if newest == path:
        raise RuntimeError(f"Save path {newest!r} is that of the checkpoint state; use a different save path")
    paths = [as_path(each) for each in all_model_checkpoint_paths or ()]
    if save_relative_paths:
        newest, *paths = (
            os.path.relpath(each, as_path(save_dir)) if os.path.isabs(each) else each for each in (newest, *paths)
        )
    state = generate_checkpoint_state_proto(
        save_dir, newest, paths, all_model_checkpoint_timestamps, last_preserved_timestamp
    )
    with files.atomic_write(path) as file:
        file.write(text_format.MessageToString(state).encode())


def get_checkpoint_state(checkpoint_dir: Path, latest_filename: str | None = None) -> Any:
    """The state of a folder, with paths that can be opened.

    Args:
      checkpoint_dir: the folder.
      latest_filename: name of the state file; ``checkpoint`` by default.

    Returns:
      A ``CheckpointState`` message; None when there is no state file, or an unreadable one.

    Raises:
      ValueError: the file names no newest checkpoint.
    """
    folder = as_path(checkpoint_dir)
    path = checkpoint_state_path(folder, latest_filename)
    try:
        with files.open_file(path, "rb") as file:
            state = text_format.Parse(file.read().decode(), CheckpointState())
    except NotFoundError:
        return None
    except (text_format.ParseError, UnicodeDecodeError) as error:
        _logger.warning("%s: checkpoint state ignored, it is damaged: %s", path, error)
        return None
    if not state.model_checkpoint_path:
        raise ValueError(f"{path}: model_checkpoint_path is missing")
    # Joining leaves absolute paths as they are.
    state.model_checkpoint_path = os.path.join(folder, state.model_checkpoint_path)
    for index, each in enumerate(state.all_model_checkpoint_paths):
        state.all_model_checkpoint_paths[index] = os.path.join(folder, each)
    return state


def latest_checkpoint(checkpoint_dir: Path, latest_filename: str | None = None) -> str | None:
    """Path of the newest checkpoint of a folder, for a restore; None when there is none."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None:
        return None
    newest: str = state.model_checkpoint_path
    if checkpoint_exists(glob.escape(newest)):
        return newest
    _logger.error("Couldn't match files for checkpoint %s", newest)
    return None


def checkpoint_exists(checkpoint_prefix: Path) -> bool:
    """Whether there is a checkpoint of that name, or any that matches it as a pattern."""
    prefix = as_path(checkpoint_prefix)
    return bool(files.glob(index_path(prefix)) or files.glob(prefix))


def get_checkpoint_mtimes(checkpoint_prefixes: Iterable[Path]) -> list[float]:
    """When each of the checkpoints was saved, in whole seconds since 1970; those that do not exist are left out."""
    times: list[float] = []
    for prefix in map(as_path, checkpoint_prefixes):
        found = files.glob([index_path(prefix), prefix])
        if found:
            times.append(float(files.stat(found[0]).mtime_nsec // _NANOSECONDS))
    return times


def meta_graph_filename(checkpoint_filename: Path, meta_graph_suffix: str = "meta") -> str:
    """Path of the graph that belongs to a checkpoint, e.g. ``model.ckpt-7.meta``; one graph for all shards."""
    return f"{as_path(checkpoint_filename).split('-?????-of-')[0]}.{meta_graph_suffix}"


def remove_checkpoint(
    checkpoint_prefix: Path, checkpoint_format_version: int = _VERSION_2, meta_graph_suffix: str = "meta"
) -> None:
    """Deletes the files of a checkpoint and its graph; those that do not exist are no error.

    Args:
      checkpoint_prefix: the checkpoint.
      checkpoint_format_version: 2, or 1 for the old format of one file.
      meta_graph_suffix: end of the name of the graph's file.
    """
    prefix = as_path(checkpoint_prefix)
    escaped = glob.escape(prefix)
    found = files.glob(glob.escape(meta_graph_filename(prefix, meta_graph_suffix)))
    if checkpoint_format_version == _VERSION_2:
        # The index first: from then on there is no checkpoint, rather than a damaged one.
        found += files.glob([index_path(escaped), escaped + _ANY_DATA_FILE])
    else:
        found += files.glob(escaped)
    for path in found:
        files.remove(path)
