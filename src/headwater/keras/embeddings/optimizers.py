"""A model's optimizer for dynamic tables: a compiled one of `headwater.tables` if it exists, else Keras's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import keras
import numpy as np

from headwater.keras.parameter_server.optimizers import ServerPart, clone_optimizer
from headwater.keras.parameter_server.table_updates import compiled_size
from headwater.tables.compiled import Reals
from headwater.tables.optimizers import FTRL, SGD, Adagrad, Adam, AnyOptimizer, GeneralOptimizer, Momentum, RMSProp

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_optimizers = keras.optimizers


def row_optimizer(optimizer: keras.Optimizer, dim: int, *, clips: bool) -> AnyOptimizer:
    """The optimizer of a dynamic table.

    Args:
      optimizer: a Keras optimizer.
      dim: numbers in a row.
      clips: whether gradients still have to be clipped, see `clone_optimizer`.

    Raises:
      ValueError: to update a row, the optimizer needs more than the row, the gradient, and state of the row's shape.
    """
    name = type(optimizer).__name__
    if clips and (optimizer.clipnorm or optimizer.global_clipnorm):
        raise ValueError(
            "gradients that are averaged first cannot be clipped by norms if a model has a DynamicEmbedding: use "
            "clipvalue, or consistency 'async'"
        )
    for setting in ("use_ema", "gradient_accumulation_steps"):
        if getattr(optimizer, setting, None):
            raise ValueError(f"{name} with {setting} cannot train the rows of a DynamicEmbedding")
    return _find_compiled(optimizer) or _KerasRows(optimizer, dim, clips=clips).general()


def _find_compiled(optimizer: keras.Optimizer) -> AnyOptimizer | None:
    if optimizer.weight_decay or optimizer.clipvalue:
        return None
    o, rate = optimizer, float(np.asarray(optimizer.learning_rate))
    kind: object = type(optimizer)  # pyright: ignore[reportUnknownVariableType]
    if kind is _optimizers.SGD:
        return Momentum(rate, o.momentum, nesterov=o.nesterov) if o.momentum else SGD(rate)
    if kind is _optimizers.Adagrad:
        return Adagrad(rate, o.initial_accumulator_value, o.epsilon)
    if kind is _optimizers.RMSprop and not o.centered:
        return RMSProp(rate, o.rho, o.momentum, o.epsilon)
    if kind is _optimizers.Adam and not o.amsgrad:
        return Adam(rate, o.beta_1, o.beta_2, o.epsilon)
    if kind is _optimizers.Ftrl and not o.l2_shrinkage_regularization_strength:
        return FTRL(
            rate,
            o.learning_rate_power,
            o.initial_accumulator_value,
            o.l1_regularization_strength,
            o.l2_regularization_strength,
            o.beta,
        )
    return None


class _KerasRows:
    """A Keras optimizer that is applied to some rows and their state."""

    def __init__(self, optimizer: keras.Optimizer, dim: int, *, clips: bool) -> None:
        self._original, self._dim, self._part = optimizer, dim, ServerPart(clips="each" if clips else "no")
        few, more = self._make(3), self._make(5)
        self._slots: list[float] = []
        self._by_row: list[bool] = []
        for one, other in zip(few.variables, more.variables, strict=True):
            by_row = tuple(one.shape) != tuple(other.shape)
            self._by_row.append(by_row)
            if not by_row:
                continue
            first = np.unique(np.asarray(one.value))
            if tuple(one.shape) != (3, dim) or len(first) != 1:
                raise ValueError(
                    f"{type(optimizer).__name__} keeps {one.path} of shape {tuple(one.shape)} for 3 rows of {dim} "
                    "numbers; a DynamicEmbedding supports only optimizers whose state has the shape of the row and the "
                    "same initial value for all rows"
                )
            self._slots.append(float(first[0]))
        # Values that are not per row, such as the number of updates, exist once per table.
        self._shared: list[Any] = [np.asarray(variable.value) for variable in few.variables]
        rate = getattr(few, "_learning_rate", None)
        self._rate_at = next((at for at, one_variable in enumerate(few.variables) if one_variable is rate), None)
        self._iterations_at = next(
            at for at, one_variable in enumerate(few.variables) if one_variable is few.iterations
        )
        self._steps: dict[int, Any] = {}

    def _make(self, rows: int) -> keras.Optimizer:
        optimizer = clone_optimizer(self._original, self._part)
        # Different rows, to find state that depends on their initial values.
        values = np.arange(rows * self._dim, dtype=np.float32).reshape(rows, self._dim)
        optimizer.build([keras.Variable(values, name="rows")])
        return optimizer

    def general(self) -> GeneralOptimizer:
        config = self._original.get_config()
        # All tasks must use the same name. So the name does not depend on the learning rate: a task may have changed
        # the rate meanwhile, and the rate is sent with the updates anyway.
        config["learning_rate"] = str(type(self._original._learning_rate))
        digest = hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode()).hexdigest()[:16]
        return GeneralOptimizer(
            apply=self.apply,
            slots=tuple(self._slots),
            learning_rate=float(np.asarray(self._original.learning_rate)),
            name=f"{type(self._original).__name__} {digest}",
        )

    def apply(
        self, rows: Reals, state: Sequence[Reals], gradients: Reals, step: int, rate: float
    ) -> tuple[Reals, list[Reals]]:
        """See `GeneralOptimizer.apply`."""
        count, size = len(rows), compiled_size(len(rows))
        parts = iter(state)
        shared_values = [
            _pad(next(parts), size) if by_row else shared
            for by_row, shared in zip(self._by_row, self._shared, strict=True)
        ]
        shared_values[self._iterations_at] = np.asarray(step - 1, self._shared[self._iterations_at].dtype)
        if self._rate_at is not None:
            shared_values[self._rate_at] = np.asarray(rate, self._shared[self._rate_at].dtype)
        if size not in self._steps:
            self._steps[size] = self._compile(size)
        updated, changed = self._steps[size](_pad(rows, size), shared_values, _pad(gradients, size))
        states = [np.asarray(array) for array in changed]
        for at, by_row in enumerate(self._by_row):
            if not by_row:
                self._shared[at] = states[at]
        return np.asarray(updated)[:count], [
            a[:count] for a, by_row in zip(states, self._by_row, strict=True) if by_row
        ]

    def _compile(self, size: int) -> Callable[..., Any]:
        optimizer = self._make(size)

        def update(rows: object, state: object, gradients: object) -> Tree:
            values, state = optimizer.stateless_apply(state, [gradients], [rows])
            return values[0], state

        return jax.jit(update)


def _pad(rows: Reals, size: int) -> Reals:
    padded = np.zeros((size, *rows.shape[1:]), rows.dtype)
    padded[: len(rows)] = rows
    return padded
