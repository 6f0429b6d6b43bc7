"""Steps of workers: a worker pushes gradients and receives values, its next step number and a range of examples."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from headwater.cluster.task import kinds
from headwater.cluster.transport.frames import Frame
from headwater.errors import InvalidArgumentError
from headwater.ps import protocol
from headwater.ps.accounting.ledger import Nothing, Plan, Work
from headwater.ps.consistency import (
    Asynchronous,
    BoundedStaleness,
    Contributed,
    Drop,
    Joined,
    KOfN,
    Rejoined,
    Stopped,
    Synchronous,
    decide,
    is_early,
)
from headwater.ps.layout import VariableSpec
from headwater.ps.membership import Membership
from headwater.ps.row_encoding import decode_numbers, decode_rows
from headwater.ps.serving_context import ServingContext
from headwater.ps.step_requests import Returned, part_of, range_of, step_request_of, work_of
from headwater.ps.updates import Updates
from headwater.ps.waiting import Waiting
from headwater.ps.worker_connections import Request, WorkerConnection

_log = logging.getLogger("headwater")


class Steps:
    """Answers workers that push gradients and ask for steps, in the frames of `headwater.ps.protocol`.

    Args:
      context: the task, its options and the lock; see `ServingContext`.
      specs: the specifications of this task's blocks, in the layout's order.
      updates: holds the values.
      waiting: makes workers wait.
      workers: membership of the workers.
    """

    def __init__(
        self,
        context: ServingContext,
        specs: Sequence[VariableSpec],
        updates: Updates,
        waiting: Waiting,
        workers: Membership,
    ) -> None:
        self._context = context
        self._changed = context.changed
        self._optimized = sum(spec.optimized for spec in specs)
        self._table_widths = [spec.shape[-1] for spec in specs if spec.table]
        self._updates = updates
        self._accounts = updates.accounts
        self._waiting = waiting
        self._workers = workers
        self._step_numbers = workers.step_numbers
        self._warned_of_uneven_data = False

    # Gradients --------------------------------------------------------------------------------------------------------

    def pull(self, connection: WorkerConnection, frame: Frame) -> Frame:
        """Answers a PULL frame with the values and the worker's next step."""
        everything, extras, step_request, work, keeps, number = frame.header
        worker, workers = connection.worker, self._workers
        with self._changed:
            self._waiting.wait_for_values(connection)
            # A worker that joins during an update may get values from before the update here, and values from after it
            # from another ps. It must not compute a gradient from such a mixture; see `Ledger.assign_range`.
            joins = worker not in self._updates.state.members and self._updates.state.last is not None
            # A worker that only reads, such as an evaluator, must not become a member: other workers would wait for it.
            if (step_request is not None or worker in workers.resting) and worker not in self._updates.state.members:
                self._updates.event(Joined(worker))
            request, again = workers.request(connection, number)
            self._record_acceptance(worker, request)
            if not again:
                self._record_returned(worker, work_of(work)[1])
            return self._values(connection, everything, extras, step_request, keeps, request, joins=joins)

    def push(self, connection: WorkerConnection, frame: Frame) -> Frame:
        """Adds the gradients of a PUSH frame; answers with values and the next step once the worker may continue."""
        version, weight, extras, step_request, hyperparameters, work, part, keeps, number = frame.header
        tensors = frame.tensors
        worker, workers, updates, waiting = connection.worker, self._workers, self._updates, self._waiting
        works, returned = work_of(work)
        of_batch = part_of(part)
        expected = self._optimized + len(extras) + 2 * len(self._table_widths)
        # The first ps also gets the worker's part of the epoch's sums of losses and metrics.
        sums = tensors[expected] if step_request is not None and len(tensors) == expected + 1 else None
        if len(tensors) != expected + (sums is not None):
            raise InvalidArgumentError(f"{worker} pushed {len(tensors)} arrays instead of {expected}")
        split = self._optimized + len(extras)
        rows = [
            (decode_numbers(tensors[at]), decode_rows(tensors[at + 1], width))
            for at, width in zip(range(split, expected, 2), self._table_widths, strict=True)
        ]
        with self._changed:
            waiting.require_filled()
            if waiting.frozen_until or waiting.no_round_until:
                waiting.wait_for_round(connection)
            if of_batch is not None:
                waiting.wait(connection, lambda: not is_early(updates.state, worker, of_batch), "the previous update")
            request, again = workers.request(connection, number)
            if not again:
                self._record_returned(worker, returned)
            # Do not add the gradient of a retry again. `record_gradient` returns False if the examples were assigned to
            # another worker meanwhile, because this worker counted as lost: the examples must not count twice.
            if not again and self._accounts.record_gradient(worker, works):
                updates.free.discard(worker)
                request.version = updates.state.version
                decision = decide(updates.state, Contributed(worker, version, part=of_batch), self._context.clock())
                request.applied = not any(isinstance(action, Drop) for action in decision.actions)
                if request.applied:
                    updates.hyperparameters = hyperparameters
                    changes = dict(zip(extras, tensors[self._optimized : split], strict=True))
                    source = worker, workers.incarnations[worker], number
                    updates.round.add(tensors[: self._optimized], changes, rows, weight, hyperparameters, source)
                    if sums is not None and step_request is not None:
                        workers.sums.add(worker, step_request[1], sums, updates.state.version)
                else:
                    self._accounts.return_dropped(worker, works)
                self._record_acceptance(worker, request)
                workers.step_numbers.complete_step(worker)
                if workers.step_numbers.ends is not None:
                    self._warn_of_uneven_data()
                try:
                    updates.perform(decision)
                except Exception:  # The request was not applied, so its retry must be handled from the start.
                    updates.latest.pop(worker, None)
                    raise
                self._changed.notify_all()
            elif request.applied and updates.state.gathers and request.version == updates.state.version:
                # The gradient of this retry is already part of the unfinished round: only wait for the update.
                updates.event(Rejoined(worker))
            else:
                self._record_acceptance(worker, request)
                if not again:
                    self._warn_of_dropped(worker, works)
                    self._changed.notify_all()
                updates.event(Joined(worker))
                updates.free.add(worker)
            # Wait on a condition of this worker alone, so that gradients of other workers do not wake this thread.
            waiting.wait(
                connection,
                lambda: worker in updates.free or updates.connections.get(worker) is not connection,
                "",
                connection.turn,
            )
            # Check this before removing the worker from `free`: the retry of a reconnected worker needs the entry.
            workers.require_present(connection)
            updates.free.discard(worker)
            answer = self._values(connection, False, extras, step_request, keeps, request)
            if step_request is None or not isinstance(self._context.choice, Synchronous):
                return answer
            so_far = workers.sums.before(step_request[1], updates.state.version)
            return answer._replace(tensors=[*answer.tensors, *so_far])

    def _record_acceptance(self, worker: str, request: Request) -> None:
        """Records whether the worker's gradient was accepted; other ``ps`` ask for this during the same round."""
        if self._updates.round_sums is not None:
            incarnation = self._workers.incarnations[worker]
            self._updates.round_sums.record_acceptance(worker, incarnation, request.number, taken=request.applied)

    # Steps ------------------------------------------------------------------------------------------------------------

    def _values(
        self,
        connection: WorkerConnection,
        everything: bool,
        extras: Any,
        step_request: Any,
        keeps: bool,
        request: Request,
        *,
        joins: bool = False,
    ) -> Frame:
        """Returns the VALUES frame that answers a request, with the requested step. The lock is held."""
        worker, workers, step_numbers = connection.worker, self._workers, self._step_numbers
        step_number, share = protocol.EPOCH_OVER, None
        match step_request:
            case None:
                step_numbers.at_work.pop(worker, None)
            case (int(training), int(epoch), int(steps), int(exhausted), *_):
                if exhausted >= 0:
                    step_numbers.end_epoch(epoch, exhausted)
                    self._warn_of_uneven_data()
                self._await_epoch(connection, epoch)
                if training > workers.trainings:
                    workers.reach_training(training)
                if training < workers.trainings:
                    step_number = protocol.TRAINING_OVER
                # The chief may still stop the training after the previous epoch, as `EarlyStopping` does: assign no
                # step until the chief has begun this epoch.
                elif self._must_await_chief(epoch):
                    step_number, request.assigned_work = protocol.NOTHING_YET, None
                elif len(step_request) > 4:
                    step_number = self._assign_range(worker, step_request, request, joins=joins)
                elif request.step_number is not None:  # a retry: the answer with this step was lost
                    step_number = step_numbers.at_work[worker] = request.step_number
                else:
                    step_number = step_numbers.assign(worker, epoch, steps, self._updates.state.version)
                    request.step_number = step_number if step_number >= 0 else None
                if step_number != protocol.TRAINING_OVER:
                    share = workers.share(worker)
                self._changed.notify_all()
            case _:
                raise InvalidArgumentError(f"{worker} sent a malformed request for a step")
        updates = self._updates
        values = updates.updater.values(None if everything else extras)
        names: list[str] = []
        if everything:
            state = updates.updater.state()
            values += state.values()
            names += state
        ledger = self._accounts.to_bytes() if keeps else None
        header = (updates.state.version, request.applied, step_number, share, names, request.assigned_work, ledger)
        return Frame(kinds.VALUES, header, values)

    def _await_epoch(self, connection: WorkerConnection, epoch: int) -> None:
        """Waits until a worker may begin an epoch.

        In asynchronous training, the worker waits while another worker is more than one epoch behind. In synchronous
        training, and in asynchronous training that the chief may stop, it waits until the chief has begun the epoch,
        because the chief validates after each epoch and may stop the training then.
        """
        step_numbers, workers = self._step_numbers, self._workers
        chief = workers.chief
        awaits_chief = isinstance(self._context.choice, Synchronous)
        step_numbers.asked[connection.worker] = epoch
        self._changed.notify_all()
        # Only asynchronous workers can be epochs apart; with other kinds of consistency, workers wait for each other's
        # gradients.
        if isinstance(self._context.choice, Asynchronous):
            self._waiting.wait(
                connection, lambda: step_numbers.may_begin(epoch), "workers that are more than an epoch behind"
            )
            awaits_chief = workers.may_stop
        if awaits_chief:
            self._waiting.wait(
                connection,
                lambda: step_numbers.has_begun(chief, epoch) or workers.is_over,
                f"{chief} to end the previous epoch",
            )

    def _must_await_chief(self, epoch: int) -> bool:
        """Returns whether a worker must rest until the chief, which may stop the training, has begun an epoch.

        A resting worker is no member, so no other worker waits for it. The chief may still be in the previous epoch
        and wait for steps of all members. If the worker stayed a member, it and the chief would wait for each other.
        """
        bounded = isinstance(self._context.choice, BoundedStaleness | KOfN) and self._workers.may_stop
        return bounded and not self._step_numbers.has_begun(self._workers.chief, epoch)

    def answer_first_epoch(
        self, connection: WorkerConnection, training: int, epoch: int, *, may_stop: bool, resumes: bool
    ) -> Frame:
        """Answers with the first epoch of a training; waits until the chief has set it.

        If other workers are already training, the answer is -1 and the worker does not wait: this task may have
        restarted after the chief set the epoch.

        Args:
          connection: the connection of the worker that asks.
          training: the number of the training.
          epoch: from the chief, the epoch to set; negative from other workers.
          may_stop: from the chief, whether it may stop the training at the end of any epoch.
          resumes: from the chief, whether it resumes its epoch after a restart.
        """
        workers, step_numbers = self._workers, self._step_numbers

        def has_begun() -> bool:
            began = workers.began is not None and workers.began[0] >= training
            return began or step_numbers.epoch >= 0 or workers.trainings > training or workers.is_over

        with self._changed:
            if epoch >= 0:
                workers.chief, workers.may_stop = connection.worker, may_stop
                workers.chief_resumes = resumes and isinstance(self._context.choice, Synchronous)
                if workers.began is None or workers.began[0] < training:
                    workers.began = training, epoch
                self._changed.notify_all()
            else:
                self._waiting.wait(connection, has_begun, "the chief to begin the training")
            began = workers.began
            return Frame(kinds.DONE, (began[1] if began is not None and began[0] == training else -1,))

    def follow(self, connection: WorkerConnection, training: int, epoch: int) -> Frame:
        """Waits until an epoch is over; answers with the newest epoch that is over, and whether the training is
        over."""
        workers, step_numbers = self._workers, self._step_numbers
        with self._changed:
            self._waiting.wait(
                connection, lambda: workers.trainings > training or step_numbers.epoch > epoch, f"epoch {epoch} to end"
            )
            over = workers.trainings > training
            return Frame(kinds.DONE, (over, workers.last_epoch if over else step_numbers.epoch - 1))

    def stop(self) -> Frame:
        """Stops the training: no worker gets another step of it."""
        with self._changed:
            self._step_numbers.stopped = True
            self._updates.event(Stopped())
            self._changed.notify_all()
        return Frame(kinds.DONE)

    def answer_sums(self, connection: WorkerConnection, epoch: int, wait: bool) -> Frame:
        """Answers with the sums of the contributions of all workers in an epoch.

        With ``wait``, answers only when no other worker is computing a step of that epoch or an earlier one.
        """

        def others() -> list[str]:
            return self._step_numbers.busy_in(epoch, but=connection.worker)

        with self._changed:
            if wait:
                self._waiting.wait(
                    connection, lambda: not others(), f"the last steps of epoch {epoch} by {', '.join(others())}"
                )
            return Frame(kinds.DONE, (), self._workers.sums.of(epoch))

    def _warn_of_uneven_data(self) -> None:
        """Warns once if the data of one worker have ended before the data of another. The lock is held."""
        step_numbers = self._step_numbers
        if step_numbers.uneven and not self._warned_of_uneven_data:
            self._warned_of_uneven_data = True
            _log.warning(
                "%s: workers have data of different lengths: in epoch %d the data of one worker end after %s "
                "batches, and another worker has more. The epoch ends there; give all workers the same data, or "
                "set steps_per_epoch",
                self._context.task,
                step_numbers.epoch,
                step_numbers.ends,
            )

    # Examples ---------------------------------------------------------------------------------------------------------

    def _assign_range(self, worker: str, step_request: object, request: Request, *, joins: bool) -> int:
        """Assigns a range of examples to a worker and records it in the request.

        Returns the number of the batch, or a negative code that gives the reason why there is no batch.
        """
        training, last, steps, _, (first, plan, part) = step_request_of(worker, step_request)
        self._step_numbers.complete_step(worker)
        if isinstance(request.assigned_work, tuple):
            work = Work(*request.assigned_work[:3])
            if self._accounts.holds(worker, work):  # a retry: the answer with this range was lost
                return self._begins(worker, work, plan)
        request.assigned_work = None
        if self._step_numbers.stopped:
            return protocol.TRAINING_OVER
        share = part and (self._workers.share(worker) or part)
        version = self._updates.state.version
        offer = self._accounts.assign_range(worker, training, first, last, plan, share, version, joins=joins)
        match offer:
            case Nothing.OVER:
                return protocol.EPOCH_OVER
            case Nothing.YET:
                return protocol.NOTHING_YET
            case Nothing.ASIDE:
                request.assigned_work = self._accounts.ranges_set_aside(first, last)
                return protocol.SET_ASIDE
            case (work, seed):
                request.assigned_work = work.epoch, work.start, work.stop, seed
                self._step_numbers.reach(work.epoch, steps, self._updates.state.version)
                return self._begins(worker, work, plan)

    def _begins(self, worker: str, work: Work, plan: Plan) -> int:
        batch = self._step_numbers.at_work[worker] = work.start // plan.batch
        return batch

    def _record_returned(self, worker: str, returned: Sequence[Returned]) -> None:
        """Records ranges that a worker returns; they are assigned to workers again. The lock is held."""
        for work, reason in returned:
            self._accounts.return_failed(worker, work, reason)
        if returned:
            self._changed.notify_all()

    def answer_holds(self, worker: str, spans: Sequence[object]) -> Frame:
        """Restores the ranges of a worker that was disconnected or slow, except those assigned again; answers whether
        the worker holds all of ``spans``."""
        works = [range_of(span) for span in spans]
        with self._changed:
            self._accounts.restore_ranges(worker)
            holds = all(self._accounts.holds(worker, work) for work in works)
        if not holds:
            self._warn_of_dropped(worker, works)
        return Frame(kinds.DONE, (holds,))

    def _warn_of_dropped(self, worker: str, works: Sequence[Work]) -> None:
        """Warns that the gradient of some ranges arrived too late."""
        ranges = ", ".join(map(str, works))
        _log.warning("%s drops a late gradient of %s: %s were assigned again", self._context.task, worker, ranges)

    def wait_without_data(self, connection: WorkerConnection, step_request: Any) -> Frame:
        """Marks a worker for which no examples are left as resting, so that no other worker waits for its gradient.

        If the worker requests a step, it is blocked until other workers return some examples, or the epochs of its
        request are over.
        """
        worker, workers, accounts, updates = connection.worker, self._workers, self._accounts, self._updates
        with self._changed:
            workers.require_present(connection)
            if not updates.state.formed and worker not in updates.state.members:
                updates.event(Joined(worker))
            self._waiting.wait(connection, lambda: updates.state.formed, "the other workers to connect")
            workers.require_present(connection)
            workers.mark_resting(worker)
            if step_request is not None:
                training, last = int(step_request[0]), int(step_request[1])
                first = step_request_of(worker, step_request)[4][0] if len(step_request) > 4 else None
                clock, patience = self._context.clock, self._context.choice.patience_s
                began = clock()

                def ready() -> bool:
                    # Take ranges back from slow workers here: `consistency.Tick` removes a slow worker only while a
                    # member waits for its gradient, and a resting worker is no member.
                    if patience is not None and clock() - began >= patience:
                        for slow in set(accounts.holders()) - workers.resting:
                            accounts.return_ranges(slow, f"other workers have waited {patience:g} s for this worker")
                    workers.return_overdue_ranges()
                    over = self._step_numbers.stopped or workers.trainings > training
                    begun = not self._must_await_chief(last)
                    return over or (begun and (first is None or accounts.has_work(training, first, last)))

                # If all holders of ranges are resting, this worker included, none will return a range: end the wait.
                def no_range_returns() -> bool:
                    holders = accounts.holders()
                    return worker in holders and workers.resting.issuperset(holders)

                holders = ", ".join(accounts.holders()) or "other workers"
                self._waiting.wait(
                    connection,
                    lambda: ready() or no_range_returns(),
                    f"the last examples, which are assigned to {holders}",
                )
                self._changed.notify_all()
                return Frame(kinds.DONE, (ready(),))
            return Frame(kinds.DONE)
