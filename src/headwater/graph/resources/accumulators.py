"""Accumulators: sums of gradients that a task keeps until enough have come (for synchronous replicas).

An accumulator has a time step of its own. A gradient carries the step at which its worker read the variables; one that
is older than the accumulator's is *stale*: it is dropped, and counted.

Those of synchronous training also know which life of the training a gradient is of: see `replica_lives`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwater.errors import AbortedError, CancelledError, InvalidArgumentError
from headwater.graph.resources import replica_lives
from headwater.graph.resources.containers import Resources
from headwater.graph.resources.example_ledger import GatheredRange
from headwater.graph.resources.kept import Kept, State, at_first
from headwater.graph.resources.queues import Waiting
from headwater.graph.resources.replica_lives import Lives, Members, Start, Verdict
from headwater.shapes import Dims, TensorShape

_log = logging.getLogger("headwater")

Array = np.ndarray[Any, Any]
Gradient = Sequence[Array]
"""One array of a dense gradient; indices, values and dense shape (empty where unknown) of one of rows."""

_ALIGNMENT = 64


def _aligned_copy(array: Array) -> Array:
    """A copy that starts at a multiple of 64 bytes, where XLA uses it in place. Elsewhere it copies it once more."""
    room = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    start = -room.__array_interface__["data"][0] % _ALIGNMENT
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


Taken = tuple[Sequence[Gradient], int, Sequence[GatheredRange]]
"""The mean (or sum) of all gradients that have come, for every variable; the time step from now on; their ranges of
examples."""


class GradientSum:
    """The sum of the gradients of one variable."""

    def check(self, gradient: Gradient) -> None:
        """Raises InvalidArgumentError where it does not fit."""
        raise NotImplementedError

    def add(self, gradient: Gradient) -> None:
        """Adds one, which stays the caller's."""
        raise NotImplementedError

    def reduced(self, count: int, mean: bool) -> Gradient:
        """The sum of what was added ``count`` times, or its mean. It may be the sum itself: `clear` must follow."""
        raise NotImplementedError

    def clear(self) -> None:
        """Starts afresh."""
        raise NotImplementedError

    def state(self) -> State:
        """What `of_state` makes the same of."""
        raise NotImplementedError

    @staticmethod
    def of_state(state: State) -> GradientSum:
        """What the sum was that has given ``state``."""
        match state.words:
            case "dense", dims:
                return DenseSum.with_sum(dims, *state.arrays)
            case _, str(name), dims, bool(for_update), int(count):
                return RowSum.with_rows(name, dims, for_update, count, state.arrays)
            case _:
                raise AssertionError(state)


class DenseSum(GradientSum):
    """Sums arrays of one shape.

    Args:
      dims: static shape of the gradients.
    """

    def __init__(self, dims: Dims) -> None:
        self._dims = dims
        self._sum: Array | None = None

    def check(self, gradient: Gradient) -> None:
        (array,) = gradient
        expected = self._dims if self._sum is None else self._sum.shape
        if array.shape != expected and not TensorShape(expected).is_compatible_with(array.shape):
            raise InvalidArgumentError(
                None, None, f"Shape mismatch: expected {TensorShape(expected)}, got {list(array.shape)}"
            )

    def add(self, gradient: Gradient) -> None:
        (array,) = gradient
        if self._sum is None:
            self._sum = _aligned_copy(array)
        else:
            np.add(self._sum, array, out=self._sum)

    def reduced(self, count: int, mean: bool) -> Gradient:
        total = self._sum
        assert total is not None
        if mean:
            by = np.asarray(count, total.dtype)
            inexact = total.dtype.kind in "fc"
            total = np.divide(total, by, out=total) if inexact else (total / by).astype(total.dtype, copy=False)
        return (total,)

    def clear(self) -> None:
        self._sum = None

    def state(self) -> State:
        return State(("dense", self._dims), () if self._sum is None else (self._sum.copy(),))

    @classmethod
    def with_sum(cls, dims: Dims, total: Array | None = None) -> DenseSum:
        """One that has this sum."""
        made = cls(None if dims is None else tuple(dims))
        made._sum = None if total is None else _aligned_copy(total)
        return made


