"""Reading ahead: saves a round trip of each run, if variables are small and rarely change between runs.

The answer to a run includes the values that the next run of the same request reads, and their version. The next run
computes from these values immediately, and sends its result with the version, which takes one round trip instead of
two. If the values are still current, the task accepts the result, as if the run had read them at that moment. Otherwise
it sends the present values, as for any run, and the run computes again (docs/decisions/reads-ahead.md).

If other workers update the variables, the values are nearly always outdated. After an outdated read, a request pauses
reading ahead for 16, 32, 64 … runs; each current read halves the pause.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

#: Values of more bytes than this are not read ahead. With values for the next run, an answer can only be sent after the
#: update; without them, the only worker of a task gets its answer before the update and computes meanwhile. For large
#: values, that overlap saves more time than the round trip.
MAX_BYTES = 1 << 14
#: Bounds of the pause, in runs.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 1 << 4, 1 << 10


class Values(NamedTuple):
    """Values of variables.

    Attributes:
      version: the version of the variables on their task.
      tensors: in the order of the transfer.
    """

    version: int
    tensors: Sequence[Any]


class OutdatedError(Exception):
    """Values read ahead were outdated. The present values have been requested or received; the master's own task has to
    run its part again from these."""


class ReadsAhead:
    """Values read ahead by the runs of a request for the next run. Thread-safe.

    Args:
      transfer: the transfer with which a run receives its values.

    Attributes:
      transfer: as given.
      pays: whether the values are small enough.
    """

    def __init__(self, transfer: int) -> None:
        self.transfer = transfer
        self.pays: bool = True
        self._values: list[Values] = []
        self._pause = 0
        self._wait = 1  # skip the first run: many requests run only once, and need no values for a second run

    def pop_values(self) -> Values | None:
        """Takes the received values, for one run only; None if there are none."""
        try:
            return self._values.pop()  # atomic, so that no two threads get the same values
        except IndexError:
            return None

    def wants_values(self) -> bool:
        """Returns whether a run that starts now should request values for the next run."""
        if self._wait:
            self._wait -= 1
            return False
        return True

    def keep_values(self, values: Values) -> None:
        """Keeps received values for the next run."""
        if sum([tensor.nbytes for tensor in values.tensors]) > MAX_BYTES:
            self.pays = False
        else:
            self._values[:] = [values]

    def record_outcome(self, current: bool) -> None:
        """Records whether values read ahead were current; adapts the pause."""
        self._pause = self._pause // 2 if current else min(max(2 * self._pause, _SHORTEST_PAUSE), _LONGEST_PAUSE)
        self._wait = self._pause
