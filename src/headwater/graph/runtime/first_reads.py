"""The variables that a plan reads first, for a master that receives their values with the previous answer.

See `headwater.graph.master.ahead`. The protocol saves one of the two round trips of a step. It is correct because the
``ps`` checks afterwards, by a version, that the values were current (docs/decisions/reads-ahead.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.graph.passes.ahead import Exchange
from headwater.graph.resources.containers import Cell, Resources
from headwater.graph.runtime.compile import values_of


class FirstReads:
    """The variables that a plan sends to the master in its first transfer.

    Args:
      exchange: this transfer, and the master's transfer in reply.
      resources: the task's resources, with the variables.
      cell: returns a variable's cell.
      kept: variables that later instructions of the plan read, too.
    """

    def __init__(
        self, exchange: Exchange, resources: Resources, cell: Callable[[str], Cell], kept: Sequence[str]
    ) -> None:
        self.exchange = exchange
        self._lock = resources.lock
        self._cells = [cell(name) for name in exchange.variables]
        self._kept = [cell(name) for name in kept]

    def current(self, version: int) -> list[NDArray[Any]] | None:
        """Returns the values of the variables in ``kept`` if ``version``, a result of `read`, is still current;
        otherwise None. Waits for the end of an update in progress."""
        with self._lock:
            if self.is_current(version):
                return list(map(np.asarray, values_of(self._kept)))
        return None

    def is_current(self, version: int) -> bool:
        """Like `current`, without values, for callers that hold the lock."""
        return self._version() == version

    def read(self) -> tuple[int, list[NDArray[Any]]]:
        """Returns the variables' version and values; FailedPreconditionError if a variable has no value."""
        with self._lock:
            return self._version(), list(map(np.asarray, values_of(self._cells)))

    def _version(self) -> int:
        """Returns the sum of the variables' update counts. Since counts only increase, two states of the variables in
        one incarnation of the task have different versions."""
        return sum([cell.counts[cell.slot] for cell in self._cells])
