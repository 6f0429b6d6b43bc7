"""A ``ps`` that saves its own state every few seconds, and goes on with it when it is started anew.

A save is of one moment: for it, updates wait only as long as it takes to take references to arrays; rows of tables,
which change where they lie, are copied some at a time, and put aside where they change before their turn. What did not
change since the save before is not written again, see `headwater.parameters.state_files`.

A whole state is written first, and again when the deltas since have grown to half its size. Once it is whole, what is
older than the whole state before it is removed: so a damaged file costs the saves since, not everything.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final
from urllib.parse import quote

import numpy as np

from headwater.errors import FailedPreconditionError, InvalidArgumentError, OpError
from headwater.io import crc32c, files
from headwater.parameters import state_files
from headwater.parameters.host import HostedParameters
from headwater.parameters.host_state import HostState
from headwater.parameters.periodic import Periodic
from headwater.parameters.recovery import Saves
from headwater.parameters.state_files import Bytes, Chain, Header, Rows, Spec, StateWriter, bytes_of
from headwater.parameters.updater import Array
from headwater.telemetry.sizes import size_text
from headwater.telemetry.troubles import TROUBLES, Troubles

_log = logging.getLogger("headwater")

#: What is written again where a byte of it changed, in bytes.
CHUNK_BYTES: Final = 256 << 10
#: How many rows of a table are looked at with updates kept waiting.
ROWS_AT_ONCE: Final = 4096
_LEDGER: Final = "ledger"

#: Of each chunk of an array two sums of different kinds: that neither changes with the bytes is next to impossible.
_Digests = list[tuple[int, int]]


class StateSaver:
    """Saves the state of one set of parameters on this task.

    Args:
      host: the set.
      saves: where and how often.
      index: the number of this ``ps``.
      tasks: how many there are.
      troubles: is told of what cannot be written.
      clock: gives seconds since 1970.

    Attributes:
      folder: of the files.
      written_bytes: so far.
      count: of saves so far.
    """

    def __init__(
        self,
        host: HostedParameters,
        saves: Saves,
        *,
        index: int,
        tasks: int,
        troubles: Troubles = TROUBLES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder: str = os.path.join(
            files.as_path(saves.folder), quote(host.name, safe=""), f"ps-{index:05d}-of-{tasks:05d}"
        )
        self.written_bytes: int = 0
        self.count: int = 0
        self._host = host
        self._task = f"/job:ps/task:{index}"
        self._every_s = saves.every_s
        self._troubles = troubles
        self._clock = clock
        self._number = 0
        # Of the file written last; None where the next must be whole.
        self._last: Header | None = None
        self._digests: dict[Spec, _Digests] = {}
        self._full_bytes = self._delta_bytes = 0
        #: Numbers of the last whole state, and of the one before.
        self._fulls = (0, 0)
        self._saving = threading.Lock()
        self._periodic = Periodic(f"saving {host.name!r} of {self._task}", saves.every_s, self.save)
        for table in host.tables:
            table.watch()

    # Beginning and end ------------------------------------------------------------------------------------------------

    def restore(self) -> bool:
        """Goes on with the newest state there is; whether there was one. Before the set is served.

        Raises:
          FailedPreconditionError: it is of other variables, of another optimizer, or of another number of ``ps``.
          OpError: the folder cannot be read.
        """
        state_files.remove_unfinished(self.folder)
        chain = state_files.find_chain(self.folder)
        self._number = max((number for number, _ in state_files.numbered(self.folder)), default=0)
        if chain is None:
            self._require_no_others()
            return False
        for problem in chain.problems:
            _log.error("%s cannot use a state that it has saved: %s", self._task, problem)
        if not chain.paths:
            return False
        last = chain.last
        if last.signature != self._host.signature:
            raise FailedPreconditionError(
                None,
                None,
                f"{self.folder} holds the state of other variables, or of variables divided otherwise: the program "
                "has changed, or the folder is another program's. Remove it, or name another one in saves=...",
            )
        try:
            self._host.resume(_state_of(chain), last.at)
            self._restore_rows(chain)
        except InvalidArgumentError as error:
            raise FailedPreconditionError(
                None,
                None,
                f"{self.folder} does not fit this program, whose optimizer may have changed: {error.message}. Remove "
                "it, or name another one in saves=...",
            ) from error
        self._fulls = (0, chain.headers[0].number)
        version, ago = self._host.version, self._clock() - last.at
        _log.warning("%s goes on with its own state of version %d, saved %.1f s ago", self._task, version, ago)
        return True

    def _require_no_others(self) -> None:
        """Raises FailedPreconditionError where there are states of another number of ``ps``."""
        parent, mine = os.path.split(self.folder)
        count = mine.rpartition("-of-")[2]
        for name in files.listdir(parent) if files.isdir(parent) else ():
            if name.rpartition("-of-")[2] != count and state_files.numbered(os.path.join(parent, name)):
                raise FailedPreconditionError(
                    None,
                    None,
                    f"{parent} holds the state of {name}, and there are {int(count)} ps now: start as many as before, "
                    "remove it, or name another folder in saves=...",
                )

    def _restore_rows(self, chain: Chain) -> None:
        tables = self._host.tables
        if not tables:
            return
        parts = [[(str(part.dtype), part.shape[1:]) for part in table.read(0, 0, ())] for table in tables]
        for rows in chain.rows():
            if rows.table >= len(tables):
                raise InvalidArgumentError(None, None, f"there are rows of table number {rows.table}")
            tables[rows.table].restore(rows.numbers, _split(rows, parts[rows.table]))

    def start(self) -> None:
        """Saves from now on, in a thread of its own."""
        self._periodic.start()

    def close(self) -> None:
        """The task ends. Where the job is over, its states have no use any more, and are removed; else the last one is
        saved, and nothing changes after it."""
        self._periodic.stop()
        if not self._host.is_over:
            self._host.ends()
            self.save()
            return
        try:
            state_files.remove(self.folder)
        except OpError as error:
            _log.error("%s cannot remove its states, though the job is over: %s", self._task, error.message)

    # Saving -----------------------------------------------------------------------------------------------------------

    def save(self) -> bool:
        """Writes what changed; whether there was anything, and all of it is written."""
        with self._saving:
            whole = self._last is None or 2 * self._delta_bytes > self._full_bytes
            with self._host.still():
                state, at = self._host.state(), self._clock()
                tables = self._host.tables if state is not None else ()
                rows = [table.begin_saving(whole=whole) for table in tables]
            if state is None:
                return False
            what = f"the state of {self._task} in {self.folder}"
            try:
                saved = self._write(state, at, rows, whole=whole)
            except BaseException as error:
                self._last = None
                with self._host.still():
                    for table in tables:
                        table.saving_failed()
                if not isinstance(error, OpError):
                    raise
                then = f"the next save is tried in {self._every_s:g} s; should the task be lost, it goes back further"
                self._troubles.failed(what, error, then)
                return False
            self._troubles.written(what)
            return saved

    def _write(self, state: HostState, at: float, rows: Sequence[int], *, whole: bool) -> bool:
        arrays = _arrays_of(state)
        digests = {spec: _digests(array) for spec, array in arrays}
        changed = {
            number: found
            for number, (spec, _) in enumerate(arrays)
            if (found := _changed(self._digests.get(spec), digests[spec]))
        }
        facts = {**state.facts(), "values": len(state.values), "ledger": state.ledger is not None}
        last = self._last
        if last is not None and not changed and not any(rows) and last.facts == facts:
            return False
        if not rows and not whole:  # a delta of most of it is better a whole state
            size = sum(len(found) for found in changed.values())
            whole = 2 * size > sum(map(len, digests.values()))
        base = last.id if last is not None and not whole else 0
        header = Header(
            number=self._number + 1,
            id=state_files.new_id(),
            base=base,
            at=at,
            signature=self._host.signature,
            facts=facts,
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
        self._wrote(header, writer.nbytes, digests)
        return True

    def _write_rows(self, writer: StateWriter) -> None:
        for number, table in enumerate(self._host.tables):
            while True:
                with self._host.still():
                    taken = table.take_saved(ROWS_AT_ONCE)
                if taken is None:
                    break
                writer.rows(number, *taken)

    def _wrote(self, header: Header, nbytes: int, digests: dict[Spec, _Digests]) -> None:
        self._number, self._last, self._digests = header.number, header, digests
        self.written_bytes += nbytes
        self.count += 1
        if header.base:
            self._delta_bytes += nbytes
            return
        self._full_bytes, self._delta_bytes = nbytes, 0
        self._fulls = (self._fulls[1], header.number)
        state_files.remove(self.folder, before=self._fulls[0])

    # How it fares -----------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        last, back = self._last, self._host.way_back
        text = "no state saved yet"
        if last is not None:
            version, ago = last.facts["version"], self._clock() - last.at
            text = f"version {version} saved {ago:.0f} s ago, {size_text(self.written_bytes)} in {self.count} saves"
        return f"{text}; {back}" if back is not None else text


def _arrays_of(state: HostState) -> list[tuple[Spec, Array]]:
    """Values, the optimizer's state, and the ledger, each with a name of its own."""
    named = [(f"value {number}", value) for number, value in enumerate(state.values)]
    named += [(f"state {name}", array) for name, array in state.state.items()]
    if state.ledger is not None:
        named.append((_LEDGER, np.frombuffer(state.ledger, np.uint8)))
    return [(Spec.of(name, array), array) for name, array in named]


