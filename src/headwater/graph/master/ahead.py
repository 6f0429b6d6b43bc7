"""What runs of one request have read ahead, and whether that pays.

The answer to a run brings the values that the next run of the same request reads, and their version. The next run
computes from them at once, and sends what it has computed with that version: one round trip in place of two. The task
takes it where the values are current at that moment, as if the run had read them then. Otherwise it sends the present
ones, as for any run, and the run computes again.

Where other workers update in between, that is nearly always so. A request that was wrong reads ahead again after 16,
32, 64 … runs; each time that it was right halves that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

#: Values of more bytes than this are not read ahead: the answer would wait for an update that takes longer than the
#: round trip that it saves, and during which a worker that is alone may go on.
MOST_BYTES = 1 << 14
#: In runs.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 1 << 4, 1 << 10


class Values(NamedTuple):
    """Values of variables.

    Attributes:
      version: which ones, for the task that has them.
      tensors: in the order of the transfer.
    """

    version: int
    tensors: Sequence[Any]


class OutdatedError(Exception):
    """What a run has read ahead is not current, and the present values have been asked for or have come: the part of
    the run's own task is to be done again, from these."""


class ReadsAhead:
    """What the runs of a request know of the next one. Any thread may use it.

    Args:
      transfer: the transfer that brings a run its values.

    Attributes:
      transfer: the same.
      pays: whether the values are few enough.
    """

    def __init__(self, transfer: int) -> None:
        self.transfer = transfer
        self.pays: bool = True
        self._values: list[Values] = []
        self._pause = 0
        self._wait = 1  # many a request is run once

    def take(self) -> Values | None:
        """The values that have come, for one run alone."""
        try:
            return self._values.pop()  # one step, so that no two threads get the same
        except IndexError:
            return None

    def wanted(self) -> bool:
        """Whether a run that begins now is to bring the next one its values."""
        if self._wait:
            self._wait -= 1
            return False
        return True

    def keep(self, values: Values) -> None:
        """Values for the next run have come."""
        if sum([tensor.nbytes for tensor in values.tensors]) > MOST_BYTES:
            self.pays = False
        else:
            self._values[:] = [values]

    def tell(self, current: bool) -> None:
        """Whether values were current."""
        self._pause = self._pause // 2 if current else min(max(2 * self._pause, _SHORTEST_PAUSE), _LONGEST_PAUSE)
        self._wait = self._pause
