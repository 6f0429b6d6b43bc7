"""Access to batches by number, so that step 17 of an epoch, for example, has the same examples on every worker.

If data can be read in any order, the ``ps`` account for the examples that each worker gets, so that each example is
applied once (`headwater.ps.accounting`). The unit of accounting is one example for arrays. For a
`keras.utils.PyDataset`, a dataset, and any other object that has a length and returns batches by number, it is one
batch, or a part of a batch if workers share each batch.

All other data are iterated: every worker iterates over all batches and uses the batches of its own steps, so that any
worker can make any step.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from types import GeneratorType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import keras
import numpy as np

from headwater.data.numbered import NumberedElements
from headwater.keras.datasets import is_dataset, require_dense_leaf
from headwater.keras.embeddings.bags import Bags, as_leaf, with_bags
from headwater.keras.internals import data_adapter_utils, data_adapters, tree
from headwater.keras.programs import contents, elements
from headwater.ps.accounting.ledger import Plan, Work
from headwater.ps.accounting.order import shuffled

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray
    from headwater.keras.types import Tree

_adapters = data_adapters
_utils = data_adapter_utils

#: Number of batches of a generator that Keras reads ahead, stores, and repeats after the generator has ended.
_KEPT: Any = data_adapter_utils.NUM_BATCHES_FOR_TENSOR_SPEC


class Share(NamedTuple):
    """The rows of a batch from which one worker computes gradients.

    Attributes:
      data: the rows, as arrays; an empty share has one row, whose weight must be zero.
      rows: number of rows of the share; 0 for an empty one.
      whole: number of rows of the batch.
      batch: returns the whole batch.
      first: whether these are the first rows of the batch.
    """

    data: Any
    rows: int
    whole: int
    batch: Callable[[], Any]
    first: bool


class Batches(Protocol):
    """The batches of a training."""

    @property
    def reason(self) -> str:
        """The reason why the batches are not accounted for, as text for messages; empty if they are accounted for."""
        ...

    @property
    def steps(self) -> int | None:
        """Number of batches of an epoch; None if it is unknown before its end."""
        ...

    def first(self) -> Tree:
        """Returns a sample batch, from which the shapes and types of all batches are taken."""
        ...

    @property
    def same_shapes_everywhere(self) -> bool:
        """Whether the shapes of `first` are the same on all tasks."""
        ...

    def settings(self) -> dict[str, object]:
        """The settings that must be equal on all workers."""
        ...

    def contents(self) -> str:
        """A digest of a sample of the data, if all data are in memory; else empty."""
        ...

    def start_training(self, seed: int, first_epoch: int = 0) -> None:
        """Begins a training with the workers' common ``seed``. Epoch ``first_epoch`` begins with the first batch."""
        ...

    def steps_of(self, epoch: int) -> int | None:
        """Number of batches of an epoch; None if unknown before its end."""
        ...

    def get(self, epoch: int, step: int) -> Tree:
        """The batch of a step; None if the data end before this step."""
        ...

    def plan(self, epoch: int, *, divided: bool) -> Plan | None:
        """The plan that distributes an epoch's examples if they are accounted for; else None.

        Args:
          epoch: the epoch's number.
          divided: whether workers share each batch.
        """
        ...

    def load_range(self, work: Work, seed: int) -> Share:
        """The examples of a range of a planned epoch; ``seed`` defines their order."""
        ...


class Span(NamedTuple):
    """The batches of an epoch.

    Attributes:
      iteration: the number of complete passes over the data before the epoch.
      start: the number of the first batch within that pass.
      steps: number of batches; None if unknown.
    """

    iteration: int
    start: int
    steps: int | None


