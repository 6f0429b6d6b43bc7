"""Client side of a set of parameters: a worker's connections to every ``ps``, and recovery from their loss."""

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
from headwater.cluster.task.waiting import WAIT_INTERVAL_S
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.handshake import new_generation
from headwater.cluster.transport.waiting import Patience
from headwater.errors import AbortedError, FailedPreconditionError, GaveUpError, OpError, UnavailableError
from headwater.ps import protocol
from headwater.ps.accounting.ledger import Work
from headwater.ps.consistency import Consistency, Part, without_count
from headwater.ps.conversation import Conversation, JobOverError, ServerLink, ServerSession
from headwater.ps.layout import Block, Layout, VariableSpec, concatenate_parts
from headwater.ps.step_requests import Returned, StepRequest
from headwater.ps.tables.copies import TableCopy
from headwater.ps.tables.transfer import TableTransfer
from headwater.ps.updater import Array
from headwater.ps.values_frame import carries_examples, is_dropped, values_header

_log = logging.getLogger("headwater")
_NOTHING: Array = np.empty(0)

#: Approximate start time of this process; see `headwater.cluster.claims`.
_STARTED = time.time()


@dataclass(frozen=True, kw_only=True, slots=True)
class ParameterSnapshot:
    """Copy of all parameters and of the optimizer's state, by ``ps``.

    Attributes:
      versions: number of updates, by ``ps``.
      blocks: values of all blocks except tables, by ``ps``.
      states: the optimizer's state by name, by ``ps``.
      tables: rows of tables with their optimizer state, in a file. Only the chief has it; None on other workers, and
        without tables.
      ledger: record of the examples that have contributed to the values of the first ``ps``. Only the chief has it;
        None on other workers, and if examples are not accounted for.
    """

    versions: tuple[int, ...]
    blocks: tuple[tuple[Array, ...], ...]
    states: tuple[Mapping[str, Array], ...]
    tables: TableCopy | None = None
    ledger: bytes | None = None


