"""Accumulators: sums of gradients that a task keeps until enough have arrived (for synchronous replicas).

The *time step* of an accumulator is the number of updates that were made with its gradients. A gradient carries the
time step at which its worker read the variables. A gradient with a smaller time step than the accumulator is *stale*:
it is dropped, and counted in `Accumulator.dropped`.

In synchronous training, a gradient also names the start of the training to which it belongs, see `training_runs`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwater.errors import AbortedError, CancelledError, InvalidArgumentError
from headwater.graph.resources import training_runs
from headwater.graph.resources.containers import Resources
from headwater.graph.resources.example_ledger import GatheredRange
from headwater.graph.resources.queues import Waiting
from headwater.graph.resources.replicable import ReplicableResource, ResourceState, first_value
from headwater.graph.resources.training_runs import Members, Start, TrainingRuns, Verdict
from headwater.shapes import Dims, TensorShape, brackets

_log = logging.getLogger("headwater")

Array = np.ndarray[Any, Any]
Gradient = Sequence[Array]
"""A dense gradient is one array. A gradient of rows is three arrays: int64 indices [n], values [n, ...] and the dense
shape (empty if unknown)."""

_ALIGNMENT = 64


def _aligned_copy(array: Array) -> Array:
    """Returns a copy that starts at a multiple of 64 bytes. XLA uses such an aligned array without a copy of its
    own."""
    room = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    start = -room.__array_interface__["data"][0] % _ALIGNMENT
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


Taken = tuple[Sequence[Gradient], int, Sequence[GatheredRange]]
"""The mean (or sum) of the gathered gradients, for each variable; the time step after this update; the ranges of
examples from which the gradients were computed."""


class GradientSum:
    """The sum of the gradients of one variable."""

    def check(self, gradient: Gradient) -> None:
        """Raises InvalidArgumentError if the gradient's shape does not match the variable."""
        raise NotImplementedError

    def add(self, gradient: Gradient) -> None:
        """Adds a gradient, without keeping a reference to it."""
        raise NotImplementedError

    def reduce(self, count: int, mean: bool) -> Gradient:
        """Returns the sum of ``count`` gradients, or their mean. The result may share memory with the internal sum, so
        the caller has to call `clear` next."""
        raise NotImplementedError

    def clear(self) -> None:
        """Resets the sum."""
        raise NotImplementedError

    def state(self) -> ResourceState:
        """Returns the state, for `of_state`."""
        raise NotImplementedError

    @staticmethod
    def of_state(state: ResourceState) -> GradientSum:
        """Restores the sum that returned ``state``."""
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
            raise InvalidArgumentError(f"Shape mismatch: expected {brackets(expected)}, got {brackets(array.shape)}")

    def add(self, gradient: Gradient) -> None:
        (array,) = gradient
        if self._sum is None:
            self._sum = _aligned_copy(array)
        else:
            np.add(self._sum, array, out=self._sum)

    def reduce(self, count: int, mean: bool) -> Gradient:
        total = self._sum
        assert total is not None
        if mean:
            by = np.asarray(count, total.dtype)
            inexact = total.dtype.kind in "fc"
            # Divide floats in place, since the caller clears the sum next. Integers cannot be divided in place.
            total = np.divide(total, by, out=total) if inexact else (total / by).astype(total.dtype, copy=False)
        return (total,)

    def clear(self) -> None:
        self._sum = None

    def state(self) -> ResourceState:
        # A copy: later gradients are added in place, while the state may still have to be sent.
        return ResourceState(("dense", self._dims), () if self._sum is None else (self._sum.copy(),))

    @classmethod
    def with_sum(cls, dims: Dims, total: Array | None = None) -> DenseSum:
        """Creates an instance with this sum."""
        accumulated = cls(None if dims is None else tuple(dims))
        accumulated._sum = None if total is None else _aligned_copy(total)
        return accumulated


