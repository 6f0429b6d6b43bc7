"""Batches of examples by their places in an epoch, as a worker keeps them between steps."""

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
    """The examples of a dataset, by range.

    Args:
      name: for messages.
      size: how many there are.
      shuffle: whether each epoch has an order of its own.
    """

    def __init__(self, name: str, *, size: int, shuffle: bool) -> None:
        self._name = name
        self._size = size
        self._shuffle = shuffle
        self._lock = threading.Lock()
        self._source: Indexed | None = None
        self._orders: dict[tuple[int, int], NDArray[np.int64]] = {}

    def start(self, node: Node, host: object) -> None:
        """Takes examples from this dataset from now on."""
        del host
        with self._lock:
            self._source = indexed(node)

    def start_once(self, make: Callable[[], Node], host: object) -> None:
        """Takes them from the dataset that ``make()`` gives, unless there is one."""
        if self._source is None:
            self.start(make(), host)

    def batch(self, work: Work, seed: int, host: object) -> Block:
        """The examples of a range.

        Args:
          work: the range.
          seed: of the epochs' orders.
          host: the runtime's context of the operation that asks.

        Raises:
          FailedPreconditionError: no dataset was given yet.
          OpError: what making the examples raises.
        """
        with self._lock:
            if self._source is None:
                raise FailedPreconditionError(
                    None, None, f"{self._name!r} has no dataset yet: run the initializer of its iterator first"
                )
            places = np.arange(work.start, work.stop)
            return self._source.rows(Context(host), self._order(seed, work.epoch)[places] if self._shuffle else places)

    def _order(self, seed: int, epoch: int) -> NDArray[np.int64]:
        known = self._orders.get((seed, epoch))
        if known is None:
            while len(self._orders) > 1:  # there are two epochs at most that are not over
                del self._orders[min(self._orders, key=lambda one: one[1])]
            known = self._orders[seed, epoch] = shuffled(seed, epoch, self._size)
        return known
