"""Periodic saves of a ``ps``'s own state, from which it recovers after a restart; shared by graphs, Keras and JAX.

A save is a consistent snapshot: updates wait only while references to its arrays are taken. Chunks that have not
changed since the preceding save are not written again, see `headwater.data.io.state_files`.

The first save is a full state, and later ones are deltas. When the deltas have grown to half the size of the full
state, another full state is written. Once the new full state is complete, files older than the preceding full state are
removed. So if a file is damaged, an older state can still be restored.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from headwater.cluster.telemetry.sizes import size_text
from headwater.cluster.telemetry.troubles import TROUBLES
from headwater.data.io import crc32c, files, state_files
from headwater.data.io.state_files import Array, Bytes, Chain, Header, Spec, StateWriter, bytes_of
from headwater.errors import FailedPreconditionError, OpError
from headwater.state.periodic import Periodic

_log = logging.getLogger("headwater")

#: Size of a chunk, in bytes. A chunk is compared with the last save, and written if one of its bytes has changed.
CHUNK_BYTES: Final = 256 << 10

#: For each chunk of an array, a CRC-32C and a sum. In practice, every change of a chunk alters at least one of them.
_Digests = list[tuple[int, int]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Saves:
    """The folder and the interval with which a ``ps`` saves its own state.

    Attributes:
      folder: the folder below which each ``ps`` has its own folder. If a ``ps`` may restart on another machine, the
        machines must share it.
      every_s: seconds between two saves.
    """

    folder: str
    every_s: float = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class StateSnapshot:
    """A snapshot of a state.

    Attributes:
      at: the time of the snapshot, in seconds since 1970.
      signature: identifies the program or variables to which the state belongs.
      facts: the state except its arrays, as values that JSON can encode.
      arrays: the arrays; later updates do not change them.
      rows: for each table, the number of rows that belong to the snapshot but have not been read yet.
    """

    at: float
    signature: str
    facts: Mapping[str, Any]
    arrays: Sequence[tuple[Spec, Array]]
    rows: Sequence[int] = ()


class PeriodicSaver:
    """Saves a state of this task periodically, in its own folder.

    Args:
      saves: the folder and the interval.
      name: the name of the folder below ``saves.folder``.
      what: a description of the state for messages.
      index: the number of this ``ps``.
      tasks: the number of ``ps``.

    Attributes:
      folder: the folder of the files.
      written_bytes: the number of bytes written so far.
      count: the number of saves so far.
    """

    def __init__(
        self,
        saves: Saves,
        name: str,
        what: str,
        *,
        index: int,
        tasks: int,
    ) -> None:
        self.folder: str = os.path.join(files.as_path(saves.folder), name, f"ps-{index:05d}-of-{tasks:05d}")
        self.written_bytes: int = 0
        self.count: int = 0
        self._task = f"/job:ps/task:{index}"
        self._every_s = saves.every_s
        self._number = 0
        self._periodic = Periodic(f"saving {what} of {self._task}", saves.every_s, self.save)

    def start(self) -> None:
        """Starts to save periodically, in its own thread."""
        self._periodic.start()

    def save(self) -> bool:
        """Saves the changes since the last save.

        Returns:
          Whether there were changes and all of them were written.
        """
        raise NotImplementedError

    def _report_failure(self, what: str, error: OpError) -> None:
        """Reports that ``what`` could not be written."""
        then = f"the next save is attempted in {self._every_s:g} s; until then, a restart would restore an older state"
        TROUBLES.record_failure(what, error, then)

    def _remove_all(self) -> None:
        """Removes all saves, as the job is over."""
        try:
            self._remove()
        except OpError as error:
            _log.error("%s cannot remove its saved state after the end of the job: %s", self._task, error.message)

    def _remove(self) -> None:
        raise NotImplementedError

    def _status_text(self, what: str, at: float) -> str:
        """Returns the status of the saves in words, after ``what``."""
        return f"{what}saved {time.time() - at:.0f} s ago, {size_text(self.written_bytes)} in {self.count} saves"


class StateSaver(PeriodicSaver):
    """Saves a state that consists of arrays and rows of tables, as full states and deltas.

    Args:
      saves, name, what, index, tasks: see `PeriodicSaver`.
      option: the option with which users set the folder, for messages.
    """

    def __init__(
        self,
        saves: Saves,
        name: str,
        what: str,
        *,
        index: int,
        tasks: int,
        option: str,
    ) -> None:
        super().__init__(saves, name, what, index=index, tasks=tasks)
        self._option = option
        # Header of the last file written; None if the next save must be a full state.
        self._last: Header | None = None
        self._digests: dict[Spec, _Digests] = {}
        self._full_bytes = self._delta_bytes = 0
        #: Numbers of the last full state, and of the preceding one.
        self._fulls = (0, 0)
        self._saving = threading.Lock()

    # The state to save ------------------------------------------------------------------------------------------------

    def _snapshot(self, *, whole: bool) -> StateSnapshot | None:
        """Takes a snapshot of the current state; returns None if there is nothing to save.

        Args:
          whole: a full state will be written, not only the changes.
        """
        raise NotImplementedError

    def _write_rows(self, writer: StateWriter) -> None:
        """Writes the rows of tables of the last snapshot."""

    def _handle_failed_save(self) -> None:
        """Called if the last snapshot could not be written."""

    # Lifecycle --------------------------------------------------------------------------------------------------------

    def _find_state(self) -> Chain | None:
        """Returns the newest state that is complete and readable; None if there is none.

        Raises:
          FailedPreconditionError: the saved states belong to a job with another number of ``ps``.
          OpError: the folder cannot be read.
        """
        state_files.remove_unfinished(self.folder)
        chain = state_files.find_chain(self.folder)
        self._number = max((number for number, _ in state_files.numbered(self.folder)), default=0)
        if chain is None:
            self._require_no_others()
            return None
        for problem in chain.problems:
            _log.error("%s cannot use a state that it has saved: %s", self._task, problem)
        return chain if chain.paths else None

    def _require_no_others(self) -> None:
        """Raises FailedPreconditionError if the folder has saved states of a job with another number of ``ps``."""
        parent, mine = os.path.split(self.folder)
        count = mine.rpartition("-of-")[2]
        for name in files.listdir(parent) if files.isdir(parent) else ():
            if name.rpartition("-of-")[2] != count and state_files.numbered(os.path.join(parent, name)):
                raise FailedPreconditionError(
                    f"{parent} holds the state of {name}, and there are {int(count)} ps now: start as many as before, "
                    f"remove it, or name another folder in {self._option}"
                )

    def _remove(self) -> None:
        state_files.remove(self.folder)

    # Saving -----------------------------------------------------------------------------------------------------------

    def save(self) -> bool:
        with self._saving:
            whole = self._last is None or 2 * self._delta_bytes > self._full_bytes
            taken = self._snapshot(whole=whole)
            if taken is None:
                return False
            what = f"the state of {self._task} in {self.folder}"
            try:
                saved = self._write(taken, whole=whole)
            except BaseException as error:
                # The next save must be a full state: a delta would lack the rows that belonged to this save.
                self._last = None
                self._handle_failed_save()
                if not isinstance(error, OpError):
                    raise
                self._report_failure(what, error)
                return False
            TROUBLES.record_success(what)
            return saved

    def _write(self, taken: StateSnapshot, *, whole: bool) -> bool:
        arrays, rows = taken.arrays, taken.rows
        digests = {spec: _digests(array) for spec, array in arrays}
        changed = {
            number: chunks
            for number, (spec, _) in enumerate(arrays)
            if (chunks := _changed_chunks(self._digests.get(spec), digests[spec]))
        }
        last = self._last
        if last is not None and not changed and not any(rows) and last.facts == taken.facts:
            return False
        if not rows and not whole:  # a delta of most of the state is hardly smaller than a full one
            size = sum(len(chunks) for chunks in changed.values())
            whole = 2 * size > sum(map(len, digests.values()))
        base = last.id if last is not None and not whole else 0
        header = Header(
            number=self._number + 1,
            id=state_files.new_id(),
            base=base,
            at=taken.at,
            signature=taken.signature,
            facts=taken.facts,
            arrays=[spec for spec, _ in arrays],
        )
        files.makedirs(self.folder)
        with StateWriter(self.folder, header) as writer:
            for number, (spec, array) in enumerate(arrays):
                data = bytes_of(array)
                for chunk in range(len(digests[spec])) if whole else changed.get(number, ()):
                    start = chunk * CHUNK_BYTES
                    writer.chunk(number, start, data[start : start + CHUNK_BYTES])
            self._write_rows(writer)
        self._record_write(header, writer.nbytes, digests)
        return True

    def _record_write(self, header: Header, nbytes: int, digests: dict[Spec, _Digests]) -> None:
        self._number, self._last, self._digests = header.number, header, digests
        self.written_bytes += nbytes
        self.count += 1
        if header.base:
            self._delta_bytes += nbytes
            return
        self._full_bytes, self._delta_bytes = nbytes, 0
        self._fulls = (self._fulls[1], header.number)
        state_files.remove(self.folder, before=self._fulls[0])


def _chunks(data: Bytes) -> Iterator[Bytes]:
    for start in range(0, len(data), CHUNK_BYTES):
        yield data[start : start + CHUNK_BYTES]


def _digests(array: Array) -> _Digests:
    return [
        (crc32c.value(chunk), int(chunk[: len(chunk) // 8 * 8].view(np.uint64).sum(dtype=np.uint64)))
        for chunk in _chunks(bytes_of(array))
    ]


def _changed_chunks(before: _Digests | None, after: _Digests) -> list[int]:
    """Returns the numbers of the chunks that changed; of all chunks if there is no earlier digest."""
    if before is None:
        return list(range(len(after)))
    return [at for at, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]
