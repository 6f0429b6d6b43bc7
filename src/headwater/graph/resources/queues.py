"""Queues of tuples of arrays."""

from __future__ import annotations

import functools
import heapq
import itertools
import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from headwater.errors import CancelledError, InvalidArgumentError, OpError, OutOfRangeError
from headwater.graph.resources.packing import pack_elements, unpack_elements
from headwater.graph.resources.replicable import ReplicableResource, ResourceState, StillWaitsError
from headwater.graph.resources.rows import Rows
from headwater.shapes import Dims, TensorShape, brackets

if TYPE_CHECKING:
    from headwater.graph.resources.containers import Resources

Element = tuple[np.ndarray[Any, Any], ...]
_ROW_BYTES: Final = 64 << 10
"""Size in bytes above which elements are not copied to rows: the copy would cost more than it saves."""


class Waiting(Protocol):
    """Interface of a step that can wait: `wait_until` returns when a predicate holds, or raises if the step is
    cancelled."""

    def wait_until(self, condition: threading.Condition, ready: Callable[[], bool], what: str) -> None: ...


class Queue(ReplicableResource):
    """A first-in, first-out queue with bounded capacity.

    Args:
      name: for messages.
      capacity: maximum number of elements.
      shapes: static shapes of an element's components; empty if not fixed.

    Small elements of known shapes are stored as rows of arrays, so that many of them are added or taken with one copy.
    The queue's items are then positions of rows instead of elements.

    Attributes:
      capacity: maximum number of elements; infinite if unbounded.
    """

    kind = "FIFOQueue"
    _shared = False

    def __init__(self, name: str, capacity: int, shapes: Sequence[Dims]) -> None:
        if capacity == 0 or capacity < -1:
            raise InvalidArgumentError(f"capacity of queue {name!r} must be positive or -1, not {capacity}")
        self.name = name
        self.capacity: float = float("inf") if capacity < 0 else capacity
        self._shapes = tuple(shapes)
        self._condition = threading.Condition()
        self.closed: bool = False
        self._cancelled = False
        # Whether a step has taken a part of the elements that it needs, and waits for the rest. Other steps then wait:
        # otherwise each of two steps could take half of the elements and wait for the other forever.
        self._collecting = False
        # For each enqueue operation of a replicated task that waits for room: the number of elements that it has
        # already added. The next try continues after them.
        self._begun: dict[tuple[Any, ...], int] = {}
        self._rows: Rows | None = None
        self._of_one_shape = (
            bool(self._shapes)
            and self._stores_rows
            and all(dims is not None and None not in dims for dims in self._shapes)
        )

    # Differences between kinds of queues ------------------------------------------------------------------------

    _items: Any = None

    def _start(self) -> None:
        self._items = deque[Any]()

    def _put(self, item: Any) -> None:
        self._items.append(item)

    def _get(self) -> Any:
        return self._items.popleft()

    def _get_some(self, count: int) -> list[Any]:
        return [self._get() for _ in range(count)]

    _held_back = 0
    _stores_rows = True

    def _stack(self, elements: list[Element]) -> Element:
        try:
            return tuple(np.stack(column) for column in zip(*elements, strict=True))
        except ValueError as error:
            raise InvalidArgumentError(
                f"elements of {self} have different shapes and cannot be one batch: {error}"
            ) from None

    # Operations -------------------------------------------------------------------------------------------------

    def enqueue(self, step: Waiting, element: Element, *, exceeds: bool = False) -> None:
        """Adds an element; waits while the queue is full, unless it ``exceeds`` the capacity.

        Raises:
          CancelledError: the queue is closed.
          InvalidArgumentError: a component's shape does not fit.
        """
        self._check_shapes([component.shape for component in element], ())
        with self._condition:
            self._open()
            if not exceeds:
                self._wait_for_room(step)
            self.changes += 1
            self._add(element)
            self._condition.notify_all()

    def _add(self, element: Element) -> None:
        rows = self._rows_for(sum(component.nbytes for component in element))
        if rows is None:
            self._put(element)
        else:
            self._put(rows.add([component[None] for component in element])[0])

    def enqueue_many(self, step: Waiting, batch: Element, *, exceeds: bool = False) -> None:
        """Adds the rows of ``batch`` in order, as many at once as there is room for; all at once if they may exceed the
        capacity."""
        count = batch[0].shape[0] if batch[0].ndim else 0
        self._check_shapes([component.shape for component in batch], (count,))
        with self._condition:
            rows = self._rows_for(sum(component.nbytes for component in batch) // count) if count else None
        alone: list[Element] = []
        if rows is None:
            # Copy each row: a view in the queue would keep the whole batch in memory.
            alone = [tuple(component[row, ...].copy() for component in batch) for row in range(count)]
        # Only steps of replicated tasks have the attribute `operation`. In other steps, this call itself waits until
        # all elements are added, and is never retried.
        key = getattr(step, "operation", None)
        done = 0 if key is None else self._begun.pop(key, 0)
        while done < count:
            with self._condition:
                if not done:
                    self._open()
                try:
                    if not exceeds:
                        self._wait_for_room(step)
                except StillWaitsError:
                    if key is not None and done:
                        self._begun[key] = done
                    raise
                except CancelledError as error:
                    # The next incarnation must not resume this step after a drain: it would add the first elements
                    # again.
                    error.half_done = done > 0
                    raise
                self.changes += 1
                # Add as many elements as there is room for: a batch may be larger than the capacity.
                room = float("inf") if exceeds else self.capacity - len(self._items)
                stop = done + int(min(room, count - done))
                items = alone[done:stop] if rows is None else rows.add([component[done:stop] for component in batch])
                for item in items:
                    self._put(item)
                done = stop
                self._condition.notify_all()

    def dequeue(self, step: Waiting) -> Element:
        """Takes an element, or waits for one. OutOfRangeError if the queue is closed and empty."""
        with self._condition:
            (taken,) = self._remove_elements(step, 1, at_most=False)
            if self._rows is None:
                return taken
            return tuple(column.reshape(column.shape[1:]) for column in self._rows.pop([taken]))

    def peek(self, step: Waiting, index: int) -> Element:
        """Returns the element number ``index``, which stays in the queue, or waits for it."""
        with self._condition:
            step.wait_until(self._condition, lambda: len(self._items) > index, f"element {index} of {self}")
            if self._rows is None:
                return self._items[index]
            return tuple(column.reshape(column.shape[1:]) for column in self._rows.peek([self._items[index]]))

    def clear(self) -> None:
        """Removes all elements."""
        with self._condition:
            self.changes += 1
            removed = self._get_some(len(self._items))
            if self._rows is not None and removed:
                self._rows.pop(removed)
            self._condition.notify_all()

    def dequeue_many(self, step: Waiting, count: int, *, at_most: bool = False) -> Element:
        """Takes ``count`` elements as one batch.

        Args:
          step: the step that may have to wait.
          count: the number of elements.
          at_most: take fewer elements, but at least one, if the queue is closed and has fewer.

        Raises:
          OutOfRangeError: the queue is closed and has too few elements.
        """
        if count < 0:
            raise InvalidArgumentError(f"cannot take {count} elements from {self}")
        if not self._shapes:
            raise InvalidArgumentError(
                f"{self}: DequeueMany and DequeueUpTo require the components to have specified shapes."
            )
        if count == 0:
            return self._empty_batch()
        with self._condition:
            taken = self._remove_elements(step, count, at_most=at_most)
            if self._rows is not None:
                return self._rows.pop(taken)
        return self._stack(taken)

    def dequeue_some(self, step: Waiting, count: int) -> Element:
        """Takes all present elements, at most ``count``, as one batch; waits for the first one.

        Raises:
          OutOfRangeError: the queue is closed and empty.
        """
        with self._condition:
            taken = self._remove_elements(step, 1, at_most=False)
            # Of a closed queue, all elements may be taken: holding some back only serves to mix them with later ones.
            more = len(self._items) - (0 if self.closed else self._held_back)
            if self._rows is not None:
                taken += self._get_some(max(0, min(more, count - 1)))
                self._condition.notify_all()
                return self._rows.pop(taken)
            # A batch has one shape: leave elements of other shapes for the next batch.
            shapes = [component.shape for component in taken[0]]
            while more > 0 and len(taken) < count:
                element = self._get()
                if [component.shape for component in element] != shapes:
                    self._put_back([element])
                    break
                taken.append(element)
                more -= 1
            self._condition.notify_all()
        return tuple(np.stack(column) for column in zip(*taken, strict=True))

    def _empty_batch(self) -> Element:
        if any(dims is None or None in dims for dims in self._shapes) or not self._shapes:
            raise InvalidArgumentError(f"an empty batch of {self} needs fully known shapes")
        return tuple(np.zeros((0, *(d or 0 for d in dims or ()))) for dims in self._shapes)

    def _rows_for(self, size: int) -> Rows | None:
        """Returns the storage for elements of ``size`` bytes; None if each element is stored as separate arrays."""
        # Decided at the first element, since all elements have the same size.
        if self._of_one_shape and self._rows is None:
            if size <= _ROW_BYTES:
                self._rows = Rows(self.capacity)
            else:
                self._of_one_shape = False
        return self._rows

    def _remove_elements(self, step: Waiting, count: int, *, at_most: bool) -> list[Any]:
        """Takes ``count`` elements at once, or in parts if ``count`` exceeds the queue's capacity."""
        taken: list[Any] = []
        most = self.capacity - self._held_back
        # On a replicated task, all effects of an operation are one change. A batch that exceeds the capacity could only
        # be taken in parts, with waits between them.
        if self._shared and count > most:
            raise InvalidArgumentError(
                f"cannot dequeue {count} elements at once from {self}, which is replicated: the maximum is {most:g}"
            )
        with self._condition:
            try:
                while len(taken) < count:
                    missing = count - len(taken)
                    ready = functools.partial(self._may_take, missing, bool(taken))
                    try:
                        step.wait_until(self._condition, ready, f"elements of {self}")
                    except CancelledError as error:
                        raise _cancelled("Dequeue", error.message) from None
                    available = len(self._items)
                    if self.closed and available < missing:
                        if not (at_most and available + len(taken)):
                            raise OutOfRangeError(
                                f"{self} is closed and has insufficient elements "
                                f"(requested {count}, current size {available + len(taken)})"
                            )
                        count = len(taken) + available
                    elif not self.closed:
                        available -= self._held_back
                    self.changes += 1
                    taken += self._get_some(min(count - len(taken), available))
                    self._collecting = len(taken) < count
                    self._condition.notify_all()
            except OpError:
                # A failed step must take nothing: put the elements back in the same order for other steps.
                self._put_back(taken)
                raise
            finally:
                if taken:
                    self._collecting = False
                    self._condition.notify_all()
        return taken

    def _may_take(self, count: int, begun: bool) -> bool:
        """Returns whether a step that needs ``count`` more elements may take some now.

        Args:
          count: number of elements that the step still needs.
          begun: whether the step has taken some elements already.
        """
        if self._collecting and not begun:
            return False
        full = len(self._items) >= self.capacity
        return self.closed or full or len(self._items) - self._held_back >= count

    def _put_back(self, items: list[Any]) -> None:
        self._items.extendleft(reversed(items))

    def _check_shapes(self, shapes: Sequence[tuple[int, ...]], first: tuple[int, ...]) -> None:
        """Raises InvalidArgumentError unless each shape consists of ``first`` and the static shape of its component."""
        for place, found in enumerate(shapes):
            dims = self._shapes[place] if self._shapes else None
            if dims is not None and (*first, *dims) == found:
                continue
            expected = first if dims is None else (*first, *dims)
            given = found[: len(first)] if dims is None else found
            if not TensorShape(expected).is_compatible_with(given):
                raise InvalidArgumentError(
                    f"Shape mismatch in tuple component {place}. Expected {brackets(expected)}, got {brackets(found)} "
                    f"[in {self}]"
                )

    def size(self) -> int:
        """Returns the number of elements in the queue."""
        with self._condition:
            return len(self._items)

    def close(self, cancel_pending: bool = False) -> None:
        """Closes the queue: further elements are refused; elements in the queue can still be taken.

        Args:
          cancel_pending: also cancel enqueue operations that wait for room.

        Raises:
          CancelledError: the queue is closed already, and ``cancel_pending`` is false.
        """
        with self._condition:
            # As in TensorFlow, closing a closed queue is an error, unless it cancels waits.
            if self.closed and not cancel_pending:
                raise CancelledError(f"Queue '{self.name}' is already closed.")
            self.changes += 1
            self.closed = True
            self._cancelled = self._cancelled or cancel_pending
            self._condition.notify_all()

    def close_now(self) -> None:
        """Cancels all waits."""
        self.close(cancel_pending=True)

    def forget_session(self, session: str) -> None:
        """Forgets partial enqueues of a session that has ended."""
        with self._condition:
            for key in [key for key in self._begun if key[0] == session]:
                del self._begun[key]

    # Replication ------------------------------------------------------------------------------------------------------

    @property
    def repeats(self) -> bool:
        return True

    def share(self, lock: threading.RLock) -> None:
        self._condition, self._shared = threading.Condition(lock), True
        self._of_one_shape = False  # the state that is sent to the backup has elements

    def state(self) -> ResourceState:
        words = self._constructor_arguments(), self.closed, self._cancelled, list(self._begun.items())
        return ResourceState(words, pack_elements(self._held()))

    def install_state(self, state: ResourceState) -> None:
        _, self.closed, self._cancelled, begun = state.words
        self._begun = {tuple(key): done for key, done in begun}
        self._start()
        for element in unpack_elements(state.arrays):
            self._add(element)

    def _constructor_arguments(self) -> tuple[Any, ...]:
        """Returns the arguments of the queue's constructor."""
        return self.name, -1 if self.capacity == float("inf") else self.capacity, self._shapes

    def _held(self) -> list[Element]:
        """Returns the elements of the queue, in the order for `_put`."""
        items = list(self._items)
        if self._rows is None or not items:
            return items
        columns = self._rows.peek(items)
        return [tuple(column[row, ...] for column in columns) for row in range(len(items))]

    @classmethod
    def made_of(cls, state: ResourceState, resources: Resources) -> Queue:
        del resources
        (name, capacity, shapes, *more), *_ = state.words
        return cls(name, capacity, [None if dims is None else tuple(dims) for dims in shapes], *more)

    def _wait_for_room(self, step: Waiting) -> None:
        """Waits for room. Closing the queue ends this wait only if it also cancels pending operations: otherwise a step
        that began to wait before the closure may still add its elements, as in TensorFlow."""
        try:
            step.wait_until(
                self._condition, lambda: len(self._items) < self.capacity or self._cancelled, f"room in {self}"
            )
        except CancelledError as error:
            raise _cancelled("Enqueue", error.message) from None
        if self._cancelled:
            raise _cancelled("Enqueue", f"{self} is closed.")

    def _open(self) -> None:
        if self.closed:
            raise CancelledError(f"{self} is closed.")

    def __str__(self) -> str:
        return f"{self.kind} '{self.name}'"


def _cancelled(operation: str, why: str) -> CancelledError:
    """Returns the error of a cancelled wait, in the wording that programs check for."""
    return CancelledError(f"{operation} operation was cancelled: {why}")


class FifoQueue(Queue):
    """First in, first out."""

    def __init__(self, name: str, capacity: int, shapes: Sequence[Dims]) -> None:
        super().__init__(name, capacity, shapes)
        self._start()


class PaddingQueue(FifoQueue):
    """First in, first out; elements of a batch are padded with zeros to the largest one."""

    kind = "PaddingFIFOQueue"

    def _stack(self, elements: list[Element]) -> Element:
        columns: list[np.ndarray[Any, Any]] = []
        for column in zip(*elements, strict=True):
            shape = np.max([component.shape for component in column], axis=0)
            dtype = column[0].dtype
            batch = (
                np.full((len(column), *shape), b"", dtype)
                if dtype.hasobject
                else np.zeros((len(column), *shape), dtype)
            )
            for row, component in enumerate(column):
                batch[(row, *(slice(0, size) for size in component.shape), ...)] = component
            columns.append(batch)
        return tuple(columns)


class ShuffleQueue(Queue):
    """Returns elements in random order.

    Args:
      name, capacity, shapes: see `Queue`.
      min_after_dequeue: minimum number of elements left in the queue while it is open, to keep the order random.
      seed: seed of the order; None for a different order every time.
    """

    kind = "RandomShuffleQueue"

    def __init__(
        self, name: str, capacity: int, shapes: Sequence[Dims], min_after_dequeue: int, seed: int | None
    ) -> None:
        super().__init__(name, capacity, shapes)
        self._seed = seed
        if min_after_dequeue < 0 or min_after_dequeue >= self.capacity:
            raise InvalidArgumentError(
                f"min_after_dequeue {min_after_dequeue} must be less than capacity {capacity} ({name!r})"
            )
        self._held_back = min_after_dequeue
        self._random = np.random.default_rng(seed)
        self._start()

    def _start(self) -> None:
        self._items: list[Any] = []

    def _constructor_arguments(self) -> tuple[Any, ...]:
        return *super()._constructor_arguments(), self._held_back, self._seed

    def state(self) -> ResourceState:
        words, arrays = super().state()
        # With the state of the generator, the backup continues the same order.
        return ResourceState((*words, json.dumps(self._random.bit_generator.state)), arrays)

    def install_state(self, state: ResourceState) -> None:
        *words, order = state.words
        super().install_state(ResourceState(words, state.arrays))
        self._random.bit_generator.state = json.loads(order)

    def _get(self) -> object:
        return self._get_some(1)[0]

    def _get_some(self, count: int) -> list[Any]:
        items = self._items
        taken: list[Any] = []
        # One call for all draws gives the same numbers as a call for each draw, so the order of elements does not
        # depend on the size of blocks. `random` takes half the time of `integers`.
        for drawn in self._random.random(count).tolist():
            index = int(drawn * len(items))
            # Swapping with the last element makes the removal independent of the size of the queue.
            items[index], items[-1] = items[-1], items[index]
            taken.append(items.pop())
        return taken

    def _put_back(self, items: list[object]) -> None:
        self._items.extend(items)


class PriorityQueue(Queue):
    """Returns the element with the smallest first component, an integer; the oldest of equal ones."""

    kind = "PriorityQueue"
    _stores_rows = False

    def __init__(self, name: str, capacity: int, shapes: Sequence[Dims]) -> None:
        super().__init__(name, capacity, shapes)
        self._start()

    def _start(self) -> None:
        self._items: list[tuple[int, int, Element]] = []
        self._order = itertools.count()

    def _held(self) -> list[Element]:
        # Sort by priority and arrival: a queue that is filled from this list, on the backup, then also keeps the order
        # of arrival among equal priorities.
        return [element for _, _, element in sorted(self._items, key=lambda item: item[:2])]

    def _put(self, item: Element) -> None:
        # The order of arrival decides between equal priorities; elements themselves cannot be compared.
        heapq.heappush(self._items, (int(item[0]), next(self._order), item))

    def _get(self) -> Element:
        return heapq.heappop(self._items)[2]

    def _put_back(self, items: list[Any]) -> None:
        for item in items:
            self._put(item)
