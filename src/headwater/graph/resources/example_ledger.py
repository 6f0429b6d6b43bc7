"""The ledger of a graph's examples, on the ``ps`` that holds the variable of applied batches.

Only that variable is persistent. Checkpoints and saved states contain it together with the parameters of the same
moment, and the ledger is restored from it. It has the type int64 and the shape [2, batches + 1]. Even epochs use row 0,
odd epochs row 1. Column 1 + b contains e + 1 once batch b of epoch e is applied. Epoch e starts only when epoch e - 2
is complete, so two rows are enough, and an epoch can overwrite its row without clearing it. In column 0, row 0 contains
the ledger's number (0: not started), and row 1 the number of updates accounted for.

A range is assigned to a step until the step ends on this task, even if connections are lost meanwhile. The step's
update and the accounting of its range are made while one lock is held, so that either both are made or neither.

The task's backup has the variable, too. In addition, the primary sends it the assignment of ranges to steps, and which
ranges are *gathered* or *taken* (see below). After a promotion, the ledger is restored from both; the counts of
failures of ranges restart at 0.

If gradients of several steps are combined into one update, a range follows its gradient. When the gradient is added to
the accumulator, the range is *gathered*. When a step takes the mean, the range is *taken* by that step, whose update
and the accounting of all its ranges are made while one lock is held. If the accumulator drops a gradient, its range is
assigned again. At the end of the data there may be fewer gradients than an update requires: once no step can give
another gradient, the update is made from the gathered ones.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from headwater.errors import AbortedError, DataLossError, FailedPreconditionError, OutOfRangeError
from headwater.graph.resources.containers import Cell, Resources
from headwater.graph.resources.host_context import RunningStep
from headwater.graph.resources.replicable import ReplicableResource, ResourceState, StillWaitsError, first_value
from headwater.ps.accounting.accounts import Accounts
from headwater.ps.accounting.intervals import Intervals
from headwater.ps.accounting.ledger import Nothing, Plan, Work

_log = logging.getLogger("headwater")

FOREVER: Final = 1 << 62
"""Number of epochs of a program without a limit."""

RESUME_S: Final = 60.0
"""Time after a promotion, in seconds, within which a step has to resume here to be sure to keep its range. Later, the
range may be assigned to another worker, if no other range is left for that worker."""

Array = np.ndarray[Any, Any]
_Key = tuple[str, int]  # session and number of a step


@dataclass(frozen=True, kw_only=True, slots=True)
class RangeRequest:
    """A step's request for a range.

    Attributes:
      worker: name of the worker.
      epochs: number of epochs; 0: no limit.
      plan: the plan of each epoch.
      patience_s: limit of the wait, in seconds; after it, ranges that other steps hold are assigned again. 0: no limit.
    """

    worker: str
    epochs: int
    plan: Plan
    patience_s: float = 0.0


@dataclass(kw_only=True, slots=True, eq=False)
class _Hold:
    """A range that belongs to a step, or to the gradient that the step has given.

    Attributes:
      worker, session, number, work: the worker, the step, and the range.
      away: whether the range was revoked and may be assigned again. The step can reclaim it until it is assigned to
        another step.
      resumes_by: after a promotion, the time until which the step has to resume here; after it, the range may be
        revoked. None if the step runs here.
      given: whether the step has given its gradients to all accumulators, or has ended.
      lost: whether the session of the step is lost.
    """

    worker: str
    session: str
    number: int
    work: Work
    away: bool = False
    resumes_by: float | None = None
    given: bool = False
    lost: bool = False

    @property
    def key(self) -> _Key:
        return self.session, self.number

    def as_words(self) -> tuple[object, ...]:
        """Encodes the hold for a frame's header."""
        return self.worker, self.session, self.number, tuple(self.work), self.away, self.given, self.lost

    @classmethod
    def of_words(cls, words: Sequence[Any]) -> _Hold:
        """Decodes the result of `as_words`."""
        worker, session, number, work, away, given, lost = words
        return cls(worker=worker, session=session, number=number, work=Work(*work), away=away, given=given, lost=lost)