class RowSum(GradientSum):
    """Sums rows by their index.

    Args:
      name: for messages.
      dims: static shape of the variable.
      for_update: give what updates a variable: the mean over all gradients, those without the row included, as if all
        had been dense; and as many rows as a power of two, with indices outside every variable for those that are too
        many, so that few different shapes have to be compiled. Otherwise the mean of a row is over the gradients that
        had it.
    """

    def __init__(self, name: str, dims: Dims, *, for_update: bool = False) -> None:
        self._name = name
        self._dims = dims
        self._for_update = for_update
        self.clear()

    def check(self, gradient: Gradient) -> None:
        indices, values, _ = gradient
        if values.ndim < 1 or indices.ndim != 1 or len(indices) != len(values):
            raise InvalidArgumentError(
                None, None, f"{len(indices)} indices for values of shape {values.shape} in accumulator {self._name!r}"
            )
        known = self._dims
        if known is not None and not TensorShape(known[1:]).is_compatible_with(values.shape[1:]):
            raise InvalidArgumentError(
                None, None, f"Shape mismatch: expected rows of {TensorShape(known[1:])}, got {list(values.shape[1:])}"
            )
        rows = known[0] if known else None
        if rows is not None and indices.size and int(indices.max()) >= rows:
            raise InvalidArgumentError(
                None,
                None,
                f"Shape mismatch: index of slice 0 exceeded limits of shape; index is {indices.max()} exceeded {rows}",
            )

    def add(self, gradient: Gradient) -> None:
        indices, values, shape = gradient
        if indices.size and indices.min() < 0:  # places that a divided lookup left over
            used = indices >= 0
            indices, values = indices[used], values[used]
        unique, inverse = np.unique(indices, return_inverse=True)
        total = np.zeros((len(unique), *values.shape[1:]), values.dtype)
        np.add.at(total, inverse, values)
        self._indices.append(unique.astype(np.int64))
        self._values.append(total)
        self._shape = shape if shape.size else self._shape

    def reduced(self, count: int, mean: bool) -> Gradient:
        unique, inverse, counts = np.unique(np.concatenate(self._indices), return_inverse=True, return_counts=True)
        rows = np.concatenate(self._values)
        total = np.zeros((len(unique), *rows.shape[1:]), rows.dtype)
        np.add.at(total, inverse, rows)
        if self._for_update:
            total /= np.asarray(count, rows.dtype)
            unique, total = _padded(unique, total)
        elif mean:
            total /= counts.astype(rows.dtype).reshape(-1, *(1,) * (rows.ndim - 1))
        return unique, total, self._dense_shape(rows.shape[1:])

    def clear(self) -> None:
        self._indices: list[Array] = []
        self._values: list[Array] = []
        self._shape: Array | None = None

    def state(self) -> State:
        shape = () if self._shape is None else (self._shape,)
        words = "rows", self._name, self._dims, self._for_update, len(self._indices)
        return State(words, (*self._indices, *self._values, *shape))

    @classmethod
    def with_rows(cls, name: str, dims: Dims, for_update: bool, count: int, arrays: Sequence[Array]) -> RowSum:
        """One that has the rows of ``count`` gradients: their indices, their values, and perhaps their dense shape."""
        made = cls(name, None if dims is None else tuple(dims), for_update=for_update)
        made._indices, made._values = list(arrays[:count]), list(arrays[count : 2 * count])
        made._shape = arrays[-1] if len(arrays) > 2 * count else None
        return made

    def _dense_shape(self, row: Sequence[int]) -> Array:
        if self._shape is not None:
            return self._shape.astype(np.int64)
        first = -1 if not self._dims or self._dims[0] is None else self._dims[0]
        return np.array([first, *row], np.int64)


