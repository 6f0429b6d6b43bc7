"""Record of the examples of an epoch, on the first ``ps``: assigned, gathered, applied. Pure: no threads, no clocks.

The ledger records positions in the order of an epoch, from 0 up to its size, not examples. It assigns *ranges* of
positions to workers, usually a batch. A range is in one state at a time::

    fresh -> held -> gathered -> done
               |         |
               +----+----+
                    v
                 waiting -> held -> ...      or, after too many tries: aside

*Fresh*: the range was never assigned. *Held*: a worker computes its gradient. *Gathered*: the gradient was pushed, and
is part of the next update. *Done*: this update is applied. If a worker is lost, or its gradient is dropped, its ranges
return to *waiting*. A range that was lost or failed as often as its plan allows is *set aside*: it is not assigned
again, so its epoch cannot be completed.

Done ranges are merged, so memory grows with the number of workers, not with the number of examples.
"""

from __future__ import annotations

import enum
import json
from bisect import insort
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from headwater.errors import FailedPreconditionError, InvalidArgumentError
from headwater.ps.accounting.intervals import Intervals, Span

if TYPE_CHECKING:
    from headwater.data.io.json_types import JsonObject

_encode_json: Final = json.JSONEncoder(separators=(",", ":")).encode
#: Maximum length of the reason of a failed range, in characters: it is sent to other tasks with the whole ledger.
_REASON: Final = 500


class Work(NamedTuple):
    """A range of an epoch: the positions from ``start`` up to, but excluding, ``stop``."""

    epoch: int
    start: int
    stop: int

    def __str__(self) -> str:
        return f"[{self.start}, {self.stop}) of epoch {self.epoch}"


class Nothing(enum.Enum):
    """Reason why a worker gets no range: other workers hold the remaining ranges, all ranges are done, or some were set
    aside."""

    YET = enum.auto()
    OVER = enum.auto()
    ASIDE = enum.auto()


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Division of an epoch into ranges. All workers must use the same plan.

    Attributes:
      size: number of examples.
      batch: maximum number of examples in a range; ranges do not cross the end of a batch.
      tries: number of failed attempts after which a range is set aside. An attempt fails when the worker reports an
        error or is lost.
      shuffle: whether each epoch has a different, random order.
      seed: the seed for these orders; None: the ledger's seed.
      unit: the meaning of a position. ``"examples"``: an example. ``"places"``: a place in the order of the examples,
          if an epoch uses only the first places; the examples at a place differ between epochs. ``"batches"``: a batch,
          if single examples cannot be identified. ``"parts"``: a part of a batch, if workers share each batch; every
          worker gets the same number of parts.
      in_turn: whether a batch is assigned only after all examples before it were applied, because each update uses
        exactly one batch.
    """

    size: int
    batch: int
    tries: int = 3
    shuffle: bool = True
    seed: int | None = None
    unit: str = "examples"
    in_turn: bool = False

    def __post_init__(self) -> None:
        for name in ("size", "batch", "tries"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be a whole number, not {value!r}")
            if value < 1:
                raise ValueError(f"{name} must be at least 1, but is {value}")
        if self.seed is not None and self.seed < 0:
            raise ValueError(f"seed must not be negative, but is {self.seed}")

    def settings(self) -> dict[str, object]:
        """Returns the settings by name."""
        return {setting.name: getattr(self, setting.name) for setting in fields(self)}

    def batch_of(self, work: Work) -> Work:
        """Returns the batch of which a range is a part."""
        start = work.start - work.start % self.batch
        return Work(work.epoch, start, min(self.size, start + self.batch))


class AppliedRange(NamedTuple):
    """A range whose gradient became part of an update, and its worker."""

    worker: str
    work: Work


class ReturnedRange(NamedTuple):
    """A range taken back from ``worker``: the number of tries, whether it is set aside, and the reason."""

    worker: str
    work: Work
    tries: int
    aside: bool
    reason: str


class Applied(NamedTuple):
    """The effect of an update: its ranges, and the epochs that it completed."""

    ranges: Sequence[AppliedRange]
    over: Sequence[int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Count:
    """Progress of an epoch.

    Attributes:
      epoch: the number of the epoch.
      unit: unit of counting, see `Plan`.
      size: total number.
      done: number applied.
      out: number assigned and not applied.
      waiting: number not assigned, or returned.
      aside: number set aside.
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
            f"epoch {self.epoch}: {self.done} of {self.size} {self.unit} done, {self.out} assigned, "
            f"{self.waiting} waiting{aside}"
        )