class RowSum(GradientSum):
    """Sums rows by their index.

    Args:
      name: name for messages.
      dims: static shape of the variable.
      for_update: whether the rows are for an update. If so, the mean of a row is taken over all gradients, as if they
        were dense: a gradient without the row counts as zeros. The number of rows is padded to a power of two, so that
        few shapes have to be compiled; the padding has indices outside of every variable. If not, the mean of a row is
        taken over the gradients that contain it.
    """

    def __init__(self, name: str, dims: Dims, *, for_update: bool = False) -> None:
        self._name = name
        self._dims = dims
        self._for_update = for_update
        self.clear()

    def check(self, gradient: Gradient) -> None:
        indices, values, shape = gradient
        where = f"[in accumulator {self._name!r}]"
        if not values.ndim:
            raise InvalidArgumentError(f"Values cannot be 0-dimensional. {where}")
        if indices.ndim != 1:
            raise InvalidArgumentError(
                f"Input indices should be vector but received shape: {brackets(indices.shape)} {where}"
            )
        if len(indices) != len(values):
            raise InvalidArgumentError(f"Expected {len(indices)} non-empty input values, got {len(values)} {where}")
        known, rank = self._dims, 1 + len(self._row)
        if known is not None and 0 < shape.size < len(known):
            raise InvalidArgumentError(
                f"Shape mismatch: expected shape rank at least {len(known)}, got {shape.size} {where}"
            )
        if values.ndim != rank if self._values else values.ndim < rank:
            least = "" if self._values else "at least "
            raise InvalidArgumentError(f"Shape mismatch: expected values rank {least}{rank}, got {values.ndim} {where}")
        if known is not None and shape.size:
            _check_sizes("shape dim", known, shape.tolist())
        _check_sizes("values dim", (None, *self._row), values.shape)
        rows = known[0] if known else None
        if rows is not None and indices.size and int(indices.max()) >= rows:
            raise InvalidArgumentError(
                f"Shape mismatch: index of slice 0 exceeded limits of shape; index is {indices.max()} exceeded {rows}"
            )

    @property
    def _row(self) -> Sequence[int | None]:
        """The shape of a row: taken from the first gradient, or from the declared shape before it has arrived."""
        if self._values:
            return self._values[0].shape[1:]
        return () if self._dims is None else self._dims[1:]

    def add(self, gradient: Gradient) -> None:
        indices, values, _ = gradient
        if indices.size and indices.min() < 0:  # padding of a partitioned lookup
            used = indices >= 0
            indices, values = indices[used], values[used]
        # Rows are summed within each gradient first, so that `reduce` counts a row once for each gradient that has it.
        unique, inverse = np.unique(indices, return_inverse=True)
        total = np.zeros((len(unique), *values.shape[1:]), values.dtype)
        np.add.at(total, inverse, values)
        self._indices.append(unique.astype(np.int64))
        self._values.append(total)

    def reduce(self, count: int, mean: bool) -> Gradient:
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

    def state(self) -> ResourceState:
        words = "rows", self._name, self._dims, self._for_update, len(self._indices)
        return ResourceState(words, (*self._indices, *self._values))

    @classmethod
    def with_rows(cls, name: str, dims: Dims, for_update: bool, count: int, arrays: Sequence[Array]) -> RowSum:
        """Creates an instance with the rows of ``count`` gradients: their indices and their values."""
        accumulated = cls(name, None if dims is None else tuple(dims), for_update=for_update)
        accumulated._indices, accumulated._values = list(arrays[:count]), list(arrays[count : 2 * count])
        return accumulated

    def _dense_shape(self, row: Sequence[int]) -> Array:
        first = -1 if not self._dims or self._dims[0] is None else self._dims[0]
        return np.array([first, *row], np.int64)


def _check_sizes(name: str, expected: Sequence[int | None], found: Sequence[int]) -> None:
    """Raises InvalidArgumentError if ``expected`` and ``found`` have different sizes for a dimension; None matches any
    size."""
    for axis, (size, other) in enumerate(zip(expected, found, strict=False)):
        if size is not None and size != other:
            raise InvalidArgumentError(f"Shape mismatch: expected {name} {axis} to be {size}, got {other}")


