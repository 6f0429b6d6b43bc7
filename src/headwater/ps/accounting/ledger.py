"""Who has which examples of an epoch, and which are done. Pure: no threads, no clocks; the first ``ps`` keeps it.

An epoch has the numbers from 0 up to its size: places in the epoch's order, not examples. Workers are handed out
*ranges* of them, most often a batch. A range is in one state at a time::

    fresh -> held -> gathered -> done
               |         |
               +----+----+
                    v
                 waiting -> held -> ...      or, when it was tried too often: aside

*Held*: a worker computes its gradient. *Gathered*: the gradient was given, and waits with others to become an update.
*Done*: that update is applied. A worker that is lost, or whose gradient is dropped, has its ranges back in *waiting*.
A range that was lost or failed as often as its plan allows is *set aside*: the epoch is never over then.

Done ranges merge, so memory grows with the number of workers, not with that of examples.
"""

from __future__ import annotations

import enum
import json
from bisect import insort
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from headwater.errors import FailedPreconditionError, InvalidArgumentError
from headwater.ps.accounting.intervals import Intervals, Span

if TYPE_CHECKING:
    from headwater.data.io.json_types import JsonObject

#: How much is kept of why a range has failed, in letters: it goes to other tasks with all that is known.
_REASON: Final = 500


class Work(NamedTuple):
    """A range of an epoch: the places from ``start`` on, up to but without ``stop``."""

    epoch: int
    start: int
    stop: int

    def __str__(self) -> str:
        return f"[{self.start}, {self.stop}) of epoch {self.epoch}"


