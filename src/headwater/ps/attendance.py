"""Which workers are at a ``ps``, which take part in the training, and when that is over."""

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
from headwater.ps.consistency import DataEnd, Joined, KOfN, Left, NoneToCome, State, Synchronous
from headwater.ps.epoch_sums import EpochSums
from headwater.ps.serving_context import ServingContext
from headwater.ps.talks import Request, WorkerTalk
from headwater.ps.tickets import Tickets
from headwater.ps.turns import Turns
from headwater.ps.updates import Updates

_log = logging.getLogger("headwater")


class Attendance:
    """Workers that come, take part, finish, are lost, and come back.

    Args:
      context: of the host.
      updates: of what workers give.
      turns: their waits.
      seed: of epochs.

    Attributes:
      tickets: which worker does which step.
      sums: what workers have added up in each epoch.
      trainings: how many are over.
      seed: of epochs.
      lives: by worker the life of its program.
      away: workers that took part, and are to come back.
      resting: workers that take part, and that no other waits for: they wait for examples which others hold.
      finished: workers that have finished the present training.
      stays_s: how long a worker that takes part in rounds may take to come back when its channel has ended, in seconds;
        it has as long as its task can be reached. Meanwhile others wait for it. 0: it is gone at once.
      expected: workers that took part elsewhere before, and until when they may come here.
      began: the latest training that the chief has begun, and with which epoch; None before.
      chief: the worker that said so.
      is_over: whether the chief's program has ended without an error.
    """

    def __init__(self, context: ServingContext, updates: Updates, turns: Turns, seed: int) -> None:
        self._context = context
        self._changed = context.changed
        self._updates = updates
        self._turns = turns
        self._places = ClaimedPlaces()
        self._shares: dict[str, tuple[int, int]] = {}
        # Whether the program of a worker has ended.
        self._ended = False
        self._talks_ended = False
        self.tickets = Tickets(in_rounds=isinstance(context.choice, Synchronous | KOfN))
        self.sums = EpochSums()
        self.trainings: int = 0
        self.seed: int = seed
        self.lives: dict[str, int] = {}
        self.away: set[str] = set()
        self.resting: set[str] = set()
        self.finished: set[str] = set()
        self.expected: tuple[set[str], float] = set(), 0.0
        self._come_s = 0.0
        self.stays_s: float = 0.0
        self.is_over: bool = False
        self.began: tuple[int, int] | None = None
        self.chief: str = ""

    # Coming -----------------------------------------------------------------------------------------------------------

    def refusal(self, task: Claim) -> str:
        """Why a task does not speak for its place; empty where it does."""
        with self._changed:
            return self._places.refusal(task, connected=self._has_talk)

    def claim(self, claim: Claim) -> str:
        """Why a task does not get its place; empty where it does."""
        with self._changed:
            return self._places.claim(claim, connected=self._has_talk)

    def _has_talk(self, holder: Claim) -> bool:
        """Whether the task that has a place is connected."""
        talk = self._updates.talks.get(holder.task)
        return talk is not None and not talk.channel.peer_gone()

    def arrive(self, worker: str, channel: Channel, life: int, trainings: int) -> WorkerTalk:
        """A worker has come. The lock is held.

        Args:
          worker: its name.
          channel: to it.
          life: of its program.
          trainings: that are over as far as it knows, or -1.

        Raises:
          UnavailableError: another copy serves, see `end_talks`.
        """
        updates = self._updates
        anew = self.lives.get(worker) != life
        if anew:  # its program numbers anew
            self.lives[worker] = life
            updates.latest.pop(worker, None)
        before = updates.talks.get(worker)
        talk = updates.talks[worker] = WorkerTalk(worker, channel, threading.Condition(self._context.lock))
        if self._talks_ended:
            # Another copy has taken over since the worker was sent here, and no round is made here any more.
            self.end_talks()
            if before is not None:
                before.channel.close()
            raise UnavailableError(None, None, f"{worker} has come to a copy that serves no more")
        # Where others wait for it to come back, another channel alone does not make it leave.
        if anew if self._may_stay(worker) else before is not None:
            self.leave(worker, "it was started anew")
        if before is not None:
            before.channel.close()
        if anew:
            updates.accounts.begun_anew(worker)
        if 0 <= trainings < self.trainings:
            # It is in a training that others have finished here before it came: it waits for no others.
            updates.event(NoneToCome())
        elif trainings > self.trainings:
            self.reach_training(trainings)
        return talk

    def gone(self, talk: WorkerTalk) -> None:
        """A worker's channel has ended."""
        talks, worker = self._updates.talks, talk.worker
        with self._changed:
            stays = talks.get(worker) is talk and self._may_stay(worker)
        # Another part may have made a round with a gradient that has yet to come here.
        stays = stays and self._context.answers(worker)
        with self._changed:
            if talks.get(worker) is talk:
                talks.pop(worker, None)  # unless `end_talks` just did
                if stays:
                    self._expect({*self.expected[0], worker}, self.stays_s)
                else:
                    self.leave(worker, "its channel has ended")
            if not talks:
                self._context.agreement.begin()

    def known_workers(self) -> list[str]:
        """All that have asked for something."""
        with self._changed:
            return sorted(self.lives)

    @property
    def travelled(self) -> int:
        """Bytes that have come and gone on the channels of the workers that are here."""
        counts = [talk.channel.statistics() for talk in list(self._updates.talks.values())]
        return sum(count.bytes_sent + count.bytes_received for count in counts)

    # Taking part ------------------------------------------------------------------------------------------------------

    def request(self, talk: WorkerTalk, number: int) -> tuple[Request, bool]:
        """What is known of a numbered request, and whether it came before, on a channel that was lost.

        Raises:
          UnavailableError: see `require_present`.
        """
        self.require_present(talk)
        updates, worker = self._updates, talk.worker
        self.away.discard(worker)
        self.resting.discard(worker)
        updates.accounts.back(worker)
        latest = updates.latest.get(worker)
        if latest is not None and latest.number == number:
            return latest, True
        request = updates.latest[worker] = Request(number=number)
        return request, False

    def require_present(self, talk: WorkerTalk) -> None:
        """Raises UnavailableError where the worker has another channel meanwhile: it asks again there."""
        if self._updates.talks.get(talk.worker) is not talk:
            raise UnavailableError(None, None, f"{talk.worker} came back on another channel")

    def going_on(self) -> set[str]:
        """The workers that take part, and do not wait here for an update."""
        members = self._updates.state.members.items()
        return {worker for worker, member in members if member.waits_since is None} | self.resting

    def share(self, worker: str) -> tuple[int, int] | None:
        """Which part of a batch that several workers share is this worker's: its number, and of how many. None where
        the batch is all its own, and before all have come that are expected at the beginning."""
        state = self._updates.state
        if not state.gathers or not state.formed:
            return None
        if self._shares.keys() != state.members.keys():
            names = sorted(state.members, key=_place)
            self._shares = {name: (at, len(names)) for at, name in enumerate(names)}
        return self._shares.get(worker)

    def rests(self, worker: str) -> None:
        """A worker takes part, and has no data."""
        self.resting.add(worker)
        self._updates.event(Left(worker, "it has no data"))
        self._end_data()

    def _end_data(self) -> None:
        """Where all workers rest that take part, what was gathered becomes an update."""
        if self.resting and not self._updates.state.members:
            self._updates.event(DataEnd())
            self._changed.notify_all()

    def reach_training(self, training: int) -> None:
        """A worker is in a later training than is known here, as this task was started anew meanwhile, or the first
        ``ps`` knew earlier that all have finished."""
        self.trainings = training
        self.finished.clear()
        self._changed.notify_all()
        if self._updates.way_back is not None:  # the steps that it knows of are those of an earlier one
            self.tickets.begin_training()

    # Going ------------------------------------------------------------------------------------------------------------

    def finish(self, talk: WorkerTalk, training: int) -> Frame:
        """Answers a worker that has finished a training, once all have."""
        worker, updates = talk.worker, self._updates
        with self._changed:
            self.trainings = max(self.trainings, training)  # less where this task was started anew meanwhile
            trainings = self.trainings
            takes_part = worker in updates.state.members or worker in self.away or worker in self.resting
            if training < trainings:  # it was late: the others have finished that training
                if takes_part:
                    self.leave(worker, "")
                return Frame(kinds.DONE)
            self.finished.add(worker)
            if takes_part:
                self.leave(worker, "")
            else:
                # This task was started anew while others trained: a worker that has finished will not come.
                updates.event(NoneToCome())
            self._turns.wait(
                talk,
                lambda: self.trainings > trainings or not (updates.state.members or self.resting),
                "the others to finish",
            )
        return Frame(kinds.DONE)

    def leave(self, worker: str, reason: str) -> None:
        """A worker does not take part any more; it was lost where there is a ``reason``. The lock is held."""
        updates = self._updates
        if reason and (worker in updates.state.members or worker in self.resting):
            self.away.add(worker)
        elif not reason:
            self.away.discard(worker)
        self.tickets.left(worker)
        updates.free.discard(worker)
        self.resting.discard(worker)
        updates.accounts.left(worker, reason)
        updates.event(Left(worker, reason))
        self._end_data()
        if not updates.state.members and not self.resting and not reason:
            # All have finished, perhaps before this task heard that the data end: what was taken becomes an update.
            updates.event(DataEnd())
            # Whatever comes next begins as this did: with all workers.
            self.trainings += bool(self.finished)  # else all of them were late
            # Unless one has not finished that is away, or has not begun: it must not wait for those who have.
            late = self.away | (updates.talks.keys() - self.finished)
            updates.state = State(
                choice=updates.state.choice,
                version=updates.state.version,
                formed=self.is_over or self._ended or bool(late),
            )
            self.away.clear()
            self.finished.clear()
            self.tickets.begin_training()
            updates.round.clear()
            self._context.agreement.begin()
            self.sums.clear()
        self._changed.notify_all()

    def job_over(self) -> None:
        """The chief's program has ended. A worker that is late waits for no others, which may have ended, too."""
        with self._changed:
            self.is_over = True
            self._updates.event(NoneToCome())
            self._changed.notify_all()

    def worker_ended(self) -> None:
        """The program of a worker has ended without an error: it will not come again, so that no other waits until all
        are there."""
        with self._changed:
            self._ended = True
            self._updates.event(NoneToCome())
            self._changed.notify_all()

    def expect(self, members: set[str], resting: set[str], come_s: float) -> None:
        """Workers that took part elsewhere come here within ``come_s`` seconds, or as long as their tasks can be
        reached; else they are gone. The lock is held."""
        for worker in sorted(members):
            self._updates.event(Joined(worker))
        self.resting = set(resting)
        self._expect(members | resting, come_s)

    def _expect(self, workers: set[str], come_s: float) -> None:
        self._come_s = come_s
        self.expected = workers, self._context.clock() + come_s

    def _may_stay(self, worker: str) -> bool:
        """Whether others wait for a worker whose channel has ended, if its task can be reached. The lock is held."""
        return self.stays_s > 0 and self._updates.state.gathers and worker in self._updates.state.members

    def leave_absent(self, but: Collection[str] = ()) -> None:
        """Workers that were to come here from another copy and did not are gone, except for ``but`` and for those whose
        tasks can be reached: they compute."""
        with self._changed:
            expected, until = self.expected
            if not expected or self._context.clock() < until:
                return
            absent = self._absent().difference(but)
        computing = {worker for worker in absent if self._context.answers(worker)}
        with self._changed:
            for worker in sorted(self._absent().difference(but, computing)):
                self.leave(worker, f"it did not come to {self._context.task}")
            self.expected = self._absent(), self._context.clock() + self._come_s
        for worker in sorted(computing):
            _log.warning("%s waits for %s, which has yet to come here and can be reached", self._context.task, worker)

    def _absent(self) -> set[str]:
        """Of the workers that are expected those that take part, and have not come yet. The lock is held."""
        there = self._updates.state.members.keys() | self.resting
        return (self.expected[0] & there) - self._updates.talks.keys()

    def end_talks(self) -> None:
        """Ends all conversations, and begins no more: another copy serves, which knows who takes part. Here none has
        left."""
        self._talks_ended = True
        talks = self._updates.talks
        for worker in list(talks):
            if (talk := talks.pop(worker, None)) is not None:
                talk.channel.close()


def _place(worker: str) -> tuple[bool, int]:
    """The order of workers: a chief, then the others by number."""
    task = TaskName.parse(worker)
    return task.job not in CHIEFS, task.index
