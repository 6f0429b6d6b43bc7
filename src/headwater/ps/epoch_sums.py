"""What workers add up over an epoch, such as the losses and metrics of their rows, so that it is the job's.

Most numbers are added up, whoever brings them. Others say how they combine, by a code for each:

    code % 3    within an update, over the gradients that it is made of: 0 sum, 1 maximum, 2 minimum
    code // 3   over the updates of an epoch: 0 sum, 1 the last one, 2 maximum, 3 minimum
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headwater.errors import InvalidArgumentError
from headwater.ps.updater import Array

#: Codes of numbers, see above.
ADD, LAST, MAX, MIN, ADD_MAX, ADD_MIN = 0, 3, 7, 11, 1, 2


@dataclass(slots=True)
class _Open:
    """An update that may still get numbers.

    Attributes:
      version: of the values that its gradients were computed from, as the ``ps`` counts.
      numbers: of the gradients so far.
      codes: of the numbers.
    """

    version: int
    numbers: Array
    codes: Array


class EpochSums:
    """Sums by epoch, in float64: those of the present one and of the one before.

    Asynchronous workers are at most one epoch apart.
    """

    def __init__(self) -> None:
        self._sums: dict[int, Array] = {}
        self._open: dict[int, _Open] = {}

    def add(self, worker: str, epoch: int, sums: Array, version: int = 0) -> None:
        """Adds what a worker brings.

        Args:
          worker: its name.
          epoch: the one that it is in.
          sums: ``[numbers]``, or ``[2, numbers]`` with their codes.
          version: the update that they belong to.

        Raises:
          InvalidArgumentError: others brought another number of them.
        """
        numbers = (sums if sums.ndim == 1 else sums[0]).astype(np.float64)
        known = self._sums.get(epoch, self._open[epoch].numbers if epoch in self._open else None)
        if known is not None and known.shape != numbers.shape:
            raise InvalidArgumentError(
                None, None, f"{worker} brings {numbers.shape} sums, others brought {known.shape}"
            )
        if sums.ndim == 1:
            self._sums[epoch] = numbers if known is None else numbers + known
        else:
            self._add_coded(epoch, version, numbers, sums[1].astype(np.int8))
        for old in [known for known in {*self._sums, *self._open} if known < epoch - 1]:
            self._sums.pop(old, None)
            self._open.pop(old, None)

    def _add_coded(self, epoch: int, version: int, numbers: Array, codes: Array) -> None:
        before = self._open.get(epoch)
        if before is not None and before.version == version:
            before.numbers = _pick(codes % 3, numbers + before.numbers, numbers, before.numbers)
            return
        if before is not None:
            self._sums[epoch] = self._folded(epoch)
        self._open[epoch] = _Open(version, numbers, codes)

    def _folded(self, epoch: int) -> Array:
        """The sums of an epoch with those of the open update."""
        update, before = self._open.get(epoch), self._sums.get(epoch)
        if update is None or before is None:
            return self._sums[epoch] if update is None else update.numbers
        ways, numbers = update.codes // 3, update.numbers
        found = _pick(np.maximum(ways - 1, 0), numbers + before, numbers, before)
        return np.where(ways == 1, numbers, found)

    def of(self, epoch: int) -> Sequence[Array]:
        """The sums of an epoch; none where no worker has brought any."""
        return (self._folded(epoch),) if epoch in self._sums or epoch in self._open else ()

    def all(self) -> dict[int, list[float]]:
        """All sums, by epoch."""
        return {epoch: self._folded(epoch).tolist() for epoch in sorted({*self._sums, *self._open})}

    def restore(self, sums: Mapping[int, Sequence[float]]) -> None:
        """Takes what `all` gave."""
        self._sums = {epoch: np.array(numbers, np.float64) for epoch, numbers in sums.items()}
        self._open.clear()

    def clear(self) -> None:
        """Another training begins."""
        self._sums.clear()
        self._open.clear()


def _pick(ways: Array, total: Array, one: Array, other: Array) -> Array:
    """By way, the total, the larger or the smaller of two numbers."""
    return np.select([ways == 0, ways == 1], [total, np.maximum(one, other)], np.minimum(one, other))
