"""The ledger of a graph's examples, on the ``ps`` that holds the variable of what is applied.

That variable is all that has to be kept: checkpoints and own states have it as they have the parameters, of the same
moment, and a ledger is made of it. It is int64 [2, batches + 1]. Column 1 + b says in row e % 2 that batch b of epoch e
is applied, as the number e + 1: an epoch begins when the second before it is over, so two rows are enough, and none
ever has to be cleared. Column 0 has the number that stands for the ledger (0: it has not begun), and how many updates
were accounted for.

A range belongs to the step that took it, for as long as that lasts on this task, whatever connections it outlives. The
update of that step and the account of its range happen under one lock, or neither does.

Another copy of the task has a copy of the variable, and hears which ranges belong to which steps, and which of them
were gathered and taken for an update. A ledger is made of all that where that copy goes on with the steps; how often
ranges have failed begins at 0 then.

Where gradients of several steps become one update, a range goes with its gradient: into the accumulator beside the
variable (*gathered*), from there to the step that takes the mean (*taken*), whose update and the account of all its
ranges happen under one lock. A gradient that the accumulator drops gives its range back. At the end of the data there
may be fewer gradients than an update wants: once no step can give another one, it is made of those that there are.
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
from headwater.graph.resources.kept import Kept, State, StillWaitsError, at_first
from headwater.ps.accounting.accounts import Accounts
from headwater.ps.accounting.intervals import Intervals
from headwater.ps.accounting.ledger import Nothing, Plan, Work

_log = logging.getLogger("headwater")

FOREVER: Final = 1 << 62
"""The last epoch of a program that names none."""

RESUME_S: Final = 60.0
"""How long workers that find no other range wait for a step of another copy of the task to go on here, in seconds."""

Array = np.ndarray[Any, Any]
_Key = tuple[str, int]  # session and number of a step


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


@dataclass(kw_only=True, slots=True, eq=False)
class _Hold:
    """A range that a step has, or the gradient that it has given.

    Attributes:
      worker, session, number, work: who has what, in which step.
      away: it was taken from it. Where no other has got it, it may go on.
      resumes_by: when it is taken from it at the latest, where the step has yet to go on here; None: it runs here.
      given: its step has given its gradient to all that gather some, or has ended.
      lost: the session of its step is gone.
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
        """What a frame's header can hold."""
        return self.worker, self.session, self.number, tuple(self.work), self.away, self.given, self.lost

    @classmethod
    def of_words(cls, words: Sequence[Any]) -> _Hold:
        """What `as_words` has given."""
        worker, session, number, work, away, given, lost = words
        return cls(worker=worker, session=session, number=number, work=Work(*work), away=away, given=given, lost=lost)


class GatheredRange:
    """A range whose gradient a step gives to an accumulator.

    The accumulator's lock is held in all methods; that of the ledger is taken within.

    Args:
      resources: of the task.
      examples: the name of those that the range is of.
      session, number: of the step that has it.
    """

    def __init__(self, resources: Resources, examples: str, session: str, number: int) -> None:
        self._resources = resources
        self._examples = examples
        self.key: _Key = session, number

    def as_words(self) -> tuple[object, ...]:
        """What the task's resources make the same of."""
        return self._examples, *self.key

    def accept(self, *, follows: bool = False) -> None:
        """The gradient is about to be added; ``follows`` says that it was where this is a copy of.

        Raises:
          AbortedError: the step does not hold its range any more: it must not be added.
        """
        ledger_of(self._resources, self._examples).gather(self.key, follows=follows)

    def drop(self) -> None:
        """The gradient is not part of any update, nor will be."""
        ledger = self._resources.find("", self._examples, ExampleLedger)
        if ledger is not None:  # else nothing of it is left
            ledger.drop(self.key)


