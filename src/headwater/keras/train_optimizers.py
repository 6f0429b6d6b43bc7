"""Optimizers of ``tf.train`` in `compile` of models: optimizers of Keras with the same updates."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable, Mapping
from typing import Final

import keras
import numpy as np

from headwater.keras import old_optimizers
from headwater.keras.internals import optimizers as optimizers_of_keras
from headwater.keras.old_losses import ops
from headwater.keras.types import Tree
from headwater.tf1.training.optimizer import Optimizer
from headwater.tf1.training.optimizers.adadelta import AdadeltaOptimizer
from headwater.tf1.training.optimizers.adagrad import AdagradOptimizer
from headwater.tf1.training.optimizers.adam import AdamOptimizer
from headwater.tf1.training.optimizers.descent import GradientDescentOptimizer, MomentumOptimizer
from headwater.tf1.training.optimizers.ftrl import FtrlOptimizer
from headwater.tf1.training.optimizers.rmsprop import RMSPropOptimizer

_keras: Tree = keras
_of_3: Tree = keras.optimizers
_NONE: Final = 1e-38
"""An epsilon that changes no square root."""


@_keras.saving.register_keras_serializable("headwater")
class _RMSProp(_of_3.RMSprop):
    """`RMSPropOptimizer`, whose averages of squares start at 1."""

    def build(self: Tree, var_list: Tree) -> None:
        if not self.built:
            super().build(var_list)
            for squares in self._velocities:
                squares.assign(ops.ones(squares.shape, squares.dtype))


def _momentum(o: Tree) -> Tree:
    return _of_3.SGD(_number(o, "learning_rate"), _number(o, "momentum"), o._attrs["use_nesterov"])


def _adam(o: Tree) -> Tree:
    return _of_3.Adam(_number(o, "lr"), _number(o, "beta1"), _number(o, "beta2"), _number(o, "epsilon"))


def _adagrad(o: Tree) -> Tree:
    return old_optimizers.Adagrad(_number(o, "learning_rate"), o._initial_accumulator_value, _NONE)


def _adadelta(o: Tree) -> Tree:
    return _of_3.Adadelta(_number(o, "lr"), _number(o, "rho"), _number(o, "epsilon"))


def _rmsprop(o: Tree) -> Tree:
    settings = (_number(o, name) for name in ("learning_rate", "decay", "momentum", "epsilon"))
    return _RMSProp(*settings, centered=o._centered)


def _ftrl(o: Tree) -> Tree:
    power = _number(o, "learning_rate_power")
    return _of_3.Ftrl(_number(o, "learning_rate"), power, o._initial_accumulator_value, **o._strengths)


_MADE: Mapping[type[Optimizer], Callable[[Tree], Tree]] = {
    GradientDescentOptimizer: lambda o: _of_3.SGD(_number(o, "learning_rate")),
    MomentumOptimizer: _momentum,
    AdamOptimizer: _adam,
    AdagradOptimizer: _adagrad,
    AdadeltaOptimizer: _adadelta,
    RMSPropOptimizer: _rmsprop,
    FtrlOptimizer: _ftrl,
}


def _number(optimizer: Optimizer, name: str) -> float:
    """Returns a setting of an optimizer.

    Raises:
      NotImplementedError: it is a tensor or a variable.
    """
    value = getattr(optimizer, f"_{name}")
    value = value() if callable(value) else value
    if not isinstance(value, numbers.Real | np.ndarray):
        raise NotImplementedError(
            f"{type(optimizer).__name__} in compile() has a tensor as {name}: use an optimizer of tf.keras.optimizers, "
            "with a schedule of tf.keras.optimizers.schedules or a callback that sets the rate"
        )
    return float(value)


def accept_graph_optimizers() -> None:
    """Makes `compile` and `keras.optimizers.get` accept optimizers of ``tf.train``."""
    get = optimizers_of_keras.get

    @functools.wraps(get)
    def get_any(identifier: Tree) -> Tree:
        if not isinstance(identifier, Optimizer):
            return get(identifier)
        make = _MADE.get(type(identifier))
        if make is None:
            raise NotImplementedError(
                f"compile() with {type(identifier).__name__} is not supported: use an optimizer of "
                "tf.keras.optimizers, or train by its minimize() in a session"
            )
        return make(identifier)

    optimizers_of_keras.get = _of_3.get = get_any