class Nothing(enum.Enum):
    """Why there is no range for a worker: others hold what is left; all is done; or ranges were set aside."""

    YET = enum.auto()
    OVER = enum.auto()
    ASIDE = enum.auto()


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How an epoch is divided. All workers must say the same.

    Attributes:
      size: number of examples.
      batch: most examples in a range; ranges do not go over the end of a batch.
      tries: how often a range may fail, or be lost with its worker, before it is set aside.
      shuffle: whether each epoch has an order of its own.
      seed: of these orders; None: that of the ledger.
      unit: what is counted: ``"examples"``; ``"places"`` of an order of more examples, of which the epoch is the first
        part; ``"batches"``, where examples cannot be told apart; or ``"parts"`` of these, where workers share each:
        all have equally many, whatever examples they have.
    """

    size: int
    batch: int
    tries: int = 3
    shuffle: bool = True
    seed: int | None = None
    unit: str = "examples"

    def __post_init__(self) -> None:
        for name in ("size", "batch", "tries"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be a whole number, not {value!r}")
            if value < 1:
                raise ValueError(f"{name} must be at least 1, but is {value}")
        if self.seed is not None and self.seed < 0:
            raise ValueError(f"seed must not be negative, but is {self.seed}")


class Given(NamedTuple):
    """A range whose gradient became part of an update, and whose worker that was."""

    worker: str
    work: Work


class Back(NamedTuple):
    """A range that ``worker`` does not have any more: why, after how many tries, and whether it is set aside."""

    worker: str
    work: Work
    tries: int
    aside: bool
    reason: str


class Applied(NamedTuple):
    """What an update has done: its ranges, and the epochs that are over with it."""

    given: Sequence[Given]
    over: Sequence[int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Count:
    """How far an epoch is, in examples.

    Attributes:
      epoch: which.
      unit: what is counted.
      size: how many it has.
      done: applied.
      out: handed out, and not applied.
      waiting: not handed out, or given back.
      aside: set aside.
    """

    epoch: int
    unit: str
    size: int
    done: int
    out: int
    waiting: int
    aside: int

    def __str__(self) -> str:
        aside = f", {self.aside} set aside" if self.aside else ""
        return (
            f"epoch {self.epoch}: {self.done} of {self.size} {self.unit} done, {self.out} handed out, "
            f"{self.waiting} waiting{aside}"
        )


class _Piece(NamedTuple):
    """A range that waits, and how often it failed."""

    start: int
    stop: int
    tries: int


@dataclass(kw_only=True, slots=True)
class _Epoch:
    """What is known of an epoch that is not over.

    Attributes:
      plan: with its seed.
      fresh: places from here on were never handed out.
      waiting: pieces before that, by place.
      done: places whose examples are applied.
      aside: ranges that failed too often, with the latest reason.
      out: places that are held or gathered.
    """

    plan: Plan
    fresh: int = 0
    waiting: list[_Piece] = field(default_factory=list[_Piece])
    done: Intervals = field(default_factory=Intervals)
    aside: dict[Span, str] = field(default_factory=dict[Span, str])
    out: int = 0

    def take(self, share: tuple[int, int] | None) -> _Piece | None:
        """The next range, within one batch; of that, the part ``share`` = (number, of how many) where it is divided."""
        plan = self.plan
        piece = self.waiting[0] if self.waiting else _Piece(self.fresh, plan.size, 0)
        if piece.start >= plan.size:
            return None
        begin = piece.start - piece.start % plan.batch
        stop = min(piece.stop, begin + plan.batch)
        if share is not None:
            rows, (number, count) = min(plan.size, begin + plan.batch) - begin, share
            stop = min(stop, piece.start + max(1, rows * (number + 1) // count - rows * number // count))
        if not self.waiting:
            self.fresh = stop
        elif stop < piece.stop:
            self.waiting[0] = piece._replace(start=stop)
        else:
            del self.waiting[0]
        self.out += stop - piece.start
        return piece._replace(stop=stop)

    def cut(self, start: int, stop: int) -> bool:
        """Takes these places, which are of one batch; False where not all of them wait."""
        if start >= self.fresh:
            left = [(self.fresh, start)]
            self.fresh = stop
        else:
            piece = next((one for one in self.waiting if one.start <= start and stop <= one.stop), None)
            if piece is None:
                return False
            self.waiting.remove(piece)
            left = [(piece.start, start), (stop, piece.stop)]
        for first, last in left:
            if first < last:
                insort(self.waiting, _Piece(first, last, 0))
        self.out += stop - start
        return True

    def count(self, epoch: int) -> Count:
        done, size, aside = len(self.done), self.plan.size, sum(stop - start for start, stop in self.aside)
        return Count(
            epoch=epoch,
            unit=self.plan.unit,
            size=size,
            done=done,
            out=self.out,
            waiting=size - done - self.out - aside,
            aside=aside,
        )


class Ledger:
    """The ranges of a training.

    Args:
      run: a number that stands for this ledger, also after it was restored.
      seed: of epochs whose plan has none.
      training: number of the training.

    Attributes:
      run, seed, training: the same.
    """

    def __init__(self, *, run: int, seed: int, training: int = 0) -> None:
        self.run: int = run
        self.seed: int = seed
        self.training: int = training
        self._over = Intervals()
        self._epochs: dict[int, _Epoch] = {}
        self._held: dict[str, dict[Work, int]] = {}
        self._gathered: list[tuple[Given, int]] = []
        #: What each worker has given last, gathered or not.
        self._given_last: dict[str, Sequence[Work]] = {}
        self._away: dict[str, list[Work]] = {}

    # Handing out ------------------------------------------------------------------------------------------------------

    def hand_out(
        self, worker: str, first: int, last: int, plan: Plan, share: tuple[int, int] | None = None
    ) -> Work | Nothing:
        """The next range for a worker, or why there is none.

        Args:
          worker: its name.
          first, last: the epochs that it goes through. One begins when the one before is handed out, but not before
            the second before is over. One that has not begun when a later one has counts as over.
          plan: of these epochs.
          share: the part of a batch that is this worker's, as (number, of how many); None: all of it.

        Raises:
          FailedPreconditionError: another worker said that the epoch has another plan.
        """
        known: _Epoch | None = None
        for epoch in self._not_over(first, last):
            known = self._open(worker, epoch, plan)
            piece = known.take(share)
            if piece is not None:
                work = Work(epoch, piece.start, piece.stop)
                self._held.setdefault(worker, {})[work] = piece.tries
                return work
            if known.aside and not known.out:
                return Nothing.ASIDE
        return Nothing.YET if known else Nothing.OVER

    def first_open(self) -> int:
        """The first epoch that is not over."""
        return self._over.from_here(0)

    def has_work(self, first: int, last: int) -> bool:
        """Whether it is of use to ask for a range: there is one, or there will be none."""
        epochs = self._not_over(first, last)
        for epoch in epochs:
            known = self._epochs.get(epoch)
            if known is None or known.waiting or known.fresh < known.plan.size or (known.aside and not known.out):
                return True
        return not epochs

    def _not_over(self, first: int, last: int) -> list[int]:
        """The first two of these epochs that are not over, without those that were passed over."""
        begun = max(self._over.end - 1, max(self._epochs, default=-1))
        found: list[int] = []
        epoch = self._over.from_here(first)
        while epoch <= last and len(found) < 2:
            if epoch in self._epochs or epoch > begun:
                found.append(epoch)
            epoch = self._over.from_here(epoch + 1)
        return found

    def _open(self, worker: str, epoch: int, plan: Plan) -> _Epoch:
        known = self._epochs.get(epoch)
        if known is None:
            seed = self.seed if plan.seed is None else plan.seed
            known = self._epochs[epoch] = _Epoch(plan=replace(plan, seed=seed))
            return known
        differs = [
            f"{one.name}={getattr(plan, one.name)!r} instead of {getattr(known.plan, one.name)!r}"
            for one in fields(Plan)
            if getattr(plan, one.name) != getattr(known.plan, one.name)
            and (one.name != "seed" or plan.seed is not None)
        ]
        if differs:
            raise FailedPreconditionError(
                None,
                None,
                f"{worker} goes through epoch {epoch} with {', '.join(differs)}: all workers must have the same data",
            )
        return known

    def plans(self) -> dict[int, Plan]:
        """The plan, with its seed, of each epoch that began and is not over."""
        return {epoch: known.plan for epoch, known in self._epochs.items()}

    def set_aside(self, first: int, last: int) -> list[tuple[Work, str]]:
        """The ranges of some epochs that were set aside, and why."""
        return [
            (Work(epoch, *span), reason)
            for epoch, known in sorted(self._epochs.items())
            if first <= epoch <= last
            for span, reason in sorted(known.aside.items())
        ]

    def holds(self, worker: str, work: Work) -> bool:
        """Whether a worker has a range."""
        return work in self._held.get(worker, ())

    def holders(self) -> list[str]:
        """The workers that have ranges."""
        return sorted(worker for worker, held in self._held.items() if held)

    # What becomes of a range ------------------------------------------------------------------------------------------

    def give(self, worker: str, works: Sequence[Work]) -> bool:
        """A worker gives the gradient of ranges that it holds, which waits to become part of an update.

        Returns:
          False where it does not hold all of them, any more or ever: then the gradient must not be applied, and what
          it does hold is handed out again.
        """
        held = self._held.get(worker, {})
        if len(set(works)) < len(works) or not all(work in held for work in works):
            for work in set(works) & held.keys():
                self._put_back(worker, work, held.pop(work))
            return False
        self._gathered += [(Given(worker, work), held.pop(work)) for work in works]
        self._given_last[worker] = works
        return True

    def applied(self) -> Applied:
        """What was gathered is part of an update now: it is done."""
        given = [one for one, _ in self._gathered]
        self._gathered.clear()
        for _, work in given:
            known = self._epochs[work.epoch]
            known.done.add(work.start, work.stop)
            known.out -= work.stop - work.start
        over = [
            epoch for epoch in {work.epoch for _, work in given} if len(self._epochs[epoch].done) == self._size(epoch)
        ]
        for epoch in over:
            del self._epochs[epoch]
            self._over.add(epoch, epoch + 1)
        return Applied(given, sorted(over))

    def _size(self, epoch: int) -> int:
        return self._epochs[epoch].plan.size

    def dropped(self, worker: str, works: Sequence[Work]) -> None:
        """The gradient of ranges that were just given came too late. They are handed out again."""
        for work in works:
            at = next(at for at, (given, _) in enumerate(self._gathered) if given == (worker, work))
            _, tries = self._gathered.pop(at)
            self._put_back(worker, work, tries)

    def spoiled(self, reason: str) -> list[Back]:
        """The update of what was gathered could not be made."""
        gathered, self._gathered = self._gathered, []
        return [self._put_back(worker, work, tries + 1, reason) for (worker, work), tries in gathered]

    def failed(self, worker: str, work: Work, reason: str) -> list[Back]:
        """A worker gives a range back; with a ``reason`` where it could not do it, which counts as a try."""
        tries = self._held.get(worker, {}).pop(work, None)
        return [] if tries is None else [self._put_back(worker, work, tries + bool(reason), reason)]

    def left(self, worker: str, reason: str) -> list[Back]:
        """A worker is gone; with a ``reason`` where it was lost, which counts as a try of what it held.

        What it has given stays gathered.
        """
        held = self._held.pop(worker, {})
        if reason and held:
            self._away[worker] = list(held)
        return [self._put_back(worker, work, tries + bool(reason), reason) for work, tries in held.items()]

    def back(self, worker: str) -> None:
        """A worker that was taken for lost goes on: it holds what it held, as far as no other worker got it."""
        for work in self._away.pop(worker, ()):
            self.reclaim(worker, work)

    def reclaim(self, worker: str, work: Work) -> bool:
        """A worker goes on with a range that was taken from it; whether it may, for no other has got it."""
        known = self._epochs.get(work.epoch)
        if known is None:
            return False
        found = next((one for one in known.waiting if one[:2] == work[1:]), None)
        if found is not None:
            known.waiting.remove(found)
        elif work[1:] in known.aside:
            del known.aside[work[1:]]
            found = _Piece(work.start, work.stop, known.plan.tries)
        else:
            return False
        known.out += work.stop - work.start
        self._held.setdefault(worker, {})[work] = found.tries - 1
        return True

    def hold(self, worker: str, work: Work, plan: Plan) -> bool:
        """A worker goes on with a range that another ledger of this training has handed out; whether it may.

        Raises:
          FailedPreconditionError: as `hand_out`.
        """
        if self._over.from_here(work.epoch) != work.epoch or not self._open(worker, work.epoch, plan).cut(*work[1:]):
            return False
        self._held.setdefault(worker, {})[work] = 0
        return True

    def begun_anew(self, worker: str) -> list[Back]:
        """A worker's program was started anew: it does not come back for what it held."""
        backs = self.left(worker, "its program was started anew")
        self._away.pop(worker, None)
        return backs

    def _put_back(self, worker: str, work: Work, tries: int, reason: str = "") -> Back:
        known = self._epochs[work.epoch]
        known.out -= work.stop - work.start
        aside = tries >= known.plan.tries
        if aside:
            known.aside[work.start, work.stop] = f"{reason[:_REASON]} ({worker})"
        else:
            insort(known.waiting, _Piece(work.start, work.stop, tries))
        return Back(worker, work, tries, aside, reason)

    # What it knows ----------------------------------------------------------------------------------------------------

    def counts(self) -> list[Count]:
        """How far each epoch is that began and is not over."""
        return [known.count(epoch) for epoch, known in sorted(self._epochs.items())]

    def __str__(self) -> str:
        ended = [
            f"epochs {start} to {stop - 1} done" if stop - start > 1 else f"epoch {start} done"
            for start, stop in self._over
        ]
        return "; ".join([*ended[-1:], *map(str, self.counts())])

    def to_bytes(self, again: Collection[str] | None = None) -> bytes:
        """What a ledger can be made of that goes on in the place of this one.

        Args:
          again: workers that bring the gradient again which they gave last, and which is gathered here: the other
            ledger has them hold its ranges, and all that this one has handed out. What they gave before, as in a
            former life, they do not bring. None: what is done and what is set aside is all that it has, and all else
            is handed out again.
        """
        epochs = [
            [epoch, asdict(known.plan), list(known.done), [[*span, reason] for span, reason in known.aside.items()]]
            for epoch, known in self._epochs.items()
        ]
        state = {"run": self.run, "seed": self.seed, "training": self.training, "over": list(self._over)}
        hands = {} if again is None else {"hands": self._hands(again)}
        return json.dumps({**state, "epochs": epochs, **hands}, separators=(",", ":")).encode()

    def _hands(self, again: Collection[str]) -> tuple[list[Any], list[Any], list[Any]]:
        """What workers hold, by worker as (epoch, start, stop, tries); what those that are away have held; and of each
        epoch from where on it was never handed out, and what waits before that."""
        held = {worker: dict(its) for worker, its in self._held.items() if its}
        waiting = {epoch: list(known.waiting) for epoch, known in self._epochs.items()}
        for (worker, work), tries in self._gathered:
            if worker in again and work in self._given_last[worker]:
                held.setdefault(worker, {})[work] = tries
            else:
                insort(waiting[work.epoch], _Piece(work.start, work.stop, tries))
        return (
            [(worker, [(*work, tries) for work, tries in its.items()]) for worker, its in held.items()],
            list(self._away.items()),
            [(epoch, known.fresh, waiting[epoch]) for epoch, known in self._epochs.items()],
        )

    @staticmethod
    def from_bytes(data: bytes) -> Ledger:
        """What `to_bytes` wrote.

        Raises:
          InvalidArgumentError: it is something else.
        """
        try:
            state: JsonObject = json.loads(data)
            made = Ledger(run=int(state["run"]), seed=int(state["seed"]), training=int(state["training"]))
            for start, stop in _spans(state["over"]):
                made._over.add(start, stop)
            for epoch, plan, done, aside in state["epochs"]:
                made._epochs[int(epoch)] = _restored(Plan(**plan), list(_spans(done)), aside)
            made._take_hands(*state.get("hands", ((), (), ())))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise InvalidArgumentError(None, None, f"this is no ledger of examples: {error}") from error
        return made

    def _take_hands(self, held: Iterable[Any], away: Iterable[Any], epochs: Iterable[Any]) -> None:
        """Goes on with what `_hands` has said of another ledger."""
        out: dict[int, list[Span]] = {}
        for worker, works in held:
            for epoch, start, stop, tries in works:
                self._held.setdefault(str(worker), {})[Work(int(epoch), int(start), int(stop))] = int(tries)
                out.setdefault(epoch, []).append((start, stop))
        self._away = {str(worker): [Work(*map(int, work)) for work in works] for worker, works in away}
        for epoch, fresh, waiting in epochs:
            known, its = self._epochs[epoch], list(_spans(out.pop(epoch, ())))
            known.fresh, known.waiting = int(fresh), sorted(_Piece(*map(int, piece)) for piece in waiting)
            known.out = sum(stop - start for start, stop in its)
            spans = [*known.done, *known.aside, *its, *_spans(piece[:2] for piece in known.waiting)]
            every = Intervals(spans)
            if not sum(stop - start for start, stop in spans) == len(every) == every.end == fresh <= known.plan.size:
                raise ValueError(f"ranges of epoch {epoch} lie upon each other, or some are missing up to {fresh}")
        if out:
            raise ValueError(f"ranges of epochs {sorted(out)} are held, which have not begun")


def _restored(plan: Plan, done: Sequence[Span], aside: Sequence[tuple[int, int, str]]) -> _Epoch:
    spans = list(_spans((start, stop) for start, stop, _ in aside))
    known = Intervals([*done, *spans])
    if known.end > plan.size or len(known) != len(Intervals(done)) + len(Intervals(spans)):
        raise ValueError(f"ranges go beyond {plan.size} or lie upon each other")
    return _Epoch(
        plan=plan,
        fresh=known.end,
        waiting=[_Piece(start, stop, 0) for start, stop in known.gaps(0, known.end)],
        done=Intervals(done),
        aside={span: str(reason) for span, (_, _, reason) in zip(spans, aside, strict=True)},
    )


def _spans(values: Iterable[Any]) -> Iterator[Span]:
    for start, stop in values:
        if not 0 <= start < stop:
            raise ValueError(f"[{start}, {stop}) is no range")
        yield int(start), int(stop)
