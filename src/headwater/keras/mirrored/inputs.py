"""Datasets for custom training loops: each process's share, divided among its devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.keras.mirrored.shards import ShardedDataset, Share, shards_of
from headwater.keras.mirrored.steps import Replicas
from headwater.keras.values import PerReplica, map_structure

if TYPE_CHECKING:
    from headwater.keras.types import Tree

# The special values of a dataset's ``cardinality()``.
_INFINITE, _UNKNOWN = -1, -2


class DistributedDataset(ShardedDataset):
    """This process's share of each batch, divided among the replicas of this process if there are several.

    All processes iterate over the same number of batches, because all have to take part in every step: a process with
    fewer batches continues with batches without rows.

    Args:
      dataset: yields this process's share of each batch.
      devices: number of this process's devices.
    """

    def __init__(self, dataset: object, replicas: Replicas, devices: int) -> None:
        super().__init__(dataset)
        self._replicas = replicas
        self._devices = devices

    def __iter__(self) -> Iterator[object]:
        return map(self._divide_batch, _in_lockstep(self.dataset, self._replicas))

    def _divide_batch(self, batch: object) -> object:
        return batch if self._devices == 1 else map_structure(lambda leaf: _parts(leaf, self._devices), batch)


def _parts(leaf: Tree, count: int) -> Any:
    """Divides rows among ``count`` replicas as TensorFlow does: 10 rows among three as 4, 4 and 2."""
    if not np.ndim(leaf):
        return leaf
    each = -(-len(leaf) // count)
    return PerReplica([leaf[at * each : (at + 1) * each] for at in range(count)])


def _in_lockstep(dataset: Any, replicas: Replicas) -> Iterator[object]:
    """Yields the elements of this process, then empty batches until no process has more elements.

    If all processes know the number of their elements, they exchange these numbers once. Otherwise, they exchange
    before every step whether they have another element.
    """
    elements = iter(dataset.elements() if hasattr(dataset, "elements") else dataset)
    if replicas.processes == 1:
        yield from elements
        return
    mine = np.asarray([_cardinality(dataset)], np.int64)
    counts = [int(np.asarray(each[0])[0]) for each in replicas.gather([mine], "lengths of datasets")]
    if len(set(counts)) == 1 and counts[0] != _UNKNOWN:
        yield from elements
        return
    known = _UNKNOWN not in counts and _INFINITE not in counts
    element, batch_count, ended = None, 0, object()
    while True:
        batch = next(elements, ended)
        if known:
            has_batch = batch_count < max(counts)
        else:
            flag = np.asarray([batch is not ended], np.int32)
            has_batch = bool(replicas.add_up(flag, "whether there are batches")[0])
        if not has_batch:
            return
        element = _empty_batch(dataset, element) if batch is ended else batch
        batch_count += 1
        yield element


def _cardinality(dataset: object) -> int:
    cardinality = getattr(dataset, "cardinality", None)
    return _UNKNOWN if cardinality is None else int(cardinality())


def _empty_batch(dataset: object, last: object) -> Any:
    """Returns a batch without rows, of the structure of the dataset's batches.

    Args:
      last: its last batch; None if it had none.

    Raises:
      ValueError: there was no batch, and the dataset has no element spec.
    """
    if last is not None:
        return map_structure(lambda leaf: leaf[:0] if np.ndim(leaf) else leaf, last)
    spec = getattr(dataset, "element_spec", None)
    if spec is None:
        raise ValueError(
            "this process has no data, but other processes have some: use a tf.data dataset, which has an element spec"
        )

    def empty(leaf: Any) -> Any:
        shape = [size or 0 for size in leaf.shape.as_list()] if leaf.shape.rank else []
        return np.zeros([0, *shape[1:]] if shape else [], leaf.dtype.as_numpy_dtype)

    return map_structure(empty, spec)


class _Batches:
    """This process's share of data other than a `headwater.data` dataset."""

    def __init__(self, data: object, share: Share) -> None:
        self._shards = shards_of(share, data)

    def __iter__(self) -> Iterator[object]:
        return self._shards.batches()

    def cardinality(self) -> int:
        """The number of batches; -2 if unknown."""
        return _UNKNOWN if self._shards.count is None else self._shards.count


def distributed_dataset(dataset: Any, replicas: Replicas, devices: int) -> DistributedDataset:
    """Returns this process's share of ``dataset``, a dataset of global batches.

    Args:
      dataset: any dataset that ``fit`` accepts.
      devices: number of this process's devices.
    """
    if hasattr(dataset, "distributed"):
        mine = dataset.distributed(replicas.processes, replicas.rank) if replicas.processes > 1 else dataset
    else:
        mine = _Batches(dataset, Share(count=replicas.processes, index=replicas.rank, seed=0))
    return DistributedDataset(mine, replicas, devices)