class GatheredRange:
    """The range of examples of a gradient that a step gives to an accumulator.

    The caller of each method holds the accumulator's lock; the method acquires the ledger's lock.

    Args:
      resources: the task's resources.
      examples: name of the examples.
      session, number: the step that holds the range.
    """

    def __init__(self, resources: Resources, examples: str, session: str, number: int) -> None:
        self._resources = resources
        self._examples = examples
        self.key: _Key = session, number

    def as_words(self) -> tuple[object, ...]:
        """Encodes the range; the result and the task's resources are the constructor's arguments."""
        return self._examples, *self.key

    def accept(self, *, follows: bool = False) -> None:
        """Marks the range as gathered; called before the gradient is added.

        Args:
          follows: whether this task is a backup. The primary has added the gradient already, so nothing is checked.

        Raises:
          AbortedError: the step has lost its range, so the gradient must not be added.
        """
        ledger_of(self._resources, self._examples).gather(self.key, follows=follows)

    def drop(self) -> None:
        """Returns the range to the ledger, to be assigned again; called when the gradient is dropped without being part
        of an update."""
        ledger = self._resources.find("", self._examples, ExampleLedger)
        if ledger is not None:  # None: the container with the ledger was reset
            ledger.drop(self.key)


class ExampleLedger(ReplicableResource):
    """Assigns ranges of examples to steps, and records which ranges are applied.

    Args:
      name: name of the examples.
      task: full name of this task.
      resources: the task's resources; the ledger uses their lock.
      cell: the variable of applied batches.
      log_dir: folder of the journal; None: taken from the environment.
      clock: returns monotonic time in seconds.

    Attributes:
      updates: number of updates accounted for.
      name: name of the examples.
    """

    def __init__(
        self,
        name: str,
        task: str,
        resources: Resources,
        cell: Cell,
        log_dir: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name: str = name
        self._task = task
        self._log_dir = log_dir
        self._resources = resources
        self._cell = cell
        self._clock = clock
        self._condition = threading.Condition(resources.lock)
        self._accounts = Accounts(name, task, 0, log_dir="")
        self._seen: int | None = None  # the variable's number of updates when the accounts last agreed with it
        self.updates: int = 0
        self._holds: dict[_Key, _Hold] = {}
        self._gathered: dict[_Key, _Hold] = {}
        self._taken: dict[_Key, list[_Hold | None]] = {}  # None: a range that the ledger has forgotten
        self._waiting: set[_Key] = set()
        self._plan: Plan | None = None
        self._place: tuple[str, ...] = ()  # the variable's container and name

    # Handing out ------------------------------------------------------------------------------------------------------

    def assign_range(
        self, step: RunningStep, request: RangeRequest, starved: Callable[[], None] | None = None
    ) -> tuple[Work, int]:
        """Assigns a range to a step; returns the range and the seed of its epoch's order. Waits while other steps hold
        all remaining ranges.

        Args:
          request: the step's request.
          starved: called without locks, once per round, when no step can contribute another gradient before the next
            update (see `is_starved`), so that the caller can request the update with fewer gradients.

        Raises:
          OutOfRangeError: all epochs are over.
          DataLossError: all remaining ranges were set aside.
          FailedPreconditionError: the variable has no value, or other workers use different arguments.
        """
        key = step.session, step.number
        # Only one range can belong to a step, because the update accounts for the range of its step.
        if key in self._holds:
            raise FailedPreconditionError(
                f"a step takes two ranges of {self.name!r}: get_next() can be called once in a step"
            )
        reported: tuple[int, int] | None = None
        try:
            while True:
                offer, reported = self._wait_for_range(step, request, reported)
                if offer is not Nothing.YET:
                    break
                if starved is not None:
                    starved()
        # This error occurs on a replicated task only. The step is still waiting, and will try the operation again.
        except StillWaitsError:
            raise
        except BaseException:
            self._stop_waiting(key)
            raise
        self._stop_waiting(key)
        last = (request.epochs or FOREVER) - 1
        if isinstance(offer, tuple):
            return offer
        if offer is Nothing.ASIDE:
            with self._condition:
                aside = self._accounts.ranges_set_aside(0, last)
            raise DataLossError(f"these ranges of {self.name!r} were set aside: {aside}")
        raise OutOfRangeError(f"End of sequence: all epochs of {self.name!r} are applied")

    def _stop_waiting(self, key: _Key) -> None:
        with self._condition:
            self._waiting.discard(key)

    def _wait_for_range(
        self, step: RunningStep, request: RangeRequest, reported: tuple[int, int] | None
    ) -> tuple[tuple[Work, int] | Nothing, tuple[int, int] | None]:
        """Waits for a range.

        Args:
          request: the step's request.
          reported: the round in which starvation was last reported to the caller; None if it never was. Starvation is
            reported once per round.

        Returns:
          The range with the seed of its epoch, or the reason why there is none, and the present round. The reason is
          `Nothing.YET` if no step can contribute another gradient before the next update, see `is_starved`.
        """
        key = step.session, step.number
        # On a replicated task, the operation may be tried several times. If an earlier try was offered a range, the
        # accounts count that range as assigned. So keep the offers between the tries: this step has to take the range.
        offers: list[tuple[Work, int] | Nothing] = first_value(step, "offers", [])
        began = first_value(step, "began", self._clock())
        last = (request.epochs or FOREVER) - 1

        def ready() -> bool:
            if offers and isinstance(offers[0], tuple):
                return True
            self._load(request.plan)
            found = self._offer(request, last)
            if found is Nothing.YET:
                left = filter(self._is_left, self._held_ranges())
                self._revoke(left, "its step did not continue after another copy of the task was lost")
                if 0 < request.patience_s < self._clock() - began:
                    self._revoke(self._held_ranges(), f"others have waited {request.patience_s:g} s for it")
                found = self._offer(request, last)
            if found is Nothing.YET:
                # A lost worker may have sent its gradient to some tasks only. The other tasks would then never get
                # enough gradients, and the update would never be made. So revoke the range of such a worker.
                lost = (hold for hold in self._held_ranges() if hold.lost)
                self._revoke(lost, "its worker was lost before its update was made")
                found = self._offer(request, last)
            # This worker now waits without a range. That may complete the conditions for starvation (`_is_starved`), so
            # wake the steps that wait for a round.
            if found is Nothing.YET and key not in self._waiting:
                self._waiting.add(key)
                self._condition.notify_all()
            offers[:] = [found]
            return found is not Nothing.YET or (self._is_starved() and reported != self._round())

        with self._condition:
            step.wait_until(self._condition, ready, f"ranges of {self.name!r} that other workers have")
            self._accounts.flush()
            (found,) = offers
            if isinstance(found, tuple):
                self._holds[key] = _Hold(worker=request.worker, session=step.session, number=step.number, work=found[0])
                self.changes += 1
                step.at_end(lambda: self.end_step(*key))
            return found, self._round()

    def _round(self) -> tuple[int, int]:
        return self.updates, len(self._gathered)

    def _offer(self, request: RangeRequest, last: int) -> tuple[Work, int] | Nothing:
        # The variable has rows for two epochs only: offer no range beyond the epoch after the first incomplete one.
        last = min(last, self._accounts.first_open_epoch() + 1)
        return self._accounts.assign_range(request.worker, 0, 0, last, request.plan, None, self.updates)

    def end_step(self, session: str, number: int) -> bool:
        """Handles the end of a step on this task: revokes the ranges that it still holds or has taken. Returns whether
        anything has changed and has to be sent to the backup."""
        key = session, number
        with self._condition:
            before = self.changes
            self._mark_given(key)
            hold = self._holds.get(key)
            if hold is not None:
                self._revoke([hold], "its step ended without an update")
                del self._holds[key]
                self.changes += 1
            taken = self._taken.get(key)
            if taken is not None:
                self._revoke(filter(None, taken), "its update was not made")
                del self._taken[key]
                self.changes += 1
            return self.changes != before

    def _is_left(self, hold: _Hold) -> bool:
        return hold.resumes_by is not None and hold.resumes_by < self._clock()

    def mark_resumed(self, session: str, number: int) -> None:
        """Notes that a step that took its range from the previous primary has resumed here."""
        with self._condition:
            key = session, number
            for hold in (self._holds.get(key), self._gathered.get(key), *self._taken.get(key, ())):
                if hold is not None:
                    hold.resumes_by = None

    def resume_step(self, step: RunningStep) -> None:
        """Resumes a step that may have taken its range in an earlier incarnation of the task."""
        with self._condition:
            self._load_after_promotion()
            self.mark_resumed(step.session, step.number)
            step.at_end(lambda: self.end_step(step.session, step.number))

    def session_ended(self, session: str, reason: str) -> None:
        """Revokes the ranges of a session that has ended, or that has lost its master."""
        with self._condition:
            mine = [hold for (its, _), hold in self._holds.items() if its == session]
            mine += [hold for (its, _), taken in self._taken.items() if its == session for hold in taken if hold]
            self._revoke(mine, reason or "its session has ended")
            for hold in self._all_holds():
                if hold.session == session:
                    # A lost session contributes no further gradient. Mark the hold as given: no wait expects it then.
                    hold.lost = hold.given = True
                    self.changes += 1
            self._condition.notify_all()

    def forget_session(self, session: str) -> None:
        """Revokes the ranges of a session that has ended."""
        self.session_ended(session, "its session has ended")

    def _all_holds(self) -> list[_Hold]:
        return [*self._holds.values(), *self._gathered.values(), *self._taken_holds()]

    def _taken_holds(self) -> list[_Hold]:
        return [hold for holds in self._taken.values() for hold in holds if hold is not None]

    def _held_ranges(self) -> list[_Hold]:
        """Returns the ranges that steps hold, and the ranges that steps have taken for updates that are not made
        yet."""
        return [*self._holds.values(), *self._taken_holds()]

    def _revoke(self, holds: Iterable[_Hold], reason: str) -> None:
        """Revokes some of the ranges in `_held_ranges`, so that they are assigned again."""
        for hold in holds:
            if not hold.away:
                hold.away = True
                self.changes += 1
                self._accounts.return_failed(hold.worker, hold.work, reason)
                self._condition.notify_all()
        self._accounts.flush()

    # Gathered gradients -----------------------------------------------------------------------------------------------

    def gather(self, key: _Key, *, follows: bool) -> None:
        """Marks a step's range as gathered, before its gradient is added; see `GatheredRange.accept`."""
        with self._condition:
            if not follows:
                self._load_after_promotion()
                self._require(self._holds.get(key))
            hold = self._holds.pop(key, None)
            if hold is not None:
                self._gathered[key] = hold
            self.changes += 1
            self._condition.notify_all()

    def drop(self, key: _Key) -> None:
        """Makes the range of a dropped gradient available for assignment again."""
        with self._condition:
            hold = self._gathered.pop(key, None) or self._holds.pop(key, None)
            if hold is None:
                return
            if not hold.away:
                self._accounts.return_failed(hold.worker, hold.work, "")
                self._accounts.flush()
            self.changes += 1
            self._condition.notify_all()

    def mark_step_given(self, step: RunningStep) -> None:
        """Notes that a step has given its gradients to all accumulators."""
        with self._condition:
            self._mark_given((step.session, step.number))

    def _mark_given(self, key: _Key) -> None:
        hold = self._gathered.get(key)
        if hold is not None and not hold.given:
            hold.given = True
            self.changes += 1
            self._condition.notify_all()

    def assign_taken_ranges(self, step: RunningStep, ranges: Sequence[GatheredRange]) -> Array:
        """Assigns the ranges of gathered gradients to the step that takes their mean for an update.

        Returns:
          The ranges as int64 [n, 3]. n is a power of two; the last range is repeated as padding.
        """
        key = step.session, step.number
        with self._condition:
            if key not in self._taken:
                step.at_end(lambda: self.end_step(*key))
            # A range is None if the ledger no longer knows it, because the variable was restored. The mean nevertheless
            # includes its gradient, so `admit_round` has to refuse the update.
            holds = self._taken[key] = [self._gathered.pop(one.key, None) for one in ranges]
            self.changes += 1
            self._condition.notify_all()
        works = [hold.work for hold in holds if hold is not None] or [Work(0, 0, 0)]
        # Pad to a power of two, so that few shapes have to be compiled.
        works += works[-1:] * ((1 << (len(works) - 1).bit_length()) - len(works))
        return np.array(works, np.int64)

    def is_starved(self) -> bool:
        """Returns whether gradients are gathered and no further gradient can arrive before the next update: workers
        wait for ranges, and no other step holds a range."""
        with self._condition:
            return self._is_starved()

    def _is_starved(self) -> bool:
        return (
            bool(self._waiting and self._gathered)
            and all(hold.given or self._is_left(hold) for hold in self._gathered.values())
            and all(hold.away for hold in self._holds.values())
        )

    def wait_for_round(self, step: RunningStep, required: int) -> int:
        """Waits until ``required`` gradients are gathered, or until no further gradient can arrive; returns the number
        of gradients for the update."""
        with self._condition:
            step.wait_until(
                self._condition,
                lambda: len(self._gathered) >= required or self._is_starved(),
                f"gradients of {self.name!r} ({required} needed)",
            )
            return min(required, len(self._gathered))

    # An update --------------------------------------------------------------------------------------------------------

    def admit(self, step: RunningStep) -> Callable[[], object]:
        """Checks that a step's update may be made. Called under the lock, just before the update.

        Returns:
          A function to call after the update, under the same lock.

        Raises:
          AbortedError: the step has lost its range.
        """
        key = step.session, step.number
        if step.follows:  # the primary has checked it
            return lambda: self._holds.pop(key, None)
        self._load_after_promotion()
        hold = self._holds.get(key)
        self._require(hold)
        assert hold is not None

        def made() -> None:
            del self._holds[key]
            self._account([hold])

        return made

    def admit_round(self, step: RunningStep) -> Callable[[], object]:
        """Like `admit`, for the ranges that `assign_taken_ranges` has assigned to the step."""
        key = step.session, step.number
        if step.follows:
            return lambda: self._taken.pop(key, None)
        self._load_after_promotion()
        taken = self._taken.get(key, [])
        if not taken:
            self._require(None)
        for hold in taken:
            self._require(hold)
        holds = [hold for hold in taken if hold is not None]

        def made() -> None:
            self._taken[key] = []
            self._account(holds)

        return made

    def _require(self, hold: _Hold | None) -> None:
        """Raises AbortedError if a step, or its gradient, has lost the range and cannot reclaim it."""
        # If the variable was restored since the assignment, the range belongs to values that no longer exist.
        current = self._seen == self._cell.updates
        if hold is not None and hold.away and current and self._accounts.reclaim(hold.worker, hold.work):
            hold.away = False
        if hold is None or hold.away or not current:
            raise AbortedError(
                f"the examples {hold.work if hold else 'of this step'} of {self.name!r} were assigned again: this "
                "step's update is refused"
            )

    def _account(self, holds: Sequence[_Hold]) -> None:
        """Records ranges as applied after their update. The caller holds the lock."""
        self.changes += 1
        self._seen = self._cell.updates
        self.updates += 1
        for hold in holds:
            self._accounts.record_gradient(hold.worker, [hold.work])
        self._accounts.mark_applied(self.updates)
        # Flush while the lock is held: a saved state, which is captured under this lock, then contains no update that
        # the journal lacks.
        self._accounts.flush()
        self._condition.notify_all()

    # Applied batches --------------------------------------------------------------------------------------------------

    def _load(self, plan: Plan) -> None:
        """Loads the accounts from the variable, if it was changed since by an initializer or a restore rather than by
        an update of this ledger."""
        cell = self._cell
        if cell.value is None:
            raise FailedPreconditionError(
                f"Attempting to use uninitialized value {cell.name}: run its initializer, or restore it, first"
            )
        if self._seen == cell.updates:
            return
        # If nothing was loaded yet, the existing holds are not from this task, but were received from the previous
        # primary. They belong to steps that may resume here.
        received = self._all_holds() if self._seen is None else []
        if not received:
            for hold in self._taken_holds():
                hold.away = True
            self._holds.clear()
            self._gathered.clear()
        self._plan = plan
        self.changes += 1
        applied: Array = np.array(cell.value)
        run = int(applied[0, 0])
        begun = run != 0
        if not begun:
            # A random number that identifies this training in journals. It is at least 1, since 0 means that the
            # training has not started.
            run = applied[0, 0] = secrets.randbelow((1 << 48) - 1) + 1
            cell.value = applied
            cell.counts[cell.slot] += 1
        self._accounts = Accounts(self.name, self._task, run & 0x7FFFFFFF, self._log_dir, run=run)
        self.updates = int(applied[1, 0])
        if begun:
            # As long as no batch of an epoch is applied, the variable does not show that the epoch has started. Only
            # the ranges held by steps show it.
            newest = max((hold.work.epoch for hold in received), default=-1)
            self._accounts.restore(ledger_bytes(applied, plan, newest), self.updates)
            _log.warning("%s: the account of %r continues as of update %d", self._task, self.name, self.updates)
        self._seen = cell.updates
        for hold in received:
            hold.resumes_by = self._clock() + RESUME_S
            if hold.away or not self._accounts.confirm_range(hold.worker, hold.work, plan, self.updates):
                hold.away = True
                self._holds.pop(hold.key, None)
                self._gathered.pop(hold.key, None)

    def _load_after_promotion(self) -> None:
        """Loads the accounts, including the ranges that steps hold, if this replica was just promoted."""
        if self._seen is None and self._plan is not None:
            self._load(self._plan)

    # Backup ---------------------------------------------------------------------------------------------------------

    def share(self, lock: threading.RLock) -> None:
        """Does nothing: the ledger has used this lock from the start."""

    def state(self) -> ResourceState:
        if not self._place:
            # The state contains the variable's name, with which another process finds its own copy of the variable.
            self._place = next(place for place, cell in self._resources.cells().items() if cell is self._cell)
        plan = asdict(self._plan) if self._plan else None
        holds, gathered = ([hold.as_words() for hold in its.values()] for its in (self._holds, self._gathered))
        taken = [(*key, [hold and hold.as_words() for hold in its]) for key, its in self._taken.items()]
        return ResourceState((self.name, self._task, *self._place, plan, holds, gathered, taken))

    def install_state(self, state: ResourceState) -> None:
        *_, plan, holds, gathered, taken = state.words
        self._plan = Plan(**plan) if plan else None
        self._holds, self._gathered = (
            {hold.key: hold for hold in map(_Hold.of_words, its)} for its in (holds, gathered)
        )
        self._taken = {
            (session, number): [words and _Hold.of_words(words) for words in its] for session, number, its in taken
        }

    @classmethod
    def made_of(cls, state: ResourceState, resources: Resources) -> ExampleLedger:
        name, task, container, cell, *_ = state.words
        return cls(name, task, resources, resources.cell(container, cell))

    # Status -----------------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        """Returns the progress of epochs."""
        with self._condition:
            return str(self._accounts)


def ledger_of(resources: Resources, name: str) -> ExampleLedger:
    """Returns the ledger of the named examples.

    Raises:
      AbortedError: there is no ledger.
    """
    ledger = resources.find("", name, ExampleLedger)
    if ledger is None:
        raise AbortedError(f"no ranges of {name!r} were assigned here: the task was restarted")
    return ledger


def ledger_bytes(applied: Array, plan: Plan, newest: int = -1) -> bytes:
    """Encodes the variable of applied batches for `Ledger.from_bytes`. ``newest`` is the newest epoch of which a step
    holds a range; that epoch and the epoch before it are encoded as started even if none of their batches is
    applied."""
    run = int(applied[0, 0])
    seed = run & 0x7FFFFFFF
    # The epoch before the last may be incomplete; earlier ones are complete.
    last = max(int(applied[:, 1:].max()) - 1, newest)
    over, epochs = Intervals(), list[Any]()
    if last > 1:
        over.add(0, last - 1)
    for epoch in range(max(0, last - 1), last + 1):
        batches = np.flatnonzero(applied[epoch % 2, 1:] == epoch + 1).tolist()
        done = Intervals((at * plan.batch, min((at + 1) * plan.batch, plan.size)) for at in batches)
        if len(done) == plan.size:
            over.add(epoch, epoch + 1)
        else:
            epochs.append([epoch, {**asdict(plan), "seed": seed if plan.seed is None else plan.seed}, list(done), []])
    return json.dumps({"run": run, "seed": seed, "training": 0, "over": list(over), "epochs": epochs}).encode()
