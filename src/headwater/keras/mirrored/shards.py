"""Divides the data of ``fit``, ``evaluate`` and ``predict`` among the processes.

The program's batch size is the size of a global batch. By default, every process iterates over the same global batches
and takes its share of the rows of each batch, so that the steps are the same as with one process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import jax
import keras
import numpy as np

from headwater.keras.datasets import DatasetAdapter, is_dataset, is_sparse, require_dense, require_dense_leaf
from headwater.keras.internals import ArrayDataAdapter, DataAdapter, array_slicing, data_adapters
from headwater.keras.mirrored.steps import NOTHING

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_base = DataAdapter
_adapters: Any = data_adapters
_slicing = array_slicing
_tree = jax.tree_util


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """This process's share of the data.

    Attributes:
      count: number of processes.
      index: the index of this process.
      seed: the common seed of the shuffle.
    """

    count: int
    index: int
    seed: int

    def rows(self, total: int) -> slice:
        """This process's range of ``total`` rows; the first processes get one more if the division has a remainder."""
        each, more = divmod(total, self.count)
        start = self.index * each + min(self.index, more)
        return slice(start, start + each + (self.index < more))

    def of_batch(self, batch: Tree) -> Tree:
        """This process's rows of a batch of arrays.

        Raises:
          ValueError: an array is sparse.
        """
        if self.count == 1:
            return batch

        def part(leaf: Tree) -> Tree:
            require_dense_leaf(leaf)
            return leaf if np.ndim(leaf) == 0 else leaf[self.rows(leaf.shape[0])]

        return _tree.tree_map(part, batch, is_leaf=is_sparse)


class Shards(_base):
    """Feeds Keras's loops with this process's share of each global batch.

    After the end of this process's data, the iterator yields `NOTHING` indefinitely if other processes may have more
    batches: all processes must take part in every exchange until the last process has finished.

    Args:
      share: this process's share.
    """

    def __init__(self, share: Share) -> None:
        self.share = share
        #: The number of iterations over all data that have begun. With ``steps_per_epoch``, it differs from the epoch.
        self._iteration = 0
        self._skip_batches = 0
        self._counts: Sequence[int | None] | None = None

    def set_batch_counts(self, counts: Sequence[int | None]) -> None:
        """Sets the numbers of batches of all processes: each process makes the largest number of steps."""
        self._counts = counts

    def restart(self, share: Share, *, epochs: int, steps_per_epoch: int | None) -> None:
        """Moves to the position after ``epochs`` epochs of `fit`.

        Args:
          share: this process's share, with the seed of the shuffle.
          epochs: number of finished epochs.
          steps_per_epoch: steps of an epoch; None if each epoch covers all data.
        """
        self.share: Share = share
        self._iteration, self._skip_batches = epochs, 0
        if not steps_per_epoch:
            return
        total = self.num_batches
        iteration, at = 0, 0
        # As in Keras's loop, an epoch continues where the previous one stopped, and ends at the end of the data.
        for _ in range(epochs):
            at += steps_per_epoch if total is None else min(steps_per_epoch, total - at)
            if at == total:
                iteration, at = iteration + 1, 0
        self._iteration, self._skip_batches = iteration, at

    def get_jax_iterator(self) -> Iterator[Any]:
        # A generator, because Keras's loops also create iterators that they never use, and a generator does nothing
        # before its first batch is requested.
        skip, self._skip_batches = self._skip_batches, 0
        batches = self.batches()
        self._iteration += 1
        yield from islice(batches, skip, None)
        # Not needed if this process is known to have as many batches as the process with the most.
        while self.share.count > 1 and (self.num_batches is None or self.num_batches != self.count):
            yield NOTHING

    def get_numpy_iterator(self) -> Iterator[Any]:
        return self.get_jax_iterator()

    def batches(self) -> Iterator[Any]:
        """This process's share of each batch."""
        raise NotImplementedError

    @property
    def count(self) -> int | None:
        """The number of this process's batches; None if unknown or infinite. (`num_batches`, which Keras reads, is the
        largest count of all processes.)"""
        raise NotImplementedError

    @property
    def num_batches(self) -> int | None:
        if self._counts is None:
            return self.count
        known = [count for count in self._counts if count is not None]
        return max(known) if len(known) == len(self._counts) else None

    @property
    def batch_size(self) -> int | None:
        return None

    @property
    def has_partial_batch(self) -> bool | None:
        return None

    @property
    def partial_batch_size(self) -> int | None:
        return None


