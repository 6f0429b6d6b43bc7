"""The newest whole checkpoint of a folder, found without the file ``checkpoint`` that should name it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from google.protobuf import text_format

from headwater.data.io import files
from headwater.data.io.protos.checkpoint_state_pb2 import CheckpointState
from headwater.data.io.tensor_bundle import BundleReader, index_path
from headwater.errors import DataLossError, NotFoundError, OpError

_INDEX: Final = ".index"
_DATA: Final = re.compile(r"(.*)\.data-\d{5}-of-\d{5}")
_STEP: Final = re.compile(r"(.*)-(\d+)")
_STATE_BEGIN: Final = b"model_checkpoint_path:"
_MAX_STATE_BYTES: Final = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundCheckpoints:
    """Checkpoints found in a folder.

    Attributes:
      newest: path of the newest complete checkpoint; None if there is none.
      damaged: one sentence about the damage of each other checkpoint, beginning with the path of a file.
      without_index: one sentence for each data file without an index. An interrupted save leaves these, too.
    """

    newest: str | None
    damaged: tuple[str, ...]
    without_index: tuple[str, ...]


def find_checkpoints(folder: str, named: Iterable[str], state_name: str) -> FoundCheckpoints:
    """Returns the checkpoints in a folder, except for checkpoints named by another state file of the folder.

    Args:
      named: paths of further checkpoints, in any folder, which may not exist.
      state_name: name of the state file that should have named the newest.

    Raises:
      DataLossError: there are complete checkpoints, but it is not certain which is the newest.
    """
    try:
        names = files.listdir(folder or ".")
    except NotFoundError:
        names = []
    with_data = {match[1] for name in names if (match := _DATA.fullmatch(name))}
    indexed = {name.removesuffix(_INDEX) for name in names if name.endswith(_INDEX)} & with_data
    others = _named_by_others(folder, names, state_name)
    prefixes = {os.path.join(folder, name) for name in indexed}
    prefixes.update(path for path in named if files.exists(index_path(path)))
    whole: list[str] = []
    damaged: list[str] = []
    for prefix in sorted(prefixes):
        if os.path.abspath(prefix) in others:
            continue
        problem = damage_of(prefix)
        if problem is None:
            whole.append(prefix)
        else:
            damaged.append(problem)
    unnamed = [os.path.join(folder, name) for name in sorted(with_data - indexed)]
    return FoundCheckpoints(
        newest=_newest(whole, os.path.join(folder, state_name)),
        damaged=tuple(damaged),
        without_index=tuple(f"{index_path(path)} is missing" for path in unnamed),
    )


def damage_of(prefix: str) -> str | None:
    """Returns a description of missing or truncated parts of a checkpoint; None if complete. Computes no checksums."""
    try:
        with BundleReader(prefix) as reader:
            reader.check_sizes()
    except OpError as error:
        return error.message
    return None


def _newest(prefixes: list[str], state_path: str) -> str | None:
    """The checkpoint that was written last; its step has to be the highest of all with the same base name."""
    if not prefixes:
        return None
    times: dict[str, int] = {}
    for prefix in prefixes:
        with contextlib.suppress(NotFoundError):  # deleted meanwhile, as too old
            times[prefix] = files.stat(index_path(prefix)).mtime_nsec
    last = max(times, key=lambda prefix: (times[prefix], _step(prefix)))
    base, step = _step(last)
    for rival in times:
        if _step(rival)[0] == base and _step(rival)[1] > step:
            raise DataLossError(
                f"{state_path} is missing or damaged, and which checkpoint is the newest is not certain: {last} was "
                f"written last, {rival} has a higher step. Write the line model_checkpoint_path: "
                f'"{os.path.basename(last)}" into {state_path}, or the other name, to continue from it'
            )
    return last


def _step(prefix: str) -> tuple[str, int]:
    match = _STEP.fullmatch(prefix)
    return (match[1], int(match[2])) if match else (prefix, 0)


def _named_by_others(folder: str, names: list[str], state_name: str) -> set[str]:
    """Absolute paths of the checkpoints that other state files of the folder name."""
    found: set[str] = set()
    for name in names:
        path = os.path.join(folder, name)
        if name == state_name or name.endswith(_INDEX) or _DATA.fullmatch(name) or files.isdir(path):
            continue
        try:
            if files.stat(path).length > _MAX_STATE_BYTES:
                continue
            with files.open_file(path, "rb") as file:
                if file.read(len(_STATE_BEGIN)) != _STATE_BEGIN:
                    continue
                state = text_format.Parse((_STATE_BEGIN + file.read()).decode(), CheckpointState())
        except (OpError, text_format.ParseError, UnicodeDecodeError):
            continue
        for each in (state.model_checkpoint_path, *state.all_model_checkpoint_paths):
            found.add(os.path.abspath(os.path.join(folder, each)))
    return found
