"""A worker's end: its conversation with every ``ps``, and what to do when one of them is lost."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from headwater.accounting.ledger import Work
from headwater.consistency import Consistency, without_count
from headwater.errors import AbortedError, DeadlineExceededError, OpError, UnavailableError
from headwater.parameters import protocol
from headwater.parameters.layout import Block, Layout, VariableSpec, block_shape, joined
from headwater.parameters.table_copies import AT_ONCE_BYTES, TableCopy, row_bytes, rows_of
from headwater.parameters.updater import Array
from headwater.parameters.waiting import SILENCE_S, SPEAK_S
from headwater.parameters.wishes import Returned, Wish
from headwater.task import kinds
from headwater.task.agreement import Said
from headwater.task.answers import bad_header, raise_error
from headwater.task.shell import OVER_DETAIL
from headwater.transport.channel import Channel
from headwater.transport.frames import Frame
from headwater.transport.handshake import new_generation
from headwater.transport.waiting import Patience

_log = logging.getLogger("headwater")
_NOTHING: Array = np.empty(0)

#: When this process began, about; see `headwater.cluster.claims`.
_STARTED = time.time()


class ServerLink(Protocol):
    """How a worker reaches one ``ps``."""

    def reach(self, deadline_s: float | None = None) -> Any: ...

    def take(self) -> Channel: ...

    def give_back(self, channel: Channel, usable: bool) -> None: ...


@dataclass(kw_only=True, slots=True)
class _Session:
    """What is known of one ``ps``.

    Attributes:
      task: its name.
      link: how to reach it.
      channel: open, or None.
      filled: generation of its values; 0 before the first.
      version: of the values that it has, as far as it has told.
      pieces: its blocks' values as they were read last, in the layout's order.
      read: the version of these.
      optimized, added, tables: its blocks with their places in the layout's order: those that the optimizer updates,
        those that changes are added to, and those of which some rows are read and updated.
      waits_for: what this worker waits for there, and since when; None while it does not wait for long.
    """

    task: str
    link: ServerLink
    optimized: Sequence[tuple[int, Block]]
    added: Sequence[tuple[int, Block]]
    tables: Sequence[tuple[int, Block]]
    channel: Channel | None = None
    filled: int = 0
    version: int = 0
    pieces: list[Array] = field(default_factory=list[Array])
    read: int = 0
    waits_for: tuple[str, float] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ParameterSnapshot:
    """Everything that every ``ps`` has.

    Attributes:
      versions: by ``ps`` the number of updates.
      blocks: by ``ps`` the values of its blocks but tables.
      states: by ``ps`` the optimizer's state by name.
      tables: the rows of tables with their state, in a file; None without tables, and on others than the chief.
      ledger: which examples the values of the first ``ps`` have seen; None where none are accounted for, and on others
        than the chief.
    """

    versions: tuple[int, ...]
    blocks: tuple[tuple[Array, ...], ...]
    states: tuple[Mapping[str, Array], ...]
    tables: TableCopy | None = None
    ledger: bytes | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Traffic:
    """What has travelled between a worker and all ``ps``.

    Attributes:
      sent_bytes: of tensors.
      received_bytes: of tensors.
      round_trips: how often the worker has waited for answers.
      rows: of tables, that were read.
    """

    sent_bytes: int = 0
    received_bytes: int = 0
    round_trips: int = 0
    rows: int = 0


#: Gives by table (its variable) all rows and, unless that begins, their state; None for a table that begins.
TableRows = Callable[[int], Sequence[Any] | None]


class ParameterClient:
    """One worker's access to a set of parameters. Used by one thread at a time.

    Args:
      name: of the set.
      worker: this worker's name; its generation is that of its links.
      chief: whether it brings values where there are none.
      follows: whether it only reads values, as an evaluator does. A ``ps`` that was started anew does not know of it,
        and may end with the job before this worker has met it again: that is an error then, and not waited for.
      layout: what every ``ps`` has.
      choice: how closely workers keep together.
      links: to every ``ps``, with its name.
      initial: the variables' values, to bring where no task has any; read when needed. None in the place of a table:
        its rows begin on the ``ps``.
    """

    def __init__(
        self,
        name: str,
        *,
        worker: str,
        chief: bool,
        follows: bool = False,
        layout: Layout,
        choice: Consistency,
        links: Sequence[tuple[str, ServerLink]],
        initial: Sequence[Any],
    ) -> None:
        self._name = name
        self._worker = worker
        self._chief = chief
        self._follows = follows
        self._layout = layout
        self._choice = choice
        self._sessions = [
            _Session(
                task=task,
                link=link,
                optimized=[(at, block) for at, block in blocks if layout.variables[block.variable].optimized],
                added=[(at, block) for at, block in blocks if _is_added(layout.variables[block.variable])],
                tables=[(at, block) for at, block in blocks if layout.variables[block.variable].table],
            )
            for (task, link), blocks in zip(links, map(list, map(enumerate, layout.blocks)), strict=True)
        ]
        self._others = [[block.variable for _, block in session.added] for session in self._sessions]
        self._parts = self._places_of_parts()
        self._initial = initial
        self._initial_state: Callable[[int], Sequence[Array]] | None = None
        self._initial_rows: TableRows | None = None
        self._snapshot: ParameterSnapshot | None = None
        self._extras: list[list[int]] = [[] for _ in links]
        self._traffic = [0, 0, 0, 0]
        self._life = new_generation()
        self._number = 0
        self._asked: dict[int, Channel | None] = {}
        #: Answers that came while that of another ``ps`` was waited for.
        self._early: dict[Channel, Frame] = {}
        #: Whether this worker takes part no more, and says so.
        self._finishes = False
        #: Whether a ``ps`` has not taken the gradients that were pushed last.
        self._late = False
        self._repeated: dict[int, tuple[Frame, int]] = {}
        self._ledger: bytes | None = None
        # Whether the first ps may have handed out again what this worker holds: its channel was lost meanwhile. And
        # since when it has held something.
        self._unsure = False
        self._held_since: float | None = None
        #: What the first ``ps`` said: how many trainings are over, the epoch of the present one, a seed.
        self.trainings: int = 0
        self.epoch: int = -1
        self.seed: int = 0
        #: Which part of a batch that several workers share the ``ps`` wants of this one; None where it did not say.
        self.share: tuple[int, int] | None = None
        #: What the first ``ps`` handed out with its last answer: a range of examples and the seed of its epoch's order;
        #: or, in words, which ranges were set aside.
        self.handed: tuple[Work, int] | str | None = None
        #: How many gradients it has brought.
        self.steps: int = 0
        #: Whether the values were there when this worker came.
        self.joined_late: bool = False
        #: How many updates the values of the first ``ps`` have seen.
        self.version = 0

    # Coming and going -------------------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Waits for every ``ps``; brings values where there are none, or waits for the chief to do so.

        Raises:
          UnavailableError: a task did not come before the deadline.
          FailedPreconditionError: a task runs another program.
        """
        for index in range(len(self._sessions)):
            self._meet(index)

    def _meet(self, index: int) -> None:
        session = self._sessions[index]
        give_up_at = time.monotonic() + Patience.from_environment().deadline_s
        while True:
            try:
                self._greet(index)
                return
            except (UnavailableError, AbortedError) as error:
                # It is not there yet, or went away again between two of its first answers.
                if time.monotonic() >= give_up_at or (self._follows and self._others_are_over(index)):
                    raise
                _log.info("%s begins anew with %s: %s", self._worker, session.task, error.message)

    def _others_are_over(self, index: int) -> bool:
        """Whether a ``ps`` other than number ``index`` says that the job is over."""
        for other in (*self._sessions[:index], *self._sessions[index + 1 :]):
            try:
                if OVER_DETAIL in other.link.reach(0.0).details:
                    return True
            except OpError as error:
                _log.debug("%s does not say whether the job is over: %s", other.task, error.message)
        return False

    def _greet(self, index: int) -> None:
        session = self._sessions[index]
        self._drop(session)
        session.link.reach(SPEAK_S if self._follows and session.pieces else None)
        session.channel = session.link.take()
        choice = without_count(self._choice)
        hello = (self._name, self._worker, self._layout.signature(), choice, _STARTED, self._life)
        welcome = self._ask(session, Frame(kinds.HELLO, hello))
        match welcome.header:
            case (int(filled), int(version), int(trainings), int(epoch), int(seed)):
                pass
            case _:
                raise bad_header(welcome, session.task)
        if index == 0:
            self.trainings, self.epoch, self.seed, self.joined_late = trainings, epoch, seed, True
        # What one has lost is not there, though the others still have theirs.
        self.joined_late = self.joined_late and bool(filled)
        session.version, session.filled = version, filled
        # What has no values hears all the same that this worker has finished: the chief may have ended.
        if not filled and (self._chief or not self._finishes):
            frame = self._fill_frame(index, self._write_tables(index)) if self._chief else Frame(kinds.READY)
            answer = self._ask(session, frame)
            match answer.header:
                case (int(filled),):
                    session.filled = filled
                case _:
                    raise bad_header(answer, session.task)

    def _fill_frame(self, index: int, written: Sequence[int]) -> Frame:
        snapshot, session = self._snapshot, self._sessions[index]
        if snapshot is not None:
            arrays = [*snapshot.blocks[index], *snapshot.states[index].values()]
            version = snapshot.versions[index]
            _log.warning("%s brings %s the values of version %d", self._worker, session.task, version)
            return Frame(kinds.FILL, (version, written, snapshot.ledger if index == 0 else None), arrays)
        if session.pieces:
            if session.tables:
                _log.warning(
                    "%s has no copy of the tables that %s has lost: they begin anew", self._worker, session.task
                )
            ledger = self._ledger if index == 0 else None
            return Frame(kinds.FILL, (session.read, written, ledger), self._without_tables(index, session.pieces))
        pieces = [np.asarray(block.of(self._initial[block.variable])) for block in self._whole_blocks(index)]
        state = self._initial_state(index) if self._initial_state else ()
        return Frame(kinds.FILL, (0, written, None), [*pieces, *state])

    def _whole_blocks(self, index: int) -> list[Block]:
        """The blocks of a ``ps`` that are no tables."""
        return [block for block in self._layout.blocks[index] if not self._layout.variables[block.variable].table]

    def _without_tables(self, index: int, pieces: Sequence[Array]) -> list[Array]:
        tables = {at for at, _ in self._sessions[index].tables}
        return [piece for at, piece in enumerate(pieces) if at not in tables]

    def set_initial_state(self, state: Callable[[int], Sequence[Array]]) -> None:
        """Says what the optimizer's state of each ``ps`` is to be at the beginning, by its number."""
        self._initial_state = state

    def set_initial_rows(self, rows: TableRows) -> None:
        """Says what rows of a table, by variable, are to be at the beginning, and their state."""
        self._initial_rows = rows

    def agree(self, program: Said, data: Said | None = None) -> None:
        """Sees to it that this worker runs the program of every ``ps`` and of the other workers.

        Args:
          program: what must be alike.
          data: what may differ, with a warning.

        Raises:
          FailedPreconditionError: it does not; the message says what differs.
        """
        for index in range(len(self._sessions)):
            answer = self._ask_until(index, Frame(kinds.AGREE, (program, data or {})))
            if index == 0 and answer.header and answer.header[0]:
                _log.warning("%s", answer.header[0])

    def _drop(self, session: _Session) -> None:
        if session.channel is not None:
            session.link.give_back(session.channel, False)
            session.channel = None

    def close(self) -> None:
        """Ends all conversations: this worker takes part no more."""
        for session in self._sessions:
            self._drop(session)

    # Values -----------------------------------------------------------------------------------------------------------

    def set_extras(self, variables: Sequence[int]) -> None:
        """Says which variables besides the optimized ones travel in every step."""
        self._extras = [
            [position for position, variable in enumerate(others) if variable in variables] for others in self._others
        ]

    def values(self) -> list[Array]:
        """The variables' values as they were read last; of tables nothing."""
        sessions = self._sessions
        found: list[Array] = []
        for variable, places in enumerate(self._parts):
            if self._layout.variables[variable].table:
                found.append(_NOTHING)
            elif len(places) == 1:
                ((index, at, _),) = places
                found.append(sessions[index].pieces[at])
            else:
                found.append(joined([(start, sessions[index].pieces[at]) for index, at, start in places]))
        return found

    def _places_of_parts(self) -> list[list[tuple[int, int, int]]]:
        """For each variable where its parts are: the number of the ``ps``, the place there, and the first row."""
        found: list[list[tuple[int, int, int]]] = [[] for _ in self._layout.variables]
        for index, blocks in enumerate(self._layout.blocks):
            for at, block in enumerate(blocks):
                found[block.variable].append((index, at, block.start))
        return found

    def pull(self, wish: Wish | None = None) -> int:
        """Reads values of all variables, but not the optimizer's state; gives the ticket for ``wish``."""
        number = self._next_number()
        frames = [
            self._pull_frame(index, list(range(len(others))), wish, (), number)
            for index, others in enumerate(self._others)
        ]
        return self._values(frames, [list(range(len(others))) for others in self._others])[0]

    def next_step(self, wish: Wish, returned: Sequence[Returned] = ()) -> int:
        """The ticket for ``wish``, with the values of what travels in every step; see `push` for ``returned``."""
        number = self._next_number()
        frames = [self._pull_frame(index, extras, wish, returned, number) for index, extras in enumerate(self._extras)]
        return self._values(frames, self._extras)[0]

    def _pull_frame(
        self, index: int, extras: Sequence[int], wish: Wish | None, returned: Sequence[Returned], number: int
    ) -> Frame:
        if index:
            return Frame(kinds.PULL, (False, extras, None, None, False, number))
        work = ((), returned) if returned else None
        return Frame(kinds.PULL, (False, extras, wish, work, self._chief, number))

    def rest(self, wish: Wish) -> bool:
        """Says that this worker has no data, because others hold what is left of the examples that ``wish`` asks for;
        returns when it is of use to ask again. Meanwhile no other worker waits for this one.

        Returns:
          False where what is left will not come: all who hold some of it rest, as this worker does.
        """
        frames = [Frame(kinds.REST, (wish if index == 0 else None,)) for index in range(len(self._sessions))]
        answer = self._exchange(frames)[0]
        return answer is None or answer.header != (False,)

    def push(
        self,
        gradients: Sequence[Any],
        *,
        changes: Mapping[int, Any] | None = None,
        weight: float = 1.0,
        rows: Mapping[int, tuple[Array, Array]] | None = None,
        knobs: Sequence[float] = (),
        wish: Wish | None = None,
        sums: Array | None = None,
        given: Sequence[Work] = (),
        returned: Sequence[Returned] = (),
    ) -> tuple[int, bool]:
        """Brings gradients, waits until this worker may go on, and reads what travels in every step.

        Args:
          gradients: by variable; None for those that are not optimized.
          changes: what to add to others, by variable.
          weight: examples behind the gradients.
          rows: by variable, for tables: numbers of rows, ascending, and their gradients.
          knobs: see `headwater.parameters.updater.Updater.apply`.
          wish: for the next step.
          sums: what to add to the sums of the epoch that ``wish`` names, see `sums`.
          given: the ranges of examples whose gradients these are. They are not taken where the first ``ps`` has handed
            one of these ranges to another worker meanwhile.
          returned: ranges that this worker had, and gives back.

        Returns:
          The ticket, and whether every ``ps`` took the gradients.
        """
        if given and not self._holds(given):
            self.steps += 1
            number, back = self._next_number(), [*returned, *((work, "") for work in given)]
            pulls = [self._pull_frame(index, extras, wish, back, number) for index, extras in enumerate(self._extras)]
            return self._values(pulls, self._extras)[0], False
        arrays = [None if gradient is None else np.asarray(gradient) for gradient in gradients]
        frames: list[Frame] = []
        number = self._next_number()
        for index, session in enumerate(self._sessions):
            extras = self._extras[index]
            tensors = [block.of(arrays[block.variable]) for _, block in session.optimized]
            for position in extras:
                _, block = session.added[position]
                tensors.append(block.of(np.asarray((changes or {})[block.variable])))
            for _, block in session.tables:
                numbers, row_gradients = (rows or {})[block.variable]
                within = _within(block, numbers)
                tensors += [numbers[within] - block.start, row_gradients[within]]
            if sums is not None and index == 0:
                tensors.append(sums)
            first = index == 0
            work = (given, returned) if first and (given or returned) else None
            keeps = first and self._chief
            asked = wish if first else None
            header = (session.version, float(weight), extras, asked, list(knobs), work, keeps, number)
            frames.append(Frame(kinds.PUSH, header, tensors))
        self.steps += 1
        return self._values(frames, self._extras)

    def _holds(self, works: Sequence[Work]) -> bool:
        """Whether this worker still has ranges. It asks where it was away, or slow for long enough to be taken for
        gone: the first ``ps`` may have handed them out again, and then no ``ps`` shall take their gradient."""
        session, since, patience = self._sessions[0], self._held_since, self._choice.patience_s
        self._held_since = None
        if session.channel is None or session.channel.closed or session.channel.peer_gone():
            self._lost(0, UnavailableError(None, None, f"the channel to {session.task} is gone"))
        slow = patience is not None and since is not None and time.monotonic() - since >= patience / 2
        if not self._unsure and not slow:
            return True
        answer = self._ask_until(0, Frame(kinds.HOLDS, (works,)))
        self._unsure = False
        return answer.header == (True,)

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def rows(self, wanted: Mapping[int, Array]) -> dict[int, Array]:
        """Reads rows of tables.

        Args:
          wanted: by variable the numbers of rows, ascending.

        Returns:
          By variable the rows, in that order.
        """
        frames = [Frame(kinds.ROWS, (), numbers) for numbers in self._row_numbers(wanted)]
        answers = self._exchange(frames)
        parts: dict[int, list[tuple[int, Array]]] = {variable: [] for variable in wanted}
        for index, (session, found, frame) in enumerate(zip(self._sessions, answers, frames, strict=True)):
            answer = self._ask_until(index, frame) if found is None else found
            if len(answer.tensors) != len(session.tables):
                raise bad_header(answer, session.task)
            for (_, block), rows in zip(session.tables, answer.tensors, strict=True):
                parts[block.variable].append((block.start, rows))
        self._traffic[3] += sum(len(numbers) for numbers in wanted.values())
        return {variable: joined(found) for variable, found in parts.items()}

    def _row_numbers(self, wanted: Mapping[int, Array]) -> list[list[Array]]:
        """By ``ps``, for each of its tables the rows that are there, counted from the first that is there."""
        return [
            [wanted[part.variable][_within(part, wanted[part.variable])] - part.start for _, part in session.tables]
            for session in self._sessions
        ]

    def assign(self, values: Sequence[Any], state: Callable[[int], Sequence[Array]] | None = None) -> None:
        """Replaces the values of all variables, and the optimizer's state if ``state`` gives it, by ``ps``.

        Tables whose rows `set_initial_rows` gives are replaced, too, others stay as they are; ``values`` has None for
        them.
        """
        for index, session in enumerate(self._sessions):
            for number in range(len(session.tables)):
                self._write_table(index, number, self._given_rows(index, number), retries=True)
        self._exchange(
            [
                Frame(
                    kinds.ASSIGN,
                    (),
                    [
                        *(np.asarray(block.of(values[block.variable])) for block in self._whole_blocks(index)),
                        *(state(index) if state else ()),
                    ],
                )
                for index in range(len(self._sessions))
            ]
        )
        self.pull()

    def _given_rows(self, index: int, number: int) -> Iterator[tuple[int, list[Array]]] | None:
        """The rows of a table of a ``ps`` that the program gives, see `TableCopy.rows`."""
        _, block = self._sessions[index].tables[number]
        initial = self._initial[block.variable]
        whole = self._initial_rows(block.variable) if self._initial_rows is not None else None
        if whole is None and initial is not None:
            whole = [initial]
        if whole is None:
            return None
        return rows_of([block.of(array) for array in whole])

    def _write_tables(self, index: int) -> list[int]:
        """Brings a ``ps`` that has no values the rows of its tables; the numbers of those that do not begin there."""
        session, snapshot = self._sessions[index], self._snapshot
        written: list[int] = []
        for number in range(len(session.tables)):
            if snapshot is not None:
                rows = snapshot.tables.rows(index, number) if snapshot.tables is not None else None
            else:
                rows = None if session.pieces else self._given_rows(index, number)
            if self._write_table(index, number, rows):
                written.append(number)
        return written

    def _write_table(
        self, index: int, number: int, rows: Iterator[tuple[int, list[Array]]] | None, *, retries: bool = False
    ) -> bool:
        for start, arrays in rows or ():
            frame = Frame(kinds.WRITE_ROWS, (number, start), arrays)
            _ = self._ask_until(index, frame) if retries else self._ask(self._sessions[index], frame)
        return rows is not None

    def _read_table(self, index: int, number: int, parts: Sequence[int]) -> Iterator[tuple[int, list[Array]]]:
        """All rows of a table of a ``ps``, some at a time, each with the number of the first.

        Args:
          index: the number of the ``ps``.
          number: of the table there.
          parts: which parts, see `headwater.parameters.updater.HostedTable`; none named, all.
        """
        _, block = self._sessions[index].tables[number]
        spec = self._layout.variables[block.variable]
        count = block_shape(spec, block)[0]
        step = max(1, AT_ONCE_BYTES // row_bytes(spec))
        for start in range(0, count, step):
            frame = Frame(kinds.READ_ROWS, (number, start, min(start + step, count), list(parts)))
            yield start, list(self._ask_until(index, frame).tensors)

    def read_table(self, variable: int, part: int = 0) -> Array:
        """All of a table as the ``ps`` have it now.

        Args:
          variable: the table's.
          part: 0 for its values; from 1 on what the optimizer keeps of each row.
        """
        found: Array | None = None
        rows = self._layout.variables[variable].shape[0]
        for index, session in enumerate(self._sessions):
            for number, (_, block) in enumerate(session.tables):
                if block.variable != variable:
                    continue
                for start, (array,) in self._read_table(index, number, (part,)):
                    if found is None:
                        found = np.empty((rows, *array.shape[1:]), array.dtype)
                    first = max(0, block.start) + start
                    found[first : first + len(array)] = array
        assert found is not None
        return found

    def _copy_tables(self) -> TableCopy | None:
        """A copy of all tables with what the optimizer keeps of them."""
        if not self._chief or not any(session.tables for session in self._sessions):
            return None
        copy = TableCopy()
        for index, session in enumerate(self._sessions):
            for number in range(len(session.tables)):
                for start, arrays in self._read_table(index, number, ()):
                    copy.add(index, number, start, arrays)
        return copy

    def snapshot(self) -> ParameterSnapshot:
        """Reads everything. The chief keeps it, to fill a ``ps`` that is started anew."""
        while True:
            keeps = [self._chief and index == 0 for index in range(len(self._sessions))]
            answers = self._exchange(
                [Frame(kinds.PULL, (True, [], None, None, keep, self._next_number())) for keep in keeps]
            )
            found = [answer for answer in answers if answer is not None]
            if len(found) == len(answers):
                break
        versions: list[int] = []
        blocks: list[tuple[Array, ...]] = []
        states: list[Mapping[str, Array]] = []
        for session, answer, held in zip(self._sessions, found, self._layout.blocks, strict=True):
            version, _, _, _, names, _, ledger = _values_header(answer, session.task)
            session.version = session.read = version
            if session is self._sessions[0]:
                self._ledger = ledger
            count = len(held) - len(session.tables)
            whole = iter(answer.tensors[:count])
            tables = {at for at, _ in session.tables}
            session.pieces = [_NOTHING if at in tables else next(whole) for at in range(len(held))]
            versions.append(version)
            blocks.append(tuple(answer.tensors[:count]))
            states.append(dict(zip(names, answer.tensors[count:], strict=True)))
        self.version = versions[0]
        made = ParameterSnapshot(
            versions=tuple(versions),
            blocks=tuple(blocks),
            states=tuple(states),
            tables=self._copy_tables(),
            ledger=self._ledger,
        )
        if self._chief:
            self._snapshot = made
        return made

    def restore(self, snapshot: ParameterSnapshot) -> None:
        """What the chief brings from now on to a ``ps`` that has no values."""
        self._snapshot = snapshot

    def finish(self, training: int) -> None:
        """Takes part in training number ``training`` no more; returns once all workers have finished or are gone."""
        frame = Frame(kinds.FINISH, (training,))
        self._finishes = True
        try:
            for index, answer in enumerate(self._exchange([frame for _ in self._sessions], again=True)):
                if answer is None:
                    self._ask_until(index, frame)
        finally:
            self._finishes = False

    def follow(self, training: int, epoch: int) -> bool:
        """Waits until an epoch is over; whether that training is.

        Raises:
          UnavailableError: a ``ps`` has ended with the job.
        """
        answer = self._ask_until(0, Frame(kinds.FOLLOW, (training, epoch)))
        return answer.header == (True,)

    def sums(self, epoch: int, *, wait: bool = True) -> Array:
        """What all workers have added to the sums of an epoch, empty where none has.

        Args:
          epoch: its number.
          wait: whether to wait for workers that are in the midst of one of its steps.
        """
        answer = self._ask_until(0, Frame(kinds.SUMS, (epoch, wait)))
        return answer.tensors[0] if answer.tensors else _NOTHING

    def stop_training(self) -> None:
        """No worker gets another step until all have finished."""
        self._exchange([Frame(kinds.STOP), *(None for _ in self._sessions[1:])])

    def traffic(self) -> Traffic:
        """What has travelled so far."""
        return Traffic(
            sent_bytes=self._traffic[0],
            received_bytes=self._traffic[1],
            round_trips=self._traffic[2],
            rows=self._traffic[3],
        )

    # Frames -----------------------------------------------------------------------------------------------------------

    def _values(self, frames: Sequence[Frame], extras: Sequence[Sequence[int]]) -> tuple[int, bool]:
        """Sends frames that VALUES answers, takes these in, and gives the first one's ticket and whether all applied.

        A ``ps`` that was lost and still has its values is asked once more, by the same number. One that was started
        anew has dropped what it was sent: its values are read anew, and the worker goes on.
        """
        ticket, applied = protocol.EPOCH_OVER, True
        filled = [session.filled for session in self._sessions]
        answers = self._exchange(frames, again=True)
        for index, (session, found) in enumerate(zip(self._sessions, answers, strict=True)):
            answer = found
            frame = frames[index]
            while answer is None:
                if session.filled != filled[index]:
                    filled[index] = session.filled
                    wish, number = frame.header[2 if frame.kind == kinds.PULL else 3], frame.header[-1]
                    everything = list(range(len(self._others[index])))
                    extras = [*extras[:index], everything, *extras[index + 1 :]]
                    applied = applied and frame.kind == kinds.PULL
                    frame = self._pull_frame(index, everything, wish, (), number)
                try:
                    answer = self._ask(session, frame)
                except (UnavailableError, AbortedError) as error:
                    self._lost(index, error)
            version, was_applied, its_ticket, share, _, handed, ledger = _values_header(answer, session.task)
            session.version = session.read = version
            self._take_in(index, answer.tensors, extras[index])
            if index == 0:
                ticket = its_ticket
                self.share = share
                self.version: int = version
                self.handed = handed
                if self._held_since is None and isinstance(handed, tuple):
                    self._held_since = time.monotonic()
                self._ledger = ledger
            if frame.kind == kinds.PUSH:
                applied = applied and was_applied
        return ticket, applied

    def _take_in(self, index: int, tensors: Sequence[Array], extras: Sequence[int]) -> None:
        session = self._sessions[index]
        if not session.pieces:
            session.pieces = [_NOTHING] * len(self._layout.blocks[index])
        pieces, dense = session.pieces, len(session.optimized)
        for (at, _), tensor in zip(session.optimized, tensors[:dense], strict=True):
            pieces[at] = tensor
        for extra, tensor in zip(extras, tensors[dense:], strict=True):
            pieces[session.added[extra][0]] = tensor

    def _exchange(self, frames: Sequence[Frame | None], *, again: bool = False) -> list[Frame | None]:
        """Sends a frame to each ``ps``, then takes an answer from each; None from those that were lost meanwhile.

        Args:
          again: a ``ps`` that was lost and still has its values is sent its frame again, at once: the answer of another
            one may wait for a worker that waits for this.
        """
        self._asked, self._early, self._late = {}, {}, False
        answers: list[Frame | None] = []
        self._repeated = {
            index: (frame, session.filled)
            for index, (session, frame) in enumerate(zip(self._sessions, frames, strict=True))
            if again and frame is not None
        }
        for index in range(len(self._sessions)):
            frame = frames[index]
            if frame is not None:
                try:
                    self._send_asked(index, frame)
                except (UnavailableError, AbortedError) as error:
                    self._lost(index, error)
        for index in range(len(self._sessions)):
            answers.append(self._answer(index))
            if index == 0 and _gives(frames[0]) and _drops(answers[0]):
                self._repeat_none()
        self._traffic[2] += 1
        return answers

    def _answer(self, index: int) -> Frame | None:
        """The answer of a ``ps`` to what `_exchange` asked of it; None where it was lost meanwhile."""
        session, answer = self._sessions[index], None
        # On a new channel it was lost, and met again, while another one was waited for.
        while answer is None and index in self._asked and self._asked[index] is session.channel:
            try:
                answer = self._receive(session)
            except (UnavailableError, AbortedError) as error:
                self._lost(index, error)
        frame, _ = self._repeated.pop(index, (None, 0))
        self._late = self._late or (frame is not None and answer is not None and _is_late(frame, answer))
        return answer

    def _repeat_none(self) -> None:
        """The first ``ps`` has dropped a gradient of examples, which others must not be brought again."""
        for index, (frame, filled) in self._repeated.items():
            pull = self._pull_frame(index, frame.header[2], None, (), frame.header[-1])
            self._repeated[index] = pull, filled

    def _send_asked(self, index: int, frame: Frame) -> None:
        self._send(self._sessions[index], frame)
        self._asked[index] = self._sessions[index].channel

    def _lost(self, index: int, error: OpError) -> None:
        """Meets a ``ps`` anew; sends it again what it is to answer, where it has its values still."""
        session = self._sessions[index]
        while True:
            self._unsure = self._unsure or index == 0
            _log.warning("%s lost %s and waits for it: %s", self._worker, session.task, error.message)
            self._asked.pop(index, None)
            self._meet(index)
            frame, filled = self._repeated.get(index, (None, 0))
            if frame is None or (session.filled != filled and not self._finishes):
                return
            try:
                self._send_asked(index, frame)
                return
            except (UnavailableError, AbortedError) as again:
                error = again

    def _ask(self, session: _Session, frame: Frame) -> Frame:
        self._send(session, frame)
        return self._receive(session)

    def _ask_until(self, index: int, frame: Frame) -> Frame:
        """Asks what a ``ps`` that is started anew can answer just as well, until there is an answer."""
        while True:
            try:
                return self._ask(self._sessions[index], frame)
            except (UnavailableError, AbortedError) as error:
                self._lost(index, error)

    def _send(self, session: _Session, frame: Frame) -> None:
        if session.channel is None:
            raise UnavailableError(None, None, f"there is no channel to {session.task}")
        session.channel.send(frame)
        self._traffic[0] += sum(tensor.nbytes for tensor in frame.tensors)

    def _receive(self, session: _Session) -> Frame:
        assert session.channel is not None
        while True:
            try:
                frame = self._early.pop(session.channel, None) or session.channel.recv(SILENCE_S)
            except DeadlineExceededError:
                self._waits(session, "its answer; it says nothing")
                continue
            if frame.kind == kinds.ERROR:
                raise_error(frame, session.task)
            if frame.kind != kinds.WAIT:
                break
            self._waits(session, str(frame.header[0]) if frame.header else "")
            if self._is_too_late(session):
                self._send(session, Frame(kinds.RELEASE))
        session.waits_for = None
        if frame.kind not in (kinds.WELCOME, kinds.VALUES, kinds.DONE):
            raise bad_header(frame, session.task)
        self._traffic[1] += sum(tensor.nbytes for tensor in frame.tensors)
        return frame

    def _is_too_late(self, waiting_for: _Session) -> bool:
        """Whether a ``ps`` has not taken the gradients, so that an update at another one need not be waited for.

        That update may need the next gradient of a worker which waits for an update that needs this worker's next one.
        """
        for index, (frame, _) in self._repeated.items():
            session, channel = self._sessions[index], self._asked.get(index)
            if session is waiting_for or channel is None or channel is not session.channel or channel in self._early:
                continue
            try:
                answer = channel.recv(0)
            except (DeadlineExceededError, UnavailableError):
                continue
            if answer.kind != kinds.WAIT:
                self._early[channel] = answer
                self._late = self._late or _is_late(frame, answer)
        return self._late

    def _waits(self, session: _Session, what: str) -> None:
        """Says what the worker waits for, and looks after the other ``ps`` meanwhile."""
        _log.info("%s waits for %s: %s", self._worker, session.task, what)
        since = session.waits_for[1] if session.waits_for is not None else time.monotonic()
        session.waits_for = f"{session.task}: {what}", since
        self._look_around(session)

    def waits(self) -> list[tuple[str, float]]:
        """What this worker waits for, where that takes long, and since when (`time.monotonic`)."""
        return [wait for session in self._sessions if (wait := session.waits_for) is not None]

    def _look_around(self, waiting_for: _Session) -> None:
        """Meets anew each other ``ps`` that was lost: what is waited for may itself wait for what that one needs."""
        for index, session in enumerate(self._sessions):
            if session is not waiting_for and session.channel is not None and session.channel.peer_gone():
                self._lost(index, UnavailableError(None, None, f"the channel to {session.task} is gone"))


def _is_added(spec: VariableSpec) -> bool:
    """Whether changes are added to it, rather than an optimizer updating it."""
    return not spec.optimized and not spec.table


def _within(block: Block, numbers: Array) -> slice:
    """Where the rows of ``block`` are among ``numbers``, which ascend."""
    if block.stop < 0:
        return slice(0, len(numbers))
    start, stop = np.searchsorted(numbers, (block.start, block.stop)).tolist()
    return slice(start, stop)


def _is_late(asked: Frame, answer: Frame) -> bool:
    """Whether gradients were pushed, and not taken."""
    return asked.kind == kinds.PUSH and answer.kind == kinds.VALUES and answer.header[1] is False


def _gives(frame: Frame | None) -> bool:
    """Whether a frame brings the gradient of ranges of examples, to the first ``ps``."""
    return frame is not None and frame.kind == kinds.PUSH and bool(frame.header[5]) and bool(frame.header[5][0])


def _drops(answer: Frame | None) -> bool:
    """Whether a ``ps`` did not take a gradient. Nor does one that was started anew, and gives no answer."""
    return answer is None or not answer.header[1]


_Values = tuple[
    int, bool, int, "tuple[int, int] | None", Sequence[str], "tuple[Work, int] | str | None", "bytes | None"
]


def _values_header(frame: Frame, task: str) -> _Values:
    handed: tuple[Work, int] | str | None
    share: tuple[int, int] | None
    match frame.header:
        case (int(version), bool(applied), int(ticket), its_share, names, given, bytes() | None as ledger):
            match given:
                case (int(epoch), int(start), int(stop), int(seed)):
                    handed = Work(epoch, start, stop), seed
                case str() | None:
                    handed = given
                case _:
                    raise bad_header(frame, task)
            match its_share:
                case (int(number), int(count)):
                    share = number, count
                case None:
                    share = None
                case _:
                    raise bad_header(frame, task)
            return version, applied, ticket, share, names, handed, ledger
        case _:
            raise bad_header(frame, task)
