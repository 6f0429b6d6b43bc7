"""Batches of examples by position in an epoch, on a worker."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from headwater.data.indexed import Indexed, indexed
from headwater.data.node import Block, Context, Node
from headwater.errors import FailedPreconditionError
from headwater.ps.accounting.ledger import Work
from headwater.ps.accounting.order import shuffled


class ExampleBatches:
    """Returns the examples of a dataset by range.

    Args:
      name: for messages.
      size: number of examples.
      shuffle: whether each epoch is shuffled differently.
    """

    def __init__(self, name: str, *, size: int, shuffle: bool) -> None:
        self._name = name
        self._size = size
        self._shuffle = shuffle
        self._lock = threading.Lock()
        self._source: Indexed | None = None
        self._orders: dict[tuple[int, int], NDArray[np.int64]] = {}

    def start(self, node: Node, host: object) -> None:
        """Sets the dataset."""
        del host
        with self._lock:
            self._source = indexed(node)

    def start_once(self, make: Callable[[], Node], host: object) -> None:
        """Sets the dataset to ``make()``, unless one is set."""
        if self._source is None:
            self.start(make(), host)

    def batch(self, work: Work, seed: int, host: object) -> Block:
        """Returns the examples of a range.

        Args:
          work: the range.
          seed: seed of the epochs' orders.
          host: the runtime's context of the calling operation.

        Raises:
          FailedPreconditionError: no dataset is set.
          OpError: the examples could not be produced.
        """
        with self._lock:
            if self._source is None:
                raise FailedPreconditionError(
                    f"{self._name!r} has no dataset yet: run the initializer of its iterator first"
                )
            places = np.arange(work.start, work.stop)
            return self._source.rows(Context(host), self._order(seed, work.epoch)[places] if self._shuffle else places)

    def _order(self, seed: int, epoch: int) -> NDArray[np.int64]:
        known = self._orders.get((seed, epoch))
        if known is None:
            # An order takes 8 bytes for each example, so drop the orders of complete epochs. At most two epochs are
            # incomplete, including the one whose order is added now.
            while len(self._orders) > 1:
                del self._orders[min(self._orders, key=lambda one: one[1])]
            known = self._orders[seed, epoch] = shuffled(seed, epoch, self._size)
        return known
