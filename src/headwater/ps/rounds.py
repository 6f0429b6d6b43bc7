"""The gradients of a round, and their mean, weighted by the number of examples of each gradient."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from headwater.ps.round_sums import Source
from headwater.ps.updater import Array, Updater

Total = Callable[[Sequence[Source], Sequence[Array]], float]


class Round:
    """The gradients gathered for the next update.

    With a single gradient, the mean is that gradient, without any computation.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Discards all gradients."""
        self._weights: list[float] = []
        self._gradients: list[Sequence[Array]] = []
        self._changes: list[Mapping[int, Array]] = []
        self._rows: list[Sequence[tuple[Array, Array]]] = []
        self._hyperparameters: Sequence[float] = ()
        self._sources: list[Source] = []

    def add(
        self,
        gradients: Sequence[Array],
        changes: Mapping[int, Array],
        rows: Sequence[tuple[Array, Array]],
        weight: float,
        hyperparameters: Sequence[float],
        source: Source,
    ) -> None:
        """Adds the gradients of one worker; see `Updater.apply`. ``weight`` is the number of examples; negative if the
        gradients are not finite, so that the update makes no step."""
        self._weights.append(weight)
        self._gradients.append(gradients)
        self._changes.append(changes)
        self._rows.append(rows)
        self._sources.append(source)
        if hyperparameters:
            self._hyperparameters = hyperparameters

    def apply(self, updater: Updater, scale: float = 1.0, total: Total | None = None) -> None:
        """Performs the update, see `Updater.apply`, and removes the gradients.

        Args:
          updater: applies the mean gradient.
          scale: see `Updater.apply`.
          total: computes the squared norm of the mean gradients over all ``ps``, which is passed to the update as its
            last hyperparameter; see `headwater.ps.round_sums.RoundSums.total`.
        """
        weights, gradients, changes, rows = self._weights, self._gradients, self._changes, self._rows
        hyperparameters, sources = self._hyperparameters, self._sources
        # Clear the round first: if the update fails, its gradients must not be part of the next round.
        self.clear()
        everything = sum(map(abs, weights))
        # Shares without examples have weight 0.
        if not everything:
            return
        mean, changed, changed_rows = gradients[0], changes[0], rows[0]
        if len(weights) > 1:
            shares = [abs(weight) / everything for weight in weights]
            mean = [_mean(parts, shares) for parts in zip(*gradients, strict=True)]
            # All workers run one program, so the same variables change at all of them.
            changed = {number: _mean([each[number] for each in changes], shares) for number in changed}
            changed_rows = [_mean_rows(parts, shares) for parts in zip(*rows, strict=True)]
            scale = 1.0  # all gradients of a mean are of one version, so none of them is stale
        if min(weights) < 0:
            scale = 0.0
        if total is not None:
            hyperparameters = (*hyperparameters, total(sources, mean))
        updater.apply(mean, changed, changed_rows, hyperparameters, scale)


def _mean(parts: Sequence[Array], shares: Sequence[float]) -> Array:
    mean = parts[0] * np.asarray(shares[0], parts[0].dtype)
    for part, share in zip(parts[1:], shares[1:], strict=True):
        mean += part * np.asarray(share, part.dtype)
    return mean


def _mean_rows(parts: Sequence[tuple[Array, Array]], shares: Sequence[float]) -> tuple[Array, Array]:
    numbers = np.concatenate([part[0] for part in parts])
    gradients = np.concatenate(
        [part[1] * np.asarray(share, part[1].dtype) for part, share in zip(parts, shares, strict=True)]
    )
    # Batches of different workers have rows in common, and `Updater.apply` accepts each row only once.
    rows, where = np.unique(numbers, return_inverse=True)
    mean = np.zeros((len(rows), *gradients.shape[1:]), gradients.dtype)
    np.add.at(mean, where, gradients)
    return rows, mean