class ExampleLedger(Kept):
    """Hands out ranges of examples to steps, and knows which are applied.

    Args:
      name: of the examples.
      task: full name of this task.
      resources: the task's; their lock is this ledger's, too.
      cell: the variable of what is applied.
      log_dir: folder of the journal; None: the one that the environment names.
      clock: gives seconds that only grow.

    Attributes:
      name: as given.
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
        self._seen: int | None = None  # updates of the variable as of which the accounts are
        self._update = 0
        self._holds: dict[_Key, _Hold] = {}
        self._gathered: dict[_Key, _Hold] = {}
        self._taken: dict[_Key, list[_Hold | None]] = {}  # None: the ledger has forgotten what the step had
        self._waiting: set[_Key] = set()
        self._plan: Plan | None = None
        self._place: tuple[str, ...] = ()  # of the variable: its container and name

    # Handing out ------------------------------------------------------------------------------------------------------

    def take(self, step: RunningStep, wish: Wish, starved: Callable[[], None] | None = None) -> tuple[Work, int]:
        """A range for a step, and the seed of its epoch's order. Waits while others hold all that is left.

        Args:
          step: that asks.
          wish: what for.
          starved: called without locks when no step can give another gradient before an update is made; see
            `is_starved`.

        Raises:
          OutOfRangeError: all epochs are over.
          DataLossError: of what is left all was set aside.
          FailedPreconditionError: the variable has no value, or another worker has other arguments.
        """
        key = step.session, step.number
        if key in self._holds:
            raise FailedPreconditionError(
                None, None, f"a step takes two ranges of {self.name!r}: get_next() can be called once in a step"
            )
        told: tuple[int, int] | None = None
        try:
            while True:
                found, told = self._wait_for_range(step, wish, told)
                if found is not Nothing.YET:
                    break
                if starved is not None:
                    starved()
        except StillWaitsError:
            raise
        except BaseException:
            self._waits_no_more(key)
            raise
        self._waits_no_more(key)
        last = (wish.epochs or FOREVER) - 1
        if isinstance(found, tuple):
            return found
        if found is Nothing.ASIDE:
            with self._condition:
                aside = self._accounts.set_aside(0, last)
            raise DataLossError(None, None, f"these ranges of {self.name!r} were set aside: {aside}")
        raise OutOfRangeError(None, None, f"End of sequence: all epochs of {self.name!r} are applied")

    def _waits_no_more(self, key: _Key) -> None:
        with self._condition:
            self._waiting.discard(key)

    def _wait_for_range(
        self, step: RunningStep, wish: Wish, told: tuple[int, int] | None
    ) -> tuple[tuple[Work, int] | Nothing, tuple[int, int] | None]:
        """A range, or why there is none; `Nothing.YET` where it is starved otherwise than was ``told``."""
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
                left = filter(self._is_left, self._out())
                self._take_back(left, "its step did not go on after another copy of the task was lost")
                if 0 < wish.patience_s < self._clock() - began:
                    self._take_back(self._out(), f"others have waited {wish.patience_s:g} s for it")
                found = self._offer(wish, last)
            if found is Nothing.YET:
                # Another task may lack the gradient of a worker that was lost while it sent it.
                lost = (hold for hold in self._out() if hold.lost)
                self._take_back(lost, "its worker was lost before its update was made")
                found = self._offer(wish, last)
            if found is Nothing.YET and key not in self._waiting:
                self._waiting.add(key)
                self._condition.notify_all()
            offers[:] = [found]
            return found is not Nothing.YET or (self._is_starved() and told != self._round())

        with self._condition:
            step.wait_until(self._condition, ready, f"ranges of {self.name!r} that other workers have")
            self._accounts.flush()
            (found,) = offers
            if isinstance(found, tuple):
                self._holds[key] = _Hold(worker=wish.worker, session=step.session, number=step.number, work=found[0])
                self.changes += 1
                step.at_end(lambda: self.ended(*key))
            return found, self._round()

    def _round(self) -> tuple[int, int]:
        return self._update, len(self._gathered)

    def _offer(self, wish: Wish, last: int) -> tuple[Work, int] | Nothing:
        # The variable has two epochs that follow each other.
        last = min(last, self._accounts.first_open() + 1)
        return self._accounts.hand_out(wish.worker, 0, 0, last, wish.plan, None, self._update)

    def ended(self, session: str, number: int) -> bool:
        """Nothing of a step runs on this task any more; whether another copy has to hear so."""
        key = session, number
        with self._condition:
            before = self.changes
            self._all_given(key)
            hold = self._holds.get(key)
            if hold is not None:
                self._take_back([hold], "its step ended without an update")
                del self._holds[key]
                self.changes += 1
            taken = self._taken.get(key)
            if taken is not None:
                self._take_back(filter(None, taken), "its update was not made")
                del self._taken[key]
                self.changes += 1
            return self.changes != before

    def _is_left(self, hold: _Hold) -> bool:
        return hold.resumes_by is not None and hold.resumes_by < self._clock()

    def resumed(self, session: str, number: int) -> None:
        """A step that took its range on another copy of the task goes on here."""
        with self._condition:
            key = session, number
            for hold in (self._holds.get(key), self._gathered.get(key), *self._taken.get(key, ())):
                if hold is not None:
                    hold.resumes_by = None

    def go_on_with(self, step: RunningStep) -> None:
        """A step that may have taken its range in another life of the task goes on here."""
        with self._condition:
            self._go_on()
            self.resumed(step.session, step.number)
            step.at_end(lambda: self.ended(step.session, step.number))

    def session_ended(self, session: str, reason: str) -> None:
        """No connection is left to the master of a session, or it is over."""
        with self._condition:
            mine = [hold for (its, _), hold in self._holds.items() if its == session]
            mine += [hold for (its, _), taken in self._taken.items() if its == session for hold in taken if hold]
            self._take_back(mine, reason or "its session has ended")
            for hold in self._all_holds():
                if hold.session == session:
                    hold.lost = hold.given = True
                    self.changes += 1
            self._condition.notify_all()

    def forget_session(self, session: str) -> None:
        """A session is over for good."""
        self.session_ended(session, "its session has ended")

    def _all_holds(self) -> list[_Hold]:
        return [*self._holds.values(), *self._gathered.values(), *self._all_taken()]

    def _all_taken(self) -> list[_Hold]:
        return [hold for holds in self._taken.values() for hold in holds if hold is not None]

    def _out(self) -> list[_Hold]:
        """What steps hold, or have taken for an update that is not made yet."""
        return [*self._holds.values(), *self._all_taken()]

    def _take_back(self, holds: Iterable[_Hold], reason: str) -> None:
        """Hands out again some of what is `_out`."""
        for hold in holds:
            if not hold.away:
                hold.away = True
                self.changes += 1
                self._accounts.failed(hold.worker, hold.work, reason)
                self._condition.notify_all()
        self._accounts.flush()

    # Gradients that are gathered --------------------------------------------------------------------------------------

    def gather(self, key: _Key, *, follows: bool) -> None:
        """The gradient of a step is about to be added to an accumulator, see `GatheredRange.accept`."""
        with self._condition:
            if not follows:
                self._go_on()
                self._require(self._holds.get(key))
            hold = self._holds.pop(key, None)
            if hold is not None:
                self._gathered[key] = hold
            self.changes += 1
            self._condition.notify_all()

    def drop(self, key: _Key) -> None:
        """The gradient of a step is not part of any update, nor will be."""
        with self._condition:
            hold = self._gathered.pop(key, None) or self._holds.pop(key, None)
            if hold is None:
                return
            if not hold.away:
                self._accounts.failed(hold.worker, hold.work, "")
                self._accounts.flush()
            self.changes += 1
            self._condition.notify_all()

    def given(self, step: RunningStep) -> None:
        """A step has given its gradient to all that gather some."""
        with self._condition:
            self._all_given((step.session, step.number))

    def _all_given(self, key: _Key) -> None:
        hold = self._gathered.get(key)
        if hold is not None and not hold.given:
            hold.given = True
            self.changes += 1
            self._condition.notify_all()

    def taken(self, step: RunningStep, ranges: Sequence[GatheredRange]) -> Array:
        """A step has taken the mean of gradients, to make an update; their ranges, as int64 [at least 1, 3], of which
        some may be there more than once."""
        key = step.session, step.number
        with self._condition:
            if key not in self._taken:
                step.at_end(lambda: self.ended(*key))
            # Also of one whose range is forgotten, as the variable was restored: the mean has its gradient.
            holds = self._taken[key] = [self._gathered.pop(one.key, None) for one in ranges]
            self.changes += 1
            self._condition.notify_all()
        works = [hold.work for hold in holds if hold is not None] or [Work(0, 0, 0)]
        # A power of two, so that few different shapes have to be compiled.
        works += works[-1:] * ((1 << (len(works) - 1).bit_length()) - len(works))
        return np.array(works, np.int64)

    def is_starved(self) -> bool:
        """Whether gradients are gathered, and none can come besides before an update is made of them: workers wait for
        ranges, and none is held by another."""
        with self._condition:
            return self._is_starved()

    def _is_starved(self) -> bool:
        return (
            bool(self._waiting and self._gathered)
            and all(hold.given or self._is_left(hold) for hold in self._gathered.values())
            and all(hold.away for hold in self._holds.values())
        )

    def wait_for_round(self, step: RunningStep, required: int) -> int:
        """Waits for ``required`` gradients, or for fewer where no other can come; how many an update is to be made
        of."""
        with self._condition:
            step.wait_until(
                self._condition,
                lambda: len(self._gathered) >= required or self._is_starved(),
                f"gradients of {self.name!r} ({required} needed)",
            )
            return min(required, len(self._gathered))

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
        self._go_on()
        hold = self._holds.get(key)
        self._require(hold)
        assert hold is not None

        def made() -> None:
            del self._holds[key]
            self._account([hold])

        return made

    def admit_round(self, step: RunningStep) -> Callable[[], object]:
        """As `admit`, for the ranges that a step has `taken`."""
        key = step.session, step.number
        if step.follows:
            return lambda: self._taken.pop(key, None)
        self._go_on()
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
        """Raises AbortedError where a range is not held any more, by its step or the gradient that it has given."""
        current = self._seen == self._cell.updates
        if hold is not None and hold.away and current and self._accounts.reclaim(hold.worker, hold.work):
            hold.away = False
        if hold is None or hold.away or not current:
            raise AbortedError(
                None,
                None,
                f"the examples {hold.work if hold else 'of this step'} of {self.name!r} were handed out again: "
                "its update is not made",
            )

    def _account(self, holds: Sequence[_Hold]) -> None:
        """The update of these ranges is made. The lock is held."""
        self.changes += 1
        self._seen = self._cell.updates
        self._update += 1
        for hold in holds:
            self._accounts.give(hold.worker, [hold.work])
        self._accounts.applied(self._update)
        # Under the lock, so that no saved state has an update that the journal has not.
        self._accounts.flush()
        self._condition.notify_all()

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
        told = self._all_holds() if self._seen is None else []
        if not told:
            for hold in self._all_taken():
                hold.away = True
            self._holds.clear()
            self._gathered.clear()
        self._plan = plan
        self.changes += 1
        applied: Array = np.array(cell.value)
        run = int(applied[0, 0])
        begun = run != 0
        if not begun:
            run = applied[0, 0] = secrets.randbelow((1 << 48) - 1) + 1
            cell.value = applied
            cell.counts[cell.slot] += 1
        self._accounts = Accounts(self.name, self._task, run & 0x7FFFFFFF, self._log_dir, run=run)
        self._update = int(applied[1, 0])
        if begun:
            newest = max((hold.work.epoch for hold in told), default=-1)
            self._accounts.restore(ledger_bytes(applied, plan, newest), self._update)
            _log.warning("%s: the account of %r goes on as of update %d", self._task, self.name, self._update)
        self._seen = cell.updates
        for hold in told:
            hold.resumes_by = self._clock() + RESUME_S
            if hold.away or not self._accounts.hold(hold.worker, hold.work, plan, self._update):
                hold.away = True
                self._holds.pop(hold.key, None)
                self._gathered.pop(hold.key, None)

    def _go_on(self) -> None:
        """Where another copy of the task was lost, this one goes on with the ranges that steps have."""
        if self._seen is None and self._plan is not None:
            self._load(self._plan)

    # A second copy ----------------------------------------------------------------------------------------------------

    def share(self, lock: threading.RLock) -> None:
        """It has used that one from the beginning."""

    def state(self) -> State:
        if not self._place:
            self._place = next(place for place, cell in self._resources.cells().items() if cell is self._cell)
        plan = asdict(self._plan) if self._plan else None
        holds, gathered = ([hold.as_words() for hold in its.values()] for its in (self._holds, self._gathered))
        taken = [(*key, [hold and hold.as_words() for hold in its]) for key, its in self._taken.items()]
        return State((self.name, self._task, *self._place, plan, holds, gathered, taken))

    def take_state(self, state: State) -> None:
        *_, plan, holds, gathered, taken = state.words
        self._plan = Plan(**plan) if plan else None
        self._holds, self._gathered = (
            {hold.key: hold for hold in map(_Hold.of_words, its)} for its in (holds, gathered)
        )
        self._taken = {
            (session, number): [words and _Hold.of_words(words) for words in its] for session, number, its in taken
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


def ledger_of(resources: Resources, name: str) -> ExampleLedger:
    """The ledger of some examples.

    Raises:
      AbortedError: none of them were handed out here.
    """
    ledger = resources.find("", name, ExampleLedger)
    if ledger is None:
        raise AbortedError(None, None, f"no ranges of {name!r} were handed out here: the task was started anew")
    return ledger


def ledger_bytes(applied: Array, plan: Plan, newest: int = -1) -> bytes:
    """What `Ledger.from_bytes` takes, of the variable that says what is applied, and the newest epoch of which a step
    has a range: the one before has begun then, though none of it may be applied."""
    run = int(applied[0, 0])
    seed = run & 0x7FFFFFFF
    # The epoch before may go on, too; those before that are over.
    last = max(int(applied[:, 1:].max()) - 1, newest)
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
