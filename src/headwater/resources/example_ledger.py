"""The ledger of a graph's examples, on the ``ps`` that holds the variable of what is applied.

That variable is all that has to be kept: checkpoints and own states have it as they have the parameters, of the same
moment, and a ledger is made of it. It is int64 [2, batches + 1]. Column 1 + b says in row e % 2 that batch b of epoch e
is applied, as the number e + 1: an epoch begins when the second before it is over, so two rows are enough, and none
ever has to be cleared. Column 0 has the number that stands for the ledger (0: it has not begun), and how many updates
were accounted for.

A range belongs to the step that took it, for as long as that lasts on this task, whatever connections it outlives. The
update of that step and the account of its range happen under one lock, or neither does.

Another copy of the task has a copy of the variable, and hears which ranges belong to which steps. A ledger is made of
both where that copy goes on with the steps; how often ranges have failed begins at 0 then.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from headwater.accounting.accounts import Accounts
from headwater.accounting.intervals import Intervals
from headwater.accounting.ledger import Nothing, Plan, Work
from headwater.errors import AbortedError, DataLossError, FailedPreconditionError, OutOfRangeError
from headwater.resources.containers import Cell, Resources
from headwater.resources.host_context import RunningStep
from headwater.resources.kept import Kept, State, at_first

_log = logging.getLogger("headwater")

FOREVER: Final = 1 << 62
"""The last epoch of a program that names none."""

RESUME_S: Final = 60.0
"""How long workers that find no other range wait for a step of another copy of the task to go on here, in seconds."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """What a step asks for.

    Attributes:
      worker: its name.
      epochs: how many there are; 0: without end.
      plan: of each.
      patience_s: after how many seconds without any range left for it what others hold is handed out again; 0: never.
    """

    worker: str
    epochs: int
    plan: Plan
    patience_s: float = 0.0


@dataclass(kw_only=True, slots=True)
class _Hold:
    """A range that a step has.

    Attributes:
      worker, work: who has what.
      away: it was taken from it. Where no other has got it, it may go on.
      resumes_by: when it is taken from it at the latest, where the step has yet to go on here; None: it runs here.
    """

    worker: str
    work: Work
    away: bool = False
    resumes_by: float | None = None


class ExampleLedger(Kept):
    """Hands out ranges of examples to steps, and knows which are applied.

    Args:
      name: of the examples.
      task: full name of this task.
      resources: the task's; their lock is this ledger's, too.
      cell: the variable of what is applied.
      log_dir: folder of the journal; None: the one that the environment names.
      clock: gives seconds that only grow.
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
        self._name = name
        self._task = task
        self._log_dir = log_dir
        self._resources = resources
        self._cell = cell
        self._clock = clock
        self._condition = threading.Condition(resources.lock)
        self._accounts = Accounts(name, task, 0, log_dir="")
        self._seen: int | None = None  # updates of the variable as of which the accounts are
        self._update = 0
        self._holds: dict[tuple[str, int], _Hold] = {}
        self._plan: Plan | None = None
        self._place: tuple[str, ...] = ()  # of the variable: its container and name

    # Handing out ------------------------------------------------------------------------------------------------------

    def take(self, step: RunningStep, wish: Wish) -> tuple[Work, int]:
        """A range for a step, and the seed of its epoch's order. Waits while others hold all that is left.

        Raises:
          OutOfRangeError: all epochs are over.
          DataLossError: of what is left all was set aside.
          FailedPreconditionError: the variable has no value, or another worker has other arguments.
        """
        key = step.session, step.number
        offers: list[tuple[Work, int] | Nothing] = at_first(step, "offers", [])
        began = at_first(step, "began", self._clock())
        last = (wish.epochs or FOREVER) - 1

        def ready() -> bool:
            if offers and isinstance(offers[0], tuple):
                return True
            self._load(wish.plan)
            found = self._offer(wish, last)
            if found is Nothing.YET:
                self._take_back(self._is_left, "its step did not go on after another copy of the task was lost")
                if 0 < wish.patience_s < self._clock() - began:
                    self._take_back(lambda hold: True, f"others have waited {wish.patience_s:g} s for it")
                found = self._offer(wish, last)
            offers[:] = [found]
            return found is not Nothing.YET

        with self._condition:
            if key in self._holds:
                raise FailedPreconditionError(
                    None, None, f"a step takes two ranges of {self._name!r}: get_next() can be called once in a step"
                )
            step.wait_until(self._condition, ready, f"ranges of {self._name!r} that other workers have")
            self._accounts.flush()
            (found,) = offers
            if isinstance(found, tuple):
                self._holds[key] = _Hold(worker=wish.worker, work=found[0])
                self.changes += 1
                step.at_end(lambda: self.ended(*key))
                return found
            if found is Nothing.ASIDE:
                aside = self._accounts.set_aside(0, last)
                raise DataLossError(None, None, f"these ranges of {self._name!r} were set aside: {aside}")
            raise OutOfRangeError(None, None, f"End of sequence: all epochs of {self._name!r} are applied")

    def _offer(self, wish: Wish, last: int) -> tuple[Work, int] | Nothing:
        # The variable has two epochs that follow each other.
        last = min(last, self._accounts.first_open() + 1)
        return self._accounts.hand_out(wish.worker, 0, 0, last, wish.plan, None, self._update)

    def ended(self, session: str, number: int) -> bool:
        """Nothing of a step runs on this task any more; whether it still had a range."""
        with self._condition:
            hold = self._holds.get((session, number))
            if hold is None:
                return False
            self._take_back(lambda one: one is hold, "its step ended without an update")
            del self._holds[session, number]
            self.changes += 1
            return True

    def _is_left(self, hold: _Hold) -> bool:
        return hold.resumes_by is not None and hold.resumes_by < self._clock()

    def resumed(self, session: str, number: int) -> None:
        """A step that took its range on another copy of the task goes on here."""
        with self._condition:
            hold = self._holds.get((session, number))
            if hold is not None:
                hold.resumes_by = None

    def session_ended(self, session: str, reason: str) -> None:
        """No connection is left to the master of a session, or it is over."""
        with self._condition:
            mine = [hold for (its, _), hold in self._holds.items() if its == session]
            self._take_back(lambda hold: any(hold is one for one in mine), reason or "its session has ended")

    def forget_session(self, session: str) -> None:
        """A session is over for good."""
        self.session_ended(session, "its session has ended")

    def _take_back(self, these: Callable[[_Hold], bool], reason: str) -> None:
        for hold in self._holds.values():
            if not hold.away and these(hold):
                hold.away = True
                self.changes += 1
                self._accounts.failed(hold.worker, hold.work, reason)
                self._condition.notify_all()
        self._accounts.flush()

    # An update --------------------------------------------------------------------------------------------------------

    def admit(self, step: RunningStep) -> Callable[[], object]:
        """Says whether the update of a step may be made; called under the lock, just before it is.

        Returns:
          What is to be called when it is made, under the same lock.

        Raises:
          AbortedError: the step does not hold its range any more.
        """
        key = step.session, step.number
        if step.follows:  # the copy that has asked for it was told that it may
            return lambda: self._holds.pop(key, None)
        if self._seen is None and self._plan is not None:
            self._load(self._plan)
        hold = self._holds.get(key)
        current = self._seen == self._cell.updates
        if hold is not None and hold.away and current and self._accounts.reclaim(hold.worker, hold.work):
            hold.away = False
        if hold is None or hold.away or not current:
            raise AbortedError(
                None,
                None,
                f"the examples {hold.work if hold else 'of this step'} of {self._name!r} were handed out again: "
                "its update is not made",
            )

        def made() -> None:
            del self._holds[key]
            self.changes += 1
            self._seen = self._cell.updates
            self._update += 1
            self._accounts.give(hold.worker, [hold.work])
            self._accounts.applied(self._update)
            # Under the lock, so that no saved state has an update that the journal has not.
            self._accounts.flush()
            self._condition.notify_all()

        return made

    # What is applied --------------------------------------------------------------------------------------------------

    def _load(self, plan: Plan) -> None:
        """Follows the variable, where something else than an update has changed it: an initializer, or a restore."""
        cell = self._cell
        if cell.value is None:
            raise FailedPreconditionError(
                None,
                None,
                f"Attempting to use uninitialized value {cell.name}: run its initializer, or restore it, first",
            )
        if self._seen == cell.updates:
            return
        told = self._holds if self._seen is None else {}
        self._holds, self._plan = {}, plan
        self.changes += 1
        applied: Array = np.array(cell.value)
        run = int(applied[0, 0])
        begun = run != 0
        if not begun:
            run = applied[0, 0] = secrets.randbelow((1 << 48) - 1) + 1
            cell.value = applied
            cell.counts[cell.slot] += 1
        self._accounts = Accounts(self._name, self._task, run & 0x7FFFFFFF, self._log_dir, run=run)
        self._update = int(applied[1, 0])
        if begun:
            self._accounts.restore(ledger_bytes(applied, plan), self._update)
            _log.warning("%s: the account of %r goes on as of update %d", self._task, self._name, self._update)
        self._seen = cell.updates
        for key, hold in told.items():
            if not hold.away and self._accounts.hold(hold.worker, hold.work, plan, self._update):
                hold.resumes_by = self._clock() + RESUME_S
                self._holds[key] = hold

    # A second copy ----------------------------------------------------------------------------------------------------

    def share(self, lock: threading.RLock) -> None:
        """It has used that one from the beginning."""

    def state(self) -> State:
        if not self._place:
            self._place = next(place for place, cell in self._resources.cells().items() if cell is self._cell)
        holds = [(*key, hold.worker, *hold.work, hold.away) for key, hold in self._holds.items()]
        return State((self._name, self._task, *self._place, asdict(self._plan) if self._plan else None, holds))

    def take_state(self, state: State) -> None:
        *_, plan, holds = state.words
        self._plan = Plan(**plan) if plan else None
        self._holds = {
            (session, number): _Hold(worker=worker, work=Work(*work), away=away)
            for session, number, worker, *work, away in holds
        }

    @classmethod
    def made_of(cls, state: State, resources: Resources) -> ExampleLedger:
        name, task, container, cell, *_ = state.words
        return cls(name, task, resources, resources.cell(container, cell))

    # How it fares -----------------------------------------------------------------------------------------------------

    @property
    def updates(self) -> int:
        """How many updates were accounted for."""
        return self._update

    def __str__(self) -> str:
        """How far epochs are."""
        with self._condition:
            return str(self._accounts)


def ledger_bytes(applied: Array, plan: Plan) -> bytes:
    """What `Ledger.from_bytes` takes, of the variable that says what is applied."""
    run = int(applied[0, 0])
    seed = run & 0x7FFFFFFF
    last = int(applied[:, 1:].max()) - 1  # the epoch before may go on, too; those before that are over
    over, epochs = Intervals(), list[Any]()
    if last > 1:
        over.add(0, last - 1)
    for epoch in range(max(0, last - 1), last + 1):
        found = np.flatnonzero(applied[epoch % 2, 1:] == epoch + 1).tolist()
        done = Intervals((at * plan.batch, min((at + 1) * plan.batch, plan.size)) for at in found)
        if len(done) == plan.size:
            over.add(epoch, epoch + 1)
        else:
            epochs.append([epoch, {**asdict(plan), "seed": seed if plan.seed is None else plan.seed}, list(done), []])
    return json.dumps({"run": run, "seed": seed, "training": 0, "over": list(over), "epochs": epochs}).encode()
