"""The variables that a plan reads first, for a master that has them before it asks; see
`headwater.graph.master.ahead`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.graph.passes.ahead import Exchange
from headwater.graph.resources.containers import Cell, Resources
from headwater.graph.runtime.compile import values_of


class FirstReads:
    """The variables that go to the master in the first transfer of a plan.

    Args:
      exchange: the transfer, and the one that answers it.
      resources: where they are.
      cell: gives a variable's place.
      kept: those whose values the plan needs itself, besides.
    """

    def __init__(
        self, exchange: Exchange, resources: Resources, cell: Callable[[str], Cell], kept: Sequence[str]
    ) -> None:
        self.exchange = exchange
        self._lock = resources.lock
        self._cells = [cell(name) for name in exchange.variables]
        self._kept = [cell(name) for name in kept]

    def current(self, version: int) -> list[NDArray[Any]] | None:
        """The values of the variables that are ``kept``, where all are as they were when `read` gave ``version``, else
        None; waits for an update in progress."""
        with self._lock:
            if self.is_current(version):
                return list(map(np.asarray, values_of(self._kept)))
        return None

    def is_current(self, version: int) -> bool:
        """The same in short, for who holds the lock."""
        return self._version() == version

    def read(self) -> tuple[int, list[NDArray[Any]]]:
        """The variables' version and values; FailedPreconditionError where one has no value."""
        with self._lock:
            return self._version(), list(map(np.asarray, values_of(self._cells)))

    def _version(self) -> int:
        """Each variable counts its updates, so that no other values in the life of this task have the same sum."""
        return sum([cell.counts[cell.slot] for cell in self._cells])