class ArrayShards(Shards):
    """Rows of arrays.

    Args:
      adapter: Keras's adapter of the arrays, which has already checked them.
      share: this process's share.
      shuffle: whether each epoch has a different order; ``"batch"`` shuffles within batches.
    """

    def __init__(self, adapter: Any, share: Share, shuffle: bool | str) -> None:
        super().__init__(share)
        self._rows: int = adapter._num_samples
        self._batch: int = adapter.batch_size
        self._sliceable: Any = _slicing.convert_to_sliceable(adapter._inputs, target_backend="numpy")
        self._shuffle = shuffle

    def batches(self) -> Iterator[Any]:
        return self._rows_of_batches(np.random.default_rng([self.share.seed, self._iteration]))

    def _rows_of_batches(self, random: np.random.Generator) -> Iterator[object]:
        rows = random.permutation(self._rows) if self._shuffle and self._shuffle != "batch" else None
        for start in range(0, self._rows, self._batch):
            stop = min(start + self._batch, self._rows)
            if self._shuffle == "batch":
                chosen: object = (random.permutation(stop - start) + start)[self.share.rows(stop - start)]
            else:
                mine = self.share.rows(stop - start)
                chosen = slice(start + mine.start, start + mine.stop)
                chosen = chosen if rows is None else rows[chosen]
            yield _tree.tree_map(lambda leaf, chosen=chosen: leaf.convert_to_numpy(leaf[chosen]), self._sliceable)

    @property
    def count(self) -> int:
        return -(-self._rows // self._batch)

    @property
    def batch_size(self) -> int:
        return self._batch


class DatasetShards(Shards):
    """This process's share of a `headwater.data` dataset, by the sharding policy of its options.

    Args:
      dataset: a dataset of global batches.
      share: this process's share.
      class_weight: see Keras's ``fit``.
      policy: overrides the policy of the dataset's options.
    """

    def __init__(self, dataset: Any, share: Share, class_weight: object = None, policy: Any = None) -> None:
        super().__init__(share)
        self._whole = dataset
        self._class_weight = class_weight
        self._policy = policy
        self._make()

    def _make(self) -> None:
        share = self.share
        mine = self._whole.distributed(share.count, share.index, self._policy, seed=share.seed)
        self._adapter = DatasetAdapter(mine, self._class_weight)

    def restart(self, share: Share, *, epochs: int, steps_per_epoch: int | None) -> None:
        super().restart(share, epochs=epochs, steps_per_epoch=steps_per_epoch)
        self._make()
        for _ in range(self._iteration):
            # A dataset counts its iterations, and each iteration has another order. So begin one iteration for each
            # finished epoch.
            next(self.batches(), None)

    def batches(self) -> Iterator[Any]:
        return iter(self._adapter.get_jax_iterator())

    @property
    def count(self) -> int | None:
        return self._adapter.num_batches


class _InCommonOrder(keras.utils.PyDataset):
    """Batches of a `keras.utils.PyDataset` in the same random order in all processes. Keras itself would shuffle
    differently in each process.

    Args:
      data: a finite dataset.
    """

    def __init__(self, data: Any) -> None:
        super().__init__()
        self._data = data
        self._order: Any = np.arange(data.num_batches)

    def draw(self, seed: int, iteration: int) -> None:
        """Draws a new order, which is a function of the arguments."""
        self._order = np.random.default_rng([seed, iteration]).permutation(self._data.num_batches)

    def __getitem__(self, index: int) -> Tree:
        return self._data[int(self._order[index])]

    @property
    def num_batches(self) -> int:
        return self._data.num_batches

    def on_epoch_begin(self) -> None:
        self._data.on_epoch_begin()

    def on_epoch_end(self) -> None:
        self._data.on_epoch_end()


class AdapterShards(Shards):
    """This process's rows of batches that the program makes itself: generators, `PyDataset`, loaders.

    Args:
      adapter: Keras's adapter of the data.
      share: this process's share.
      ordered: the data, shuffled equally in all processes for each epoch; None for a fixed order.
    """

    def __init__(self, adapter: Any, share: Share, ordered: _InCommonOrder | None = None) -> None:
        super().__init__(share)
        self._adapter = adapter
        self._ordered = ordered

    def batches(self) -> Iterator[Any]:
        if self._ordered is not None:
            self._ordered.draw(self.share.seed, self._iteration)
        return map(self.share.of_batch, self._adapter.get_jax_iterator())

    @property
    def count(self) -> int | None:
        return self._adapter.num_batches

    @property
    def batch_size(self) -> int | None:
        return self._adapter.batch_size

    def on_epoch_begin(self) -> None:
        self._adapter.on_epoch_begin()

    def on_epoch_end(self) -> None:
        self._adapter.on_epoch_end()


def shards_of(
    share: Share,
    x: Tree,
    y: Tree | None = None,
    sample_weight: Tree | None = None,
    batch_size: int | None = None,
    steps: int | None = None,
    shuffle: bool | str = False,
    class_weight: object = None,
    *,
    policy: object = None,
) -> Shards:
    """Returns this process's share of the data of ``fit``, ``evaluate`` or ``predict``.

    Args:
      share: this process's share.
      x, y, sample_weight, batch_size, shuffle, class_weight: as in Keras's ``fit``.
      steps: ``steps_per_epoch`` of ``fit``.
      policy: overrides the sharding policy of a dataset's options.

    Raises:
      ValueError, TypeError: Keras does not accept the arguments.
    """
    if isinstance(x, Shards):
        return x
    if isinstance(x, ShardedDataset):
        return DatasetShards(x.dataset, Share(count=1, index=0, seed=share.seed), class_weight)
    if is_dataset(x):
        require_dense(x)
        if y is not None or sample_weight is not None:
            name = "y" if y is not None else "sample_weight"
            raise ValueError(f"{name} must not be given together with a dataset, whose elements contain it")
        return DatasetShards(x, share, class_weight, policy)
    ordered = _in_common_order(x) if shuffle and share.count > 1 else None
    if ordered is not None:
        x, shuffle = ordered, False
    adapter = _adapters.get_data_adapter(
        x=x,
        y=y,
        sample_weight=sample_weight,
        batch_size=batch_size,
        steps_per_epoch=steps,
        shuffle=shuffle,
        class_weight=class_weight,
    )
    if isinstance(adapter, ArrayDataAdapter):
        return ArrayShards(adapter, share, shuffle)
    return AdapterShards(adapter, share, ordered)


def _in_common_order(data: object) -> _InCommonOrder | None:
    """Wraps ``data``, if it is a finite `keras.utils.PyDataset`, to shuffle it equally in all processes; else None.

    Raises:
      ValueError: ``data`` is loaded by threads or processes, which fix the order of an epoch before the epoch begins.
    """
    if not isinstance(data, keras.utils.PyDataset):
        return None
    count: Any = data.num_batches
    if count is None:
        return None
    if data.workers > 1 or data.use_multiprocessing:
        raise ValueError(
            f"{type(data).__name__} with workers or use_multiprocessing cannot be shuffled equally by processes: "
            "set shuffle=False and shuffle in its on_epoch_end with a common seed, or leave workers at 1"
        )
    return _InCommonOrder(data)


class ShardedDataset:
    """A dataset that contains only this process's share.

    Args:
      dataset: its elements are this process's batches.
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    @property
    def element_spec(self) -> Tree:
        """The type and shape of each component."""
        return self.dataset.element_spec

    def __iter__(self) -> Iterator[object]:
        return iter(self.dataset)