def _padded(indices: Array, rows: Array) -> tuple[Array, Array]:
    more = (1 << (len(indices) - 1).bit_length()) - len(indices) if len(indices) else 1
    outside = np.full(more, np.iinfo(indices.dtype).max, indices.dtype)
    return np.concatenate([indices, outside]), np.concatenate([rows, np.zeros((more, *rows.shape[1:]), rows.dtype)])


@dataclass(slots=True)
class _Repeated:
    """What `Accumulator.repeat` was asked for.

    Attributes:
      waiting: the step that asked.
      session: the session that it is in.
      life: of the training, when it asked.
      required: how many gradients each run takes.
      run: takes them.
      left: how many runs are left.
      running: whether somebody is at it.
      error: what a run has raised.
    """

    waiting: Waiting
    session: str
    life: int
    required: int
    run: Callable[[], None]
    left: int
    running: bool = False
    error: BaseException | None = None

    def over(self) -> bool:
        return not self.running and (self.left == 0 or self.error is not None)


class Accumulator(Kept):
    """Gathers the gradients of one variable or of several, which come and go together.

    Args:
      name: for messages.
      sums: what adds the gradients of each variable.
      mean: give the mean of the gradients rather than their sum.
      resources: of the task, where gradients come with ranges of its examples.

    Attributes:
      dropped: how many stale gradients were dropped.
    """

    _shared = False

    def __init__(
        self, name: str, sums: Sequence[GradientSum], *, mean: bool = True, resources: Resources | None = None
    ) -> None:
        self.name = name
        self.dropped: int = 0
        self._sums = sums
        self._mean = mean
        self._condition = threading.Condition()
        self._count = 0
        self._step = 0
        self._wanted: dict[int, int] = {}
        self._repeated: list[_Repeated] = []
        self._set_aside: dict[int, Taken] = {}
        self._ranges: list[GatheredRange] = []
        self._resources = resources
        self._lives = Lives()
        self._renews = False
        self._start = Start()
        self._of_steps: set[int] = set()
        self._members = Members()

    def count(self) -> int:
        """How many gradients are in it now."""
        with self._condition:
            return self._count

    def set_step(self, step: int) -> None:
        """Sets the time step. Going back is possible, as after a restart from an older checkpoint, and logged; what the
        accumulator has is of another past then, and forgotten."""
        with self._condition:
            if step < self._step:
                _log.warning("the step of accumulator %r goes back from %d to %d", self.name, self._step, step)
                self._clear()
            self._step = step
            self.changes += 1

    def join(self, session: str) -> None:
        """A replica takes part, in ``session``; see `replica_lives`."""
        with self._condition:
            self._lives = replica_lives.joined(self._lives, session)
            self._members = self._members.joined(session)
            self.changes += 1

    def members(self) -> Members:
        """Which sessions have joined, and given gradients, since the training was started last."""
        with self._condition:
            return self._members

    @property
    def life(self) -> int:
        """How many times the training was started."""
        return self._lives.life

    def start(self, session: str, step: int, elsewhere: int, *, renews: bool, name: int = 0) -> None:
        """The training starts at ``step``, perhaps once more.

        What was gathered before is forgotten, and those who wait to take it hear so: a gradient may be here and not in
        another accumulator, or of variables that are gone. The first time nothing can be, and what is of ``step``
        stays.

        Args:
          session: of the one who starts it.
          elsewhere: as for `replica_lives.is_first`.
          name: a random number for this start, the same for all who gather: see `take`.
          renews: whether all other replicas have to join again, and hear so; else their gradients are only dropped,
            where they are of a step that is not there yet.
        """
        with self._condition:
            self.changes += 1
            first = replica_lives.is_first(self._lives, elsewhere)
            if not first or self._of_steps - {step}:
                self._clear()
            if renews:
                self._lives = replica_lives.started(self._lives, session, step, elsewhere)
            else:
                self._lives = replica_lives.continued(self._lives, step)
            self._step, self._renews, self._start = step, renews, Start(name, first)
            self._members = Members()
            for repeated in self._repeated:
                if self._is_over(repeated.session, repeated.life):
                    repeated.error = self._over_error()
            self._condition.notify_all()

    def forget_session(self, session: str) -> None:
        """A session is over."""
        with self._condition:
            self._lives = replica_lives.left(self._lives, session)

    def apply(
        self,
        gradients: Sequence[Gradient],
        step: int,
        session: str = "",
        start: int | None = None,
        examples: GatheredRange | None = None,
        *,
        follows: bool = False,
    ) -> None:
        """Adds a gradient of every variable, unless they are stale.

        Args:
          gradients: one of every variable.
          step: that they are of.
          session: of the replica that gives them, where the accumulator is one of replicas.
          start: of the training, that they are of; None: the session says it.
          examples: the range that they are of, where it is accounted for.
          follows: whether they were added where this is a copy of.

        Raises:
          AbortedError: the training was started anew since the replica joined; none is added.
          AbortedError: the step does not hold the range ``examples`` any more; none is added.
          InvalidArgumentError: one does not fit; none is added.
        """
        with self._condition:
            for total, gradient in zip(self._sums, gradients, strict=True):
                total.check(gradient)
            verdict = replica_lives.judged(self._lives, session, step, self._step)
            if start is not None and not self._start.counts(start):
                verdict = Verdict.VOID
            if verdict is not Verdict.TAKE and examples is not None:
                examples.drop()
            if verdict is Verdict.VOID and self._renews:
                raise AbortedError(None, None, replica_lives.void_text(self._lives))
            if verdict is not Verdict.TAKE:
                self.changes += 1
                self.dropped += 1
                return
            if examples is not None:
                examples.accept(follows=follows)
                self._ranges.append(examples)
            self.changes += 1
            self._of_steps.add(step)
            self._members = self._members.gave(session)
            for total, gradient in zip(self._sums, gradients, strict=True):
                total.add(gradient)
            self._count += 1
            # A step that needs more would only look and wait again. What one needs that is tried again is not known.
            if self._shared or self._count >= min(self._wanted.values(), default=self._count + 1):
                self._condition.notify_all()
            ready = next((repeated for repeated in self._repeated if self._is_ready(repeated)), None)
        if ready is not None:
            self._run(ready)

    def take(self, waiting: Waiting, required: int, session: str = "", start: int = 0) -> Taken:
        """Waits for ``required`` gradients of every variable; starts afresh.

        Args:
          waiting: the step that takes them.
          required: how many.
          session: that it is in.
          start: the start of the training since which ``required`` are counted, where another one says so: what is
            asked for since an earlier one is forgotten, or not yet known here. 0: any.

        Raises:
          AbortedError: the training was started anew by another session than this one.
        """
        if required <= 0:
            raise InvalidArgumentError(None, None, f"Argument num_required must be positive, but was {required}")
        with self._condition:
            taken = self._set_aside.pop(id(waiting), None)
            if taken is not None:
                return taken
            self._wanted[id(waiting)] = required
            life = at_first(waiting, "life", self._lives.life)
            try:
                waiting.wait_until(
                    self._condition,
                    lambda: (
                        self._count >= required or self._is_over(session, life) or start not in (0, self._start.name)
                    ),
                    self._what(required),
                )
            except CancelledError as error:
                raise CancelledError(None, None, f"TakeGrad operation was cancelled: {error.message}") from None
            finally:
                del self._wanted[id(waiting)]
            if self._is_over(session, life) or start not in (0, self._start.name):
                raise self._over_error()
            return self._taken()

    def repeat(self, waiting: Waiting, required: int, run: Callable[[], None], times: int, session: str = "") -> None:
        """Has ``run`` called ``times`` times, each time when a `take` for ``waiting`` in it finds enough gradients.

        The replica that gives the last of them calls it: no thread has to be woken first.

        Raises:
          Whatever ``run`` raises, and waiting does, and `take`.
        """
        if required <= 0:
            raise InvalidArgumentError(None, None, f"Argument num_required must be positive, but was {required}")
        with self._condition:
            if replica_lives.is_void(self._lives, session):
                raise self._over_error()
            repeated = _Repeated(waiting, session, self._lives.life, required, run, times)
            self._repeated.append(repeated)
        try:
            while True:
                with self._condition:
                    waiting.wait_until(
                        self._condition, lambda: repeated.over() or self._is_ready(repeated), self._what(required)
                    )
                    if repeated.over():
                        break
                self._run(repeated)
        finally:
            with self._condition:
                self._repeated.remove(repeated)
        if repeated.error is not None:
            raise repeated.error

    def _is_ready(self, repeated: _Repeated) -> bool:
        return not (repeated.running or repeated.over()) and self._count >= repeated.required

    def _run(self, repeated: _Repeated) -> None:
        """Runs it once, unless somebody else has taken the gradients meanwhile."""
        with self._condition:
            if not self._is_ready(repeated):
                return
            repeated.running = True
            self._set_aside[id(repeated.waiting)] = self._taken()
        try:
            repeated.run()
        except BaseException as error:  # noqa: BLE001 - it is for the step that asked, not for the one that gave a gradient
            repeated.error = error
        with self._condition:
            repeated.running = False
            repeated.left -= 1
            not_taken = self._set_aside.pop(id(repeated.waiting), None)
            for one in not_taken[2] if not_taken is not None else ():
                one.drop()
            # More may have come meanwhile. The step that asked makes the update, lest one giver makes those of all.
            if repeated.over() or self._is_ready(repeated):
                self._condition.notify_all()

    def _is_over(self, session: str, life: int) -> bool:
        """Whether one who takes in ``session`` since ``life`` shall take nothing more."""
        return replica_lives.is_void(self._lives, session) or (not self._renews and 0 < life != self._lives.life)

    def _over_error(self) -> AbortedError:
        return AbortedError(None, None, f"accumulator {self.name!r}: {replica_lives.void_text(self._lives)}")

    def _what(self, required: int) -> str:
        return f"gradients in accumulator {self.name!r} ({required} needed)"

    def _taken(self) -> Taken:
        self.changes += 1
        reduced = [total.reduced(self._count, self._mean) for total in self._sums]
        ranges, self._ranges = self._ranges, []
        self._clear()
        self._step += 1
        return reduced, self._step, ranges

    def _clear(self) -> None:
        ranges, self._ranges = self._ranges, []
        for one in ranges:
            one.drop()
        self._count = 0
        self._of_steps.clear()
        for total in self._sums:
            total.clear()

    # A second copy ----------------------------------------------------------------------------------------------------

    @property
    def repeats(self) -> bool:
        return True

    def share(self, lock: threading.RLock) -> None:
        self._condition, self._shared = threading.Condition(lock), True

    def state(self) -> State:
        sums = [total.state() for total in self._sums]
        words = (
            self.name,
            self._mean,
            (self.dropped, self._count, self._step, self._renews, sorted(self._of_steps)),
            self._lives.as_words(),
            (self._start.name, self._start.first),
            (sorted(self._members.known), sorted(self._members.givers)),
            [one.as_words() for one in self._ranges],
            [(words, len(arrays)) for words, arrays in sums],
        )
        return State(words, [array for one in sums for array in one.arrays])

    def take_state(self, state: State) -> None:
        _, _, numbers, lives, start, (known, givers), ranges, sums = state.words
        self.dropped, self._count, self._step, self._renews, steps = numbers
        self._of_steps = set(steps)
        self._lives, self._start = Lives.of_words(lives), Start(*start)
        self._members = Members(frozenset(known), frozenset(givers))
        if ranges:
            assert self._resources is not None
            self._ranges = [GatheredRange(self._resources, *words) for words in ranges]
        rest = iter(state.arrays)
        self._sums = [GradientSum.of_state(State(words, [next(rest) for _ in range(count)])) for words, count in sums]

    @classmethod
    def made_of(cls, state: State, resources: Resources) -> Accumulator:
        name, mean, *_ = state.words
        return cls(name, (), mean=mean, resources=resources)
