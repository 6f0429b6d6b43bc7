"""Periodic saves of the state of a ``ps`` of Keras and JAX programs, from which it recovers after a restart; see
`headwater.state.state_saver`.

Tables are updated in place, so their rows have to be copied. This happens in pieces, between updates. If a row changes
before its piece is copied, its old values are first set aside for the save.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from headwater.data.io.state_files import Array, Chain, Rows, Spec, StateWriter
from headwater.errors import FailedPreconditionError, InvalidArgumentError
from headwater.ps.host import HostedParameters
from headwater.ps.host_state import HostState
from headwater.state.state_saver import Saves, StateSaver, StateSnapshot

_log = logging.getLogger("headwater")

#: Number of rows of a table that are copied at a time, while updates wait.
ROWS_AT_ONCE: Final[int] = 4096


class ParameterSaver(StateSaver):
    """Saves the state of one set of parameters on this task.

    Args:
      host: the set.
      saves: the folder and the interval of saves.
      index: the number of this ``ps``.
      tasks: number of ``ps``.
    """

    def __init__(
        self,
        host: HostedParameters,
        saves: Saves,
        *,
        index: int,
        tasks: int,
    ) -> None:
        super().__init__(
            saves,
            quote(host.name, safe=""),
            repr(host.name),
            index=index,
            tasks=tasks,
            option="saves=...",
        )
        self._host = host
        self._closing = False
        for table in host.tables:
            table.watch()

    # Lifecycle --------------------------------------------------------------------------------------------------------

    def restore(self) -> bool:
        """Restores the newest saved state; returns whether there was one. Called before the set is served.

        Raises:
          FailedPreconditionError: the state belongs to other variables, another optimizer, or another number of ``ps``.
          OpError: the folder cannot be read.
        """
        chain = self._find_state()
        if chain is None:
            return False
        last = chain.last
        if last.signature != self._host.signature:
            raise FailedPreconditionError(
                f"{self.folder} holds the state of other variables, or of variables that were divided differently: the "
                "program has changed, or the folder belongs to another program. Remove it, or name another folder in "
                "saves=..."
            )
        try:
            names = [spec.name for spec in last.arrays]
            self._host.memory.resume(HostState.unpack(last.facts, names, chain.arrays()), last.at)
            self._restore_rows(chain)
        except InvalidArgumentError as error:
            raise FailedPreconditionError(
                f"{self.folder} does not fit this program, whose optimizer may have changed: {error.message}. Remove "
                "it, or name another folder in saves=..."
            ) from error
        self._fulls = (0, chain.headers[0].number)
        version, ago = self._host.version, time.time() - last.at
        _log.warning("%s continues with its own state of version %d, saved %.1f s ago", self._task, version, ago)
        return True

    def _restore_rows(self, chain: Chain) -> None:
        tables = self._host.tables
        if not tables:
            return
        parts = [[(str(part.dtype), part.shape[1:]) for part in table.read(0, 0, ())] for table in tables]
        for rows in chain.rows():
            if rows.table >= len(tables):
                raise InvalidArgumentError(f"there are rows of table number {rows.table}")
            tables[rows.table].restore(rows.numbers, _split(rows, parts[rows.table]))

    def close(self) -> None:
        """Ends the saves, because the task shuts down.

        If the job is over, the saved states are removed. Otherwise a last state is saved, and later changes are not
        acknowledged.
        """
        self._periodic.stop()
        if self._host.workers.is_over:
            # A later job in the same folder must not continue from the states of a finished job.
            self._remove_all()
            return
        # Freeze before the last save: a gradient that is acknowledged after it would be lost.
        self._host.freeze_until_end("this task to restart: it saves its state and shuts down")
        self._closing = True
        self.save()
        # Otherwise answers flush the journal, but this task sends no further answers.
        self._host.updates.accounts.flush()

    # Saving -----------------------------------------------------------------------------------------------------------

    def _snapshot(self, *, whole: bool) -> StateSnapshot | None:
        # Under the lock, the values, the rows, and the numbers of the requests that made them are of the same moment.
        with self._host.lock:
            state, at = self._host.memory.state(last=self._closing), time.time()
            if state is None:
                return None
            rows = [table.start_saving(whole=whole) for table in self._host.tables]
        facts, named = state.pack()
        arrays = [(Spec.of(name, array), array) for name, array in named]
        return StateSnapshot(at=at, signature=self._host.signature, facts=facts, arrays=arrays, rows=rows)

    def _handle_failed_save(self) -> None:
        with self._host.lock:
            for table in self._host.tables:
                table.abandon_save()

    def _write_rows(self, writer: StateWriter) -> None:
        for number, table in enumerate(self._host.tables):
            while True:
                with self._host.lock:
                    # The lock is released between pieces, so that updates wait only briefly.
                    taken = table.next_saved(ROWS_AT_ONCE)
                if taken is None:
                    break
                writer.rows(number, *taken)

    # Status -----------------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        last, back = self._last, self._host.recovery_report
        text = "no state saved yet"
        if last is not None:
            text = self._status_text(f"version {last.facts['version']} ", last.at)
        return f"{text}; {back}" if back is not None else text


def _split(rows: Rows, parts: Sequence[tuple[str, tuple[int, ...]]]) -> list[Array]:
    try:
        return rows.split(parts)
    except ValueError as error:
        raise InvalidArgumentError(str(error)) from error
