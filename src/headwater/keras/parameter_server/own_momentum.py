"""Momentum that each worker keeps of its own gradients, for asynchronous training.

If the ``ps`` keeps one momentum, the updates of all workers change the values between a worker's read and its push, and
a stale gradient acts like additional momentum. In DANA-Slim (Hakimi, Barkai, Gabel and Schuster, *Taming Momentum in a
Distributed Asynchronous Environment*, 2019), each worker keeps a momentum v of its own gradients g, and pushes u::

    v <- m v + g
    u  = m v + g

The ``ps`` applies plain gradient descent to u. The values that workers read then anticipate the momenta of all workers,
as in Nesterov's method.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import keras
import numpy as np

from headwater.ps.consistency import Consistency, KOfN, Synchronous
from headwater.ps.updater import Array

MomentumAt = Literal["ps", "worker"]
"""The place of momentum: one on the ``ps`` for all gradients, or one on each worker for its own gradients."""


def require_momentum_at(momentum_at: str, choice: Consistency) -> None:
    """Checks the argument ``momentum_at`` of a strategy.

    Raises:
      ValueError: the value is unknown; or it is ``"worker"`` although each update is a mean of the workers' gradients,
        of which none is stale.
    """
    if momentum_at not in ("ps", "worker"):
        raise ValueError(f"momentum_at must be 'ps' or 'worker', not {momentum_at!r}")
    if momentum_at == "worker" and isinstance(choice, Synchronous | KOfN):
        raise ValueError(f"momentum_at='worker' is for consistency 'async' and 'staleness=...', not {choice}")


def momentum_of(optimizer: keras.Optimizer, tables: Sequence[str]) -> float:
    """The momentum of an optimizer, which workers are to keep.

    Args:
      optimizer: a Keras optimizer.
      tables: names of layers that are sent by rows.

    Raises:
      ValueError: the optimizer has no momentum; or ``tables`` is not empty: every worker would have to keep the
        momentum of all rows of these layers.
    """
    momentum = float(optimizer.momentum) if isinstance(optimizer, keras.optimizers.SGD) else 0.0
    if not momentum:
        kind: object = type(optimizer)  # pyright: ignore[reportUnknownVariableType]
        raise ValueError(f"momentum_at='worker' needs keras.optimizers.SGD with momentum, not {kind.__name__}")
    if tables:
        raise ValueError(
            f"momentum_at='worker' cannot keep momentum of the rows of {', '.join(tables)}, which stay on the ps: use "
            "momentum_at='ps', or table_bytes= above the size of these tables"
        )
    return momentum


class OwnMomentum:
    """This worker's momentum.

    Args:
      momentum: m, at least 0 and below 1.
    """

    def __init__(self, momentum: float) -> None:
        self._momentum = np.float32(momentum)
        self._velocities: list[Array] = []

    def __call__(self, gradients: Sequence[Array]) -> list[Array]:
        """Returns the updates u to push for the ``gradients`` of one step; the variables must always be the same."""
        if not self._velocities:
            self._velocities = [np.zeros_like(gradient) for gradient in gradients]
        pushed: list[Array] = []
        for velocity, gradient in zip(self._velocities, gradients, strict=True):
            momentum = self._momentum.astype(gradient.dtype)
            velocity *= momentum
            velocity += gradient
            pushed.append(momentum * velocity + gradient)
        return pushed
