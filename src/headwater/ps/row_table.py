"""An embedding table on the ``ps`` tasks, for a worker's program."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from headwater.data.io import files
from headwater.ps.tables.client import TableClient
from headwater.tables.compiled import Reals
from headwater.tables.description import TableConfig, TableStatistics
from headwater.tables.snapshots import Save

if TYPE_CHECKING:
    import numpy.typing as npt


class RowTable:
    """An embedding table on the ``ps`` tasks, for a worker's program.

    Args:
      name: the name of the table.
      config: the table's configuration.
      client: returns the client of the tables.
    """

    def __init__(self, name: str, config: TableConfig, client: Callable[[], TableClient]) -> None:
        self.name = name
        self.config = config
        self._client = client

    def lookup(self, ids: npt.ArrayLike, *, training: bool = True) -> Reals:
        """Returns the rows of ids of any shape, ``[*ids.shape, dim]``; creates a key's row at its first use.

        With ``training=False`` no row is created and no use is counted; the initial row is returned for a key without
        a row.
        """
        return self._client().look_up({self.name: ids}, training=training)[self.name]

    def push(self, ids: object, gradients: object) -> None:
        """Updates the rows of ids with the table's optimizer, from gradients ``[*ids.shape, dim]``."""
        self._client().update({self.name: ids}, {self.name: gradients})

    def pool(
        self, ids: object, offsets: object, *, combiner: str = "mean", weights: object = None, training: bool = True
    ) -> Reals:
        """Returns the pooled rows of bags of ids, ``[bags, dim]``; zeros for an empty bag.

        Rows are pooled on the ``ps`` if that transfers fewer bytes, and otherwise in this process.

        Args:
          ids: the ids of all bags, concatenated, ``[n]``.
          offsets: where each bag begins, and the end of the last, ``[bags + 1]``.
          combiner: ``"sum"``; ``"mean"``, divided by the sum of the weights; or ``"sqrtn"``, by the root of the sum of
            their squares.
          weights: the weights of the ids, ``[n]``; all 1 if None.
          training: as for `lookup`.

        Raises:
          InvalidArgumentError: the combiner is unknown, or ``offsets`` or ``weights`` do not match ``ids``.
        """
        client = self._client()
        bags = client.bags(self.name, ids, offsets, combiner, weights)
        return client.pool({self.name: bags}, training=training)[self.name]

    def push_pooled(
        self, ids: object, offsets: object, gradients: object, *, combiner: str = "mean", weights: object = None
    ) -> None:
        """Updates rows as `push` does, from gradients of the result of `pool`, ``[bags, dim]``. Weights get no
        gradient."""
        client = self._client()
        bags = client.bags(self.name, ids, offsets, combiner, weights)
        client.push({self.name: bags}, {self.name: np.ascontiguousarray(gradients, np.float32)})

    def set_learning_rate(self, rate: float) -> None:
        """Sets the learning rate for all workers; it takes effect with this worker's next `push`."""
        self._client().set_rate(self.name, rate)

    def save(self, folder: files.Path, *, delta: bool = False) -> Save:
        """Saves the table while other workers continue to train.

        Args:
          folder: the folder of the save, which all tasks share.
          delta: whether to save only rows that have changed since this worker's last save.
        """
        return self._client().save(self.name, folder, delta=delta)

    def statistics(self) -> dict[str, TableStatistics]:
        """Returns the statistics of the table on each ``ps``."""
        return self._client().statistics(self.name)

    def hottest(self, count: int = 10) -> list[tuple[int, int]]:
        """Returns the most used keys, each with its number of uses."""
        return self._client().hottest(self.name, count)

    def __len__(self) -> int:
        return sum(one.rows for one in self.statistics().values())

    def __repr__(self) -> str:
        return f"<RowTable {self.name!r}: {dataclasses.asdict(self.config)['dim']} numbers a row>"
