"""Server side of a set of parameters: holds the values on a ``ps``, and serves the workers.

Each worker has a channel and a thread that serves it. These threads share one lock. A thread holds the lock while it
decides and applies updates, and releases it while its worker waits. `headwater.ps.consistency` decides which workers
have to wait, and for which other workers.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from headwater.cluster.claims import Claim
from headwater.cluster.task import kinds
from headwater.cluster.task.agreement import Agreement, Said, is_program_description
from headwater.cluster.task.answers import bad_header, error_frame
from headwater.cluster.telemetry.snapshot import GroupProgress, VariableSize
from headwater.cluster.telemetry.watchdog import ProgressWatchdog
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.handshake import new_generation
from headwater.errors import FailedPreconditionError, InvalidArgumentError
from headwater.ps.accounting.accounts import Accounts
from headwater.ps.consistency import Consistency, Restarted, waiting_text, without_count
from headwater.ps.host_memory import HostMemory
from headwater.ps.layout import Layout, block_shape
from headwater.ps.membership import Membership
from headwater.ps.recovery import RecoveryReport
from headwater.ps.round_sums import RoundSums
from headwater.ps.row_encoding import decode_numbers, encode_rows
from headwater.ps.serving_context import ServingContext
from headwater.ps.steps import Steps
from headwater.ps.tables.copies import row_bytes
from headwater.ps.updater import Array, HostedTable, Updater
from headwater.ps.updates import Updates
from headwater.ps.waiting import Waiting, other_program
from headwater.ps.worker_connections import WorkerConnection

_log = logging.getLogger("headwater")

#: Step number with which all steps of a worker are reported to the progress watchdog.
_STEP = 0
#: How long a progress report waits for a running update, in seconds.
_PROGRESS_WAIT_S = 0.5


class HostedParameters:
    """Server of one set of parameters on this task.

    Args:
      name: the name of the set.
      task: this task's name, for errors and logs.
      index: the number of this ``ps``. Number 0 assigns step numbers.
      layout: the placement of all blocks on all ``ps``.
      updater: holds and updates this task's blocks.
      choice: the consistency between workers.
      program: this task's description of its program, which the workers' descriptions must match; see
        `headwater.cluster.task.agreement`.
      staleness_aware: whether the change that a gradient makes to the values is divided by its staleness τ, if τ > 1:
        Zhang, Gupta, Lian and Liu, *Staleness-aware Async-SGD for Distributed Deep Learning*, IJCAI 2016. The
        optimizer's state, such as momenta, still accumulates the whole gradient.
      log_dir: the folder for the journal of examples, on the first ``ps``; see `headwater.ps.accounting.accounts`.
      round_sums: in synchronous training, computes sums over the mean gradients of all ``ps``, such as the squared norm
        for an optimizer that clips by it; None if the optimizer needs no such sums.
      clock: returns monotonic seconds.
      answers: returns whether the task of a worker, given by name, can be reached; see `ServingContext`.

    Attributes:
      name: the name of the set.
      counts_steps: whether `version` is the job's global step; true on the first ``ps``.
      steps: number of pushed gradients that were answered.
      incarnation: random incarnation number of this object.
      lock: held by the thread that decides and updates.
      updates: the values and the gradients gathered for their next update.
      waiting: makes workers wait for each other.
      workers: membership of the workers in the training.
      memory: exports and imports the whole state of this host, for saving and handoff.
      before_answer: called before each answer is sent, with the channel of the answer; the lock is not held. The call
        returns once the changes that the answer acknowledges are safe: no failover or migration can lose them. It
        raises UnavailableError if this host no longer serves. None if there are no failovers or migrations.
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
        self.incarnation: int = new_generation()
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
        # Reentrant: callers such as a migration hold the lock and then call methods that acquire it again.
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
            context, index, layout, updater, self._accounts, staleness_aware=staleness_aware, round_sums=round_sums
        )
        self.waiting: Waiting = Waiting(context, self.updates)
        self.workers: Membership = Membership(context, self.updates, self.waiting, seed)
        self.memory: HostMemory = HostMemory(context, self.incarnation, self.updates, self.workers, self._names)
        self._steps = Steps(context, specs, self.updates, self.waiting, self.workers)
        self.before_answer: Callable[[Channel], None] | None = None

    # Status -----------------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """Number of updates applied to the values."""
        return self.updates.state.version

    @property
    def tables(self) -> Sequence[HostedTable]:
        """The blocks that are tables, in the layout's order."""
        return self._updater.tables

    def rows_of_tables(self, nbytes: int) -> Iterator[tuple[int, int, list[Array]]]:
        """Yields all rows of the tables, in pieces with about ``nbytes`` bytes of values.

        Each piece is (number of the table, number of the first row, arrays). The arrays contain the rows and their
        optimizer state, in the form that `HostedTable.write` takes.
        """
        blocks = [(spec, block) for spec, block in self._blocks if spec.table]
        for number, (table, (spec, block)) in enumerate(zip(self.tables, blocks, strict=True)):
            rows = block_shape(spec, block)[0]
            step = max(1, nbytes // row_bytes(spec))
            for start in range(0, rows, step):
                yield number, start, table.read(start, min(start + step, rows), ())

    @property
    def signature(self) -> str:
        """Digest of the layout; workers and servers must agree on it."""
        return self._layout.signature()

    @property
    def recovery_report(self) -> RecoveryReport | None:
        """How the host recovered its own saved state; None if it has not recovered."""
        return self.updates.recovery_report

    def sizes(self) -> list[VariableSize]:
        """Returns the sizes of this task's blocks and of the optimizer's state; no sizes before the values are set."""
        if not self.updates.filled:
            return []
        update_count = self.updates.made
        sizes = [
            _size(name, block_shape(spec, block), spec.dtype, update_count)
            for name, (spec, block) in zip(self._names, self._blocks, strict=True)
        ]
        return sizes + [_size(*part, update_count) for part in self._updater.state_sizes()]

    def group(self) -> GroupProgress:
        """Returns the progress of the training."""
        updates, state, examples = self.updates, self.updates.state, ""
        # Wait only briefly: an update may hold the lock for long, and must not delay the report.
        if self.lock.acquire(timeout=_PROGRESS_WAIT_S):
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
        """Returns the workers that wait here, each with the reason and the start of the wait (`time.monotonic`)."""
        waits: list[tuple[str, float]] = []
        for connection in list(self.updates.connections.values()):
            if (wait := connection.waits_for) is not None:
                what, since = wait
                waits.append((f"{connection.worker}: {what or waiting_text(self.updates.state, self._clock())}", since))
        return waits

    # Service interface ------------------------------------------------------------------------------------------------

    def refusal(self, task: Claim) -> str:
        """Returns why a task has no right to its place in the cluster; empty if it has the right."""
        return self.workers.refusal(task)

    def job_over(self) -> None:
        """Marks the job as over: the chief's program has ended."""
        self.workers.job_over()

    def record_worker_end(self) -> None:
        """Records that the program of a worker has ended without an error."""
        self.workers.record_worker_end()

    def serve_peer(self, channel: Channel, first: Frame) -> None:
        """Serves a request of another ``ps`` for this task's part of the sums of rounds."""
        if self.updates.round_sums is None:
            raise bad_header(first, channel.peer)
        self.updates.round_sums.serve(channel, first)

    def freeze_until_end(self, what: str) -> None:
        """Stops accepting gradients and sending answers, because the task shuts down.

        The caller then exports the state, with which the next incarnation of the task starts. A gradient that was
        acknowledged after the export would be lost.

        Args:
          what: the event for which workers wait from now on, as text for messages, such as the start of the next
            incarnation.
        """
        self.before_answer = self.waiting.delay_answer
        self.waiting.freeze(what)

    def close(self) -> None:
        """Does nothing: the host has no resources to release when the task stops."""

    # Connection of a worker -------------------------------------------------------------------------------------------

    def serve(self, channel: Channel, hello: Frame, watchdog: ProgressWatchdog) -> None:
        """Answers a worker until its channel ends, and reports its steps to ``watchdog``.

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
                int(incarnation),
                int(trainings),
                int(its),
                int(read),
                _,
            ):
                claim = Claim(task=worker, generation=channel.peer_generation, started=started)
            case _:
                raise bad_header(hello, channel.peer)
        # Check the worker before registering it: a refused worker must not count as a member.
        refused = self._find_refusal(claim, signature, choice)
        if refused is not None:
            channel.send(error_frame(0, refused, self._task))
            return
        updates, workers = self.updates, self.workers
        with self.lock:
            connection = workers.connect_worker(worker, channel, incarnation, trainings)
            if updates.recovery_report is not None and updates.recovery_report.record_read(its, read):
                _log.warning("%s: %s; %s had read version %d", self._task, updates.recovery_report, worker, read)
            epoch = workers.step_numbers.epoch
            welcome = (updates.filled, self.version, workers.trainings, epoch, workers.seed, self.incarnation)
        channel.send(Frame(kinds.WELCOME, welcome))
        try:
            while True:
                self._answer(connection, channel.recv(), watchdog)
        finally:
            if connection.watched:
                watchdog.record_close(worker, self.name)
            workers.handle_disconnect(connection)
            # The journal must record only updates that are safe. If there is a backup (`before_answer` is set), the
            # backup may still lack the latest updates. So leave the journal to `_answer`, which flushes it after
            # `before_answer` has returned.
            if self.before_answer is None:
                self._accounts.flush()

    def _find_refusal(self, claim: Claim, signature: str, choice: str) -> FailedPreconditionError | None:
        """Returns the error with which a worker is refused; None if the worker is served."""
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
                f"{self._task} refuses {claim}: {refused}. End this process; to make it part of the "
                "cluster, start it again with the present cluster spec"
            )
        return None

    def _answer(self, connection: WorkerConnection, frame: Frame, watchdog: ProgressWatchdog) -> None:
        """Answers a frame of a worker. A PUSH frame counts as a step of the worker's training."""
        channel, worker, name = connection.channel, connection.worker, self.name
        if frame.kind == kinds.RELEASE:
            return  # too late: the answer for which the worker no longer wants to wait was already sent
        if frame.kind == kinds.PUSH:
            if not connection.watched:
                watchdog.record_open(worker, name)
                connection.watched = True
            watchdog.record_start(worker, name, connection)
        # A finished worker waits for other workers and makes no steps, so the watchdog must not report it as stalled.
        elif frame.kind == kinds.FINISH and connection.watched:
            connection.watched = False
            watchdog.record_close(worker, name)
        try:
            answer = self._handle(connection, frame)
        except Exception as error:
            # Report errors of every kind: a worker without an answer would repeat its request forever.
            if channel.peer_gone():
                raise
            answer = error_frame(0, error, self._task)
        if frame.kind == kinds.PUSH:
            self.steps += 1
            watchdog.record_end(worker, name, _STEP, connection, done=answer.kind == kinds.VALUES)
        # A worker does not repeat an answered request, so its change must be safe before the answer is sent.
        if self.before_answer is not None:
            self.before_answer(channel)
        # Likewise, the journal must have the examples of an update before the update is acknowledged.
        self._accounts.flush()
        channel.send(answer)

    def _handle(self, connection: WorkerConnection, frame: Frame) -> Frame:
        match frame.kind, frame.header:
            case kinds.PUSH, (int(), float(), _, _, _, _, _, bool(), int()):
                return self._steps.push(connection, frame)
            case kinds.PULL, (bool(), _, _, _, bool(), int()):
                return self._steps.pull(connection, frame)
            case kinds.REST, (step_request,):
                return self._steps.wait_without_data(connection, step_request)
            case kinds.HOLDS, ([*spans],):
                return self._steps.answer_holds(connection.worker, spans)
            case kinds.ROWS, (() | (str(),)) as form:
                return self._rows(connection, frame.tensors, *form)
            case kinds.FILL, (int(version), [*tables], bytes() | None as ledger, bool(over)):
                return self._fill(version, tables, ledger, over, frame.tensors)
            case kinds.READ_ROWS, (int(table), int(start), int(stop), [*parts]) if 0 <= table < self._tables:
                with self.lock:
                    self.waiting.wait_for_values(connection)
                    return Frame(kinds.DONE, (), self._updater.tables[table].read(start, stop, parts))
            case kinds.WRITE_ROWS, (int(table), int(start)) if 0 <= table < self._tables:
                with self.lock:
                    if self.waiting.frozen_until:
                        self.waiting.wait_while_frozen(connection)
                    self._updater.tables[table].write(start, frame.tensors)
                return Frame(kinds.DONE)
            case kinds.READY, ():
                with self.lock:
                    self.waiting.wait_for_values(connection)
                    return Frame(kinds.DONE, (self.updates.filled,))
            case kinds.ASSIGN, ():
                return self._assign(connection, frame.tensors)
            case kinds.SUMS, (int(epoch), bool(wait)):
                return self._steps.answer_sums(connection, epoch, wait)
            case kinds.AGREE, (program, data) if is_program_description(program) and is_program_description(data):
                return self._agree(connection, program, data)
            case kinds.BEGIN, (int(training), int(epoch), bool(may_stop), bool(resumes)):
                return self._steps.answer_first_epoch(connection, training, epoch, may_stop=may_stop, resumes=resumes)
            case kinds.FINISH, (int(training),):
                return self.workers.finish(connection, training)
            case kinds.FOLLOW, (int(training), int(epoch)):
                return self._steps.follow(connection, training, epoch)
            case kinds.STOP, ():
                return self._steps.stop()
            case _:
                raise bad_header(frame, connection.channel.peer)

    # Values -----------------------------------------------------------------------------------------------------------

    def _fill(
        self, version: int, written: Sequence[object], ledger: bytes | None, over: bool, tensors: Sequence[Array]
    ) -> Frame:
        blocks, workers = len(self._blocks) - self._tables, self.workers
        with self.lock:
            # Ignore the FILL of a second worker: the values are there already, and may have been updated since.
            if not self.updates.filled:
                if ledger is not None:
                    workers.trainings = max(workers.trainings, self._accounts.restore(ledger, version))
                self._updater.fill(tensors[:blocks], tensors[blocks:] or None)
                for number, table in enumerate(self._updater.tables):
                    if number not in written:
                        table.initialize()
                # A new random number tells workers that earlier values are lost, with the gradients that they had
                # received: workers repeat a request only if the number is still the same.
                self.updates.filled = new_generation()
                self.updates.event(Restarted(version))
                if over:
                    workers.job_over()
                _log.info("%s has values, of version %d", self._task, version)
                self.lock.notify_all()
            return Frame(kinds.DONE, (self.updates.filled,))

    def _assign(self, connection: WorkerConnection, tensors: Sequence[Array]) -> Frame:
        blocks = len(self._blocks) - self._tables
        with self.lock:
            self.waiting.require_filled()
            # An assignment changes the values, so it must not be made while they are frozen.
            if self.waiting.frozen_until:
                self.waiting.wait_while_frozen(connection)
            if len(tensors) > blocks:
                self._updater.fill(tensors[:blocks], tensors[blocks:])
            else:
                self._updater.assign(tensors[:blocks])
        return Frame(kinds.DONE)

    def _rows(self, connection: WorkerConnection, numbers: Sequence[Array], form: str = "float32") -> Frame:
        if len(numbers) != self._tables:
            raise InvalidArgumentError(
                f"a request names rows of {len(numbers)} tables, but there are {self._tables} tables"
            )
        with self.lock:
            self.waiting.wait_for_values(connection)
            read_rows = self._updater.rows([decode_numbers(wanted) for wanted in numbers])
        return Frame(kinds.DONE, (), [encode_rows(rows, form) for rows in read_rows])

    def _agree(self, connection: WorkerConnection, program: Said, data: Said) -> Frame:
        """Compares a worker's program with this task's program and with the program of the first worker."""
        with self.lock:
            differs = self._agreement.differs(connection.worker, program, data, self.version)
            if differs:
                _log.error("%s: %s", self._task, differs)
                self.lock.notify_all()
                raise other_program(differs)
            return Frame(kinds.DONE, (self._agreement.other_data(connection.worker, data),))


def _size(name: str, shape: tuple[int, ...], dtype: str, updates: int) -> VariableSize:
    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
    return VariableSize(name=name, nbytes=nbytes, dtype=dtype, shape=shape, updates=updates)
