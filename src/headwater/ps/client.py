"""A worker's end: its conversation with every ``ps``, and what to do when one of them is lost."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwater.cluster.task import kinds
from headwater.cluster.task.agreement import Said
from headwater.cluster.task.answers import bad_header
from headwater.cluster.task.waiting import SPEAK_S
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.handshake import new_generation
from headwater.cluster.transport.waiting import Patience
from headwater.errors import AbortedError, FailedPreconditionError, GaveUpError, OpError, UnavailableError
from headwater.ps import protocol
from headwater.ps.accounting.ledger import Work
from headwater.ps.consistency import Consistency, without_count
from headwater.ps.conversation import Conversation, JobOverError, ServerLink, ServerSession
from headwater.ps.layout import Block, Layout, VariableSpec, joined
from headwater.ps.table_copies import TableCopy
from headwater.ps.table_transfer import TableTransfer
from headwater.ps.updater import Array
from headwater.ps.values_frame import brings_examples, drops, values_header
from headwater.ps.wishes import Returned, Wish

_log = logging.getLogger("headwater")
_NOTHING: Array = np.empty(0)

#: When this process began, about; see `headwater.cluster.claims`.
_STARTED = time.time()


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
      shard_names: by ``ps`` what its part of the set is called there, where that is not ``name``.
      reach_chief: raises OpError where the chief, who brings values, cannot be reached now; None on the chief.
      met: called with the number of each ``ps`` that this worker has met, and with the generation of its life.

    Attributes:
      conversation: with every ``ps``.
      tables: rows of tables.
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
        shard_names: Sequence[str] | None = None,
        reach_chief: Callable[[], object] | None = None,
        met: Callable[[int, int], None] | None = None,
    ) -> None:
        self._reach_chief = reach_chief
        self._met = met
        self._names = shard_names or [name for _ in links]
        self._worker = worker
        self._chief = chief
        self._follows = follows
        self._layout = layout
        self._choice = choice
        sessions = [
            ServerSession(
                task=task,
                link=link,
                optimized=[(at, block) for at, block in blocks if layout.variables[block.variable].optimized],
                added=[(at, block) for at, block in blocks if _is_added(layout.variables[block.variable])],
                tables=[(at, block) for at, block in blocks if layout.variables[block.variable].table],
            )
            for (task, link), blocks in zip(links, map(list, map(enumerate, layout.blocks)), strict=True)
        ]
        self._sessions = sessions
        self.conversation = Conversation(worker, sessions, self._greet, may_leave=lambda: follows or self._finishes)
        self.tables = TableTransfer(layout, self.conversation, initial)
        self._others = [[block.variable for _, block in session.added] for session in self._sessions]
        self._parts = self._places_of_parts()
        self._initial = initial
        self._initial_state: Callable[[int], Sequence[Array]] | None = None
        self._snapshot: ParameterSnapshot | None = None
        self._extras: list[list[int]] = [[] for _ in links]
        self._life = new_generation()
        self._number = 0
        #: Whether this worker takes part no more, and says so.
        self._finishes = False
        self._ledger: bytes | None = None
        # Since when it has held a range of examples.
        self._held_since: float | None = None
        #: How many trainings were over when this worker came, and it has finished since (-1: it has not come yet).
        self.trainings: int = -1
        #: What the first ``ps`` said: the present training's epoch, a seed.
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
            self.conversation.meet(index)

    def _greet(self, index: int) -> None:
        choice = without_count(self._choice)
        me = (self._names[index], self._worker, self._layout.signature(), choice, _STARTED, self._life, self.trainings)
        session = self._sessions[index]
        self.conversation.drop(session)
        session.link.reach(SPEAK_S if self._finishes or (self._follows and session.pieces) else None)
        session.channel = session.link.take()
        welcome = self.conversation.ask(session, Frame(kinds.HELLO, (*me, session.read_life, session.read)))
        match welcome.header:
            case (int(filled), int(version), int(trainings), int(epoch), int(seed), int(life)):
                pass
            case _:
                raise bad_header(welcome, session.task)
        if index == 0:
            if self.trainings < 0:  # else this worker is in one that others may have finished
                self.trainings = trainings
            self.epoch, self.seed, self.joined_late = epoch, seed, True
        # What one has lost is not there, though the others still have theirs.
        self.joined_late = self.joined_late and bool(filled)
        session.version, session.filled, session.life = version, filled, life
        if self._met is not None:
            self._met(index, session.channel.peer_generation)
        # What has no values hears all the same that this worker has finished: the chief may have ended.
        if not filled and (self._chief or not self._finishes):
            has_values = bool(session.pieces) and not self._follows
            brings = self._chief or (has_values and self.conversation.others_are_over(index))
            frame = self._fill_frame(index) if brings else Frame(kinds.READY)
            answer = self.conversation.ask(
                session, frame, functools.partial(self._await_chief, index, time.monotonic())
            )
            match answer.header:
                case (int(filled),):
                    session.filled = filled
                case _:
                    raise bad_header(answer, session.task)

    def _await_chief(self, index: int, since: float) -> None:
        """Called while the chief is waited for, which is to bring values to number ``index`` of the ``ps``.

        Raises:
          FailedPreconditionError, UnavailableError: the chief's program has ended.
          GaveUpError: the chief could not be reached for longer than tasks are waited for.
        """
        session = self._sessions[index]
        lost = f"{session.task} was started anew, and its values are gone"
        if self.conversation.others_are_over(index):
            if self._follows:
                raise UnavailableError(None, None, f"{lost}; the job is over")
            if session.pieces:  # this worker brings its own
                raise AbortedError(None, None, f"{lost}; the chief has ended")
            raise FailedPreconditionError(None, None, f"{lost}: {self._worker} comes too late, as the chief has ended")
        waited_s = time.monotonic() - since
        if self._reach_chief is None or waited_s < Patience.from_environment().deadline_s:
            return
        try:
            self._reach_chief()
        except OpError as error:
            raise GaveUpError(
                None, None, f"{lost}: {self._worker} has waited {waited_s:.0f} s for the chief to bring values: {error}"
            ) from error

    def _fill_frame(self, index: int) -> Frame:
        """What a ``ps`` without values gets, whose tables this brings."""
        snapshot, session = self._snapshot, self._sessions[index]
        copy = snapshot.tables if snapshot is not None else None
        written = self.tables.fill(index, restores=snapshot is not None, copy=copy)
        if snapshot is not None:
            arrays = [*snapshot.blocks[index], *snapshot.states[index].values()]
            version = snapshot.versions[index]
            _log.warning("%s brings %s the values of version %d", self._worker, session.task, version)
            return Frame(kinds.FILL, (version, written, snapshot.ledger if index == 0 else None, False), arrays)
        if session.pieces:
            if session.tables:
                _log.warning(
                    "%s has no copy of the tables that %s has lost: they begin anew", self._worker, session.task
                )
            header = (session.read, written, self._ledger if index == 0 else None, not self._chief)
            return Frame(kinds.FILL, header, self._without_tables(index, session.pieces))
        pieces = [np.asarray(block.of(self._initial[block.variable])) for block in self._whole_blocks(index)]
        state = self._initial_state(index) if self._initial_state else ()
        return Frame(kinds.FILL, (0, written, None, False), [*pieces, *state])

    def _whole_blocks(self, index: int) -> list[Block]:
        """The blocks of a ``ps`` that are no tables."""
        return [block for block in self._layout.blocks[index] if not self._layout.variables[block.variable].table]

    def _without_tables(self, index: int, pieces: Sequence[Array]) -> list[Array]:
        tables = {at for at, _ in self._sessions[index].tables}
        return [piece for at, piece in enumerate(pieces) if at not in tables]

    def set_initial_state(self, state: Callable[[int], Sequence[Array]]) -> None:
        """Says what the optimizer's state of each ``ps`` is to be at the beginning, by its number."""
        self._initial_state = state

    def agree(self, program: Said, data: Said | None = None) -> None:
        """Sees to it that this worker runs the program of every ``ps`` and of the other workers.

        Args:
          program: what must be alike.
          data: what may differ, with a warning.

        Raises:
          FailedPreconditionError: it does not; the message says what differs.
        """
        for index in range(len(self._sessions)):
            answer = self.conversation.ask_until(index, Frame(kinds.AGREE, (program, data or {})))
            if index == 0 and answer.header and answer.header[0]:
                _log.warning("%s", answer.header[0])

    def close(self) -> None:
        """Ends all conversations: this worker takes part no more."""
        for session in self._sessions:
            self.conversation.drop(session)

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
        # One that was started anew waits for no worker that rests, where it has heard of it.
        answer = self.conversation.exchange(frames, again=True, always=True)[0]
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
          knobs: see `headwater.ps.updater.Updater.apply`.
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
                tensors += self.tables.pushed(block, *(rows or {})[block.variable])
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
        if session.channel is None or session.channel.peer_gone():
            self.conversation.lost(0, UnavailableError(None, None, f"the channel to {session.task} is gone"))
        slow = patience is not None and since is not None and time.monotonic() - since >= patience / 2
        if not self.conversation.lost_first and not slow:
            return True
        answer = self.conversation.ask_until(0, Frame(kinds.HOLDS, (works,)))
        self.conversation.lost_first = False
        return answer.header == (True,)

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def assign(self, values: Sequence[Any], state: Callable[[int], Sequence[Array]] | None = None) -> None:
        """Replaces the values of all variables, and the optimizer's state if ``state`` gives it, by ``ps``.

        Tables whose rows `TableTransfer.set_initial` gives are replaced, too, others stay as they are; ``values`` has
        None for them.
        """
        self.tables.replace()
        self.conversation.exchange(
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
            ],
            again=True,
            always=True,
        )
        self.pull()

    def snapshot(self) -> ParameterSnapshot:
        """Reads everything. The chief keeps it, to fill a ``ps`` that is started anew."""
        while True:
            keeps = [self._chief and index == 0 for index in range(len(self._sessions))]
            answers = self.conversation.exchange(
                [Frame(kinds.PULL, (True, [], None, None, keep, self._next_number())) for keep in keeps]
            )
            found = [answer for answer in answers if answer is not None]
            if len(found) == len(answers):
                break
        versions: list[int] = []
        blocks: list[tuple[Array, ...]] = []
        states: list[Mapping[str, Array]] = []
        for session, answer, held in zip(self._sessions, found, self._layout.blocks, strict=True):
            version, _, _, _, names, _, ledger = values_header(answer, session.task)
            session.version = session.read = version
            session.read_life = session.answer_life
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
            tables=self.tables.copy() if self._chief else None,
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
            for index, answer in enumerate(
                self.conversation.exchange([frame for _ in self._sessions], again=True, always=True)
            ):
                if answer is None:
                    self.conversation.ask_until(index, frame)
        except JobOverError as error:  # before its answer came through
            _log.info("%s has finished: %s", self._worker, error.message)
        finally:
            self._finishes = False
        self.trainings = max(self.trainings, training + 1)

    def begin(self, training: int, epoch: int | None) -> int | None:
        """The epoch with which a training begins; None where the ``ps`` was not told.

        Args:
          training: its number.
          epoch: what the chief says; None for others, which wait for that.
        """
        answer = self.conversation.ask_until(0, Frame(kinds.BEGIN, (training, -1 if epoch is None else epoch)))
        match answer.header:
            case (int(begins),) if begins >= 0:
                return begins
            case _:
                return None

    def follow(self, training: int, epoch: int) -> bool:
        """Waits until an epoch is over; whether that training is.

        Raises:
          UnavailableError: a ``ps`` has ended with the job.
        """
        answer = self.conversation.ask_until(0, Frame(kinds.FOLLOW, (training, epoch)))
        return answer.header == (True,)

    def sums(self, epoch: int, *, wait: bool = True) -> Array:
        """What all workers have added to the sums of an epoch, empty where none has.

        Args:
          epoch: its number.
          wait: whether to wait for workers that are in the midst of one of its steps.
        """
        answer = self.conversation.ask_until(0, Frame(kinds.SUMS, (epoch, wait)))
        return answer.tensors[0] if answer.tensors else _NOTHING

    def stop_training(self) -> None:
        """No worker gets another step until all have finished."""
        self.conversation.exchange([Frame(kinds.STOP), *(None for _ in self._sessions[1:])])

    # Frames -----------------------------------------------------------------------------------------------------------

    def _values(self, frames: Sequence[Frame], extras: Sequence[Sequence[int]]) -> tuple[int, bool]:
        """Sends frames that VALUES answers, takes these in, and gives the first one's ticket and whether all applied.

        A ``ps`` that was lost and still has its values is asked once more, by the same number. One that was started
        anew has dropped what it was sent: its values are read anew, and the worker goes on.
        """
        ticket, applied = protocol.EPOCH_OVER, True
        filled = [session.filled for session in self._sessions]

        def first_came(answer: Frame | None) -> None:
            # Where it has dropped a gradient of examples, the others must not be brought that again.
            if brings_examples(frames[0]) and drops(answer):
                self.conversation.repeat_instead(
                    lambda index, frame: self._pull_frame(index, frame.header[2], None, (), frame.header[-1])
                )

        answers = self.conversation.exchange(frames, again=True, after_first=first_came)
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
                    answer = self.conversation.ask(session, frame)
                except (UnavailableError, AbortedError) as error:
                    self.conversation.lost(index, error)
            version, was_applied, its_ticket, share, _, handed, ledger = values_header(answer, session.task)
            session.version = session.read = version
            session.read_life = session.answer_life
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


def _is_added(spec: VariableSpec) -> bool:
    """Whether changes are added to it, rather than an optimizer updating it."""
    return not spec.optimized and not spec.table