class _Piece(NamedTuple):
    """A waiting range, and the number of its failures."""

    start: int
    stop: int
    tries: int


@dataclass(kw_only=True, slots=True)
class _Epoch:
    """State of an epoch that is not over.

    Attributes:
      plan: its plan, with a seed.
      fresh: positions from here on were never assigned.
      waiting: the waiting ranges before position ``fresh``, by position.
      done: positions whose examples are applied.
      aside: ranges that failed too often, with the latest reason.
      out: number of positions that are held or gathered.
    """

    plan: Plan
    fresh: int = 0
    waiting: list[_Piece] = field(default_factory=list[_Piece])
    done: Intervals = field(default_factory=Intervals)
    aside: dict[Span, str] = field(default_factory=dict[Span, str])
    out: int = 0

    def assign(self, share: tuple[int, int] | None, *, joins: bool = False) -> _Piece | None:
        """Assigns the next range within one batch; returns None if no range is left.

        ``share``, as (number of the part, number of parts), limits the range to a part of the batch. If batches are
        assigned in turn, the range is empty while the current batch is completely assigned; with ``joins``, it is empty
        until the current batch is applied.
        """
        plan = self.plan
        # Assign returned ranges first, as the epoch cannot end without them.
        piece = self.waiting[0] if self.waiting else _Piece(self.fresh, plan.size, 0)
        # An empty range makes the worker wait for the update, so that it reads the same values as the other workers.
        if plan.in_turn and self.out:
            now = self.done.next_absent(0)
            now -= now % plan.batch
            if joins or piece.start >= min(plan.size, now + plan.batch):
                return _Piece(now, now, 0)
        if piece.start >= plan.size:
            return None
        begin = piece.start - piece.start % plan.batch
        stop = min(piece.stop, begin + plan.batch)
        if share is not None:
            rows, (number, count) = min(plan.size, begin + plan.batch) - begin, share
            # Assign at least one position: the last batch may have fewer examples than there are workers to share it.
            stop = min(stop, piece.start + max(1, rows * (number + 1) // count - rows * number // count))
        if not self.waiting:
            self.fresh = stop
        elif stop < piece.stop:
            self.waiting[0] = piece._replace(start=stop)
        else:
            del self.waiting[0]
        self.out += stop - piece.start
        return piece._replace(stop=stop)

    def assign_span(self, start: int, stop: int) -> bool:
        """Assigns the positions from ``start`` up to ``stop``, which belong to one batch.

        Returns:
          Whether the positions were assigned: False if some of them are not waiting.
        """
        if start >= self.fresh:
            # The positions before the range were not assigned by this ledger: keep them as waiting.
            unassigned = [(self.fresh, start)]
            self.fresh = stop
        else:
            piece = next((piece for piece in self.waiting if piece.start <= start and stop <= piece.stop), None)
            if piece is None:
                return False
            self.waiting.remove(piece)
            unassigned = [(piece.start, start), (stop, piece.stop)]
        for first, last in unassigned:
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
    """Assigns the ranges of a training and records their state.

    Args:
      run: number that identifies this ledger, also after a restore.
      seed: the seed for epochs whose plan has none.
      training: number of the training.

    Attributes:
      run, seed, training: as passed.
    """

    def __init__(self, *, run: int, seed: int, training: int = 0) -> None:
        self.run: int = run
        self.seed: int = seed
        self.training: int = training
        self._over = Intervals()
        self._epochs: dict[int, _Epoch] = {}
        self._held: dict[str, dict[Work, int]] = {}
        self._gathered: list[tuple[AppliedRange, int]] = []
        #: The ranges of each worker's latest gradient, gathered or not.
        self._latest_gradients: dict[str, Sequence[Work]] = {}
        #: The ranges that were taken from lost workers, which `restore_ranges` restores to a worker that returns.
        self._away: dict[str, list[Work]] = {}

    # Assigning --------------------------------------------------------------------------------------------------------

    def assign_range(
        self,
        worker: str,
        first: int,
        last: int,
        plan: Plan,
        share: tuple[int, int] | None = None,
        *,
        joins: bool = False,
    ) -> Work | Nothing:
        """Assigns the next range to a worker, or returns why there is none.

        Args:
          worker: the name of the worker.
          first, last: the first and the last epoch that the worker iterates over. Epoch n begins when epoch n-1 is
            completely assigned and epoch n-2 is over. An epoch is skipped, and counts as over, if a later epoch has
            begun before it. If batches are assigned in turn, unfinished epochs before ``first``, which a restored
            ledger may have, are completed first.
          plan: the plan of these epochs.
          share: this worker's part of a batch, as (number of the part, number of parts); None: the whole batch.
          joins: whether the worker has joined while an update was in progress. If batches are assigned in turn, such a
              worker gets an empty range: it contributes no gradient, and only waits for the update. A worker that asks
              when the current batch is completely assigned also gets an empty range.

        Raises:
          FailedPreconditionError: another worker uses a different plan for the epoch.
        """
        known: _Epoch | None = None
        if plan.in_turn:
            first = min([first, *self._epochs, *([self._over.end] if self._over.end else [])])
        # In turn, a batch is assigned once the previous one is applied, so an epoch begins after the previous one ends.
        for epoch in self._next_epochs(first, last)[: 1 if plan.in_turn else 2]:
            known = self._open(worker, epoch, plan)
            piece = known.assign(share, joins=joins)
            if piece is not None:
                work = Work(epoch, piece.start, piece.stop)
                if piece.start == piece.stop:
                    return work
                self._held.setdefault(worker, {})[work] = piece.tries
                return work
            # Held and gathered ranges may be returned and assigned again, so the worker waits for them.
            if known.aside and not known.out:
                return Nothing.ASIDE
        return Nothing.YET if known else Nothing.OVER

    def first_open_epoch(self) -> int:
        """Returns the first epoch that is not over."""
        return self._over.next_absent(0)

    def has_work(self, first: int, last: int) -> bool:
        """Returns whether a request for a range can be answered now, with a range or with a final refusal.

        If not, workers hold all remaining ranges. These may be returned, so a worker should ask again later.
        """
        epochs = self._next_epochs(first, last)
        for epoch in epochs:
            known = self._epochs.get(epoch)
            if known is None or known.waiting or known.fresh < known.plan.size or (known.aside and not known.out):
                return True
        return not epochs

    def _next_epochs(self, first: int, last: int) -> list[int]:
        """Returns the first two epochs from ``first`` to ``last`` that are neither over nor skipped, or fewer."""
        begun = max(self._over.end - 1, max(self._epochs, default=-1))
        epochs: list[int] = []
        epoch = self._over.next_absent(first)
        while epoch <= last and len(epochs) < 2:
            # Skip an epoch that had not begun when a later epoch began.
            if epoch in self._epochs or epoch > begun:
                epochs.append(epoch)
            epoch = self._over.next_absent(epoch + 1)
        return epochs

    def _open(self, worker: str, epoch: int, plan: Plan) -> _Epoch:
        known = self._epochs.get(epoch)
        if known is None:
            seed = self.seed if plan.seed is None else plan.seed
            known = self._epochs[epoch] = _Epoch(plan=replace(plan, seed=seed))
            return known
        differs = [
            f"{setting.name}={getattr(plan, setting.name)!r} instead of {getattr(known.plan, setting.name)!r}"
            for setting in fields(Plan)
            if getattr(plan, setting.name) != getattr(known.plan, setting.name)
            and (setting.name != "seed" or plan.seed is not None)
        ]
        if differs:
            raise FailedPreconditionError(
                f"{worker} goes through epoch {epoch} with {', '.join(differs)}: all workers must have the same data"
            )
        return known

    def plans(self) -> dict[int, Plan]:
        """Returns the plan, with its seed, of each epoch that has begun and is not over."""
        return {epoch: known.plan for epoch, known in self._epochs.items()}

    def ranges_set_aside(self, first: int, last: int) -> list[tuple[Work, str]]:
        """Returns the ranges of some epochs that were set aside, with the reasons."""
        return [
            (Work(epoch, *span), reason)
            for epoch, known in sorted(self._epochs.items())
            if first <= epoch <= last
            for span, reason in sorted(known.aside.items())
        ]

    def holds(self, worker: str, work: Work) -> bool:
        """Returns whether a worker holds a range."""
        return work in self._held.get(worker, ())

    def holders(self) -> list[str]:
        """Returns the workers that hold ranges."""
        return sorted(worker for worker, held in self._held.items() if held)

    # State of ranges --------------------------------------------------------------------------------------------------

    def record_gradient(self, worker: str, works: Sequence[Work]) -> bool:
        """Records the gradient of ranges that a worker holds; it is gathered for the next update.

        Returns:
          Whether the gradient may be applied, because the worker holds all of the ranges. If not, the ranges that it
          holds are made available again.
        """
        held = self._held.get(worker, {})
        if len(set(works)) < len(works) or not all(work in held for work in works):
            # Some of the ranges have since been assigned to other workers. The gradient cannot be divided, so all its
            # ranges have to be computed again.
            for work in set(works) & held.keys():
                self._put_back(worker, work, held.pop(work))
            return False
        self._gathered += [(AppliedRange(worker, work), held.pop(work)) for work in works]
        # `_assignments` uses these ranges, as a worker pushes only its latest gradient again.
        self._latest_gradients[worker] = works
        return True

    def mark_applied(self) -> Applied:
        """Marks the gathered ranges as done, because their update is applied."""
        applied = [entry for entry, _ in self._gathered]
        self._gathered.clear()
        for _, work in applied:
            known = self._epochs[work.epoch]
            known.done.add(work.start, work.stop)
            known.out -= work.stop - work.start
        over = [
            epoch for epoch in {work.epoch for _, work in applied} if len(self._epochs[epoch].done) == self._size(epoch)
        ]
        for epoch in over:
            del self._epochs[epoch]
            self._over.add(epoch, epoch + 1)
        return Applied(applied, sorted(over))

    def _size(self, epoch: int) -> int:
        return self._epochs[epoch].plan.size

    def return_dropped(self, worker: str, works: Sequence[Work]) -> None:
        """Makes ranges available again after their gradient, which `record_gradient` recorded, was dropped."""
        for work in works:
            at = next(at for at, (entry, _) in enumerate(self._gathered) if entry == (worker, work))
            _, tries = self._gathered.pop(at)
            self._put_back(worker, work, tries)

    def return_gathered(self, reason: str) -> list[ReturnedRange]:
        """Makes the gathered ranges available again, because their update has failed."""
        gathered, self._gathered = self._gathered, []
        # Count this as a try: an update that fails because of its examples must not be repeated forever.
        return [self._put_back(worker, work, tries + 1, reason) for (worker, work), tries in gathered]

    def return_failed(self, worker: str, work: Work, reason: str) -> list[ReturnedRange]:
        """Takes a range back from a worker. A ``reason`` means that the range failed, which counts as a try."""
        tries = self._held.get(worker, {}).pop(work, None)
        return [] if tries is None else [self._put_back(worker, work, tries + bool(reason), reason)]

    def return_ranges(self, worker: str, reason: str) -> list[ReturnedRange]:
        """Takes all held ranges back from a worker that has left.

        A ``reason`` means that the worker was lost, which counts as a try for each range. Ranges whose gradient the
        worker has already pushed stay gathered.
        """
        held = self._held.pop(worker, {})
        # The worker may return before its ranges are assigned again; then `restore_ranges` restores them.
        if reason and held:
            self._away[worker] = list(held)
        return [self._put_back(worker, work, tries + bool(reason), reason) for work, tries in held.items()]

    def restore_ranges(self, worker: str) -> None:
        """Restores the ranges of a worker that counted as lost and returned, except ranges that were assigned again."""
        for work in self._away.pop(worker, ()):
            self.reclaim(worker, work)

    def reclaim(self, worker: str, work: Work) -> bool:
        """Restores a range to the worker from which it was taken; returns False if it has been assigned again."""
        known = self._epochs.get(work.epoch)
        if known is None:
            return False
        piece = next((piece for piece in known.waiting if piece[:2] == work[1:]), None)
        if piece is not None:
            known.waiting.remove(piece)
        elif work[1:] in known.aside:
            del known.aside[work[1:]]
            piece = _Piece(work.start, work.stop, known.plan.tries)
        else:
            return False
        known.out += work.stop - work.start
        # The worker's return undoes the try that was counted for its loss.
        self._held.setdefault(worker, {})[work] = piece.tries - 1
        return True

    def confirm_range(self, worker: str, work: Work, plan: Plan) -> bool:
        """Assigns a range to the worker to which another ledger of this training has assigned it; returns whether this
        is possible.

        Raises:
          FailedPreconditionError: see `assign_range`.
        """
        if self._over.next_absent(work.epoch) != work.epoch or not self._open(worker, work.epoch, plan).assign_span(
            *work[1:]
        ):
            return False
        self._held.setdefault(worker, {})[work] = 0
        return True

    def handle_restart(self, worker: str) -> list[ReturnedRange]:
        """Takes back the ranges of a worker whose program was restarted; `restore_ranges` does not return them."""
        backs = self.return_ranges(worker, "its program was restarted")
        self._away.pop(worker, None)
        return backs

    def _put_back(self, worker: str, work: Work, tries: int, reason: str = "") -> ReturnedRange:
        known = self._epochs[work.epoch]
        known.out -= work.stop - work.start
        aside = tries >= known.plan.tries
        if aside:
            known.aside[work.start, work.stop] = f"{reason[:_REASON]} ({worker})"
        else:
            insort(known.waiting, _Piece(work.start, work.stop, tries))
        return ReturnedRange(worker, work, tries, aside, reason)

    # Status -----------------------------------------------------------------------------------------------------------

    def counts(self) -> list[Count]:
        """Returns the progress of each epoch that has begun and is not over."""
        return [known.count(epoch) for epoch, known in sorted(self._epochs.items())]

    def __str__(self) -> str:
        ended = [
            f"epochs {start} to {stop - 1} done" if stop - start > 1 else f"epoch {start} done"
            for start, stop in self._over
        ]
        return "; ".join([*ended[-1:], *map(str, self.counts())])

    def to_bytes(self, again: Collection[str] | None = None) -> bytes:
        """Serializes the ledger for its successor.

        Args:
          again: the workers that will push their latest gradient again, to the successor. Gathered ranges of these
              gradients are recorded as held, so that the successor accepts the gradients; all other gathered ranges are
              recorded as waiting. None: only ranges that are done or set aside are recorded, so the successor assigns
              all other ranges again.
        """
        epochs = [
            [epoch, known.plan.settings(), list(known.done), [[*span, reason] for span, reason in known.aside.items()]]
            for epoch, known in self._epochs.items()
        ]
        state = {"run": self.run, "seed": self.seed, "training": self.training, "over": list(self._over)}
        hands = {} if again is None else {"hands": self._assignments(again)}
        return _encode_json({**state, "epochs": epochs, **hands}).encode()

    def _assignments(self, again: Collection[str]) -> tuple[list[Any], list[Any], list[Any]]:
        """Returns three lists for `to_bytes`.

        - The held ranges, by worker, as (epoch, start, stop, tries).
        - The ranges of lost workers that may return, by worker.
        - For each epoch, its first position that was never assigned, and the waiting ranges before that position.
        """
        held = {worker: dict(tries) for worker, tries in self._held.items() if tries}
        waiting = {epoch: list(known.waiting) for epoch, known in self._epochs.items()}
        for (worker, work), tries in self._gathered:
            if worker in again and work in self._latest_gradients[worker]:
                held.setdefault(worker, {})[work] = tries
            else:
                insort(waiting[work.epoch], _Piece(work.start, work.stop, tries))
        return (
            [(worker, [(*work, tries) for work, tries in works.items()]) for worker, works in held.items()],
            list(self._away.items()),
            [(epoch, known.fresh, waiting[epoch]) for epoch, known in self._epochs.items()],
        )

    @staticmethod
    def from_bytes(data: bytes) -> Ledger:
        """Parses the result of `to_bytes`.

        Raises:
          InvalidArgumentError: ``data`` is malformed.
        """
        try:
            state: JsonObject = json.loads(data)
            ledger = Ledger(run=int(state["run"]), seed=int(state["seed"]), training=int(state["training"]))
            for start, stop in _spans(state["over"]):
                ledger._over.add(start, stop)
            for epoch, plan, done, aside in state["epochs"]:
                ledger._epochs[int(epoch)] = _restore_epoch(Plan(**plan), list(_spans(done)), aside)
            ledger._restore_assignments(*state.get("hands", ((), (), ())))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise InvalidArgumentError(f"the data are not a ledger of examples: {error}") from error
        return ledger

    def _restore_assignments(self, held: Iterable[Any], away: Iterable[Any], epochs: Iterable[Any]) -> None:
        """Restores the result of `_assignments` of another ledger."""
        out: dict[int, list[Span]] = {}
        for worker, works in held:
            for epoch, start, stop, tries in works:
                self._held.setdefault(str(worker), {})[Work(int(epoch), int(start), int(stop))] = int(tries)
                out.setdefault(epoch, []).append((start, stop))
        self._away = {str(worker): [Work(*map(int, work)) for work in works] for worker, works in away}
        for epoch, fresh, waiting in epochs:
            known, held_spans = self._epochs[epoch], list(_spans(out.pop(epoch, ())))
            known.fresh, known.waiting = int(fresh), sorted(_Piece(*map(int, piece)) for piece in waiting)
            known.out = sum(stop - start for start, stop in held_spans)
            spans = [*known.done, *known.aside, *held_spans, *_spans(piece[:2] for piece in known.waiting)]
            every = Intervals(spans)
            # Every position must be in exactly one state, or examples would be lost or counted twice.
            if not sum(stop - start for start, stop in spans) == len(every) == every.end == fresh <= known.plan.size:
                raise ValueError(f"ranges of epoch {epoch} overlap, or some are missing up to {fresh}")
        if out:
            raise ValueError(f"ranges are held of epochs that have not begun: {sorted(out)}")


def _restore_epoch(plan: Plan, done: Sequence[Span], aside: Sequence[tuple[int, int, str]]) -> _Epoch:
    spans = list(_spans((start, stop) for start, stop, _ in aside))
    known = Intervals([*done, *spans])
    if known.end > plan.size or len(known) != len(Intervals(done)) + len(Intervals(spans)):
        raise ValueError(f"ranges go beyond {plan.size} or overlap")
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
            raise ValueError(f"[{start}, {stop}) is not a range")
        yield int(start), int(stop)