def _state_of(chain: Chain) -> HostState:
    """What `_arrays_of` took apart."""
    arrays, facts = chain.arrays(), chain.last.facts
    names = [spec.name for spec in chain.last.arrays]
    ledger = arrays.pop().tobytes() if facts.get("ledger") else None
    count = int(facts.get("values", 0))
    state = {name.removeprefix("state "): array for name, array in zip(names[count:], arrays[count:], strict=False)}
    return HostState.of(facts, ledger, arrays[:count], state)


def _chunks(data: Bytes) -> Iterator[Bytes]:
    for start in range(0, len(data), CHUNK_BYTES):
        yield data[start : start + CHUNK_BYTES]


def _digests(array: Array) -> _Digests:
    return [
        (crc32c.value(chunk), int(chunk[: len(chunk) // 8 * 8].view(np.uint64).sum(dtype=np.uint64)))
        for chunk in _chunks(bytes_of(array))
    ]


def _changed(before: _Digests | None, after: _Digests) -> list[int]:
    """The numbers of chunks that changed; all where there were none before."""
    if before is None:
        return list(range(len(after)))
    return [at for at, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]


def _split(rows: Rows, parts: Sequence[tuple[str, tuple[int, ...]]]) -> list[Array]:
    try:
        return rows.split(parts)
    except ValueError as error:
        raise InvalidArgumentError(None, None, str(error)) from error
