"""Batches by number: step 17 of an epoch is the same examples on every worker.

Examples of arrays, and whole batches of a `keras.utils.PyDataset`, are accounted for, see `headwater.accounting`.

Arrays and `keras.utils.PyDataset` are looked up. Everything else is iterated: every worker goes over all of it and
takes what it needs, so that any of them can do any step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import keras
import numpy as np

from headwater.accounting.ledger import Plan, Work
from headwater.accounting.order import shuffled
from headwater.keras.datasets import is_dataset
from headwater.keras.internals import data_adapter_utils, data_adapters, tree
from headwater.keras.programs import contents, elements

if TYPE_CHECKING:
    from headwater.keras.types import Tree
    from headwater.registry import HostArray

_adapters = data_adapters
_utils = data_adapter_utils


class Batches(Protocol):
    """The batches of a training."""

    @property
    def steps(self) -> int | None:
        """How many an epoch has; None where that is unknown before its end."""
        ...

    def first(self) -> Tree:
        """Some batch, for its shapes."""
        ...

    @property
    def alike(self) -> bool:
        """Whether the shapes of `first` are the same on all tasks."""
        ...

    def settings(self) -> dict[str, object]:
        """What all workers must have alike."""
        ...

    def contents(self) -> str:
        """A digest of some of the data, where all of them are at hand; else empty."""
        ...

    def begin(self, seed: int) -> None:
        """All workers agree on ``seed``."""
        ...

    def get(self, epoch: int, step: int) -> Tree:
        """The batch of a step; None where the data end before it."""
        ...

    def plan(self, *, divided: bool) -> Plan | None:
        """How an epoch is handed out where examples are accounted for; None where they are not.

        Args:
          divided: whether workers share each batch.
        """
        ...

    def take(self, work: Work, seed: int) -> Tree:
        """The examples of a range of such an epoch; ``seed`` is that of its order."""
        ...


class ArrayBatches:
    """Batches of arrays of which each has one row for each example.

    Args:
      data: ``(x, y, sample_weight)`` or a part of it; structures of arrays.
      batch_size: examples in a batch.
      shuffle: whether each epoch has an order of its own.
      steps: how many batches an epoch has; None for all there are.
    """

    def __init__(self, data: Tree, *, batch_size: int, shuffle: bool, steps: int | None) -> None:
        self._data = tree.map_structure(_as_array, data, none_is_leaf=False)
        rows = {len(leaf) for leaf in tree.flatten(self._data) if leaf is not None}
        if len(rows) != 1:
            raise ValueError(f"x, y and sample_weight must have equally many examples, not {sorted(rows)}")
        self._rows = rows.pop()
        self._batch_size = batch_size
        self._shuffle = shuffle
        self._steps = steps
        self._seed = 0
        self._order: tuple[tuple[int, int], Any] = ((-1, -1), None)

    @property
    def steps(self) -> int | None:
        whole = -(-self._rows // self._batch_size)
        return whole if self._steps is None else min(whole, self._steps)

    def first(self) -> Tree:
        return self._take(np.arange(min(self._batch_size, self._rows)))

    @property
    def alike(self) -> bool:
        return True

    def settings(self) -> dict[str, object]:
        return {
            "number of examples": self._rows,
            "batch_size": self._batch_size,
            "number of steps": self.steps,
            "shuffle": self._shuffle,
            "type of an example": elements(self.first()),
        }

    def contents(self) -> str:
        return contents(self._data)

    def begin(self, seed: int) -> None:
        self._seed = seed

    def get(self, epoch: int, step: int) -> Tree:
        start = step * self._batch_size
        if start >= self._rows:
            return None
        return self.take(Work(epoch, start, min(start + self._batch_size, self._rows)), self._seed)

    def plan(self, *, divided: bool) -> Plan:
        size = self._rows if self._steps is None else min(self._rows, self._steps * self._batch_size)
        unit = "examples" if size == self._rows or not self._shuffle else "places"
        return Plan(size=size, batch=self._batch_size, shuffle=self._shuffle, unit=unit)

    def take(self, work: Work, seed: int) -> Tree:
        places = slice(work.start, work.stop)
        if not self._shuffle:
            return self._take(places)
        if self._order[0] != (seed, work.epoch):
            self._order = (seed, work.epoch), shuffled(seed, work.epoch, self._rows)
        return self._take(self._order[1][places])

    def _take(self, rows: object) -> Tree:
        def take(leaf: Tree) -> Tree:
            return leaf[rows]

        return tree.map_structure(take, self._data, none_is_leaf=False)


class PyDatasetBatches:
    """Batches of a `keras.utils.PyDataset`."""

    def __init__(self, data: Tree, steps: int | None) -> None:
        self._data = data
        self._steps = steps
        self._epoch = 0

    @property
    def steps(self) -> int | None:
        return self._steps if self._steps is not None else self._data.num_batches

    def first(self) -> Tree:
        return self._data[0]

    @property
    def alike(self) -> bool:
        return False

    def settings(self) -> dict[str, object]:
        return {"number of steps": self.steps, "type of an example": elements(self.first())}

    def contents(self) -> str:
        return ""

    def begin(self, seed: int) -> None:
        del seed
        self._epoch = 0

    def get(self, epoch: int, step: int) -> Tree:
        if epoch > self._epoch:
            self._data.on_epoch_end()
            self._epoch = epoch
        count = self._data.num_batches
        if count is None:
            return self._data[step]
        if self._steps is not None:
            return self._data[(epoch * self._steps + step) % count]
        return self._data[step] if step < count else None

    def plan(self, *, divided: bool) -> Plan | None:
        steps = self.steps
        return None if steps is None or divided else Plan(size=steps, batch=1, shuffle=False, unit="batches")

    def take(self, work: Work, seed: int) -> Tree:
        return self.get(work.epoch, work.start)


class IteratedBatches:
    """Batches of whatever can be iterated; with ``steps``, epochs go on where the one before has ended.

    Args:
      data: a dataset, a generator, or anything else to go over. Shuffles of a dataset that have no seed get one that
        all workers share; other data must come in one order by themselves.
      steps: batches in an epoch; None for all there are.
      class_weight: see `keras.Model.fit`.
    """

    def __init__(self, data: Tree, steps: int | None, class_weight: object = None) -> None:
        self._data = data
        self._class_weight = class_weight
        self._steps = steps
        self._once = iter(data) is data
        self._iterator: Iterator[object] | None = None
        self._next = 0
        self._epoch = -1
        self._ahead: list[object] = []

    @property
    def steps(self) -> int | None:
        if self._steps is not None:
            return self._steps
        count: Any = getattr(self._data, "cardinality", None)
        known: Any = count() if callable(count) else -1
        return int(known) if int(known) >= 0 else None

    def first(self) -> Tree:
        if self._ahead:
            return self._ahead[0]
        batch = next(iter(self._data))
        if self._once:
            self._ahead = [batch]
        return batch

    @property
    def alike(self) -> bool:
        return False

    def settings(self) -> dict[str, object]:
        return {"number of steps": self.steps, "type of an example": elements(self.first())}

    def contents(self) -> str:
        return ""

    def begin(self, seed: int) -> None:
        if is_dataset(self._data):
            self._data = self._data.distributed(1, 0, seed=seed)
            self._iterator = None

    def get(self, epoch: int, step: int) -> Tree:
        if self._steps is not None:
            return self._at(epoch * self._steps + step)
        if epoch != self._epoch and not self._once:
            self._iterator, self._next = None, 0
        self._epoch = epoch
        return self._at(step)

    def plan(self, *, divided: bool) -> None:
        return None

    def take(self, work: Work, seed: int) -> Tree:
        return self.get(work.epoch, work.start)

    def _at(self, number: int) -> object:
        iterator = self._iterator
        if iterator is None or (number < self._next and not self._once):
            iterator, self._next = iter(self._data), 0
            self._iterator = iterator
        batch: Tree = None
        while self._next <= number:
            batch = self._ahead.pop() if self._ahead else next(iterator, None)
            self._next += 1
            if batch is None:
                return None
        if self._class_weight is None:
            return batch
        x, y, _ = _utils.unpack_x_y_sample_weight(batch)
        return x, y, _utils.class_weight_to_sample_weights(np.asarray(y), self._class_weight)


def make_batches(
    x: Tree,
    y: Tree | None = None,
    sample_weight: Tree | None = None,
    *,
    batch_size: int | None,
    shuffle: bool | str,
    class_weight: object,
    steps: int | None,
) -> Batches:
    """The batches that `keras.Model.fit` makes of these arguments."""
    if isinstance(x, keras.utils.PyDataset):
        return PyDatasetBatches(x, steps)
    if _adapters.array_data_adapter.can_convert_arrays((x, y, sample_weight)):
        if class_weight is not None:
            sample_weight = _utils.class_weight_to_sample_weights(y, class_weight)
        data = (x,) if y is None else (x, y) if sample_weight is None else (x, y, sample_weight)
        return ArrayBatches(data, batch_size=batch_size or 32, shuffle=bool(shuffle), steps=steps)
    if y is not None or sample_weight is not None:
        raise ValueError("y and sample_weight go with arrays; other data hold them themselves")
    return IteratedBatches(x, steps, class_weight)


def rows_of(batch: Tree) -> int:
    """How many examples ``batch`` has."""
    return min(len(leaf) for leaf in tree.flatten(batch) if leaf is not None)


def share_of(batch: Tree, index: int, count: int) -> tuple[Any, int]:
    """The rows of ``batch`` that worker ``index`` of ``count`` is to compute, as arrays, and how many they are.

    A share without rows is one row that counts for nothing: a worker without any takes part all the same.
    """
    batch = tree.map_structure(_as_array, batch, none_is_leaf=False)
    rows = rows_of(batch)
    start, stop = rows * index // count, rows * (index + 1) // count
    if count == 1:
        return batch, rows
    taken = slice(start, stop) if stop > start else slice(0, 1)

    def take(leaf: Tree) -> Tree:
        return leaf[taken]

    return tree.map_structure(take, batch, none_is_leaf=False), stop - start


def _as_array(leaf: Tree) -> HostArray:
    array = np.asarray(leaf)
    return array.astype(np.float32) if array.dtype == np.float64 else array