def _padded(indices: Array, rows: Array) -> tuple[Array, Array]:
    more = (1 << (len(indices) - 1).bit_length()) - len(indices) if len(indices) else 1
    outside = np.full(more, np.iinfo(indices.dtype).max, indices.dtype)
    return np.concatenate([indices, outside]), np.concatenate([rows, np.zeros((more, *rows.shape[1:]), rows.dtype)])


@dataclass(slots=True)
class _Repeated:
    """A call of `Accumulator.repeat` in progress.

    Attributes:
      waiting: the calling step.
      session: the session of the step.
      run_number: the training run during which the call was made.
      required: number of gradients that each run takes.
      run: function that takes the gradients and makes the update.
      left: number of runs left.
      running: whether a thread is in ``run``.
      error: the error of a failed run; None without a failure.
    """

    waiting: Waiting
    session: str
    run_number: int
    required: int
    run: Callable[[], None]
    left: int
    running: bool = False
    error: BaseException | None = None

    def over(self) -> bool:
        return not self.running and (self.left == 0 or self.error is not None)


class Accumulator(ReplicableResource):
    """Gathers the gradients of one or several variables, which are added and taken together.

    Args:
      name: for messages.
      sums: the sum for each variable.
      mean: return the mean of the gradients rather than their sum.
      resources: the task's resources, needed if gradients have ranges of examples.

    Attributes:
      dropped: number of stale gradients dropped.
    """

    # Whether the accumulator is on a replicated task, where the lock of the resources guards its state.
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
        self._runs = TrainingRuns()
        self._renews = False
        self._start = Start()
        self._of_steps: set[int] = set()
        self._members = Members()

    def count(self) -> int:
        """Returns the number of gradients that have been gathered and not taken."""
        with self._condition:
            return self._count

    def set_step(self, step: int) -> None:
        """Sets the time step. If the time step decreases, for example after a restore of an older checkpoint, a warning
        is logged and the gathered gradients, which are now invalid, are dropped."""
        with self._condition:
            if step < self._step:
                _log.warning("the step of accumulator %r decreases from %d to %d", self.name, self._step, step)
                self._clear()
            self._step = step
            self.changes += 1

    def join(self, session: str) -> None:
        """Registers a replica's ``session``; see `training_runs`."""
        with self._condition:
            self._runs = training_runs.with_session(self._runs, session)
            self._members = self._members.with_session(session)
            self.changes += 1

    def members(self) -> Members:
        """Returns the sessions that have joined since the last start of the training, and those among them that have
        given gradients."""
        with self._condition:
            return self._members

    @property
    def run_number(self) -> int:
        """Number of starts of the training."""
        return self._runs.run_number

    def start(self, session: str, step: int, elsewhere: int, *, renews: bool, name: int = 0) -> None:
        """Starts the training at ``step``, perhaps again.

        Drops the gathered gradients, for two reasons: another accumulator may lack such a gradient, or the gradient may
        have been computed from older variables. Waiting `pop_mean` calls raise an error for the same reasons. At the
        first start of the training, neither reason applies, so gradients of ``step`` are kept.

        Args:
          session: the session of the chief that starts the training.
          step: the time step of the start.
          elsewhere: as for `training_runs.is_first`.
          name: a random number for this start, the same for all accumulators: see `pop_mean`.
          renews: whether other replicas have to join again. If so, their next gradients raise an error. If not, they
            continue as members, and their gradients from before the start are dropped without an error.
        """
        with self._condition:
            self.changes += 1
            first = training_runs.is_first(self._runs, elsewhere)
            if not first or self._of_steps - {step}:
                self._clear()
            if renews:
                self._runs = training_runs.start_run(self._runs, session, step, elsewhere)
            else:
                self._runs = training_runs.continue_run(self._runs, step)
            self._step, self._renews, self._start = step, renews, Start(name, first)
            self._members = Members()
            for repeated in self._repeated:
                if self._is_over(repeated.session, repeated.run_number):
                    repeated.error = self._over_error()
            self._condition.notify_all()

    def forget_session(self, session: str) -> None:
        """Removes a session that has ended."""
        with self._condition:
            self._runs = training_runs.without_session(self._runs, session)

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
          gradients: a gradient of every variable.
          step: the time step at which the worker read the variables.
          session: the session of the replica, in synchronous training.
          start: name of the start of the training to which the gradients belong. If ``start`` is None, the gradients
            count if ``session`` joined the present run.
          examples: the range of examples from which the gradients were computed, if examples are accounted for.
          follows: whether this is a backup that repeats the primary's call.

        Raises:
          AbortedError: the training was restarted since the replica joined; none is added.
          AbortedError: the step has lost the range ``examples``; none is added.
          InvalidArgumentError: a gradient does not fit; none is added.
        """
        with self._condition:
            for total, gradient in zip(self._sums, gradients, strict=True):
                # Check all before adding any, so that a failure leaves no partly added gradient: it must count for all
                # variables or for none.
                total.check(gradient)
            verdict = training_runs.verdict_on(self._runs, session, step, self._step)
            # Whether a gradient counts depends on the start that it names, not on its time of arrival. A gradient and
            # the message of a start may arrive in different orders on different tasks, but either all tasks must count
            # the gradient, or none.
            if start is not None and not self._start.counts(start):
                verdict = Verdict.VOID
            # The gradient is dropped, so its examples are in no update and have to be assigned again.
            if verdict is not Verdict.TAKE and examples is not None:
                examples.drop()
            if verdict is Verdict.VOID and self._renews:
                raise AbortedError(training_runs.void_text(self._runs))
            if verdict is not Verdict.TAKE:
                self.changes += 1
                self.dropped += 1
                return
            if examples is not None:
                examples.accept(follows=follows)
                self._ranges.append(examples)
            self.changes += 1
            self._of_steps.add(step)
            self._members = self._members.with_gradient(session)
            for total, gradient in zip(self._sums, gradients, strict=True):
                total.add(gradient)
            self._count += 1
            # Wake waiting steps only if there are enough gradients for one of them, since each wake-up costs a thread
            # switch. On replicated tasks, steps wait outside of `pop_mean`, so `_wanted` is empty: wake all of them.
            if self._shared or self._count >= min(self._wanted.values(), default=self._count + 1):
                self._condition.notify_all()
            ready = next((repeated for repeated in self._repeated if self._is_ready(repeated)), None)
        # Call it without the lock, so that other workers can add gradients during the update; `_run` takes the
        # gradients under the lock.
        if ready is not None:
            self._run(ready)

    def pop_mean(self, waiting: Waiting, required: int, session: str = "", start: int = 0) -> Taken:
        """Waits for ``required`` gradients of every variable, and takes them.

        Args:
          waiting: the calling step.
          required: number of gradients.
          session: the session of the step.
          start: name of the start of the training whose gradients the caller wants; 0 for any. The call fails if this
            is not the present start: the gradients were dropped, or the start has not reached this task yet.

        Raises:
          AbortedError: the training was restarted by another session, or ``start`` is not the present start.
        """
        if required <= 0:
            raise InvalidArgumentError(f"Argument num_required must be positive, but was {required}")
        with self._condition:
            # Within `repeat`, the thread that runs it has taken the gradients already.
            taken = self._set_aside.pop(id(waiting), None)
            if taken is not None:
                return taken
            self._wanted[id(waiting)] = required
            # On a replicated task, this operation is tried again after each wait. Keep the number of the run from the
            # first try, so that a restart during the wait is noticed.
            run_number = first_value(waiting, "life", self._runs.run_number)
            try:
                waiting.wait_until(
                    self._condition,
                    lambda: (
                        self._count >= required
                        or self._is_over(session, run_number)
                        or start not in (0, self._start.name)
                    ),
                    self._what(required),
                )
            except CancelledError as error:
                raise CancelledError(f"TakeGrad operation was cancelled: {error.message}") from None
            finally:
                del self._wanted[id(waiting)]
            if self._is_over(session, run_number) or start not in (0, self._start.name):
                raise self._over_error()
            return self._take()

    def repeat(self, waiting: Waiting, required: int, run: Callable[[], None], times: int, session: str = "") -> None:
        """Calls ``run`` each time that ``required`` gradients are gathered, ``times`` times in all. ``run`` takes the
        gradients by calling `pop_mean` with ``waiting``.

        The thread that adds the last required gradient calls ``run`` itself. That is faster than waking the thread of
        this call for each update.

        Args:
          waiting: the calling step.
          required: number of gradients for a call.
          run: makes one update.
          times: number of calls.
          session: the session of the step.

        Raises:
          The errors of ``run``, of the wait, and of `pop_mean`.
        """
        if required <= 0:
            raise InvalidArgumentError(f"Argument num_required must be positive, but was {required}")
        with self._condition:
            if training_runs.is_void(self._runs, session):
                raise self._over_error()
            repeated = _Repeated(waiting, session, self._runs.run_number, required, run, times)
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
        """Runs ``repeated`` once, unless another thread has taken the gradients meanwhile."""
        with self._condition:
            if not self._is_ready(repeated):
                return
            repeated.running = True
            # Take the gradients now, while the lock is held, so that no other step takes them before `run` does;
            # `pop_mean` returns them to `run`.
            self._set_aside[id(repeated.waiting)] = self._take()
        try:
            repeated.run()
        except BaseException as error:  # noqa: BLE001 - belongs to the step that called `repeat`
            repeated.error = error
        with self._condition:
            repeated.running = False
            repeated.left -= 1
            not_taken = self._set_aside.pop(id(repeated.waiting), None)
            # Not None if `run` failed before it took the gradients. They are lost, so their examples are assigned
            # again.
            for one in not_taken[2] if not_taken is not None else ():
                one.drop()
            # If enough gradients have arrived meanwhile, wake the step that called `repeat` to make the next update.
            # This thread must not make it: its worker could then be busy with updates for all others, again and again.
            if repeated.over() or self._is_ready(repeated):
                self._condition.notify_all()

    def _is_over(self, session: str, run_number: int) -> bool:
        """Returns whether a `pop_mean` in ``session``, started in ``run_number``, has to fail."""
        return training_runs.is_void(self._runs, session) or (
            not self._renews and 0 < run_number != self._runs.run_number
        )

    def _over_error(self) -> AbortedError:
        return AbortedError(f"accumulator {self.name!r}: {training_runs.void_text(self._runs)}")

    def _what(self, required: int) -> str:
        return f"gradients in accumulator {self.name!r} ({required} needed)"

    def _take(self) -> Taken:
        self.changes += 1
        reduced = [total.reduce(self._count, self._mean) for total in self._sums]
        # Remove the ranges first: `_clear` would have them assigned again.
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

    # Replication ------------------------------------------------------------------------------------------------------

    @property
    def repeats(self) -> bool:
        return True

    def share(self, lock: threading.RLock) -> None:
        # All resources of a replicated task share one lock. Their changes then have one total order, and the backup
        # applies them in this order.
        self._condition, self._shared = threading.Condition(lock), True

    def state(self) -> ResourceState:
        sums = [total.state() for total in self._sums]
        words = (
            self.name,
            self._mean,
            (self.dropped, self._count, self._step, self._renews, sorted(self._of_steps)),
            self._runs.as_words(),
            (self._start.name, self._start.first),
            (sorted(self._members.known), sorted(self._members.givers)),
            [one.as_words() for one in self._ranges],
            [(words, len(arrays)) for words, arrays in sums],
        )
        return ResourceState(words, [array for one in sums for array in one.arrays])

    def install_state(self, state: ResourceState) -> None:
        _, _, numbers, runs, start, (known, givers), ranges, sums = state.words
        self.dropped, self._count, self._step, self._renews, steps = numbers
        self._of_steps = set(steps)
        self._runs, self._start = TrainingRuns.of_words(runs), Start(*start)
        self._members = Members(frozenset(known), frozenset(givers))
        if ranges:
            assert self._resources is not None
            self._ranges = [GatheredRange(self._resources, *words) for words in ranges]
        rest = iter(state.arrays)
        self._sums = [
            GradientSum.of_state(ResourceState(words, [next(rest) for _ in range(count)])) for words, count in sums
        ]

    @classmethod
    def made_of(cls, state: ResourceState, resources: Resources) -> Accumulator:
        name, mean, *_ = state.words
        return cls(name, (), mean=mean, resources=resources)
