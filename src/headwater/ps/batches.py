"""Batches of a worker whose examples are accounted for: by range, from arrays in memory or any indexed source."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol

import jax
import numpy as np
from numpy.typing import NDArray

from headwater.data.dataset import Dataset
from headwater.data.indexed import require_examples
from headwater.data.numbered import NumberedElements
from headwater.errors import DataLossError
from headwater.ps import protocol
from headwater.ps.accounting.ledger import Plan, Work
from headwater.ps.accounting.order import shuffled
from headwater.ps.client import ParameterClient
from headwater.ps.step_requests import Returned, StepRequest, request_fields
from headwater.ps.updater import Array

_tree: Any = jax.tree_util


Rows = Callable[[Any], Any]
"""Returns the examples with the given numbers: an array of numbers, or a slice."""


class Indexed(Protocol):
    """A source of examples: an array, or any object with one row for each example."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: object, /) -> object: ...


class Source:
    """The examples of a program, by their positions in an epoch.

    Args:
      source: an `Indexed`, or a pytree of several that have the same length; or a dataset that yields one example at a
        time.
      batch_size, shuffle, seed, tries: see `headwater.ps.accounting.ledger.Plan`.

    Attributes:
      plan: division of an epoch of these examples into ranges.

    Raises:
      ValueError, TypeError: an argument is invalid.
    """

    def __init__(self, source: object, *, batch_size: int, shuffle: bool, seed: int | None, tries: int) -> None:
        if not isinstance(shuffle, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"shuffle must be True or False, not {shuffle!r}")
        if isinstance(source, Dataset):
            size, self._rows = _dataset_rows(source, shuffle=shuffle)
        else:
            size, self._rows = _array_rows(source)
        self.plan = Plan(size=size, batch=batch_size, tries=tries, shuffle=shuffle, seed=seed)
        self._orders: dict[tuple[int, int], NDArray[np.int64]] = {}

    def read_range(self, work: Work, seed: int) -> Any:
        """Returns the examples of a range.

        Args:
          work: the range.
          seed: the seed for the orders of the epochs.
        """
        places = slice(work.start, work.stop)
        return self._rows(self._order(seed, work.epoch)[places] if self.plan.shuffle else places)

    def _order(self, seed: int, epoch: int) -> NDArray[np.int64]:
        known = self._orders.get((seed, epoch))
        if known is None:
            while len(self._orders) > 1:  # ranges of at most two epochs are in use at a time
                del self._orders[min(self._orders)]
            known = self._orders[seed, epoch] = shuffled(seed, epoch, self.plan.size)
        return known


def _array_rows(source: object) -> tuple[int, Rows]:
    leaves, structure = _tree.tree_flatten_with_path(source)
    if not leaves:
        raise ValueError("source has no examples: it is an empty structure")
    for path, leaf in leaves:
        if not (hasattr(leaf, "__len__") and hasattr(leaf, "__getitem__")):
            raise TypeError(f"source{_tree.keystr(path)} has no examples: it is {type(leaf).__name__}")
    columns: list[Indexed] = [leaf for _, leaf in leaves]
    sizes = {len(column) for column in columns}
    if len(sizes) != 1:
        raise ValueError(f"the parts of source must have equally many examples, not {sorted(sizes)}")

    def rows(index: object) -> Any:
        return _tree.tree_unflatten(structure, [column[index] for column in columns])

    return sizes.pop(), rows


def _dataset_rows(source: Dataset, *, shuffle: bool) -> tuple[int, Rows]:
    require_examples(source.node, shuffle=shuffle)
    numbered = NumberedElements(source)
    if numbered.changes:
        raise ValueError(
            f"source is a dataset with {numbered.changes}, which may yield different examples on each worker: store "
            "its examples in a file or in memory, equally on all workers"
        )
    if numbered.count < 1:
        raise ValueError(f"source is a dataset with {'no end' if numbered.count else 'no examples'}")

    numbers = np.arange(numbered.count)

    def rows(index: Any) -> Any:
        return numbered.rows(numbers[index])

    return numbered.count, rows


class Examples:
    """The ranges of examples that were assigned to a worker, and whose gradients it has not pushed yet.

    Args:
      client: the worker's client.

    Attributes:
      asked: whether the worker has asked for ranges.
    """

    def __init__(self, client: ParameterClient) -> None:
        self._client = client
        self.asked: bool = False
        self._next_epoch = 0
        self._step_request: StepRequest | None = None
        self._step_number = protocol.NOTHING_YET
        self._ahead: tuple[Work, int] | str | None = None
        self._taken: list[Work] = []
        self._returned: list[Returned] = []

    def step_request(self, training: int, epochs: int, plan: Plan) -> StepRequest:
        """Returns the request for the next ``epochs`` epochs."""
        self.asked = True
        first, self._next_epoch = self._next_epoch, self._next_epoch + epochs
        return training, self._next_epoch - 1, protocol.UNKNOWN_STEPS, -1, request_fields(first, plan)

    def ranges(self, step_request: StepRequest) -> Generator[tuple[Work, int]]:
        """Yields ranges for this worker, each with the seed of the epoch's order, until all epochs are over.

        Raises:
          DataLossError: some examples were set aside.
        """
        self._step_request, self._ahead, self._step_number = step_request, None, protocol.NOTHING_YET
        # The program may leave its loop at any time; a range that was assigned in advance must then be returned.
        try:
            while (assigned_work := self._next(step_request)) is not None:
                self._taken.append(assigned_work[0])
                yield assigned_work
        finally:
            self._end()

    def _end(self) -> None:
        """Arranges that the next request returns the range that was assigned in advance."""
        if isinstance(self._ahead, tuple):
            self._returned.append((self._ahead[0], ""))
        self._step_request = self._ahead = None

    def _next(self, step_request: StepRequest) -> tuple[Work, int] | None:
        client = self._client
        while self._ahead is None and self._step_number == protocol.NOTHING_YET:
            returned, self._returned = self._returned, []
            self._step_number, self._ahead = client.next_step(step_request, returned), client.assigned_work
            if self._step_number == protocol.NOTHING_YET and not client.wait_without_data(step_request) and self._taken:
                return None  # this worker itself holds the remaining ranges, and must push their gradients first
        assigned_work, self._ahead = self._ahead, None
        if isinstance(assigned_work, str):
            raise DataLossError(f"these ranges of examples were set aside: {assigned_work}")
        if assigned_work is not None:
            self._step_number = protocol.NOTHING_YET
        return assigned_work

    def return_failed(self, reason: str, work: Work | None = None) -> None:
        """Returns to the first ``ps`` a range that this worker failed to compute, or all of its ranges if ``work`` is
        None."""
        for one in [work] if work is not None else list(self._taken):
            self._taken.remove(one)
            self._returned.append((one, reason))

    def push(self, gradients: Sequence[Array], *, weight: float = 1.0, hyperparameters: Sequence[float] = ()) -> bool:
        """Pushes the gradient of the held ranges; returns whether it was accepted, see `ParameterClient.push`."""
        works, self._taken = self._taken, []
        returned, self._returned = self._returned, []
        # Request the next range with the push, in one round trip, unless one was assigned ahead.
        step_request = self._step_request if self._ahead is None else None
        step_number, applied = self._client.push(
            gradients,
            weight=weight,
            hyperparameters=hyperparameters,
            step_request=step_request,
            works=works,
            returned=returned,
        )
        if step_request is not None:
            self._step_number, self._ahead = step_number, self._client.assigned_work
        return applied