def span_of(epoch: int, count: int, steps: int | None) -> Span:
    """The batches of an epoch, as in `keras.Model.fit`.

    With ``steps``, an epoch continues where the previous one ended; after the last batch of the data, the next epoch
    begins with the first batch.

    Args:
      epoch: from 0.
      count: number of batches in the data; negative if unknown or infinite.
      steps: ``steps_per_epoch``.
    """
    if steps is None:
        return Span(epoch, 0, count if count >= 0 else None)
    if count < 1:
        return Span(0, epoch * steps, steps if count else 0)
    iteration, part = divmod(epoch, -(-count // steps))
    return Span(iteration, part * steps, min(steps, count - part * steps))


class _Spans:
    """Finds the batches of an epoch from the number of batches in the data, which may be unknown or infinite."""

    _steps: int | None
    _first_epoch = 0

    @property
    def count(self) -> int:
        """Number of batches in the data; negative if unknown or infinite."""
        raise NotImplementedError

    @property
    def steps(self) -> int | None:
        return self.span(self._first_epoch).steps

    def steps_of(self, epoch: int) -> int | None:
        return self.span(epoch).steps

    def span(self, epoch: int) -> Span:
        """The batches of an epoch."""
        return span_of(epoch - self._first_epoch, self.count, self._steps)


class ArrayBatches(_Spans):
    """Batches of arrays with one row for each example; always accounted for.

    Args:
      data: ``(x, y, sample_weight)`` or a part of it; structures of arrays.
      batch_size: examples in a batch.
      shuffle: whether each epoch has a different order.
      steps: number of batches of an epoch; None for all.
    """

    reason: str = ""

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
    def count(self) -> int:
        return -(-self._rows // self._batch_size)

    def first(self) -> Tree:
        return self._select_rows(np.arange(min(self._batch_size, self._rows)))

    @property
    def same_shapes_everywhere(self) -> bool:
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

    def start_training(self, seed: int, first_epoch: int = 0) -> None:
        self._seed, self._first_epoch = seed, first_epoch

    def get(self, epoch: int, step: int) -> Tree:
        start = step * self._batch_size
        stop = min(start + self._batch_size, self._size(epoch))
        return self._examples(Work(epoch, start, stop), self._seed) if start < stop else None

    def _size(self, epoch: int) -> int:
        """Examples in an epoch."""
        _, start, steps = self.span(epoch)
        assert steps is not None
        return min(steps * self._batch_size, self._rows - start * self._batch_size)

    def plan(self, epoch: int, *, divided: bool) -> Plan:
        size = self._size(epoch)
        unit = "examples" if size == self._rows else "places"
        return Plan(size=size, batch=self._batch_size, shuffle=self._shuffle, unit=unit)

    def load_range(self, work: Work, seed: int) -> Share:
        begin = work.start - work.start % self._batch_size
        whole = min(self._size(work.epoch) - begin, self._batch_size)
        batch = Work(work.epoch, begin, begin + whole)
        return Share(
            self._examples(work, seed),
            work.stop - work.start,
            whole,
            lambda: self._examples(batch, seed),
            work.start == begin,
        )

    def _examples(self, work: Work, seed: int) -> Tree:
        iteration, first, _ = self.span(work.epoch)
        first *= self._batch_size
        places = slice(first + work.start, first + work.stop)
        if not self._shuffle:
            return self._select_rows(places)
        # Without ``steps``, every epoch is one pass over the data, and the epoch's number defines the order. The number
        # of passes is unsuitable: it counts from the first epoch of this run, but a restarted program must continue
        # with the same orders.
        number = work.epoch if self._steps is None else iteration
        if self._order[0] != (seed, number):
            self._order = (seed, number), shuffled(seed, number, self._rows)
        return self._select_rows(self._order[1][places])

    def _select_rows(self, rows: object) -> Tree:
        def select_rows(leaf: Tree) -> Tree:
            return leaf[rows]

        return tree.map_structure(select_rows, self._data, none_is_leaf=False)


class _WholeBatches(_Spans):
    """Batches that the data return by number, each as a whole."""

    _places = 0

    def first(self) -> Tree:
        """Returns a sample batch, from which the shapes and types of all batches are taken."""
        raise NotImplementedError

    def batch(self, epoch: int, number: int) -> Tree:
        """A batch of an epoch."""
        raise NotImplementedError

    @property
    def same_shapes_everywhere(self) -> bool:
        return False

    @property
    def reason(self) -> str:
        return "" if self.steps_of(0) is not None else "the number of batches is not known; set steps_per_epoch"

    def contents(self) -> str:
        return ""

    def plan(self, epoch: int, *, divided: bool) -> Plan | None:
        steps = self.steps_of(epoch)
        if not steps:
            return None
        # If workers share batches, each batch has as many positions in the plan as the first batch has rows. If a batch
        # has another number of rows, they are divided proportionally among its positions.
        self._places = rows_of(self.first()) if divided else 1
        unit = "parts" if divided else "batches"
        return Plan(size=steps * self._places, batch=self._places, shuffle=False, unit=unit)

    def load_range(self, work: Work, seed: int) -> Share:
        places = self._places
        number, start = divmod(work.start, places)
        return part_of(self.batch(work.epoch, number), start, work.stop - number * places, places)


class PyDatasetBatches(_WholeBatches):
    """Batches of a `keras.utils.PyDataset`.

    Args:
      data: the dataset.
      steps: batches in an epoch; None for all batches of the data.
      class_weight: see `keras.Model.fit`.
      shuffle: whether to reorder the batches in each pass; ignored if their number is unknown.
      builds: whether Keras builds the model with the first batch that it reads.
    """

    def __init__(
        self, data: Any, steps: int | None, class_weight: object = None, *, shuffle: bool = False, builds: bool = False
    ) -> None:
        self._data = data
        # Keras restarts the threads or processes that read the data, but not their count of items. If Keras has built
        # the model with item 0, training therefore begins with item 1, and each pass ends with item 0.
        concurrent = data.workers > 1 or (data.workers > 0 and data.use_multiprocessing)
        self._first_item = int(builds and concurrent)
        self._steps = steps
        self._class_weight = class_weight
        self._shuffle = shuffle
        self._seed = 0
        self._epoch = -1
        self._order: tuple[int, Any] = (-1, None)

    @property
    def count(self) -> int:
        count = self._data.num_batches
        return -1 if count is None else int(count)

    def first(self) -> Tree:
        return _add_class_weights(self._data[0], self._class_weight)

    def settings(self) -> dict[str, object]:
        return {"number of steps": self.steps, "shuffle": self._shuffle, "type of an example": elements(self.first())}

    def start_training(self, seed: int, first_epoch: int = 0) -> None:
        self._seed, self._first_epoch, self._epoch = seed, first_epoch, -1
        self._order = (-1, None)

    def get(self, epoch: int, step: int) -> Tree:
        steps = self.steps_of(epoch)
        return self.batch(epoch, step) if steps is None or step < steps else None

    def batch(self, epoch: int, number: int) -> Tree:
        if epoch > self._epoch:
            if self._epoch >= 0:
                self._data.on_epoch_end()
            self._data.on_epoch_begin()
            self._epoch = epoch
        iteration, start, _ = self.span(epoch)
        item = self._first_item + start + number
        if self.count > 0:
            item %= self.count
            if self._shuffle:
                if self._order[0] != iteration:
                    self._order = iteration, shuffled(self._seed, iteration, self.count)
                item = int(self._order[1][item])
        return _add_class_weights(self._data[item], self._class_weight)


class _Items:
    """Adapts a sequence of batches to the interface of `NumberedElements`."""

    def __init__(self, data: Tree) -> None:
        self._data = data
        self.count: int = len(data)

    def element(self, number: int, iteration: int = 0) -> Tree:
        del iteration
        return self._data[number]


class NumberedBatches(_WholeBatches):
    """Batches of a dataset, or of a sequence of batches.

    With ``steps``, an epoch continues where the previous one ended; after the last batch, the next epoch begins with
    the first batch, as in `keras.Model.fit`.

    Args:
      data: a dataset with reproducible batches; or any object with ``len`` that returns batches by number.
      steps: batches in an epoch; None for all batches of the data.
      class_weight: see `keras.Model.fit`.
    """

    def __init__(self, data: Tree, steps: int | None, class_weight: object = None) -> None:
        self._data = data
        self._class_weight = class_weight
        self._steps = steps
        self._batches: Any = NumberedElements(data) if is_dataset(data) else _Items(data)

    @property
    def count(self) -> int:
        return self._batches.count

    def first(self) -> Tree:
        return self._element(0, 0)

    def settings(self) -> dict[str, object]:
        return {"number of steps": self.steps, "type of an example": elements(self.first())}

    def start_training(self, seed: int, first_epoch: int = 0) -> None:
        self._first_epoch = first_epoch
        if is_dataset(self._data):
            count = self._batches.count
            self._batches = NumberedElements(self._data.distributed(1, 0, seed=seed))
            self._batches.count = count

    def get(self, epoch: int, step: int) -> Tree:
        steps = self.steps_of(epoch)
        return self.batch(epoch, step) if steps is None or step < steps else None

    def batch(self, epoch: int, number: int) -> Tree:
        iteration, start, _ = self.span(epoch)
        return self._element(start + number, iteration)

    def _element(self, number: int, iteration: int) -> Tree:
        return _add_class_weights(self._batches.element(number, iteration), self._class_weight)


class IteratedBatches(_Spans):
    """Batches of any iterable; with ``steps``, an epoch continues where the previous one ended.

    An epoch ends early if the data end; the next epoch begins another iteration. A generator cannot be restarted: as in
    Keras, later iterations repeat its first two batches, which were stored.

    Args:
      data: a dataset, a generator, or any other iterable. Shuffles of a dataset without a seed get a seed that all
        workers share; other data must have the same order on all workers.
      steps: batches in an epoch; None for all batches of the data.
      class_weight: see `keras.Model.fit`.
      reason: the reason why the batches are not accounted for.

    Raises:
      ValueError: a generator has no batch.
    """

    def __init__(self, data: Tree, steps: int | None, class_weight: object = None, reason: str = "") -> None:
        self.reason = reason
        self._data = data
        self._class_weight = class_weight
        self._steps = steps
        self._once = iter(data) is data
        self._kept: list[Tree] = list(itertools.islice(data, _KEPT)) if self._once else []
        if self._once and not self._kept:
            raise ValueError("x yields no batch: an iterator must yield at least one")
        self._iterator: Iterator[Tree] = itertools.chain(self._kept, data) if self._once else iter(())
        self._iteration = 0 if self._once else -1
        self._next = 0
        self._length: int | None = None

    @property
    def count(self) -> int:
        count: Any = getattr(self._data, "cardinality", None)
        known: Any = count() if callable(count) else -1
        return int(known)

    def first(self) -> Tree:
        return with_bags(self._kept[0] if self._once else next(iter(self._data)))

    @property
    def same_shapes_everywhere(self) -> bool:
        return False

    def settings(self) -> dict[str, object]:
        return {"number of steps": self.steps, "type of an example": elements(self.first())}

    def contents(self) -> str:
        return ""

    def start_training(self, seed: int, first_epoch: int = 0) -> None:
        self._first_epoch = first_epoch
        if is_dataset(self._data):
            self._data = self._data.distributed(1, 0, seed=seed)
            self._iteration = -1

    def get(self, epoch: int, step: int) -> Tree:
        iteration, start, _ = self.span(epoch)
        if self._steps is None or self.count >= 0:
            return self._read(iteration, start + step)
        # The end of the first iteration is unknown until it is reached.
        if self._length is None and (batch := self._read(0, start + step)) is not None:
            return batch
        if self._length is None:
            return None
        later = epoch - self._first_epoch - self._length // self._steps - 1
        if later < 0:
            return self._read(0, start + step)
        again = len(self._kept) if self._once else self._length
        iteration, part = divmod(later, again // self._steps + 1)
        return self._read(1 + iteration, part * self._steps + step)

    def plan(self, epoch: int, *, divided: bool) -> None:
        return None

    def load_range(self, work: Work, seed: int) -> Share:
        raise NotImplementedError

    def _read(self, iteration: int, number: int) -> Tree:
        """Returns a batch of an iteration over the data; None after the last batch."""
        if iteration != self._iteration or (number < self._next and not self._once):
            self._iterator = iter(self._kept if self._once else self._data)
            self._iteration, self._next = iteration, 0
        batch: Tree = None
        while self._next <= number:
            batch = next(self._iterator, None)
            if batch is None:
                if iteration == 0:
                    self._length = self._next
                return None
            self._next += 1
        return None if batch is None else _add_class_weights(batch, self._class_weight)


def _add_class_weights(batch: Tree, class_weight: object) -> Tree:
    batch = with_bags(batch)
    if class_weight is None:
        return batch
    x, y, sample_weight = _utils.unpack_x_y_sample_weight(batch)
    if sample_weight is not None:
        raise ValueError("class_weight and sample weights in the data cannot be combined: use one of the two")
    return x, y, _utils.class_weight_to_sample_weights(np.asarray(y), class_weight)


def make_batches(
    x: Tree,
    y: Tree | None = None,
    sample_weight: Tree | None = None,
    *,
    batch_size: int | None,
    shuffle: bool | str,
    class_weight: object,
    steps: int | None,
    by_number: bool = True,
    builds: bool = False,
) -> Batches:
    """Returns the batches into which `keras.Model.fit` divides these arguments.

    With ``by_number``, the batches can be read in any order if the data allow this. ``builds`` is whether `fit` builds
    the model, its losses or its metrics.

    Raises:
      ValueError: the arguments cannot be combined, as in Keras.
    """
    if class_weight is not None and sample_weight is not None:
        raise ValueError("class_weight and sample_weight must not be given together: both weight the examples")
    if class_weight is not None and isinstance(x, GeneratorType):
        raise ValueError("class_weight is not supported for generators: let them yield weights of examples")
    if isinstance(x, keras.utils.PyDataset):
        return PyDatasetBatches(x, steps, class_weight, shuffle=bool(shuffle), builds=builds)
    x = with_bags(x)
    plain = tree.map_structure(lambda leaf: np.zeros(len(leaf)) if isinstance(leaf, Bags) else leaf, x)
    if _adapters.array_data_adapter.can_convert_arrays((plain, y, sample_weight)):
        if class_weight is not None:
            sample_weight = _utils.class_weight_to_sample_weights(y, class_weight)
        data = (x,) if y is None else (x, y) if sample_weight is None else (x, y, sample_weight)
        return ArrayBatches(data, batch_size=batch_size or 32, shuffle=bool(shuffle), steps=steps)
    if y is not None or sample_weight is not None:
        raise ValueError("y and sample_weight can be given only if x is an array; otherwise x must yield them")
    reason = _reason_to_iterate(x)
    if by_number and not reason:
        return NumberedBatches(x, steps, class_weight)
    return IteratedBatches(x, steps, class_weight, reason)


def _reason_to_iterate(data: Tree) -> str:
    """Returns the reason why the data cannot return the same batch for the same number on all workers; an empty text if
    the data can."""
    if is_dataset(data):
        changes = NumberedElements(data.distributed(1, 0, seed=1)).changes
        return changes and f"a dataset with {changes} may yield different elements each time it is iterated"
    if hasattr(data, "__len__") and hasattr(data, "__getitem__"):
        return ""
    return f"a {type(data).__name__} may yield different elements each time it is iterated"


def rows_of(batch: Tree) -> int:
    """The number of examples in ``batch``."""
    return min(len(leaf) for leaf in tree.flatten(batch) if leaf is not None)


def share_of(batch: Tree, index: int, count: int) -> Share:
    """Returns the rows of ``batch`` for worker ``index`` of ``count``.

    An empty share still has one row, because every worker must compute an update; the caller must give it weight zero.
    """
    return part_of(batch, index, index + 1, count)


def part_of(batch: Tree, start: int, stop: int, places: int) -> Share:
    """Returns the rows of the parts from ``start`` up to ``stop`` of a batch that is divided into ``places`` parts."""
    batch = tree.map_structure(_as_array, with_bags(batch), none_is_leaf=False)
    rows = rows_of(batch)
    first, last = rows * start // places, rows * stop // places
    if last - first == rows:
        return Share(batch, rows, rows, lambda: batch, True)
    taken = slice(first, last) if last > first else slice(0, 1)

    def select_rows(leaf: Tree) -> Tree:
        return leaf[taken]

    data = tree.map_structure(select_rows, batch, none_is_leaf=False)
    return Share(data, last - first, rows, lambda: batch, first == 0 and last > 0)


def _as_array(leaf: Tree) -> HostArray | Bags:
    leaf = as_leaf(leaf)
    if isinstance(leaf, Bags):
        return leaf
    require_dense_leaf(leaf)
    array = np.asarray(leaf)
    return array.astype(np.float32) if array.dtype == np.float64 else array
