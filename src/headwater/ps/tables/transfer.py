"""Transfer of rows of tables between a worker and every ``ps``: rows of a step, and whole tables, some rows at a
time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header
from headwater.cluster.transport.frames import Frame
from headwater.ps.conversation import Conversation
from headwater.ps.layout import Block, Layout, block_shape, concatenate_parts
from headwater.ps.row_encoding import decode_rows, encode_numbers, encode_rows
from headwater.ps.tables.copies import AT_ONCE_BYTES, TableCopy, row_bytes, rows_of
from headwater.ps.updater import Array

#: Returns, for a table (by its variable), all its rows and, unless the ``ps`` initializes it, their optimizer state.
#: None for a table whose rows the ``ps`` initializes.
TableRows = Callable[[int], Sequence[Any] | None]


class TableTransfer:
    """One worker's access to the tables of a set of parameters.

    Args:
      layout: the placement of all blocks on all ``ps``.
      conversation: the connections to every ``ps``.
      initial: the variables' values; None in the place of a table whose rows the ``ps`` initializes.
    """

    def __init__(self, layout: Layout, conversation: Conversation, initial: Sequence[object]) -> None:
        self._layout = layout
        self._conversation = conversation
        self._sessions = conversation.sessions
        self._initial = initial
        self._initial_rows: TableRows | None = None
        self._wire = "float32"

    def set_wire(self, form: str) -> None:
        """Sets the encoding of rows that are sent to this worker (`headwater.tables.row_formats`).

        If the encoding is not float32, gradients are sent as bfloat16.
        """
        self._wire = form

    def set_initial(self, rows: TableRows) -> None:
        """Sets the function that provides the initial rows of tables and their state, by variable."""
        self._initial_rows = rows

    def rows(self, wanted: Mapping[int, Array]) -> dict[int, Array]:
        """Reads rows of tables.

        Args:
          wanted: the numbers of rows by variable, ascending.

        Returns:
          The rows by variable, in that order.
        """
        header = () if self._wire == "float32" else (self._wire,)
        frames = [Frame(kinds.ROWS, header, numbers) for numbers in self._row_numbers(wanted)]
        answers = self._conversation.exchange(frames)
        parts: dict[int, list[tuple[int, Array]]] = {variable: [] for variable in wanted}
        for index, (session, early_answer, frame) in enumerate(zip(self._sessions, answers, frames, strict=True)):
            # A read has no effect, so it can be repeated to a ps that was lost meanwhile.
            answer = self._conversation.request_until_answered(index, frame) if early_answer is None else early_answer
            if len(answer.tensors) != len(session.tables):
                raise bad_header(answer, session.task)
            for (_, block), rows in zip(session.tables, answer.tensors, strict=True):
                dim = self._layout.variables[block.variable].shape[-1]
                parts[block.variable].append((block.start, decode_rows(rows, dim)))
        self._conversation.rows_read += sum(len(numbers) for numbers in wanted.values())
        return {variable: concatenate_parts(early_answer) for variable, early_answer in parts.items()}

    def _row_numbers(self, wanted: Mapping[int, Array]) -> list[list[Array]]:
        """Returns by ``ps``, for each of its tables, the wanted rows on it, counted from its first row."""
        return [
            [self._numbers(part, wanted[part.variable]) for _, part in session.tables] for session in self._sessions
        ]

    def _numbers(self, part: Block, wanted: Array) -> Array:
        rows = block_shape(self._layout.variables[part.variable], part)[0]
        return encode_numbers(wanted[rows_within(part, wanted)] - max(0, part.start), rows)

    def encode_push(self, part: Block, numbers: Array, gradients: Array) -> list[Array]:
        """Encodes the gradients of rows of a table for the ``ps`` that holds ``part``: numbers and gradients.

        Args:
          part: the block of the table on the ``ps``.
          numbers: the numbers of rows, ascending.
          gradients: the gradients of these rows.
        """
        there = gradients[rows_within(part, numbers)]
        # Gradients get at least 16 bits, also where rows are sent as int8.
        form = "float32" if self._wire == "float32" else "bfloat16"
        return [self._numbers(part, numbers), encode_rows(there, form)]

    def replace(self) -> None:
        """Sends every ``ps`` the rows that the program provides; other tables are unchanged."""
        for index, session in enumerate(self._sessions):
            for number in range(len(session.tables)):
                self._write(index, number, self._given(index, number), retries=True)

    def _given(self, index: int, number: int) -> Iterator[tuple[int, list[Array]]] | None:
        """Returns the rows of a table of a ``ps`` that the program provides, see `TableCopy.rows`."""
        _, block = self._sessions[index].tables[number]
        initial = self._initial[block.variable]
        whole = self._initial_rows(block.variable) if self._initial_rows is not None else None
        if whole is None and initial is not None:
            whole = [initial]
        if whole is None:
            return None
        return rows_of([block.of(array) for array in whole])

    def fill(self, index: int, *, restores: bool, copy: TableCopy | None) -> list[int]:
        """Sends a ``ps`` without values the rows of its tables; returns the numbers of the tables that it has written.

        Args:
          index: the number of the ``ps``.
          restores: whether to send the rows in ``copy`` instead of the rows that the program provides.
          copy: rows that were read before, or None.
        """
        session = self._sessions[index]
        written: list[int] = []
        for number in range(len(session.tables)):
            if restores:
                rows = copy.rows(index, number) if copy is not None else None
            else:
                rows = None if session.pieces else self._given(index, number)
            if self._write(index, number, rows):
                written.append(number)
        return written

    def _write(
        self, index: int, number: int, rows: Iterator[tuple[int, list[Array]]] | None, *, retries: bool = False
    ) -> bool:
        for start, arrays in rows or ():
            frame, connection = Frame(kinds.WRITE_ROWS, (number, start), arrays), self._conversation
            # Do not retry within a handshake: after a loss, the whole handshake is repeated.
            if retries:
                connection.request_until_answered(index, frame)
            else:
                connection.request(self._sessions[index], frame)
        return rows is not None

    def _read(self, index: int, number: int, parts: Sequence[int]) -> Iterator[tuple[int, list[Array]]]:
        """Yields all rows of a table of a ``ps``, some at a time, each with the number of the first row.

        Args:
          index: the number of the ``ps``.
          number: the number of the table there.
          parts: which parts, see `headwater.ps.updater.HostedTable`; all if empty.
        """
        _, block = self._sessions[index].tables[number]
        spec = self._layout.variables[block.variable]
        count = block_shape(spec, block)[0]
        # A table may be larger than the limit of a frame.
        step = max(1, AT_ONCE_BYTES // row_bytes(spec))
        for start in range(0, count, step):
            frame = Frame(kinds.READ_ROWS, (number, start, min(start + step, count), list(parts)))
            yield start, list(self._conversation.request_until_answered(index, frame).tensors)

    def read(self, variable: int, part: int = 0) -> Array:
        """Reads a whole table from the ``ps``.

        Args:
          variable: the table's variable.
          part: 0 for its values; from 1 on parts of the optimizer state of each row.
        """
        table: Array | None = None
        rows = self._layout.variables[variable].shape[0]
        for index, session in enumerate(self._sessions):
            for number, (_, block) in enumerate(session.tables):
                if block.variable != variable:
                    continue
                for start, (array,) in self._read(index, number, (part,)):
                    if table is None:
                        table = np.empty((rows, *array.shape[1:]), array.dtype)
                    first = max(0, block.start) + start
                    table[first : first + len(array)] = array
        assert table is not None
        return table

    def copy(self) -> TableCopy | None:
        """Copies all tables with their optimizer state; None without tables."""
        if not any(session.tables for session in self._sessions):
            return None
        copy = TableCopy()
        for index, session in enumerate(self._sessions):
            for number in range(len(session.tables)):
                for start, arrays in self._read(index, number, ()):
                    copy.add(index, number, start, arrays)
        return copy


def rows_within(block: Block, numbers: Array) -> slice:
    """Returns the range of the rows of ``block`` among ``numbers``, which are ascending."""
    if block.stop < 0:
        return slice(0, len(numbers))
    start, stop = np.searchsorted(numbers, (block.start, block.stop)).tolist()
    return slice(start, stop)
