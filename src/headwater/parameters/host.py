"""The end that has the values: what runs on a ``ps``.

Each worker has a channel, served by a thread. A lock lets one thread at a time decide and update; waiting for others
gives it away. Who waits for what is decided by `headwater.consistency`.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwater.accounting.ledger import Nothing, Plan, Work
from headwater.cluster.claims import Claim, Places
from headwater.cluster.names import TaskName
from headwater.consistency import (
    Apply,
    Asynchronous,
    Back,
    BoundedStaleness,
    Consistency,
    DataEnd,
    Decision,
    Drop,
    Event,
    Gave,
    Go,
    Joined,
    KOfN,
    Left,
    NoneToCome,
    Released,
    Restarted,
    State,
    Synchronous,
    Tick,
    Updated,
    decide,
    waiting_text,
    without_count,
)
from headwater.errors import (
    AbortedError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    OpError,
    UnavailableError,
)
from headwater.parameters import protocol
from headwater.parameters.accounts import Accounts
from headwater.parameters.epoch_sums import EpochSums
from headwater.parameters.host_state import Answered, HostState
from headwater.parameters.layout import Block, Layout, block_shape
from headwater.parameters.recovery import WayBack
from headwater.parameters.round_sums import RoundSums
from headwater.parameters.rounds import Round
from headwater.parameters.row_travel import as_numbers, as_rows, as_travelling
from headwater.parameters.tickets import Tickets
from headwater.parameters.updater import Array, HostedTable, Updater
from headwater.parameters.waiting import LOOK_S, SPEAK_S
from headwater.parameters.wishes import Returned, range_of, wish_of, work_of
from headwater.runtime.memory import NO_MEMORY, no_memory
from headwater.task import kinds
from headwater.task.agreement import Agreement, Said, is_said
from headwater.task.answers import bad_header, error_frame
from headwater.telemetry.snapshot import Group, VariableSize
from headwater.telemetry.watchdog import ProgressWatchdog
from headwater.transport.channel import Channel
from headwater.transport.frames import Frame
from headwater.transport.handshake import new_generation

_log = logging.getLogger("headwater")

#: Variables that an error names at most.
_SHOWN_NAMES = 5

#: What the progress watchdog calls the steps of a worker.
_STEP = 0
#: How long a snapshot waits for an update to end, in seconds.
_GLANCE_S = 0.5


class _Talk:
    """The conversation with one worker; to the progress watchdog, its step.

    Attributes:
      worker: its name.
      channel: to it.
      waits_for: what it waits for here, and since when; None while it does not. The text is empty for an update, which
        `waiting_text` tells of.
      turn: notified when the worker may go on.
      watched: whether the watchdog counts its steps.
    """

    def __init__(self, worker: str, channel: Channel, turn: threading.Condition) -> None:
        self.worker = worker
        self.channel = channel
        self.turn = turn
        self.waits_for: tuple[str, float] | None = None
        self.watched = False


@dataclass(kw_only=True, slots=True)
class _Request:
    """The latest request of a worker, which may come again.

    Attributes:
      number: the worker's number of it.
      applied: whether its gradients were taken.
      version: of the values when they were given.
      ticket: the step that it was given; None without one.
      handed: the range of examples that it was given, as (epoch, start, stop, seed of the order); or, in words, which
        were set aside; None without either.
    """

    number: int
    applied: bool = False
    version: int = -1
    ticket: int | None = None
    handed: tuple[int, int, int, int] | str | None = None


class HostedParameters:
    """One set of parameters on this task.

    Args:
      name: of the set.
      task: this task's name, for people.
      index: its number among the ``ps``. Number 0 hands out steps.
      layout: what every ``ps`` has.
      updater: this task's blocks.
      choice: how closely workers keep together.
      program: what this task says of its program, which workers must say, too; see `headwater.task.agreement`.
      staleness_aware: whether the step of a gradient that is τ > 1 updates old is divided by τ: Zhang, Gupta, Lian and
        Liu, *Staleness-aware Async-SGD for Distributed Deep Learning*, IJCAI 2016. What the optimizer keeps, such as
        momenta, sees the whole gradient.
      log_dir: the folder for the journal of examples, on the first ``ps``; see `headwater.parameters.accounts`.
      round_sums: for synchronous training, what the optimizer needs of the gradients of other ``ps``.
      clock: seconds that only grow.

    Attributes:
      name: of the set.
      counts_steps: whether its version is the job's step, as that of the first ``ps`` is.
      steps: gradients of workers that it has answered.
      updates: how many it has made.
      life: a random number that stands for this object.
      lock: held by who decides and updates.
      secured: called before each answer, with its channel and without the lock; returns once what the answer says is
        safe. Raises UnavailableError where it never will be.
    """

    def __init__(
        self,
        name: str,
        task: str,
        index: int,
        layout: Layout,
        updater: Updater,
        choice: Consistency,
        *,
        program: Said | None = None,
        staleness_aware: bool = False,
        log_dir: str | None = None,
        round_sums: RoundSums | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.counts_steps: bool = index == 0
        self.steps: int = 0
        self.updates: int = 0
        self.life: int = new_generation()
        self._task = task
        self._layout = layout
        self._held = layout.blocks[index]
        self._updater = updater
        self._clock = clock
        specs = [layout.variables[block.variable] for block in layout.blocks[index]]
        self._blocks = len(specs)
        self._optimized = sum(spec.optimized for spec in specs)
        self._table_widths = [spec.shape[-1] for spec in specs if spec.table]
        self._tables = len(self._table_widths)
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._choice = choice
        # Whether a worker is too far ahead is for one task to say: two might have seen it join at different steps, and
        # each hold up another one.
        self._state = State(choice=Asynchronous() if isinstance(choice, BoundedStaleness) and index else choice)
        self._round = Round()
        self._round_sums = round_sums
        self._tickets = Tickets(in_rounds=isinstance(choice, Synchronous | KOfN))
        self._filled = 0
        self._trainings = 0
        self._over = False
        # Whether the program of a worker has ended.
        self._ended = False
        self._seed = int(np.random.SeedSequence().generate_state(1)[0])
        self._accounts = Accounts(name, task, self._seed, log_dir)
        self._free: set[str] = set()
        self._talks: dict[str, _Talk] = {}
        #: Workers that have finished the present training.
        self._finished: set[str] = set()
        self._places = Places()
        self._staleness_total = 0
        self._staleness_max = 0
        self._shares: dict[str, tuple[int, int]] = {}
        self._staleness_aware = staleness_aware
        self._agreement = Agreement(task, program or {})
        self._sums = EpochSums()
        self._lives: dict[str, int] = {}
        self._latest: dict[str, _Request] = {}
        self._away: set[str] = set()
        # Workers that take part, and that no other waits for: they wait for examples which others hold.
        self._resting: set[str] = set()
        self._way_back: WayBack | None = None
        self._knobs: Sequence[float] = ()
        # Why what it has stays as it is now, so that workers wait; empty where it does not.
        self._held_for = ""
        # Workers that took part elsewhere before, and until when they may come here.
        self._expected: tuple[set[str], float] = set(), 0.0
        self.lock: threading.Condition = self._changed
        self.secured: Callable[[Channel], None] | None = None

    @property
    def version(self) -> int:
        """How many updates the values have seen."""
        return self._state.version

    # How it fares -----------------------------------------------------------------------------------------------------

    def sizes(self) -> list[VariableSize]:
        """What this task holds: its blocks, and the optimizer's state."""
        if not self._filled:
            return []
        found: list[VariableSize] = []
        for block in self._held:
            spec = self._layout.variables[block.variable]
            found.append(_size(self._block_name(block), block_shape(spec, block), spec.dtype, self.updates))
        return found + [_size(*part, self.updates) for part in self._updater.state_sizes()]

    def _block_name(self, block: Block) -> str:
        rows = f"[{block.start}:{block.stop}]" if block.stop >= 0 else ""
        return self._layout.variables[block.variable].name + rows

    def group(self) -> Group:
        """How training goes."""
        state, examples = self._state, ""
        if self._changed.acquire(timeout=_GLANCE_S):
            try:
                examples = str(self._accounts)
            finally:
                self._changed.release()
        return Group(
            name=self.name,
            updates=state.version,
            staleness=self._staleness_total / max(1, self.updates),
            staleness_max=self._staleness_max,
            dropped=state.dropped,
            workers=tuple(sorted({*state.members, *self._resting})),
            waiting=waiting_text(state, self._clock()),
            consistency=str(self._choice),
            optimizer=self._updater.optimizer,
            examples=examples,
        )

    def waits(self) -> list[tuple[str, float]]:
        """Which workers wait here, for what, and since when (`time.monotonic`)."""
        found: list[tuple[str, float]] = []
        for talk in list(self._talks.values()):
            if (wait := talk.waits_for) is not None:
                what, since = wait
                found.append((f"{talk.worker}: {what or waiting_text(self._state, self._clock())}", since))
        return found

    # Its state as a whole ---------------------------------------------------------------------------------------------

    @property
    def tables(self) -> Sequence[HostedTable]:
        """Of its blocks those that are tables."""
        return self._updater.tables

    @property
    def signature(self) -> str:
        """Of the layout."""
        return self._layout.signature()

    @property
    def is_over(self) -> bool:
        """Whether the chief's program has ended without an error."""
        return self._over

    @property
    def way_back(self) -> WayBack | None:
        """How it went back to its own state; None where it has not."""
        return self._way_back

    @contextmanager
    def still(self) -> Generator[None]:
        """While it is entered, nothing changes."""
        with self._changed:
            yield

    def ends(self) -> None:
        """From now on nothing changes any more: workers wait for the task's next life."""
        self.hold("this task to come back: it saves its state, and ends")

    def hold(self, what: str) -> None:
        """From now on nothing changes, and workers wait for ``what``, until `go_on`."""
        with self._changed:
            self._held_for = what

    def go_on(self) -> None:
        """Ends `hold`."""
        with self._changed:
            self._held_for = ""
            self._changed.notify_all()

    @property
    def is_held(self) -> bool:
        """Whether nothing changes now. The lock is held."""
        return bool(self._held_for)

    def state(self) -> HostState | None:
        """All that it has, but rows of tables; None while it has no values. No array is copied: an update that comes
        while one is in use makes a new one."""
        with self._changed:
            if not self._filled:
                return None
            tickets = self._tickets
            answered = {
                worker: Answered(
                    life=life,
                    number=latest.number,
                    applied=latest.applied,
                    version=latest.version,
                    ticket=latest.ticket,
                )
                if (latest := self._latest.get(worker)) is not None
                else Answered(life=life)
                for worker, life in self._lives.items()
            }
            return HostState(
                version=self.version,
                filled=self._filled,
                life=self.life,
                trainings=self._trainings,
                seed=self._seed,
                steps=(tickets.epoch, tickets.given, tickets.base, tickets.steps),
                answered=answered,
                sums=self._sums.all(),
                ledger=self._accounts.to_bytes(),
                values=self._updater.values(None),
                state=self._updater.state(),
            )

    def resume(self, state: HostState, at: float) -> None:
        """Goes on with its own state of an earlier life, saved ``at``, in seconds since 1970; before it serves.

        Raises:
          InvalidArgumentError: arrays are of other shapes.
        """
        with self._changed:
            self._updater.fill(state.values, list(state.state.values()))
            if state.ledger is not None:
                self._accounts.restore(state.ledger, state.version)
            self._filled, self._trainings, self._seed = state.filled, state.trainings, state.seed
            tickets = self._tickets
            tickets.epoch, tickets.given, tickets.base, tickets.steps = state.steps
            for worker, one in state.answered.items():
                self._lives[worker] = one.life
                if one.number >= 0:
                    self._latest[worker] = _Request(
                        number=one.number, applied=one.applied, version=one.version, ticket=one.ticket
                    )
            self._sums.restore(state.sums)
            self._perform(decide(self._state, Restarted(state.version), self._clock()))
            names = [self._block_name(block) for block in self._held]
            self._way_back = WayBack(life=state.life, version=state.version, at=at, names=names)

    # A worker's channel -----------------------------------------------------------------------------------------------

    def serve(self, channel: Channel, hello: Frame, watchdog: ProgressWatchdog) -> None:
        """Answers a worker until its channel ends, and tells ``watchdog`` of its steps.

        Raises:
          UnavailableError, CancelledError: the channel has ended.
        """
        match hello.header:
            case (
                str(),
                str(worker),
                str(signature),
                str(choice),
                float(started),
                int(life),
                int(trainings),
                int(its),
                int(read),
            ):
                claim = Claim(task=worker, generation=channel.peer_generation, started=started)
            case _:
                raise bad_header(hello, channel.peer)
        mine = without_count(self._choice)
        if signature != self._layout.signature() or choice != mine:
            what = (
                "other variables, or has them in another order"
                if choice == mine
                else f"consistency {choice!r}, and this task {mine!r}"
            )
            error = FailedPreconditionError(None, None, f"{worker} has {what}: all tasks must run the same program")
            channel.send(error_frame(0, error, self._task))
            return
        with self._changed:
            refused = self._places.claim(claim, connected=self._has_talk)
        if refused:
            _log.warning("%s refuses %s: %s", self._task, claim, refused)
            error = FailedPreconditionError(
                None,
                None,
                f"{self._task} refuses {claim}: {refused}. End this process; if it shall be part of the "
                "cluster, start it again with the present cluster spec",
            )
            channel.send(error_frame(0, error, self._task))
            return
        with self._changed:
            anew = self._lives.get(worker) != life
            if anew:  # its program numbers anew
                self._lives[worker] = life
                self._latest.pop(worker, None)
            before = self._talks.get(worker)
            talk = self._talks[worker] = _Talk(worker, channel, threading.Condition(self._lock))
            if before is not None:
                self._leave(worker, "it was started anew")
                before.channel.close()
            if anew:
                self._accounts.begun_anew(worker)
            if 0 <= trainings < self._trainings:
                # It is in a training that others have finished here before it came: it waits for no others.
                self._event(NoneToCome())
            elif trainings > self._trainings:
                self._reach_training(trainings)
            if self._way_back is not None and self._way_back.told(its, read):
                _log.warning("%s: %s; %s had read version %d", self._task, self._way_back, worker, read)
            welcome = (self._filled, self.version, self._trainings, self._tickets.epoch, self._seed, self.life)
        channel.send(Frame(kinds.WELCOME, welcome))
        try:
            while True:
                self._answer(talk, channel.recv(), watchdog)
        finally:
            if talk.watched:
                watchdog.closed(worker, self.name)
            with self._changed:
                if self._talks.get(worker) is talk:
                    del self._talks[worker]
                    self._leave(worker, "its channel has ended")
                if not self._talks:
                    self._agreement.begin()
            if self.secured is None:  # else it may say what no other copy has
                self._accounts.flush()

    def take(self, channel: Channel, first: Frame) -> None:
        """Tells another ``ps`` its part of the sums of rounds."""
        if self._round_sums is None:
            raise bad_header(first, channel.peer)
        self._round_sums.serve(channel, first)

    def close(self) -> None:
        """The task stops."""

    def refusal(self, task: Claim) -> str:
        """Why a task does not speak for its place; empty where it does."""
        with self._changed:
            return self._places.refusal(task, connected=self._has_talk)

    def _has_talk(self, holder: Claim) -> bool:
        """Whether the task that has a place is connected."""
        talk = self._talks.get(holder.task)
        return talk is not None and not talk.channel.closed and not talk.channel.peer_gone()

    def _answer(self, talk: _Talk, frame: Frame, watchdog: ProgressWatchdog) -> None:
        """Answers a frame; one with gradients is a step of the worker's training."""
        channel, worker, name = talk.channel, talk.worker, self.name
        if frame.kind == kinds.RELEASE:
            return  # it was answered meanwhile
        if frame.kind == kinds.PUSH:
            if not talk.watched:
                watchdog.opened(worker, name)
                talk.watched = True
            watchdog.began(worker, name, talk)
        elif frame.kind == kinds.FINISH and talk.watched:
            talk.watched = False
            watchdog.closed(worker, name)
        try:
            answer = self._handle(talk, frame)
        except (OpError, MemoryError) as error:
            if channel.closed or channel.peer_gone():
                raise
            answer = error_frame(0, error, self._task)
        if frame.kind == kinds.PUSH:
            self.steps += 1
            watchdog.ended(worker, name, _STEP, talk, done=answer.kind == kinds.VALUES)
        if self.secured is not None:
            self.secured(channel)
        self._accounts.flush()
        channel.send(answer)

    def _handle(self, talk: _Talk, frame: Frame) -> Frame:
        match frame.kind, frame.header:
            case kinds.PUSH, (int(version), float(weight), extras, wish, knobs, work, bool(keeps), int(number)):
                return self._push(talk, version, weight, extras, wish, knobs, work, keeps, number, frame.tensors)
            case kinds.PULL, (bool(everything), extras, wish, work, bool(keeps), int(number)):
                return self._pull(talk, everything, extras, wish, work, keeps, number)
            case kinds.REST, (wish,):
                return self._rest(talk, wish)
            case kinds.HOLDS, ([*spans],):
                return Frame(kinds.DONE, (self._holds(talk.worker, [range_of(span) for span in spans]),))
            case kinds.ROWS, (() | (str(),)) as form:
                return self._rows(talk, frame.tensors, *form)
            case kinds.FILL, (int(version), [*tables], bytes() | None as ledger, bool(over)):
                return self._fill(version, tables, ledger, over, frame.tensors)
            case kinds.READ_ROWS, (int(table), int(start), int(stop), [*parts]) if 0 <= table < self._tables:
                with self._changed:
                    self._await_values(talk)
                    return Frame(kinds.DONE, (), self._updater.tables[table].read(start, stop, parts))
            case kinds.WRITE_ROWS, (int(table), int(start)) if 0 <= table < self._tables:
                with self._changed:
                    if self._held_for:
                        self._await_end(talk)
                    self._updater.tables[table].write(start, frame.tensors)
                return Frame(kinds.DONE)
            case kinds.READY, ():
                with self._changed:
                    self._await_values(talk)
                    return Frame(kinds.DONE, (self._filled,))
            case kinds.ASSIGN, ():
                with self._changed:
                    self._require_filled()
                    if self._held_for:
                        self._await_end(talk)
                    count = self._blocks - self._tables
                    blocks = frame.tensors[:count]
                    if len(frame.tensors) > count:
                        self._updater.fill(blocks, frame.tensors[count:])
                    else:
                        self._updater.assign(blocks)
                return Frame(kinds.DONE)
            case kinds.SUMS, (int(epoch), bool(wait)):
                return self._tell_sums(talk, epoch, wait)
            case kinds.AGREE, (program, data) if is_said(program) and is_said(data):
                return self._agree(talk, program, data)
            case kinds.FINISH, (int(training),):
                return self._finish(talk, training)
            case kinds.FOLLOW, (int(training), int(epoch)):
                with self._changed:
                    self._await(
                        talk,
                        lambda: self._trainings > training or self._tickets.epoch > epoch,
                        f"epoch {epoch} to end",
                    )
                    return Frame(kinds.DONE, (self._trainings > training,))
            case kinds.STOP, ():
                with self._changed:
                    self._tickets.stopped = True
                    self._changed.notify_all()
                return Frame(kinds.DONE)
            case _:
                raise bad_header(frame, talk.channel.peer)

    # What workers ask for ---------------------------------------------------------------------------------------------

    def _fill(
        self, version: int, written: Sequence[Any], ledger: bytes | None, over: bool, tensors: Sequence[Array]
    ) -> Frame:
        blocks = self._blocks - self._tables
        with self._changed:
            # The second worker has nothing to add: the values are there.
            if not self._filled:
                if ledger is not None:
                    self._trainings = max(self._trainings, self._accounts.restore(ledger, version))
                self._updater.fill(tensors[:blocks], tensors[blocks:] or None)
                for number, table in enumerate(self._updater.tables):
                    if number not in written:
                        table.begin()
                self._filled = new_generation()
                self._perform(decide(self._state, Restarted(version), self._clock()))
                if over:
                    self.job_over()
                _log.info("%s has values, of version %d", self._task, version)
                self._changed.notify_all()
            return Frame(kinds.DONE, (self._filled,))

    def _pull(
        self, talk: _Talk, everything: bool, extras: Any, wish: Any, work: Any, keeps: bool, number: int
    ) -> Frame:
        with self._changed:
            self._await_values(talk)
            if (wish is not None or talk.worker in self._resting) and talk.worker not in self._state.members:
                self._event(Joined(talk.worker))
            request, again = self._request(talk, number)
            self._judged(talk.worker, request)
            if not again:
                self._take_back(talk.worker, work_of(work)[1])
            return self._values(talk, everything, extras, wish, keeps, request)

    def _rest(self, talk: _Talk, wish: Any) -> Frame:
        """A worker has no data, because others hold what is left: no other waits for it, and it waits for theirs."""
        worker = talk.worker
        with self._changed:
            self._require_present(talk)
            if not self._state.formed and worker not in self._state.members:
                self._event(Joined(worker))
            self._await(talk, lambda: self._state.formed, "the other workers to come")
            self._require_present(talk)
            self._resting.add(worker)
            self._event(Left(worker, "it has no data"))
            self._end_data()
            if wish is not None:
                training, last, _, _, (first, *_) = wish_of(worker, wish)
                began, patience = self._clock(), self._choice.patience_s

                def ready() -> bool:
                    if patience is not None and self._clock() - began >= patience:
                        for slow in set(self._accounts.holders()) - self._resting:
                            self._accounts.left(slow, f"others have waited for it for {patience:g} s")
                    over = self._tickets.stopped or self._trainings > training
                    return over or self._accounts.has_work(training, first, last)

                def none_to_come() -> bool:
                    holders = self._accounts.holders()
                    return worker in holders and self._resting.issuperset(holders)

                holders = ", ".join(self._accounts.holders()) or "other workers"
                self._await(talk, lambda: ready() or none_to_come(), f"the last examples, which {holders} computes")
                self._changed.notify_all()
                return Frame(kinds.DONE, (ready(),))
            return Frame(kinds.DONE)

    def _holds(self, worker: str, works: Sequence[Work]) -> bool:
        """Whether a worker that was away still has ranges."""
        with self._changed:
            self._accounts.back(worker)
            holds = all(self._accounts.holds(worker, work) for work in works)
        if not holds:
            self._tell_dropped(worker, works)
        return holds

    def _tell_dropped(self, worker: str, works: Sequence[Work]) -> None:
        ranges = ", ".join(map(str, works))
        _log.warning("%s drops a gradient of %s: %s were handed out again", self._task, worker, ranges)

    def _end_data(self) -> None:
        """Where all workers rest that take part, what was gathered becomes an update."""
        if self._resting and not self._state.members:
            self._event(DataEnd())
            self._changed.notify_all()

    def _take_back(self, worker: str, returned: Sequence[Returned]) -> None:
        for work, reason in returned:
            self._accounts.failed(worker, work, reason)
        if returned:
            self._changed.notify_all()

    def _push(
        self,
        talk: _Talk,
        version: int,
        weight: float,
        extras: Any,
        wish: Any,
        knobs: Any,
        work: Any,
        keeps: bool,
        number: int,
        tensors: Sequence[Array],
    ) -> Frame:
        worker = talk.worker
        given, returned = work_of(work)
        expected = self._optimized + len(extras) + 2 * self._tables
        # The first ps gets what the worker adds to the sums of its epoch, too.
        sums = tensors[expected] if wish is not None and len(tensors) == expected + 1 else None
        if len(tensors) != expected + (sums is not None):
            raise InvalidArgumentError(None, None, f"{worker} pushed {len(tensors)} arrays instead of {expected}")
        split = self._optimized + len(extras)
        rows = [
            (as_numbers(tensors[at]), as_rows(tensors[at + 1], width))
            for at, width in zip(range(split, expected, 2), self._table_widths, strict=True)
        ]
        with self._changed:
            self._require_filled()
            if self._held_for:
                self._await_end(talk)
            request, again = self._request(talk, number)
            if not again:
                self._take_back(worker, returned)
            if not again and self._accounts.give(worker, given):
                self._free.discard(worker)
                request.version = self.version
                decision = decide(self._state, Gave(worker, version), self._clock())
                request.applied = not any(isinstance(action, Drop) for action in decision.actions)
                if request.applied:
                    self._knobs = knobs
                    changes = dict(zip(extras, tensors[self._optimized : split], strict=True))
                    source = worker, self._lives[worker], number
                    self._round.add(tensors[: self._optimized], changes, rows, weight, knobs, source)
                    if sums is not None and wish is not None:
                        self._sums.add(worker, wish[1], sums)
                else:
                    self._accounts.dropped(worker, given)
                self._judged(worker, request)
                self._tickets.ended(worker)
                try:
                    self._perform(decision)
                except OpError:  # the update could not be made: a repetition is told the same
                    self._latest.pop(worker, None)
                    raise
                self._changed.notify_all()
            elif request.applied and self._state.gathers and request.version == self.version:
                self._event(Back(worker))
            else:
                self._judged(worker, request)
                if not again:
                    self._tell_dropped(worker, given)
                    self._changed.notify_all()
                self._event(Joined(worker))
                self._free.add(worker)
            self._await(talk, lambda: worker in self._free or self._talks.get(worker) is not talk, "", talk.turn)
            self._require_present(talk)  # else its new channel is the one that may go on
            self._free.discard(worker)
            return self._values(talk, False, extras, wish, keeps, request)

    def _request(self, talk: _Talk, number: int) -> tuple[_Request, bool]:
        """What is known of a numbered request, and whether it came before, on a channel that was lost.

        Raises:
          UnavailableError: see `_require_present`.
        """
        self._require_present(talk)
        self._away.discard(talk.worker)
        self._resting.discard(talk.worker)
        self._accounts.back(talk.worker)
        latest = self._latest.get(talk.worker)
        if latest is not None and latest.number == number:
            return latest, True
        request = self._latest[talk.worker] = _Request(number=number)
        return request, False

    def _judged(self, worker: str, request: _Request) -> None:
        """Other ``ps`` may ask whether the worker's gradient is part of a round here."""
        if self._round_sums is not None:
            self._round_sums.judged(worker, self._lives[worker], request.number, taken=request.applied)

    def _require_present(self, talk: _Talk) -> None:
        """Raises UnavailableError where the worker has another channel meanwhile: it asks again there."""
        if self._talks.get(talk.worker) is not talk:
            raise UnavailableError(None, None, f"{talk.worker} came back on another channel")

    def _await_epoch(self, talk: _Talk, epoch: int) -> None:
        """Waits until no worker is more than an epoch behind: the chief validates, and may stop training."""
        self._tickets.asked[talk.worker] = epoch
        self._changed.notify_all()
        if isinstance(self._choice, Asynchronous):  # the others keep together by themselves
            self._await(talk, lambda: self._tickets.may_begin(epoch), "others that are more than an epoch behind")

    def _values(self, talk: _Talk, everything: bool, extras: Any, wish: Any, keeps: bool, request: _Request) -> Frame:
        worker, ticket, share = talk.worker, protocol.EPOCH_OVER, None
        match wish:
            case None:
                self._tickets.at_work.pop(worker, None)
            case (int(training), int(epoch), int(steps), int(exhausted), *_):
                if exhausted >= 0:
                    self._tickets.exhausted(epoch, exhausted)
                self._await_epoch(talk, epoch)
                if training > self._trainings:
                    self._reach_training(training)
                if training < self._trainings:
                    ticket = protocol.TRAINING_OVER
                elif len(wish) > 4:
                    ticket = self._hand_out(worker, wish, request)
                elif request.ticket is not None:  # it has that step already, and not the answer that said so
                    ticket = self._tickets.at_work[worker] = request.ticket
                else:
                    ticket = self._tickets.take(worker, epoch, steps, self.version)
                    request.ticket = ticket if ticket >= 0 else None
                if ticket != protocol.TRAINING_OVER:
                    share = self._share(worker)
                self._changed.notify_all()
            case _:
                raise InvalidArgumentError(None, None, f"{worker} asked for a step in words unknown here")
        values = self._updater.values(None if everything else extras)
        names: list[str] = []
        if everything:
            state = self._updater.state()
            values += state.values()
            names += state
        ledger = self._accounts.to_bytes() if keeps else None
        header = (self.version, request.applied, ticket, share, names, request.handed, ledger)
        return Frame(kinds.VALUES, header, values)

    def _reach_training(self, training: int) -> None:
        """A worker is in a later training than is known here, as this task was started anew meanwhile, or the first
        ``ps`` knew earlier that all have finished."""
        self._trainings = training
        self._finished.clear()
        self._changed.notify_all()
        if self._way_back is not None:  # the steps that it knows of are those of an earlier one
            self._tickets.begin_training()

    def _hand_out(self, worker: str, wish: Any, request: _Request) -> int:
        """A range of examples for a worker, noted in its request; the number of the batch, or why there is none."""
        training, last, steps, _, (first, plan, part) = wish_of(worker, wish)
        self._tickets.ended(worker)
        if isinstance(request.handed, tuple):
            work = Work(*request.handed[:3])
            if self._accounts.holds(worker, work):  # it has that range already, and not the answer that said so
                return self._begins(worker, work, plan)
        request.handed = None
        if self._tickets.stopped:
            return protocol.TRAINING_OVER
        share = part and (self._share(worker) or part)
        found = self._accounts.hand_out(worker, training, first, last, plan, share, self.version)
        match found:
            case Nothing.OVER:
                return protocol.EPOCH_OVER
            case Nothing.YET:
                return protocol.NOTHING_YET
            case Nothing.ASIDE:
                request.handed = self._accounts.set_aside(first, last)
                return protocol.SET_ASIDE
            case (work, seed):
                request.handed = work.epoch, work.start, work.stop, seed
                self._tickets.reach(work.epoch, steps, self.version)
                return self._begins(worker, work, plan)

    def _begins(self, worker: str, work: Work, plan: Plan) -> int:
        batch = self._tickets.at_work[worker] = work.start // plan.batch
        return batch

    def _rows(self, talk: _Talk, numbers: Sequence[Array], form: str = "float32") -> Frame:
        if len(numbers) != self._tables:
            raise InvalidArgumentError(None, None, f"asked for rows of {len(numbers)} tables; there are {self._tables}")
        with self._changed:
            self._await_values(talk)
            found = self._updater.rows([as_numbers(wanted) for wanted in numbers])
        return Frame(kinds.DONE, (), [as_travelling(rows, form) for rows in found])

    def _share(self, worker: str) -> tuple[int, int] | None:
        """Which part of a batch that several workers share is this worker's: its number, and of how many. None where
        the batch is all its own, and before all have come that are expected at the beginning."""
        state = self._state
        if not state.gathers or not state.formed:
            return None
        if self._shares.keys() != state.members.keys():
            names = sorted(state.members, key=_place)
            self._shares = {name: (at, len(names)) for at, name in enumerate(names)}
        return self._shares.get(worker)

    def _finish(self, talk: _Talk, training: int) -> Frame:
        worker = talk.worker
        with self._changed:
            self._trainings = max(self._trainings, training)  # less where this task was started anew meanwhile
            trainings = self._trainings
            takes_part = worker in self._state.members or worker in self._away or worker in self._resting
            if training < trainings:  # it was late: the others have finished that training
                if takes_part:
                    self._leave(worker, "")
                return Frame(kinds.DONE)
            self._finished.add(worker)
            if takes_part:
                self._leave(worker, "")
            else:
                # This task was started anew while others trained: a worker that has finished will not come.
                self._event(NoneToCome())
            self._await(
                talk,
                lambda: self._trainings > trainings or not (self._state.members or self._resting),
                "the others to finish",
            )
        return Frame(kinds.DONE)

    def _tell_sums(self, talk: _Talk, epoch: int, wait: bool) -> Frame:
        def others() -> list[str]:
            return self._tickets.busy_in(epoch, but=talk.worker)

        with self._changed:
            if wait:
                self._await(talk, lambda: not others(), f"the last steps of epoch {epoch} by {', '.join(others())}")
            return Frame(kinds.DONE, (), self._sums.of(epoch))

    def _agree(self, talk: _Talk, program: Said, data: Said) -> Frame:
        """Compares a worker's program with this task's, and both with those of the worker that came first."""
        with self._changed:
            differs = self._agreement.differs(talk.worker, program, data, self.version)
            if differs:
                _log.error("%s: %s", self._task, differs)
                self._changed.notify_all()
                raise _other_program(differs)
            return Frame(kinds.DONE, (self._agreement.other_data(talk.worker, data),))

    # Another copy -----------------------------------------------------------------------------------------------------

    def wait_filled(self, timeout_s: float) -> bool:
        """Whether there are values, after a wait of ``timeout_s`` seconds at most."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._filled), timeout_s)

    def memory(self) -> Any:
        """What another copy of the values has to know to serve in the place of this one, as a frame's header has it.
        The lock is held."""
        tickets = self._tickets
        at_work, asked = sorted(tickets.at_work.items()), sorted(tickets.asked.items())
        return (
            (self._filled, self.version, self.updates, self._trainings, self._seed),
            (tickets.epoch, tickets.given, tickets.base, tickets.steps, tickets.stopped, at_work, asked),
            [
                (worker, self._lives.get(worker, 0), one.number, one.applied, one.version, one.ticket, one.handed)
                for worker, one in self._latest.items()
            ],
            (sorted(self._state.members), sorted(self._away), sorted(self._finished)),
            sorted(self._sums.all().items()),
            self._accounts.to_bytes(),
        )

    def write_accounts(self) -> None:
        """Writes the journal of examples: what another copy hears of must be in it, should this task be lost."""
        self._accounts.flush()

    def take_over(self, memory: Any, come_s: float) -> None:
        """Goes on where another copy ended, whose `memory` this is; the values are here already.

        Args:
          memory: what that copy knew.
          come_s: how long workers that took part may take to come; those that have not by then are gone, in seconds.
        """
        (filled, version, updates, trainings, seed), tickets, requests, (members, away, finished), sums, ledger = memory
        with self._changed:
            self.updates, self._trainings, self._seed = updates, trainings, seed
            mine = self._tickets
            mine.epoch, mine.given, mine.base, mine.steps, mine.stopped, at_work, asked = tickets
            mine.at_work, mine.asked = dict(at_work), dict(asked)
            for worker, life, number, applied, given, ticket, handed in requests:
                self._lives[worker] = life
                self._latest[worker] = _Request(
                    number=number, applied=applied, version=given, ticket=ticket, handed=handed
                )
            self._sums.restore(dict(sums))
            if ledger is not None:
                self._accounts.restore(ledger, version)
            self._perform(decide(self._state, Restarted(version), self._clock()))
            for worker in members:
                self._event(Joined(worker))
            self._away, self._finished = set(away), set(finished)
            self._expected = set(members), self._clock() + come_s
            self._filled = filled
            self._changed.notify_all()

    def known_workers(self) -> list[str]:
        """All that have asked for something."""
        with self._changed:
            return sorted(self._lives)

    @property
    def travelled(self) -> int:
        """Bytes that have come and gone on the channels of the workers that are here."""
        counts = [talk.channel.statistics() for talk in list(self._talks.values())]
        return sum(count.bytes_sent + count.bytes_received for count in counts)

    @property
    def knobs(self) -> Sequence[float]:
        """Those of the latest gradient; empty before the first."""
        return self._knobs

    def leave_absent(self) -> None:
        """Workers that were to come here from another copy and did not are gone."""
        with self._changed:
            expected, until = self._expected
            if expected and self._clock() >= until:
                self._expected = set(), 0.0
                for worker in sorted(expected & self._state.members.keys() - self._talks.keys()):
                    self._leave(worker, f"it did not come to {self._task}")

    def end_talks(self) -> None:
        """Ends all conversations: another copy serves."""
        for talk in list(self._talks.values()):
            talk.channel.close()

    # Decisions --------------------------------------------------------------------------------------------------------

    def _event(self, event: Event) -> None:
        self._perform(decide(self._state, event, self._clock()))

    def _perform(self, decision: Decision) -> None:
        self._state = decision.state
        if decision.reason:
            _log.info("%s: %s", self._task, decision.reason)
        for action in decision.actions:
            if isinstance(action, Go):
                self._free.add(action.worker)
                if (talk := self._talks.get(action.worker)) is not None:
                    talk.turn.notify_all()
            elif isinstance(action, Apply):
                stale = self._staleness_aware and action.staleness > 1
                total = self._round_sums.total if self._round_sums is not None else None
                try:
                    self._round.apply(self._updater, 1 / action.staleness if stale else 1.0, total)
                except BaseException as error:
                    reason = self._refused_update(error)
                    self._spoil(str(reason))
                    raise reason from error
                # An update of several gradients is counted by what follows.
                self._accounts.applied(self.version + self._state.updating)
                self.updates += 1
                self._staleness_total += action.staleness
                self._staleness_max = max(self._staleness_max, action.staleness)
        if decision.state.updating:
            self._event(Updated())

    def _refused_update(self, error: BaseException) -> BaseException:
        """What is said of an update that could not be made."""
        if isinstance(error, NO_MEMORY):
            names = sorted({self._layout.variables[block.variable].name for block in self._held})
            shown = ", ".join(names[:_SHOWN_NAMES]) + ", ..." * (len(names) > _SHOWN_NAMES)
            return no_memory(error, self._task, f"an update of {shown}") or error
        if isinstance(error, ValueError):
            return InvalidArgumentError(None, None, f"gradients do not fit together: {error}")
        return error

    def _spoil(self, reason: str) -> None:
        """An update could not be made: the gradients that were to be part of it are not applied."""
        self._accounts.spoiled(reason)
        if self._state.updating:
            for request in self._latest.values():
                request.applied = request.applied and request.version != self.version
            self._event(Updated())

    def job_over(self) -> None:
        """The chief's program has ended. A worker that is late waits for no others, which may have ended, too."""
        with self._changed:
            self._over: bool = True
            self._event(NoneToCome())
            self._changed.notify_all()

    def worker_ended(self) -> None:
        """The program of a worker has ended without an error: it will not come again, so that no other waits until all
        are there."""
        with self._changed:
            self._ended = True
            self._event(NoneToCome())
            self._changed.notify_all()

    def _leave(self, worker: str, reason: str) -> None:
        if reason and (worker in self._state.members or worker in self._resting):
            self._away.add(worker)
        elif not reason:
            self._away.discard(worker)
        self._tickets.left(worker)
        self._free.discard(worker)
        self._resting.discard(worker)
        self._accounts.left(worker, reason)
        self._event(Left(worker, reason))
        self._end_data()
        if not self._state.members and not self._resting and not reason:
            # All have finished, perhaps before this task heard that the data end: what was taken becomes an update.
            self._event(DataEnd())
            # Whatever comes next begins as this did: with all workers.
            self._trainings += bool(self._finished)  # else all of them were late
            # Unless one has not finished that is away, or has not begun: it must not wait for those who have.
            late = self._away | (self._talks.keys() - self._finished)
            self._state = State(
                choice=self._state.choice, version=self.version, formed=self._over or self._ended or bool(late)
            )
            self._away.clear()
            self._finished.clear()
            self._tickets.begin_training()
            self._round.clear()
            self._agreement.begin()
            self._sums.clear()
        self._changed.notify_all()

    def _await_values(self, talk: _Talk) -> None:
        if self._held_for:
            self._await_end(talk)
        self._await(talk, lambda: bool(self._filled), "the chief to bring values")

    def _await_end(self, talk: _Talk) -> None:
        self._await(talk, lambda: not self._held_for, self._held_for)

    def _require_filled(self) -> None:
        if not self._filled:
            raise AbortedError(None, None, f"{self._task} was started anew: its values are gone")

    def _await(
        self, talk: _Talk, ready: Callable[[], bool], what: str, changed: threading.Condition | None = None
    ) -> None:
        """Waits, with the lock given away meanwhile, and says now and then for what.

        ``changed`` is notified when ``ready`` may have come true; unless given, that is at every change.
        """
        changed = changed or self._changed
        self._raise_disagreement()
        if ready():
            return
        channel, began = talk.channel, self._clock()
        speak_at = began + SPEAK_S
        talk.waits_for = what, began
        try:
            while not changed.wait_for(ready, LOOK_S):
                if channel.closed or channel.peer_gone():
                    raise UnavailableError(None, None, f"{channel.peer} is gone")
                self._raise_disagreement()
                now, members = self._clock(), self._state.members
                if self._choice.patience_s is not None:
                    self._event(Tick())
                    for slow in members.keys() - self._state.members.keys():
                        self._accounts.left(slow, "others waited for it for too long")
                if speak_at > began + SPEAK_S and _is_released(channel):
                    self._event(Released(talk.worker))
                if now >= speak_at:
                    channel.send(Frame(kinds.WAIT, (what or waiting_text(self._state, now),)))
                    speak_at = now + SPEAK_S
        finally:
            talk.waits_for = None

    def _raise_disagreement(self) -> None:
        if self._agreement.disagreement:
            raise _other_program(self._agreement.disagreement)


def _other_program(differs: str) -> FailedPreconditionError:
    return FailedPreconditionError(None, None, f"{differs}: all tasks must run the same program")


def _is_released(channel: Channel) -> bool:
    """Whether a worker that was told what it waits for says that it is to go on without."""
    try:
        return channel.recv(0).kind == kinds.RELEASE
    except DeadlineExceededError:
        return False


def _place(worker: str) -> tuple[bool, int]:
    """The order of workers: a chief, then the others by number."""
    task = TaskName.parse(worker)
    return task.job != "chief", task.index


def _size(name: str, shape: tuple[int, ...], dtype: str, updates: int) -> VariableSize:
    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
    return VariableSize(name=name, nbytes=nbytes, dtype=dtype, shape=shape, updates=updates)
