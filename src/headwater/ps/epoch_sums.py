"""What workers add up over an epoch, such as the losses and metrics of their rows, so that it is the job's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from headwater.errors import InvalidArgumentError
from headwater.ps.updater import Array


class EpochSums:
    """Sums by epoch, in float64: those of the present one and of the one before.

    Asynchronous workers are at most one epoch apart.
    """

    def __init__(self) -> None:
        self._sums: dict[int, Array] = {}

    def add(self, worker: str, epoch: int, sums: Array) -> None:
        """Adds what a worker brings, ``[numbers]``.

        Raises:
          InvalidArgumentError: others brought another number of them.
        """
        before = self._sums.get(epoch)
        if before is not None and before.shape != sums.shape:
            raise InvalidArgumentError(None, None, f"{worker} brings {sums.shape} sums, others brought {before.shape}")
        self._sums[epoch] = sums.astype(np.float64) + (0 if before is None else before)
        for old in [known for known in self._sums if known < epoch - 1]:
            del self._sums[old]

    def of(self, epoch: int) -> Sequence[Array]:
        """The sums of an epoch; none where no worker has brought any."""
        return (self._sums[epoch],) if epoch in self._sums else ()

    def all(self) -> dict[int, list[float]]:
        """All sums, by epoch."""
        return {epoch: sums.tolist() for epoch, sums in self._sums.items()}

    def restore(self, sums: Mapping[int, Sequence[float]]) -> None:
        """Takes what `all` gave."""
        self._sums = {epoch: np.array(numbers, np.float64) for epoch, numbers in sums.items()}

    def clear(self) -> None:
        """Another training begins."""
        self._sums.clear()
