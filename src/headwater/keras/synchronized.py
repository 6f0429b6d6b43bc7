"""`BatchNormalization(synchronized=True)`, which Keras accepts on its TensorFlow backend only.

The statistics of a batch are merged from the statistics of the workers' shares. Let share i have, per channel, n_i
values, the mean m_i and the sum of squared deviations s_i, and let n = Σ n_i. Then

    mean = Σ n_i m_i / n,    variance = Σ (s_i + n_i (m_i - mean)²) / n

[Chan, Golub, LeVeque 1979]. All workers gather all (n_i, m_i, s_i), so all have equal statistics. The gradient of a
share's statistics is the sum of the gradients g_j of all workers j. Worker i has r_i rows of the batch, and the
gradients that it computes are later weighted by r_i. To compensate for this weight, worker i uses Σ_j r_j g_j / r_i.

The compiled step exchanges statistics through callbacks. A worker without rows computes nothing, but takes part in the
exchanges of the other workers until their steps have ended.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
from jax.experimental import io_callback

from headwater.keras.strategy import get_replica_context

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray
    from headwater.keras.mirrored.steps import Replicas

_DESCRIPTION = "statistics of a batch"


class Exchange:
    """Exchanges of statistics between workers.

    Args:
      replicas: all workers; they make the same exchanges in the same order.
    """

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._rows = 0
        self._error: Exception | None = None

    @contextmanager
    def of_rows(self, rows: int) -> Generator[None]:
        """A context for tracing a step with ``rows`` examples: its synchronized layers use this exchange."""
        token = _current.set(self)
        self._rows = rows
        try:
            yield
        finally:
            _current.reset(token)

    def run(self, step: Any, *args: object) -> Any:
        """Calls a step that was traced in `of_rows`, waits for its results, and ends the exchanges of this step.

        Raises:
          LostPeerError, AbortedError: see `headwater.keras.collectives.collective.Collective.sum`.
        """
        try:
            results = jax.block_until_ready(step(*args))
        except Exception:
            error, self._error = self._error, None
            if error is not None:
                raise error from None  # instead of JAX's error, which contains only its text
            raise
        self._replicas.gather([], _DESCRIPTION)
        return results

    def join_exchanges(self) -> None:
        """Takes part, without rows, in the exchanges of the other workers' step."""
        while any(len(values) for values in self._replicas.gather([], _DESCRIPTION)):
            pass

    def gather(self, own: jax.Array) -> Any:
        """Returns the vectors of all workers as the rows of a matrix, with zeros for a worker without rows. The result
        is differentiable with respect to ``own``."""
        rows, rank = self._rows, self._replicas.rank
        shape = jax.ShapeDtypeStruct((self._replicas.processes, *own.shape), own.dtype)

        @jax.custom_vjp
        def gathered(vector: jax.Array) -> Any:
            return io_callback(lambda value: np.stack(self._gather_all(value)), shape, vector, ordered=True)

        def backward(_: None, gradients: Any) -> tuple[Any]:
            total = io_callback(lambda value: np.sum(self._gather_all(value), 0), shape, gradients * rows, ordered=True)
            return (total[rank] / rows,)

        gathered.defvjp(lambda vector: (gathered(vector), None), backward)
        return gathered(own)

    def _gather_all(self, value: object) -> list[HostArray]:
        own = np.asarray(value)
        try:
            gathered = self._replicas.gather([own], _DESCRIPTION)
        except Exception as error:
            self._error = error
            raise
        return [np.asarray(values[0]) if len(values) else np.zeros_like(own) for values in gathered]


_current: ContextVar[Exchange | None] = ContextVar("exchange of statistics", default=None)


def synchronized_layers(model: Any) -> list[str]:
    """Returns the names of a model's layers with synchronized statistics."""
    return [
        layer.name
        for layer in model._flatten_layers(include_self=False)
        if isinstance(layer, keras.layers.BatchNormalization) and layer.synchronized
    ]


def synchronize_normalization() -> None:
    """Makes `keras.layers.BatchNormalization` accept ``synchronized=True``."""
    layer: Any = keras.layers.BatchNormalization
    make, moments = layer.__init__, layer._moments

    @functools.wraps(make)
    def made(self: Any, *args: Any, synchronized: bool = False, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        self.synchronized = synchronized

    # Keras reads the arguments' names from the signature.
    typed: Any = made
    typed.__signature__ = inspect.signature(make)

    @functools.wraps(moments)
    def moments_of_all(self: Any, inputs: jax.Array, mask: jax.Array | None) -> Any:
        if not self.synchronized:
            return moments(self, inputs, mask)
        replica = get_replica_context()
        if _current.get() is None and replica is not None and replica.num_replicas_in_sync > 1:
            raise NotImplementedError(
                f"layer {self.name!r}: synchronized=True needs `fit` of a mirrored strategy; a custom training loop "
                "normalizes by the rows of each replica, with synchronized=False"
            )
        return _moments(inputs, mask, self._reduction_axes)

    layer.__init__, layer._moments = made, moments_of_all


def _moments(inputs: jax.Array, mask: jax.Array | None, axes: Sequence[int]) -> tuple[Any, Any]:
    """Mean and variance per channel of the batch of all workers, of which ``inputs`` are this worker's rows."""
    is_valid: Any = None if mask is None else jnp.broadcast_to(jnp.asarray(mask, bool)[..., None], inputs.shape)
    # Keras's own epsilon, for masks that keep nothing.
    least = 0.0 if mask is None else keras.backend.epsilon()
    count = jnp.sum(jnp.ones_like(inputs), axes, where=is_valid)
    mean = jnp.sum(inputs, axes, where=is_valid) / (count + least)
    squares = jnp.sum(jnp.square(inputs - jnp.expand_dims(mean, axes)), axes, where=is_valid)
    exchange = _current.get()
    own = jnp.stack([count, mean, squares])
    counts, means, sums = jnp.moveaxis(own[None] if exchange is None else exchange.gather(own), 1, 0)
    total = counts.sum(0) + least
    mean = (counts * means).sum(0) / total
    return mean, (sums + counts * jnp.square(means - mean)).sum(0) / total
