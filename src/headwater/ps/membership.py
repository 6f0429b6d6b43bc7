"""Membership of the workers of a ``ps``: which are connected, which take part in the training, and when it is over."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection

from headwater.cluster.claims import Claim, ClaimedPlaces
from headwater.cluster.config import CHIEFS
from headwater.cluster.names import TaskName
from headwater.cluster.task import kinds
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.errors import UnavailableError
from headwater.ps.consistency import DataEnd, Joined, KOfN, Left, MembershipComplete, Synchronous, TrainingState
from headwater.ps.epoch_sums import EpochSums
from headwater.ps.serving_context import ServingContext
from headwater.ps.step_numbers import StepNumbers
from headwater.ps.updates import Updates
from headwater.ps.waiting import Waiting
from headwater.ps.worker_connections import Request, WorkerConnection

_log = logging.getLogger("headwater")

#: How long workers may take to connect to a new primary or to the next incarnation of a ``ps``, or to reconnect after
#: their channel has ended, in seconds.
CONNECT_TIMEOUT_S = 15.0


class Membership:
    """Records which workers are connected and take part, from their first connection to the end of the training.

    Args:
      context: the task, its options and the lock; see `ServingContext`.
      updates: holds the state of `headwater.ps.consistency`, which events change.
      waiting: makes workers wait.
      seed: see the attribute.

    Attributes:
      step_numbers: assigns steps to workers.
      sums: the contributions of the workers to sums such as losses, by epoch.
      trainings: number of trainings that are over.
      seed: the seed from which the order of the examples of each epoch is drawn.
      incarnations: the incarnation of each worker's program, by worker.
      away: workers that took part, were lost, and are expected to return.
      resting: workers that take part without data. They wait for examples that other workers hold, and no worker waits
        for them.
      finished: workers that have finished the present training.
      stays_s: how long a member whose channel has ended stays a member, so that other workers wait for it, in seconds.
        There is no limit while the member's task can be reached. With 0, a member is removed as soon as its channel
        ends.
      expected: members that are not connected, and the time until which they may connect, by the context's clock. Their
        channel has ended, or they were members of another server, from which this server has taken over.
      began: the latest training that the chief has begun, with its first epoch; None before the first training.
      chief: the worker that began that training; empty before the first training.
      may_stop: whether the chief may stop that training at the end of any epoch.
      chief_resumes: whether a chief that is lost and restarted resumes its unfinished epoch, so that in synchronous
        training the other workers wait for it at the end of that epoch.
      last_epoch: the last epoch of the latest training that all workers have finished; -1 before the first training has
        ended.
      is_over: whether the chief's program has ended without an error.
    """

    def __init__(self, context: ServingContext, updates: Updates, waiting: Waiting, seed: int) -> None:
        self._context = context
        self._changed = context.changed
        self._updates = updates
        self._waiting = waiting
        self._places = ClaimedPlaces()
        self._shares: dict[str, tuple[int, int]] = {}
        # Whether the program of a worker has ended without an error. That worker does not connect again, so later
        # trainings must not wait until all workers have connected.
        self._has_worker_ended = False
        self._connections_closed = False
        self.step_numbers = StepNumbers(in_rounds=isinstance(context.choice, Synchronous | KOfN))
        self.sums = EpochSums()
        self.trainings: int = 0
        self.seed: int = seed
        self.incarnations: dict[str, int] = {}
        self.away: set[str] = set()
        self.resting: set[str] = set()
        self.finished: set[str] = set()
        self.expected: tuple[set[str], float] = set(), 0.0
        self._connect_within_s = 0.0
        # Workers that hold ranges of an earlier incarnation of this server, and the time until which they may connect.
        self._restored_holders: set[str] = set()
        self._holders_until = 0.0
        self.stays_s: float = 0.0
        self.is_over: bool = False
        self.began: tuple[int, int] | None = None
        self.last_epoch: int = -1
        self.may_stop: bool = False
        self.chief_resumes: bool = False
        self.chief: str = ""

    # Connecting -------------------------------------------------------------------------------------------------------

    def refusal(self, task: Claim) -> str:
        """Returns why a task's claim to its place would be refused, without recording it; empty if it would not."""
        with self._changed:
            return self._places.refusal(task, connected=self._is_connected)

    def claim(self, claim: Claim) -> str:
        """Records a claim to a place in the cluster; returns why it is refused, empty if it is not."""
        with self._changed:
            return self._places.claim(claim, connected=self._is_connected)

    def _is_connected(self, holder: Claim) -> bool:
        """Returns whether the task that holds a place is connected."""
        connection = self._updates.connections.get(holder.task)
        return connection is not None and not connection.channel.peer_gone()

    def connect_worker(self, worker: str, channel: Channel, incarnation: int, trainings: int) -> WorkerConnection:
        """Registers the channel of a worker that has connected. The lock is held.

        Args:
          worker: the name of the worker.
          channel: the channel to the worker.
          incarnation: the incarnation of the worker's program.
          trainings: number of finished trainings that the worker knows of, or -1.

        Raises:
          UnavailableError: another server has taken over, see `close_connections`.
        """
        updates = self._updates
        restarted = self.incarnations.get(worker) != incarnation
        if restarted:  # a new incarnation numbers its requests from the beginning
            self.incarnations[worker] = incarnation
            updates.latest.pop(worker, None)
        before = updates.connections.get(worker)
        connection = updates.connections[worker] = WorkerConnection(
            worker, channel, threading.Condition(self._context.lock)
        )
        if self._connections_closed:
            # Another server has taken over since the worker learned this address; no round would complete here.
            self.close_connections()
            if before is not None:
                before.channel.close()
            raise UnavailableError(f"{worker} connected to a replica that no longer serves")
        # If members may stay without a channel (`_may_stay`), a worker that reconnects is still a member of its round,
        # unless its program was restarted. If members may not stay, an earlier connection means that the worker was
        # lost and that this task has not noticed the loss yet. So remove the worker, which joins again with its next
        # request.
        if restarted if self._may_stay(worker) else before is not None:
            self.remove_worker(worker, "it was restarted")
        if before is not None:
            before.channel.close()
        if restarted:
            updates.accounts.handle_restart(worker)
        if 0 <= trainings < self.trainings:
            # The other workers have finished the training of this worker, so it must not wait for them.
            updates.event(MembershipComplete())
        elif trainings > self.trainings:
            self.reach_training(trainings)
        return connection

    def handle_disconnect(self, connection: WorkerConnection) -> None:
        """Handles the end of a worker's channel."""
        connections, worker = self._updates.connections, connection.worker
        with self._changed:
            stays = connections.get(worker) is connection and self._may_stay(worker)
        # Another ps may have applied this worker's gradient in a round that is still incomplete here. If the worker
        # were removed now, this ps would complete the round without that gradient. So the worker stays a member while
        # its task can be reached. `answers` may take seconds, so call it without the lock.
        stays = stays and self._context.answers(worker)
        with self._changed:
            if connections.get(worker) is connection:
                connections.pop(worker, None)  # with a default: `close_connections` runs without the lock
                if stays:
                    self._expect({*self.expected[0], worker}, self.stays_s)
                else:
                    self.remove_worker(worker, "its channel has ended")
            if not connections:  # the next workers may run a changed program
                self._context.agreement.reset()

    def known_workers(self) -> list[str]:
        """Returns the names of all workers that have connected."""
        with self._changed:
            return sorted(self.incarnations)

    @property
    def traffic_bytes(self) -> int:
        """Bytes sent and received on the channels of the connected workers."""
        counts = [connection.channel.statistics() for connection in list(self._updates.connections.values())]
        return sum(count.bytes_sent + count.bytes_received for count in counts)

    # Membership -------------------------------------------------------------------------------------------------------

    def request(self, connection: WorkerConnection, number: int) -> tuple[Request, bool]:
        """Returns the record of the worker's request ``number``, and whether it is a retry after a lost channel.

        Raises:
          UnavailableError: see `require_present`.
        """
        self.require_present(connection)
        updates, worker = self._updates, connection.worker
        # A worker that sends a request is connected, and has data or requests data.
        self.away.discard(worker)
        self.resting.discard(worker)
        updates.accounts.restore_ranges(worker)
        latest = updates.latest.get(worker)
        if worker in self._restored_holders:
            self._restored_holders.discard(worker)
            # A state file may be older than the worker's latest requests, and the worker no longer holds its ranges.
            if latest is None or number > latest.number + 1:
                updates.accounts.return_ranges(worker, "")
        if latest is not None and latest.number == number:
            return latest, True
        request = updates.latest[worker] = Request(number=number)
        return request, False

    def require_present(self, connection: WorkerConnection) -> None:
        """Raises UnavailableError if the worker has reconnected: it repeats its request on the new channel."""
        if self._updates.connections.get(connection.worker) is not connection:
            raise UnavailableError(f"{connection.worker} has reconnected on another channel")

    def not_waiting(self) -> set[str]:
        """Returns the members that are not waiting for an update on this ``ps``."""
        members = self._updates.state.members.items()
        return {worker for worker, member in members if member.waits_since is None} | self.resting

    def share(self, worker: str) -> tuple[int, int] | None:
        """Returns the worker's part of a batch that several workers share, as (number of the part, number of parts).

        None if each worker takes whole batches, or while workers expected at the start have yet to connect.
        """
        state = self._updates.state
        if not state.gathers or not state.formed:
            return None
        if self._shares.keys() != state.members.keys():
            names = sorted(state.members, key=_sort_key)
            self._shares = {name: (at, len(names)) for at, name in enumerate(names)}
        return self._shares.get(worker)

    def mark_resting(self, worker: str) -> None:
        """Marks a member as resting: it has no data, so other workers do not wait for its gradients."""
        self.resting.add(worker)
        # `decide` knows only members with data; this class records the members without data in `resting`.
        self._updates.event(Left(worker, "it has no data"))
        self._end_data()

    def _end_data(self) -> None:
        """Ends the round with the gathered gradients if all remaining workers are resting, so that none can add a
        gradient."""
        if self.resting and not self._updates.state.members:
            self._updates.event(DataEnd())
            self._changed.notify_all()

    def reach_training(self, training: int) -> None:
        """Sets the number of finished trainings to ``training``, as a worker reports it, if that is larger.

        A worker's number is larger than this task's if this task was restarted, or if the first ``ps`` has already told
        the worker that all workers have finished.
        """
        self.trainings = training
        self.finished.clear()
        self._changed.notify_all()
        if self._updates.recovery_report is not None:  # recovered step numbers belong to an earlier training
            self.step_numbers.reset()

    # Leaving ----------------------------------------------------------------------------------------------------------

    def finish(self, connection: WorkerConnection, training: int) -> Frame:
        """Answers a worker that has finished a training, once all workers have."""
        worker, updates = connection.worker, self._updates
        with self._changed:
            self.trainings = max(self.trainings, training)  # a restarted task knows of fewer trainings than workers
            trainings = self.trainings
            takes_part = worker in updates.state.members or worker in self.away or worker in self.resting
            if training < trainings:  # a late worker: all other workers have finished that training
                if takes_part:
                    self.remove_worker(worker, "")
                return Frame(kinds.DONE)
            self.finished.add(worker)
            if takes_part:
                self.remove_worker(worker, "")
            else:
                # This task was restarted during the training: workers that had finished before will not connect again.
                updates.event(MembershipComplete())
            self._waiting.wait(
                connection,
                lambda: self.trainings > trainings or not (updates.state.members or self.resting),
                "the other workers to finish",
            )
        return Frame(kinds.DONE)

    def remove_worker(self, worker: str, reason: str) -> None:
        """Removes a worker from the membership. The lock is held.

        Args:
          worker: the worker.
          reason: how the worker was lost; empty if it has finished.
        """
        updates = self._updates
        if reason and (worker in updates.state.members or worker in self.resting):
            self.away.add(worker)
        elif not reason:
            self.away.discard(worker)
        resumes = bool(reason) and worker == self.chief and self.chief_resumes
        self.step_numbers.forget_worker(worker, resumes=resumes)
        updates.free.discard(worker)
        self.resting.discard(worker)
        updates.accounts.return_ranges(worker, reason)
        updates.event(Left(worker, reason))
        self._end_data()
        if not updates.state.members and not self.resting and not reason:
            # All workers have finished. If this task has not learnt that the data have ended, gradients of an
            # incomplete round are left; `DataEnd` applies them.
            updates.event(DataEnd())
            # `finished` is empty if only late workers leave now: their training is over and was counted before, so it
            # must not be counted twice.
            self.trainings += bool(self.finished)
            # The next training begins, as this one did, when all workers have connected; until then `formed` is False.
            # There is one exception: a worker may be late, that is, disconnected or still in this training. When it
            # arrives, the programs of the other workers may have ended. It must not wait for them, so no number of
            # workers is required.
            late = self.away | (updates.connections.keys() - self.finished)
            updates.state = TrainingState(
                choice=updates.state.choice,
                version=updates.state.version,
                formed=self.is_over or self._has_worker_ended or bool(late),
            )
            self.away.clear()
            self.finished.clear()
            self.last_epoch = self.step_numbers.epoch
            self.step_numbers.reset()
            updates.round.clear()
            self._context.agreement.reset()
            self.sums.clear()
        self._changed.notify_all()

    def job_over(self) -> None:
        """Marks the job as over. From now on no worker waits for another worker, whose program may have ended."""
        with self._changed:
            self.is_over = True
            self._updates.event(MembershipComplete())
            self._changed.notify_all()

    def record_worker_end(self) -> None:
        """Records that the program of a worker has ended without an error.

        That worker will not connect again, so from now on no worker waits until all workers have connected.
        """
        with self._changed:
            self._has_worker_ended = True
            self._updates.event(MembershipComplete())
            self._changed.notify_all()

    def expect(self, members: set[str], resting: set[str], connect_within_s: float) -> None:
        """Adopts the membership of the server from which this one takes over. The lock is held.

        Args:
          members: the workers that take part with data.
          resting: the workers that take part without data.
          connect_within_s: how long the workers may take to connect here, in seconds. Later they are removed, as soon
            as their tasks cannot be reached.
        """
        for worker in sorted(members):
            self._updates.event(Joined(worker))
        self.resting = set(resting)
        self._expect(members | resting, connect_within_s)

    def expect_holders(self, connect_within_s: float) -> None:
        """Keeps restored ranges for the workers that hold them, for ``connect_within_s`` seconds. The lock is held."""
        self._restored_holders = set(self._updates.accounts.holders())
        self._holders_until = self._context.clock() + connect_within_s

    def return_overdue_ranges(self) -> None:
        """Makes the restored ranges of workers that did not connect in time available again. The lock is held."""
        if self._restored_holders and self._context.clock() >= self._holders_until:
            for worker in sorted(self._restored_holders - self._updates.connections.keys()):
                self._updates.accounts.return_ranges(worker, f"it did not connect to {self._context.task}")
            self._restored_holders &= self._updates.connections.keys()

    def _expect(self, workers: set[str], connect_within_s: float) -> None:
        self._connect_within_s = connect_within_s
        self.expected = workers, self._context.clock() + connect_within_s

    def _may_stay(self, worker: str) -> bool:
        """Returns whether a worker whose channel has ended stays a member while its task can be reached. The lock is
        held."""
        return self.stays_s > 0 and self._updates.state.gathers and worker in self._updates.state.members

    def remove_absent_workers(self, but: Collection[str] = ()) -> None:
        """Removes expected workers that did not connect in time.

        Workers in ``but`` stay. Workers whose tasks can be reached stay, too, because they may be computing a step.
        """
        with self._changed:
            expected, until = self.expected
            if not expected or self._context.clock() < until:
                return
            absent = self._absent().difference(but)
        # Ask without the lock, as each answer may take seconds. Workers may connect meanwhile, so determine the absent
        # ones again below.
        computing = {worker for worker in absent if self._context.answers(worker)}
        with self._changed:
            for worker in sorted(self._absent().difference(but, computing)):
                self.remove_worker(worker, f"it did not connect to {self._context.task}")
            self.expected = self._absent(), self._context.clock() + self._connect_within_s
        for worker in sorted(computing):
            _log.warning("%s waits for %s, which can be reached but has not connected yet", self._context.task, worker)

    def _absent(self) -> set[str]:
        """Returns the expected members that have not connected yet. The lock is held."""
        there = self._updates.state.members.keys() | self.resting
        return (self.expected[0] & there) - self._updates.connections.keys()

    def close_connections(self) -> None:
        """Closes all connections, and refuses new ones, because another server has taken over.

        The workers stay members of the training, as the other server has adopted the membership.
        """
        self._connections_closed = True
        connections = self._updates.connections
        for worker in list(connections):
            if (connection := connections.pop(worker, None)) is not None:
                connection.channel.close()


def _sort_key(worker: str) -> tuple[bool, int]:
    """Returns the sort key of a worker: the chief is first, then workers are in the order of their numbers."""
    task = TaskName.parse(worker)
    return task.job not in CHIEFS, task.index
