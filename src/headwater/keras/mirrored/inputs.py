"""Datasets for programs with training loops of their own: each process's share, divided between its devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.keras.mirrored.shards import ShardedDataset, Share, shards_of
from headwater.keras.mirrored.steps import Replicas
from headwater.keras.values import PerReplica, map_structure

if TYPE_CHECKING:
    from headwater.keras.types import Tree


class DistributedDataset(ShardedDataset):
    """This process's share of each batch; what each replica gets of it, where the process has several.

    Args:
      dataset: gives this process's share of each batch.
      replicas: of this process.
    """

    def __init__(self, dataset: Any, replicas: int) -> None:
        super().__init__(dataset)
        self._replicas = replicas

    def __iter__(self) -> Iterator[object]:
        for batch in self.dataset:
            yield self._divided(batch)

    def _divided(self, batch: object) -> object:
        if self._replicas == 1:
            return batch

        def divide(leaf: Tree) -> Any:
            return PerReplica(np.array_split(leaf, self._replicas)) if np.ndim(leaf) else leaf

        return map_structure(divide, batch)


class _Batches:
    """This process's share of data that are no `headwater.data` dataset."""

    def __init__(self, data: object, share: Share) -> None:
        self._shards = shards_of(share, data)

    def __iter__(self) -> Iterator[object]:
        return self._shards.batches()


def distributed_dataset(dataset: Any, replicas: Replicas, devices: int) -> DistributedDataset:
    """This process's share of ``dataset``, whose batches are for all replicas.

    Args:
      dataset: what ``fit`` takes.
      replicas: all replicas.
      devices: how many this process has.
    """
    if hasattr(dataset, "distributed"):
        mine = dataset.distributed(replicas.processes, replicas.rank) if replicas.processes > 1 else dataset
    else:
        mine = _Batches(dataset, Share(count=replicas.processes, index=replicas.rank, seed=0))
    return DistributedDataset(mine, devices)


def own_dataset(dataset: object, devices: int) -> DistributedDataset:
    """``dataset``, which is this process's own share, for its devices."""
    return DistributedDataset(dataset, devices)