class ParameterClient:
    """One worker's access to a set of parameters. Used by one thread at a time.

    Args:
      name: the name of the set.
      worker: this worker's name.
      chief: whether this worker provides the initial values.
      follows: whether this worker only reads values, as an evaluator does. A restarted ``ps`` does not wait for such a
        worker, and may end with the job before the worker has reconnected. The worker then raises an error instead of
        waiting for the ``ps``.
      layout: the placement of all blocks on all ``ps``.
      choice: the consistency between workers.
      links: routes to every ``ps``, with its name.
      initial: values of the variables, sent to a ``ps`` without values; read when needed. None in the place of a table:
        its rows are initialized on the ``ps``.
      shard_names: the name of each part of the set, in the order of ``links``; None if all have the name ``name``.
      reach_chief: connects to the chief, which provides the values; raises OpError if that fails. None on the chief.
      on_handshake: called after each handshake with a ``ps``, with its number and the generation of its process.
      description: a description from which a ``ps`` whose program does not create the set hosts it; None if the program
        of every ``ps`` creates the set.

    Attributes:
      conversation: the connections to every ``ps``.
      tables: transfers rows of tables.
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
        on_handshake: Callable[[int, int], None] | None = None,
        description: bytes | None = None,
    ) -> None:
        self._reach_chief = reach_chief
        self._on_handshake = on_handshake
        self._description = description
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
        self._added_variables = [[block.variable for _, block in session.added] for session in self._sessions]
        self._parts = self._places_of_parts()
        self._initial = initial
        self._initial_state: Callable[[int], Sequence[Array]] | None = None
        self._snapshot: ParameterSnapshot | None = None
        self._extras: list[list[int]] = [[] for _ in links]
        # A random number, from which a ps recognises whether a numbered request is from this run of the program or from
        # an earlier one.
        self._incarnation = new_generation()
        self._number = 0
        #: Whether this worker is leaving the training.
        self._finishes = False
        self._ledger: bytes | None = None
        # Time at which this worker was assigned the range of examples that it still holds.
        self._held_since: float | None = None
        #: Number of trainings that are over, as far as this worker knows: the number that the first ``ps`` reported at
        #: the first connection, plus the trainings that this worker has finished since. -1 before the first connection.
        self.trainings: int = -1
        #: Epoch of the current training and seed, as the first ``ps`` reported them.
        self.epoch: int = -1
        self.seed: int = 0
        #: This worker's part of a batch that several workers share, as the ``ps`` assigned it; None if the ``ps`` has
        #: assigned none.
        self.share: tuple[int, int] | None = None
        #: Assignment in the latest answer of the first ``ps``: a range of examples and the seed of its epoch's order;
        #: or a text that names the ranges that were set aside.
        self.assigned_work: tuple[Work, int] | str | None = None
        #: In synchronous training, after a push with sums: the sums of the epoch over all updates so far, as one array.
        self.sums_so_far: Sequence[Array] = ()
        #: Number of gradients that this worker has pushed.
        self.steps: int = 0
        #: Whether every ``ps`` had values when this worker connected.
        self.joined_late: bool = False
        #: Number of updates applied to the values of the first ``ps``.
        self.version = 0

    # Connecting and disconnecting -------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Connects to every ``ps``; sends initial values if there are none, or waits for the chief to send them.

        Raises:
          UnavailableError: a task could not be reached before the deadline.
          FailedPreconditionError: a task runs another program.
        """
        for index in range(len(self._sessions)):
            self.conversation.connect(index)

    def _greet(self, index: int) -> None:
        choice = without_count(self._choice)
        me = (
            self._names[index],
            self._worker,
            self._layout.signature(),
            choice,
            _STARTED,
            self._incarnation,
            self.trainings,
        )
        session = self._sessions[index]
        self.conversation.drop(session)
        # A ps that has ended with the job will not restart. A finished worker, or an evaluator that has read values,
        # may wait for such a ps, so it limits this wait.
        session.link.reach(WAIT_INTERVAL_S if self._finishes or (self._follows and session.pieces) else None)
        session.channel = session.link.open_channel()
        hello = (*me, session.read_incarnation, session.read, self._description)
        welcome = self.conversation.request(session, Frame(kinds.HELLO, hello))
        match welcome.header:
            case (int(filled), int(version), int(trainings), int(epoch), int(seed), int(incarnation)):
                pass
            case _:
                raise bad_header(welcome, session.task)
        if index == 0:
            if self.trainings < 0:  # a later handshake must not skip the training in which this worker takes part
                self.trainings = trainings
            self.epoch, self.seed, self.joined_late = epoch, seed, True
        # One ps without values has been restarted, even if every other ps still has its values.
        self.joined_late = self.joined_late and bool(filled)
        session.version, session.filled, session.incarnation = version, filled, incarnation
        if self._on_handshake is not None:
            self._on_handshake(index, session.channel.peer_generation)
        # A finished worker only has to report here that it has finished. It does not wait until this ps has values: the
        # chief sends them, and may have ended.
        if not filled and (self._chief or not self._finishes):
            has_values = bool(session.pieces) and not self._follows
            brings = self._chief or (has_values and self.conversation.others_are_over(index))
            frame = self._fill_frame(index) if brings else Frame(kinds.READY)
            answer = self.conversation.request(
                session, frame, functools.partial(self._await_chief, index, time.monotonic())
            )
            match answer.header:
                case (int(filled),):
                    session.filled = filled
                case _:
                    raise bad_header(answer, session.task)

    def _await_chief(self, index: int, since: float) -> None:
        """Checks whether the chief can still send values to ``ps`` number ``index``; called while waiting for them.

        Raises:
          FailedPreconditionError, UnavailableError: the chief's program has ended.
          GaveUpError: the chief could not be reached within the deadline for waits on tasks.
        """
        session = self._sessions[index]
        lost = f"{session.task} was restarted, and its values are lost"
        if self.conversation.others_are_over(index):
            if self._follows:
                raise UnavailableError(f"{lost}; the job is over")
            # The AbortedError makes `connect` repeat the handshake, in which this worker then sends its values.
            if session.pieces:
                raise AbortedError(f"{lost}; the chief has ended")
            raise FailedPreconditionError(f"{lost}: {self._worker} has connected after the end of the chief")
        waited_s = time.monotonic() - since
        if self._reach_chief is None or waited_s < Patience.from_environment().deadline_s:
            return
        try:
            self._reach_chief()
        except OpError as error:
            raise GaveUpError(
                f"{lost}: {self._worker} has waited {waited_s:.0f} s for the chief to send values: {error}"
            ) from error

    def _fill_frame(self, index: int) -> Frame:
        """Returns the FILL frame for a ``ps`` without values, after writing the rows of its tables there."""
        snapshot, session = self._snapshot, self._sessions[index]
        copy = snapshot.tables if snapshot is not None else None
        written = self.tables.fill(index, restores=snapshot is not None, copy=copy)
        if snapshot is not None:
            arrays = [*snapshot.blocks[index], *snapshot.states[index].values()]
            version = snapshot.versions[index]
            _log.warning("%s sends %s the values of version %d", self._worker, session.task, version)
            return Frame(kinds.FILL, (version, written, snapshot.ledger if index == 0 else None, False), arrays)
        if session.pieces:
            if session.tables:
                _log.warning(
                    "%s has no copy of the tables that %s has lost: the tables start empty", self._worker, session.task
                )
            header = (session.read, written, self._ledger if index == 0 else None, not self._chief)
            return Frame(kinds.FILL, header, self._without_tables(index, session.pieces))
        pieces = [np.asarray(block.of(self._initial[block.variable])) for block in self._whole_blocks(index)]
        state = self._initial_state(index) if self._initial_state else ()
        return Frame(kinds.FILL, (0, written, None, False), [*pieces, *state])

    def _whole_blocks(self, index: int) -> list[Block]:
        """Returns the blocks of a ``ps`` that are not tables."""
        return [block for block in self._layout.blocks[index] if not self._layout.variables[block.variable].table]

    def _without_tables(self, index: int, pieces: Sequence[Array]) -> list[Array]:
        tables = {at for at, _ in self._sessions[index].tables}
        return [piece for at, piece in enumerate(pieces) if at not in tables]

    def set_initial_state(self, state: Callable[[int], Sequence[Array]]) -> None:
        """Sets the function that returns the optimizer's initial state for the ``ps`` with a given number."""
        self._initial_state = state

    def check_program(self, program: Said, data: Said | None = None) -> None:
        """Checks that this worker runs the same program as every ``ps`` and the other workers.

        Args:
          program: description that must match.
          data: description that may differ; a difference is logged as a warning.

        Raises:
          FailedPreconditionError: the programs differ; the message names the difference.
        """
        for index in range(len(self._sessions)):
            answer = self.conversation.request_until_answered(index, Frame(kinds.AGREE, (program, data or {})))
            if index == 0 and answer.header and answer.header[0]:
                _log.warning("%s", answer.header[0])

    def close(self) -> None:
        """Closes all connections: this worker leaves the training."""
        for session in self._sessions:
            self.conversation.drop(session)

    # Values -----------------------------------------------------------------------------------------------------------

    @property
    def round(self) -> tuple[int, int]:
        """Identifies the values that were read last, by the incarnation of the first ``ps`` and the number of its
        updates."""
        return self._sessions[0].read_incarnation, self.version

    def set_extras(self, variables: Sequence[int]) -> None:
        """Selects the variables, besides the optimized ones, whose changes and values are exchanged in every step."""
        self._extras = [
            [position for position, variable in enumerate(added) if variable in variables]
            for added in self._added_variables
        ]

    def values(self) -> list[Array]:
        """Returns the variables' values as they were last read; empty arrays for tables."""
        sessions = self._sessions
        values: list[Array] = []
        for variable, places in enumerate(self._parts):
            if self._layout.variables[variable].table:
                values.append(_NOTHING)
            elif len(places) == 1:
                ((index, at, _),) = places
                values.append(sessions[index].pieces[at])
            else:
                values.append(concatenate_parts([(start, sessions[index].pieces[at]) for index, at, start in places]))
        return values

    def _places_of_parts(self) -> list[list[tuple[int, int, int]]]:
        """Returns the parts of each variable: the number of the ``ps``, the position among its blocks, and the first
        row."""
        places: list[list[tuple[int, int, int]]] = [[] for _ in self._layout.variables]
        for index, blocks in enumerate(self._layout.blocks):
            for at, block in enumerate(blocks):
                places[block.variable].append((index, at, block.start))
        return places

    def pull(self, step_request: StepRequest | None = None) -> int:
        """Reads the values of all variables, without optimizer state.

        Returns:
          The step number that answers ``step_request``.
        """
        number = self._next_number()
        frames = [
            self._pull_frame(index, list(range(len(added))), step_request, (), number)
            for index, added in enumerate(self._added_variables)
        ]
        return self._values(frames, [list(range(len(added))) for added in self._added_variables])[0]

    def next_step(self, step_request: StepRequest, returned: Sequence[Returned] = ()) -> int:
        """Requests a step, and reads the values that are read in every step. Arguments as in `push`.

        Returns:
          The step number that answers ``step_request``.
        """
        number = self._next_number()
        frames = [
            self._pull_frame(index, extras, step_request, returned, number) for index, extras in enumerate(self._extras)
        ]
        # The first ps answers when the epoch begins. The other ps are asked after that: the chief may assign values
        # between epochs.
        step_number, _ = self._values([frames[0], *(None for _ in frames[1:])], self._extras)
        if len(frames) > 1:
            self._values([None, *frames[1:]], self._extras)
        return step_number

    def _pull_frame(
        self,
        index: int,
        extras: Sequence[int],
        step_request: StepRequest | None,
        returned: Sequence[Returned],
        number: int,
    ) -> Frame:
        if index:
            return Frame(kinds.PULL, (False, extras, None, None, False, number))
        work = ((), returned) if returned else None
        return Frame(kinds.PULL, (False, extras, step_request, work, self._chief, number))

    def wait_without_data(self, step_request: StepRequest) -> bool:
        """Reports that no examples are left for this worker, and blocks until it should ask for examples again.

        Other workers hold the remaining examples of the epochs in ``step_request``, and may return some. Meanwhile no
        other worker waits for a gradient of this one.

        Returns:
          False if no examples will be returned, because all workers that hold examples wait here, too.
        """
        frames = [Frame(kinds.REST, (step_request if index == 0 else None,)) for index in range(len(self._sessions))]
        # Repeat the request to a restarted ps, too: otherwise that ps would wait for gradients of this worker.
        answer = self.conversation.exchange(frames, again=True, always=True)[0]
        return answer is None or answer.header != (False,)

    def push(
        self,
        gradients: Sequence[Any],
        *,
        changes: Mapping[int, Any] | None = None,
        weight: float = 1.0,
        rows: Mapping[int, tuple[Array, Array]] | None = None,
        hyperparameters: Sequence[float] = (),
        step_request: StepRequest | None = None,
        sums: Array | None = None,
        works: Sequence[Work] = (),
        returned: Sequence[Returned] = (),
        part: Part | None = None,
    ) -> tuple[int, bool]:
        """Pushes gradients, waits until this worker may continue, and reads the values that are read in every step.

        Args:
          gradients: by variable; None for variables that are not optimized.
          changes: summands for variables that are not optimized, by variable.
          weight: number of examples in the gradients' mean; negative if the gradients are not finite, so that the
            update makes no step.
          rows: for each table, by variable: ascending row numbers, and the gradients of these rows.
          hyperparameters: hyperparameters, see `headwater.ps.updater.Updater.apply`.
          step_request: request for the next step.
          sums: this worker's contribution to the sums of the epoch that ``step_request`` names, see `sums`.
          works: the ranges of examples from which the gradients were computed. The gradients are rejected if the first
            ``ps`` has assigned one of these ranges to another worker meanwhile.
          returned: ranges that were assigned to this worker and that this worker returns, each with a reason.
          part: the part of a batch that ``works`` covers, if workers share each batch and an update uses a whole batch;
            otherwise None.

        Returns:
          The step number, and whether every ``ps`` accepted the gradients.
        """
        # Ask the first ps before the push: if only the first ps dropped the gradient, the other ps would still apply
        # it.
        if works and not self._holds(works):
            self.steps += 1
            number, back = self._next_number(), [*returned, *((work, "") for work in works)]
            pulls = [
                self._pull_frame(index, extras, step_request, back, number) for index, extras in enumerate(self._extras)
            ]
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
                tensors += self.tables.encode_push(block, *(rows or {})[block.variable])
            if sums is not None and index == 0:
                tensors.append(sums)
            first = index == 0
            work = (works, returned) if first and (works or returned) else None
            keeps = first and self._chief
            asked = step_request if first else None
            header = (session.version, float(weight), extras, asked, list(hyperparameters), work, part, keeps, number)
            frames.append(Frame(kinds.PUSH, header, tensors))
        self.steps += 1
        return self._values(frames, self._extras)

    def _holds(self, works: Sequence[Work]) -> bool:
        """Returns whether this worker still holds ranges of examples.

        After a lost connection or a very slow step, the first ``ps`` may have removed this worker and assigned the
        ranges to another one. Only in these cases does this method ask the first ``ps``. If the ranges were assigned
        again, no ``ps`` may receive the gradient.
        """
        session, since, patience = self._sessions[0], self._held_since, self._choice.patience_s
        self._held_since = None
        if session.channel is None or session.channel.peer_gone():
            self.conversation.reconnect(0, UnavailableError(f"the channel to {session.task} is gone"))
        # The ps measures the patience from the moment when it sends its answer. This worker knows only when the answer
        # arrived, which is later. So ask the ps as soon as half of the patience has passed here.
        slow = patience is not None and since is not None and time.monotonic() - since >= patience / 2
        if not self.conversation.lost_first and not slow:
            return True
        answer = self.conversation.request_until_answered(0, Frame(kinds.HOLDS, (works,)))
        self.conversation.lost_first = False
        return answer.header == (True,)

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def assign(self, values: Sequence[Any], state: Callable[[int], Sequence[Array]] | None = None) -> None:
        """Replaces the values of all variables.

        Tables whose rows `TableTransfer.set_initial` provides are replaced, too; other tables are unchanged.

        Args:
          values: one value for each variable; None for tables.
          state: returns the new state of the optimizer for the ``ps`` with a given number; None leaves the optimizer's
            state unchanged.
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
        self.pull()  # this worker's next step must start from the assigned values

    def snapshot(self) -> ParameterSnapshot:
        """Reads all values and the optimizer's state. The chief keeps the result, to fill a restarted ``ps``."""
        while True:
            keeps = [self._chief and index == 0 for index in range(len(self._sessions))]
            answers = self.conversation.exchange(
                [Frame(kinds.PULL, (True, [], None, None, keep, self._next_number())) for keep in keeps]
            )
            complete = [answer for answer in answers if answer is not None]
            # If a ps was lost meanwhile, read everything again: otherwise the snapshot would mix different versions.
            if len(complete) == len(answers):
                break
        versions: list[int] = []
        blocks: list[tuple[Array, ...]] = []
        states: list[Mapping[str, Array]] = []
        for session, answer, held in zip(self._sessions, complete, self._layout.blocks, strict=True):
            version, _, _, _, names, _, ledger = values_header(answer, session.task)
            session.version = session.read = version
            session.read_incarnation = session.answer_incarnation
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
        snapshot = ParameterSnapshot(
            versions=tuple(versions),
            blocks=tuple(blocks),
            states=tuple(states),
            tables=self.tables.copy() if self._chief else None,
            ledger=self._ledger,
        )
        if self._chief:
            self._snapshot = snapshot
        return snapshot

    def restore(self, snapshot: ParameterSnapshot) -> None:
        """Sets the snapshot with which the chief fills a ``ps`` without values from now on."""
        self._snapshot = snapshot

    def finish(self, training: int) -> None:
        """Leaves training number ``training``; returns once all workers have finished or are lost."""
        frame = Frame(kinds.FINISH, (training,))
        # From now on, this worker neither fails because of a ps that has ended with the job, nor waits for such a ps.
        self._finishes = True
        try:
            for index, answer in enumerate(
                self.conversation.exchange([frame for _ in self._sessions], again=True, always=True)
            ):
                if answer is None:
                    self.conversation.request_until_answered(index, frame)
        except JobOverError as error:  # the ps ended before its answer arrived
            _log.info("%s has finished: %s", self._worker, error.message)
        finally:
            self._finishes = False
        self.trainings = max(self.trainings, training + 1)

    def agree_on_first_epoch(
        self, training: int, epoch: int | None, *, may_stop: bool = False, resumes: bool = False
    ) -> int | None:
        """Returns the epoch with which a training begins, which all workers have to use.

        Args:
          training: the number of the training.
          epoch: on the chief, the epoch to begin with. None on other workers, which wait until the chief has set it.
          may_stop: whether the chief may stop the training at the end of any epoch.
          resumes: whether the chief resumes its epoch after a restart, so that synchronous workers wait for it.

        Returns:
          The epoch; None if the first ``ps`` does not know the epoch, because that ``ps`` was restarted during the
          training.
        """
        answer = self.conversation.request_until_answered(
            0, Frame(kinds.BEGIN, (training, -1 if epoch is None else epoch, may_stop, resumes))
        )
        match answer.header:
            case (int(begins),) if begins >= 0:
                return begins
            case _:
                return None

    def follow(self, training: int, epoch: int) -> tuple[bool, int]:
        """Waits until an epoch is over; returns whether the training is over, too, and the newest epoch that is over.

        Raises:
          UnavailableError: a ``ps`` has ended with the job.
        """
        answer = self.conversation.request_until_answered(0, Frame(kinds.FOLLOW, (training, epoch)))
        match answer.header:
            case (bool(over), int(newest)):
                return over, max(epoch, newest)
            case _:
                raise bad_header(answer, self._sessions[0].task)

    def sums(self, epoch: int, *, wait: bool = True) -> Array:
        """Returns the sums, such as losses, over the contributions of all workers in an epoch; empty without any.

        Args:
          epoch: the number of the epoch.
          wait: whether to wait until no other worker is computing a step of that epoch.
        """
        answer = self.conversation.request_until_answered(0, Frame(kinds.SUMS, (epoch, wait)))
        return answer.tensors[0] if answer.tensors else _NOTHING

    def stop_training(self) -> None:
        """Stops the training: no worker gets another step until all have finished."""
        self.conversation.exchange([Frame(kinds.STOP) for _ in self._sessions])

    # Frames -----------------------------------------------------------------------------------------------------------

    def _values(self, frames: Sequence[Frame | None], extras: Sequence[Sequence[int]]) -> tuple[int, bool]:
        """Sends requests for values, at most one to each ``ps``, and stores the received values.

        Returns the step number from the first ``ps``, and whether every ``ps`` applied the gradients.

        A ``ps`` that was lost and still has its values gets its frame again, with the same number. A ``ps`` that was
        restarted without its values has lost the gradients, too: its values are read again, and the worker continues.
        """
        step_number, applied = protocol.EPOCH_OVER, True
        filled = [session.filled for session in self._sessions]

        def handle_first_answer(answer: Frame | None) -> None:
            # If the first ps has dropped a gradient of accounted examples, do not repeat that gradient to other ps.
            if frames[0] is not None and carries_examples(frames[0]) and is_dropped(answer):
                self.conversation.repeat_instead(
                    lambda index, frame: self._pull_frame(index, frame.header[2], None, (), frame.header[-1])
                )

        answers = self.conversation.exchange(frames, again=True, after_first=handle_first_answer)
        for index, (session, first_answer) in enumerate(zip(self._sessions, answers, strict=True)):
            answer = first_answer
            frame = frames[index]
            if frame is None:
                continue
            while answer is None:
                # The ps was restarted without its values, and has lost this request's gradients: only read.
                if session.filled != filled[index]:
                    filled[index] = session.filled
                    step_request, number = frame.header[2 if frame.kind == kinds.PULL else 3], frame.header[-1]
                    everything = list(range(len(self._added_variables[index])))
                    extras = [*extras[:index], everything, *extras[index + 1 :]]
                    applied = applied and frame.kind == kinds.PULL
                    frame = self._pull_frame(index, everything, step_request, (), number)
                try:
                    answer = self.conversation.request(session, frame)
                except (UnavailableError, AbortedError) as error:
                    self.conversation.reconnect(index, error)
            version, was_applied, its_step_number, share, _, assigned_work, ledger = values_header(answer, session.task)
            session.version = session.read = version
            session.read_incarnation = session.answer_incarnation
            count = len(session.optimized) + len(extras[index])
            self._store_values(index, answer.tensors[:count], extras[index])
            if index == 0:
                self.sums_so_far = answer.tensors[count:]
                step_number = its_step_number
                self.share = share
                self.version: int = version
                self.assigned_work = assigned_work
                if self._held_since is None and isinstance(assigned_work, tuple):
                    self._held_since = time.monotonic()
                self._ledger = ledger
            if frame.kind == kinds.PUSH:
                applied = applied and was_applied
        return step_number, applied

    def _store_values(self, index: int, tensors: Sequence[Array], extras: Sequence[int]) -> None:
        session = self._sessions[index]
        if not session.pieces:
            session.pieces = [_NOTHING] * len(self._layout.blocks[index])
        pieces, dense = session.pieces, len(session.optimized)
        for (at, _), tensor in zip(session.optimized, tensors[:dense], strict=True):
            pieces[at] = tensor
        for extra, tensor in zip(extras, tensors[dense:], strict=True):
            pieces[session.added[extra][0]] = tensor


def _is_added(spec: VariableSpec) -> bool:
    """Returns whether workers add changes to the variable, instead of pushing gradients for an optimizer."""
    return not spec.optimized and not spec.table
