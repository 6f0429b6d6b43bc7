"""The text file ``checkpoint``, which lists the checkpoints of its folder and names the newest.

The file is a ``CheckpointState`` message in text form, with a checksum in a comment line (`headwater.data.io.sealed`).
A path in it that is not absolute is relative to its folder.
"""

from __future__ import annotations

import glob
import logging
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from google.protobuf import text_format

from headwater.data.io import files
from headwater.data.io.files import Path, as_path
from headwater.data.io.protos.checkpoint_state_pb2 import CheckpointState
from headwater.data.io.sealed import seal, unseal
from headwater.data.io.tensor_bundle import index_path
from headwater.errors import DataLossError, NotFoundError
from headwater.tf1.training.checkpoint_search import FoundCheckpoints, find_checkpoints

if TYPE_CHECKING:
    from headwater.graph.types import Structure


_logger: Final = logging.getLogger(__name__)
_DEFAULT_FILENAME: Final = "checkpoint"
_NANOSECONDS: Final = 1_000_000_000
_ANY_DATA_FILE: Final = ".data-?????-of-?????"
_VERSION_2: Final = 2

_said: Final[dict[str, str]] = {}
"""The last warning logged about each unusable state file, by path; avoids repeating it."""


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
      model_checkpoint_path: the newest checkpoint.
      all_model_checkpoint_paths: all of them, oldest first; the newest is appended if it is not the last.
      all_model_checkpoint_timestamps: when each was saved, in seconds since 1970.
      last_preserved_timestamp: time of the latest checkpoint that is never deleted, in seconds since 1970.

    Raises:
      ValueError: the numbers of timestamps and checkpoints differ.
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
    """Writes the state file of a folder atomically.

    Args:
      model_checkpoint_path, all_model_checkpoint_paths, all_model_checkpoint_timestamps, last_preserved_timestamp: see
        `generate_checkpoint_state_proto`.
      latest_filename: name of the state file; ``checkpoint`` by default.
      save_relative_paths: write absolute paths relative to ``save_dir``, so that the folder can move.

    Raises:
      RuntimeError: the newest checkpoint has the name of the state file.
      NotFoundError: there is no such folder.
      ResourceExhaustedError: the disk is full; the file is unchanged.
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
        file.write(seal(text_format.MessageToString(state).encode()))


def get_checkpoint_state(checkpoint_dir: Path, latest_filename: str | None = None) -> Any:
    """Returns the state of a folder, with paths that can be opened.

    If the state file is missing or damaged while there are checkpoints, the newest complete checkpoint is searched for
    and a warning is logged, so that a program does not start over and overwrite them. The returned state then names
    only that checkpoint, so that no caller deletes other checkpoints.

    Args:
      latest_filename: name of the state file; ``checkpoint`` by default.

    Returns:
      A ``CheckpointState`` message; None when there is neither a state file nor a checkpoint.

    Raises:
      DataLossError: the file is missing or damaged and no checkpoint is whole, or it is not certain which is the
        newest; or it was edited by hand to name an older checkpoint, and still has its checksum.
      ValueError: the file names no newest checkpoint, and there is none.
    """
    folder = as_path(checkpoint_dir)
    path = checkpoint_state_path(folder, latest_filename)
    state = CheckpointState()
    try:
        with files.open_file(path, "rb") as file:
            content, sealed = unseal(file.read())
        text_format.Parse(content.decode(), state)
    except NotFoundError:
        return _without_state_file(folder, path)
    except (text_format.ParseError, UnicodeDecodeError) as error:
        return _from_damaged(folder, path, CheckpointState(), " ".join(str(error).split()))
    newest: str = state.model_checkpoint_path
    if newest:
        # Joining does not change absolute paths.
        newest = state.model_checkpoint_path = os.path.join(folder, newest)
    for index, each in enumerate(state.all_model_checkpoint_paths):
        state.all_model_checkpoint_paths[index] = os.path.join(folder, each)
    if sealed == "broken":
        return _from_damaged(folder, path, state, "its checksum is wrong")
    if not newest:
        return _from_empty(folder, path, state)
    return state if checkpoint_exists(glob.escape(newest)) else _from_outdated(folder, path, state)


def _without_state_file(folder: str, path: str) -> CheckpointState | None:
    found = _find(folder, path, CheckpointState())
    # A first save that was interrupted has data files, but has not overwritten anything yet.
    if found.newest is None and not found.damaged:
        return None
    return _instead(found, path, "it is missing")


def _from_damaged(folder: str, path: str, state: Structure, problem: str) -> CheckpointState:
    found = _find(folder, path, state)
    named: str = state.model_checkpoint_path
    older = found.newest is not None and os.path.abspath(named) != os.path.abspath(found.newest)
    if older and named and checkpoint_exists(glob.escape(named)):
        raise DataLossError(
            f"{path} is damaged, or was changed by hand: {problem}. It names {named}, while {found.newest} is the "
            "newest checkpoint. If you changed it, delete its line that begins with # crc32c; if not, delete the "
            "file to continue from the newest"
        )
    return _instead(found, path, f"it is damaged: {problem}")


def _from_empty(folder: str, path: str, state: Structure) -> CheckpointState:
    found = _find(folder, path, state)
    problem = "model_checkpoint_path is missing"
    if found.newest is None and not found.damaged:
        raise ValueError(f"{path}: {problem}")
    return _instead(found, path, f"it is damaged: {problem}")


def _from_outdated(folder: str, path: str, state: Structure) -> object:
    found = _find(folder, path, state)
    if found.newest is None and not found.damaged and not found.without_index:
        return state
    return _instead(found, path, f"it names {state.model_checkpoint_path}, which is not there")


def _find(folder: str, path: str, state: Structure) -> FoundCheckpoints:
    named = [each for each in (state.model_checkpoint_path, *state.all_model_checkpoint_paths) if each]
    return find_checkpoints(folder, named, os.path.basename(path))


def _instead(found: FoundCheckpoints, path: str, problem: str) -> CheckpointState:
    """Returns a state in place of the unusable state file ``path``; ``problem`` describes why it cannot be used."""
    if found.newest is None:
        damaged = "; ".join((*found.damaged, *found.without_index)) or "no checkpoint exists"
        raise DataLossError(
            f"The checkpoint state {path} cannot be used, {problem}, and no checkpoint beside it is complete: "
            f"{damaged}. Training does not start over existing checkpoints: restore the files, or move them away"
        )
    message = f"The checkpoint state {path} cannot be used, {problem}. {found.newest} is the newest whole checkpoint"
    if _said.get(path) != message:
        _said[path] = message  # warn a caller that polls the folder only once
        _logger.warning("%s: it is used instead, and the other checkpoints remain in the folder", message)
    return CheckpointState(model_checkpoint_path=found.newest, all_model_checkpoint_paths=[found.newest])


def latest_checkpoint(checkpoint_dir: Path, latest_filename: str | None = None) -> str | None:
    """Returns the path of the newest checkpoint of a folder, for a restore; None if there is none.

    Raises:
      DataLossError, ValueError: see `get_checkpoint_state`.
    """
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None:
        return None
    newest: str = state.model_checkpoint_path
    if checkpoint_exists(glob.escape(newest)):
        return newest
    _logger.error("Couldn't match files for checkpoint %s", newest)
    return None


def checkpoint_exists(checkpoint_prefix: Path) -> bool:
    """Returns whether there is a checkpoint of that name, or one that matches it as a pattern."""
    prefix = as_path(checkpoint_prefix)
    return bool(files.glob(index_path(prefix)) or files.glob(prefix))


def get_checkpoint_mtimes(checkpoint_prefixes: Iterable[Path]) -> list[float]:
    """Returns when the checkpoints were saved, in whole seconds since 1970; omits missing checkpoints."""
    times: list[float] = []
    for prefix in map(as_path, checkpoint_prefixes):
        found = files.glob([index_path(prefix), prefix])
        if found:
            times.append(float(files.stat(found[0]).mtime_nsec // _NANOSECONDS))
    return times


def meta_graph_filename(checkpoint_filename: Path, meta_graph_suffix: str = "meta") -> str:
    """Returns the path of a checkpoint's graph, e.g. ``model.ckpt-7.meta``; all shards share one graph."""
    return f"{as_path(checkpoint_filename).split('-?????-of-')[0]}.{meta_graph_suffix}"


def remove_checkpoint(
    checkpoint_prefix: Path, checkpoint_format_version: int = _VERSION_2, meta_graph_suffix: str = "meta"
) -> None:
    """Deletes the files of a checkpoint and its graph; missing files are ignored.

    Args:
      checkpoint_prefix: the checkpoint.
      checkpoint_format_version: 2, or 1 for the old format of one file.
      meta_graph_suffix: end of the name of the graph's file.
    """
    prefix = as_path(checkpoint_prefix)
    escaped = glob.escape(prefix)
    found = files.glob(glob.escape(meta_graph_filename(prefix, meta_graph_suffix)))
    if checkpoint_format_version == _VERSION_2:
        # Remove the index first: without it an interrupted removal leaves no checkpoint instead of a damaged one.
        found += files.glob([index_path(escaped), escaped + _ANY_DATA_FILE])
    else:
        first, parts, count = prefix.partition("-?????-of-")
        found += files.glob(glob.escape(first) + parts + count)
    for path in found:
        files.remove(path)
