"""Sums of all workers' contributions in an epoch, such as losses and metrics.

With each of its gradients, a worker contributes an array of numbers. By default, the contributions are added. If
numbers have codes, each code determines how the contributions to its number are combined:

    code % 3    within an update, over the gradients that it is made of: 0 sum, 1 maximum, 2 minimum
    code // 3   over the updates of an epoch: 0 sum, 1 the last one, 2 maximum, 3 minimum
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headwater.errors import InvalidArgumentError
from headwater.ps.updater import Array

#: Codes of numbers, see the module's docstring.
ADD, LAST, MAX, MIN, ADD_MAX, ADD_MIN = 0, 3, 7, 11, 1, 2


@dataclass(slots=True)
class _Open:
    """An update to which numbers may still be added.

    Attributes:
      version: the version of the values from which its gradients were computed, as counted by the ``ps``.
      numbers: combined numbers of the gradients so far.
      codes: the codes of the numbers.
    """

    version: int
    numbers: Array
    codes: Array


class EpochSums:
    """Sums by epoch, in float64: of the current epoch and of the previous one.

    Asynchronous workers are at most one epoch apart.
    """

    def __init__(self) -> None:
        self._sums: dict[int, Array] = {}
        self._open: dict[int, _Open] = {}
        #: Epoch and version of the newest update, and the sums of the epoch before it, of numbers without codes.
        self._newest = -1, -1
        self._earlier: Array | None = None

    def add(self, worker: str, epoch: int, sums: Array, version: int = 0) -> None:
        """Adds the contribution of a worker.

        Args:
          worker: the worker's name.
          epoch: the worker's epoch.
          sums: ``[numbers]``, or ``[2, numbers]`` with their codes.
          version: identifies the update to which the numbers belong.

        Raises:
          InvalidArgumentError: another worker has contributed a different number of sums.
        """
        numbers = (sums if sums.ndim == 1 else sums[0]).astype(np.float64)
        known = self._sums.get(epoch, self._open[epoch].numbers if epoch in self._open else None)
        if known is not None and known.shape != numbers.shape:
            raise InvalidArgumentError(f"{worker} sent sums of shape {numbers.shape}; other workers sent {known.shape}")
        if sums.ndim == 1:
            if self._newest != (epoch, version):
                self._newest, self._earlier = (epoch, version), known
            self._sums[epoch] = numbers if known is None else numbers + known
        else:
            self._add_coded(epoch, version, numbers, sums[1].astype(np.int8))
        # Keep the previous epoch: a slower worker may still contribute to it, and the chief may read it.
        for old in [known for known in {*self._sums, *self._open} if known < epoch - 1]:
            self._sums.pop(old, None)
            self._open.pop(old, None)

    def _add_coded(self, epoch: int, version: int, numbers: Array, codes: Array) -> None:
        before = self._open.get(epoch)
        if before is not None and before.version == version:
            before.numbers = _pick(codes % 3, numbers + before.numbers, numbers, before.numbers)
            return
        if before is not None:
            # The first gradient of a newer update completes the previous update.
            self._sums[epoch] = self._sums_with_open_update(epoch)
        self._open[epoch] = _Open(version, numbers, codes)

    def _sums_with_open_update(self, epoch: int) -> Array:
        """Returns the sums of an epoch, including the open update."""
        update, before = self._open.get(epoch), self._sums.get(epoch)
        if update is None or before is None:
            return self._sums[epoch] if update is None else update.numbers
        ways, numbers = update.codes // 3, update.numbers
        # `_pick` has no code for the last value: it is selected below.
        sums = _pick(np.maximum(ways - 1, 0), numbers + before, numbers, before)
        return np.where(ways == 1, numbers, sums)

    def of(self, epoch: int) -> Sequence[Array]:
        """Returns the sums of an epoch; empty if no worker has contributed any."""
        return (self._sums_with_open_update(epoch),) if epoch in self._sums or epoch in self._open else ()

    def before(self, epoch: int, version: int) -> Sequence[Array]:
        """Returns the sums of an epoch over the updates before the update from the values of ``version``, to which
        contributions may have arrived already; empty if there are none."""
        if self._newest == (epoch, version):
            return () if self._earlier is None else (self._earlier,)
        update = self._open.get(epoch)
        if update is None or update.version != version:
            return self.of(epoch)
        return (self._sums[epoch],) if epoch in self._sums else ()

    def all_sums(self) -> dict[int, list[float]]:
        """Returns all sums, by epoch."""
        return {epoch: self._sums_with_open_update(epoch).tolist() for epoch in sorted({*self._sums, *self._open})}

    def restore(self, sums: Mapping[int, Sequence[float]]) -> None:
        """Replaces the sums by the result of `all_sums`."""
        self._sums = {epoch: np.array(numbers, np.float64) for epoch, numbers in sums.items()}
        self._open.clear()
        self._newest = -1, -1

    def clear(self) -> None:
        """Deletes all sums, because another training begins."""
        self._sums.clear()
        self._open.clear()
        self._newest = -1, -1


def _pick(ways: Array, total: Array, one: Array, other: Array) -> Array:
    """Selects, by code, the total, the larger number or the smaller number."""
    return np.select([ways == 0, ways == 1], [total, np.maximum(one, other)], np.minimum(one, other))
