"""The end that has the values: what runs on a ``ps``.

Each worker has a channel, served by a thread. A lock lets one thread at a time decide and update; waiting for others
gives it away. Who waits for what is decided by `headwater.ps.consistency`.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from headwater.cluster.claims import Claim
from headwater.cluster.task import kinds
from headwater.cluster.task.agreement import Agreement, Said, is_said
from headwater.cluster.task.answers import bad_header, error_frame
from headwater.cluster.telemetry.snapshot import GroupProgress, VariableSize
from headwater.cluster.telemetry.watchdog import ProgressWatchdog
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.handshake import new_generation
from headwater.errors import FailedPreconditionError, InvalidArgumentError
from headwater.ps.accounting.accounts import Accounts
from headwater.ps.attendance import Attendance
from headwater.ps.consistency import Consistency, Restarted, waiting_text, without_count
from headwater.ps.host_memory import HostMemory
from headwater.ps.layout import Layout, block_shape
from headwater.ps.recovery import WayBack
from headwater.ps.round_sums import RoundSums
from headwater.ps.row_travel import as_numbers, as_travelling
from headwater.ps.serving_context import ServingContext
from headwater.ps.steps import Steps
from headwater.ps.table_copies import row_bytes
from headwater.ps.talks import WorkerTalk
from headwater.ps.turns import Turns, other_program
from headwater.ps.updater import Array, HostedTable, Updater
from headwater.ps.updates import Updates

_log = logging.getLogger("headwater")

#: What the progress watchdog calls the steps of a worker.
_STEP = 0
#: How long a snapshot waits for an update to end, in seconds.
_GLANCE_S = 0.5


class HostedParameters:
    """One set of parameters on this task.

    Args:
      name: of the set.
      task: this task's name, for people.
      index: its number among the ``ps``. Number 0 hands out steps.
      layout: what every ``ps`` has.
      updater: this task's blocks.
      choice: how closely workers keep together.
      program: what this task says of its program, which workers must say, too; see `headwater.cluster.task.agreement`.
      staleness_aware: whether the step of a gradient that is τ > 1 updates old is divided by τ: Zhang, Gupta, Lian and
        Liu, *Staleness-aware Async-SGD for Distributed Deep Learning*, IJCAI 2016. What the optimizer keeps, such as
        momenta, sees the whole gradient.
      log_dir: the folder for the journal of examples, on the first ``ps``; see `headwater.ps.accounting.accounts`.
      round_sums: for synchronous training, what the optimizer needs of the gradients of other ``ps``.
      clock: seconds that only grow.
      answers: see `ServingContext`.

    Attributes:
      name: of the set.
      counts_steps: whether its version is the job's step, as that of the first ``ps`` is.
      steps: gradients of workers that it has answered.
      life: a random number that stands for this object.
      lock: held by who decides and updates.
      updates: the values, and what is to become their next update.
      turns: waits of workers, and what they all wait for.
      workers: that take part.
      memory: all of it as a whole, to be kept or to go on with.
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
        answers: Callable[[str], bool] = lambda worker: False,
    ) -> None:
        self.name = name
        self.counts_steps: bool = index == 0
        self.steps: int = 0
        self.life: int = new_generation()
        self._task = task
        self._layout = layout
        self._updater = updater
        self._choice = choice
        self._clock = clock
        self._blocks = [(layout.variables[block.variable], block) for block in layout.blocks[index]]
        self._names = [
            spec.name + (f"[{block.start}:{block.stop}]" if block.stop >= 0 else "") for spec, block in self._blocks
        ]
        specs = [spec for spec, _ in self._blocks]
        self._tables = sum(spec.table for spec in specs)
        lock = threading.RLock()
        self.lock: threading.Condition = threading.Condition(lock)
        self._agreement = Agreement(task, program or {})
        context = ServingContext(
            task=task,
            choice=choice,
            agreement=self._agreement,
            lock=lock,
            changed=self.lock,
            clock=clock,
            answers=answers,
        )
        seed = int(np.random.SeedSequence().generate_state(1)[0])
        self._accounts = Accounts(name, task, seed, log_dir)
        self.updates: Updates = Updates(
            context,
            index,
            layout,
            updater,
            self._accounts,
            staleness_aware=staleness_aware,
            round_sums=round_sums,
        )
        self.turns: Turns = Turns(context, self.updates)
        self.workers: Attendance = Attendance(context, self.updates, self.turns, seed)
        self.memory: HostMemory = HostMemory(context, self.life, self.updates, self.workers, self._names)
        self._steps = Steps(context, specs, self.updates, self.turns, self.workers)
        self.secured: Callable[[Channel], None] | None = None

    # How it fares -----------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """How many updates the values have seen."""
        return self.updates.state.version

    @property
    def tables(self) -> Sequence[HostedTable]:
        """Of its blocks those that are tables."""
        return self._updater.tables

    def rows_of_tables(self, nbytes: int) -> Iterator[tuple[int, int, list[Array]]]:
        """All rows of its tables, with about ``nbytes`` of values at a time: the number of a table, that of the first
        row, and the rows with what the optimizer keeps of them, as `HostedTable.write` takes them."""
        blocks = [(spec, block) for spec, block in self._blocks if spec.table]
        for number, (table, (spec, block)) in enumerate(zip(self.tables, blocks, strict=True)):
            rows = block_shape(spec, block)[0]
            step = max(1, nbytes // row_bytes(spec))
            for start in range(0, rows, step):
                yield number, start, table.read(start, min(start + step, rows), ())

    @property
    def signature(self) -> str:
        """Of the layout."""
        return self._layout.signature()

    @property
    def way_back(self) -> WayBack | None:
        """How it went back to its own state; None where it has not."""
        return self.updates.way_back

    def sizes(self) -> list[VariableSize]:
        """What this task holds: its blocks, and the optimizer's state."""
        if not self.updates.filled:
            return []
        made = self.updates.made
        found = [
            _size(name, block_shape(spec, block), spec.dtype, made)
            for name, (spec, block) in zip(self._names, self._blocks, strict=True)
        ]
        return found + [_size(*part, made) for part in self._updater.state_sizes()]

    def group(self) -> GroupProgress:
        """How training goes."""
        updates, state, examples = self.updates, self.updates.state, ""
        if self.lock.acquire(timeout=_GLANCE_S):
            try:
                examples = str(self._accounts)
            finally:
                self.lock.release()
        return GroupProgress(
            name=self.name,
            updates=state.version,
            staleness=updates.staleness_total / max(1, updates.made),
            staleness_max=updates.staleness_max,
            dropped=state.dropped,
            workers=tuple(sorted({*state.members, *self.workers.resting})),
            waiting=waiting_text(state, self._clock()),
            consistency=str(self._choice),
            optimizer=self._updater.optimizer,
            examples=examples,
        )

    def waits(self) -> list[tuple[str, float]]:
        """Which workers wait here, for what, and since when (`time.monotonic`)."""
        found: list[tuple[str, float]] = []
        for talk in list(self.updates.talks.values()):
            if (wait := talk.waits_for) is not None:
                what, since = wait
                found.append((f"{talk.worker}: {what or waiting_text(self.updates.state, self._clock())}", since))
        return found

    # What the task asks -----------------------------------------------------------------------------------------------

    def refusal(self, task: Claim) -> str:
        """Why a task does not speak for its place; empty where it does."""
        return self.workers.refusal(task)

    def job_over(self) -> None:
        """The chief's program has ended."""
        self.workers.job_over()

    def worker_ended(self) -> None:
        """The program of a worker has ended without an error."""
        self.workers.worker_ended()

    def take(self, channel: Channel, first: Frame) -> None:
        """Tells another ``ps`` its part of the sums of rounds."""
        if self.updates.round_sums is None:
            raise bad_header(first, channel.peer)
        self.updates.round_sums.serve(channel, first)

    def hold_until_end(self, what: str) -> None:
        """The task ends: from now on no gradients are taken, and no answer leaves. Workers wait for ``what``: the next
        life of the task, which goes on with what is taken of this host after that."""
        self.secured = self.turns.secure
        self.turns.hold(what)

    def close(self) -> None:
        """The task stops."""

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
        refused = self._refused(claim, signature, choice)
        if refused is not None:
            channel.send(error_frame(0, refused, self._task))
            return
        updates, workers = self.updates, self.workers
        with self.lock:
            talk = workers.arrive(worker, channel, life, trainings)
            if updates.way_back is not None and updates.way_back.told(its, read):
                _log.warning("%s: %s; %s had read version %d", self._task, updates.way_back, worker, read)
            epoch = workers.tickets.epoch
            welcome = (updates.filled, self.version, workers.trainings, epoch, workers.seed, self.life)
        channel.send(Frame(kinds.WELCOME, welcome))
        try:
            while True:
                self._answer(talk, channel.recv(), watchdog)
        finally:
            if talk.watched:
                watchdog.closed(worker, self.name)
            workers.gone(talk)
            if self.secured is None:  # else it may say what no other copy has
                self._accounts.flush()

    def _refused(self, claim: Claim, signature: str, choice: str) -> FailedPreconditionError | None:
        """Why a worker is not served; None where it is."""
        mine = without_count(self._choice)
        if signature != self._layout.signature() or choice != mine:
            what = (
                "other variables, or has them in another order"
                if choice == mine
                else f"consistency {choice!r}, and this task {mine!r}"
            )
            return other_program(f"{claim.task} has {what}")
        refused = self.workers.claim(claim)
        if refused:
            _log.warning("%s refuses %s: %s", self._task, claim, refused)
            return FailedPreconditionError(
                None,
                None,
                f"{self._task} refuses {claim}: {refused}. End this process; if it shall be part of the "
                "cluster, start it again with the present cluster spec",
            )
        return None

    def _answer(self, talk: WorkerTalk, frame: Frame, watchdog: ProgressWatchdog) -> None:
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
        except Exception as error:
            # Of whatever kind: a worker that got no answer would ask again and again.
            if channel.peer_gone():
                raise
            answer = error_frame(0, error, self._task)
        if frame.kind == kinds.PUSH:
            self.steps += 1
            watchdog.ended(worker, name, _STEP, talk, done=answer.kind == kinds.VALUES)
        if self.secured is not None:
            self.secured(channel)
        self._accounts.flush()
        channel.send(answer)

    def _handle(self, talk: WorkerTalk, frame: Frame) -> Frame:
        match frame.kind, frame.header:
            case kinds.PUSH, (int(version), float(weight), extras, wish, knobs, work, bool(keeps), int(number)):
                return self._steps.push(talk, version, weight, extras, wish, knobs, work, keeps, number, frame.tensors)
            case kinds.PULL, (bool(everything), extras, wish, work, bool(keeps), int(number)):
                return self._steps.pull(talk, everything, extras, wish, work, keeps, number)
            case kinds.REST, (wish,):
                return self._steps.rest(talk, wish)
            case kinds.HOLDS, ([*spans],):
                return self._steps.holds(talk.worker, spans)
            case kinds.ROWS, (() | (str(),)) as form:
                return self._rows(talk, frame.tensors, *form)
            case kinds.FILL, (int(version), [*tables], bytes() | None as ledger, bool(over)):
                return self._fill(version, tables, ledger, over, frame.tensors)
            case kinds.READ_ROWS, (int(table), int(start), int(stop), [*parts]) if 0 <= table < self._tables:
                with self.lock:
                    self.turns.wait_for_values(talk)
                    return Frame(kinds.DONE, (), self._updater.tables[table].read(start, stop, parts))
            case kinds.WRITE_ROWS, (int(table), int(start)) if 0 <= table < self._tables:
                with self.lock:
                    if self.turns.held_for:
                        self.turns.wait_while_held(talk)
                    self._updater.tables[table].write(start, frame.tensors)
                return Frame(kinds.DONE)
            case kinds.READY, ():
                with self.lock:
                    self.turns.wait_for_values(talk)
                    return Frame(kinds.DONE, (self.updates.filled,))
            case kinds.ASSIGN, ():
                return self._assign(talk, frame.tensors)
            case kinds.SUMS, (int(epoch), bool(wait)):
                return self._steps.tell_sums(talk, epoch, wait)
            case kinds.AGREE, (program, data) if is_said(program) and is_said(data):
                return self._agree(talk, program, data)
            case kinds.BEGIN, (int(training), int(epoch)):
                return self._steps.begin(talk, training, epoch)
            case kinds.FINISH, (int(training),):
                return self.workers.finish(talk, training)
            case kinds.FOLLOW, (int(training), int(epoch)):
                return self._steps.follow(talk, training, epoch)
            case kinds.STOP, ():
                return self._steps.stop()
            case _:
                raise bad_header(frame, talk.channel.peer)

    # Values -----------------------------------------------------------------------------------------------------------

    def _fill(
        self, version: int, written: Sequence[Any], ledger: bytes | None, over: bool, tensors: Sequence[Array]
    ) -> Frame:
        blocks, workers = len(self._blocks) - self._tables, self.workers
        with self.lock:
            # The second worker has nothing to add: the values are there.
            if not self.updates.filled:
                if ledger is not None:
                    workers.trainings = max(workers.trainings, self._accounts.restore(ledger, version))
                self._updater.fill(tensors[:blocks], tensors[blocks:] or None)
                for number, table in enumerate(self._updater.tables):
                    if number not in written:
                        table.begin()
                self.updates.filled = new_generation()
                self.updates.event(Restarted(version))
                if over:
                    workers.job_over()
                _log.info("%s has values, of version %d", self._task, version)
                self.lock.notify_all()
            return Frame(kinds.DONE, (self.updates.filled,))

    def _assign(self, talk: WorkerTalk, tensors: Sequence[Array]) -> Frame:
        blocks = len(self._blocks) - self._tables
        with self.lock:
            self.turns.require_filled()
            if self.turns.held_for:
                self.turns.wait_while_held(talk)
            if len(tensors) > blocks:
                self._updater.fill(tensors[:blocks], tensors[blocks:])
            else:
                self._updater.assign(tensors[:blocks])
        return Frame(kinds.DONE)

    def _rows(self, talk: WorkerTalk, numbers: Sequence[Array], form: str = "float32") -> Frame:
        if len(numbers) != self._tables:
            raise InvalidArgumentError(None, None, f"asked for rows of {len(numbers)} tables; there are {self._tables}")
        with self.lock:
            self.turns.wait_for_values(talk)
            found = self._updater.rows([as_numbers(wanted) for wanted in numbers])
        return Frame(kinds.DONE, (), [as_travelling(rows, form) for rows in found])

    def _agree(self, talk: WorkerTalk, program: Said, data: Said) -> Frame:
        """Compares a worker's program with this task's, and both with those of the worker that came first."""
        with self.lock:
            differs = self._agreement.differs(talk.worker, program, data, self.version)
            if differs:
                _log.error("%s: %s", self._task, differs)
                self.lock.notify_all()
                raise other_program(differs)
            return Frame(kinds.DONE, (self._agreement.other_data(talk.worker, data),))


def _size(name: str, shape: tuple[int, ...], dtype: str, updates: int) -> VariableSize:
    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
    return VariableSize(name=name, nbytes=nbytes, dtype=dtype, shape=shape, updates=updates)
