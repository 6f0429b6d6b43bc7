"""Optimizers of TensorFlow 1.15's ``tf.keras``, which are also ``keras.optimizers.legacy`` of TensorFlow 2.

They take ``lr`` and ``decay``; epsilon is beside the square root in Adagrad and in RMSprop without momentum; Nadam's
momentum changes more slowly than in Keras 3.
"""

from __future__ import annotations

from typing import Final

import keras

from headwater.keras.internals import optimizers, replace_class
from headwater.keras.old_losses import ops
from headwater.keras.types import Tree
from headwater.tf1.compat.dialect import is_eager

_keras: Tree = keras
_of_3: Tree = keras.optimizers
Optimizer = _of_3.Optimizer
_SCHEDULE: Final = 0.004
SLOTS: Final = {
    ("Adagrad", "accumulator"): "accumulator",
    ("Adam", "momentum"): "m",
    ("Adam", "velocity"): "v",
    ("Adam", "velocity_hat"): "vhat",
    ("Adamax", "momentum"): "m",
    ("Adamax", "norm"): "v",
    ("Ftrl", "accumulator"): "accumulator",
    ("Ftrl", "linear"): "linear",
    ("Nadam", "momentum"): "m",
    ("Nadam", "velocity"): "v",
    ("RMSprop", "velocity"): "rms",
    ("RMSprop", "average_gradient"): "mg",
    ("Adadelta", "accumulated_grad"): "accum_grad",
    ("Adadelta", "accumulated_delta_var"): "accum_var",
}
"""TensorFlow 1.15's names of slots, by the class and Keras's name."""


class _Old:
    """Arguments of TensorFlow 1.15 for a class of Keras 3 that is the next base class.

    Args:
      args: as in Keras 3; ``epsilon=None`` is `keras.backend.epsilon`.
      lr: the learning rate.
      decay: the learning rate of a step is divided by ``1 + decay * updates``; ``learning_rate`` stays the whole rate.
      arguments: as in Keras 3.

    Raises:
      ValueError: ``lr``, ``decay``, ``clipnorm`` or ``clipvalue`` is negative.
    """

    def __init__(self: Tree, *args: Tree, lr: Tree = None, decay: float = 0.0, **arguments: Tree) -> None:
        for name, value in {"lr": lr, "decay": decay, **arguments}.items():
            if name in ("lr", "decay", "clipnorm", "clipvalue") and value is not None and value < 0:
                raise ValueError(f"Expected {name} >= 0, received: {value}")
        if lr is not None:
            args = (lr, *args[1:])
            arguments.pop("learning_rate", None)
        super().__init__(*args, **arguments)
        self.decay = decay
        if hasattr(self, "epsilon"):
            self.epsilon = self.epsilon or _keras.backend.epsilon()

    def _backend_update_step(self: Tree, grads: Tree, trainable_variables: Tree, learning_rate: Tree) -> None:
        if self.decay:
            learning_rate = learning_rate / (1.0 + self.decay * ops.cast(self.iterations, "float32"))
        super()._backend_update_step(grads, trainable_variables, learning_rate)  # pyright: ignore[reportAttributeAccessIssue]

    def get_config(self: Tree) -> dict[str, Tree]:
        """Returns the arguments that recreate this optimizer."""
        config = super().get_config()  # pyright: ignore[reportAttributeAccessIssue]
        return {**config, "decay": self.decay} if self.decay else config


class SGD(_Old, _of_3.SGD):
    __doc__ = _of_3.SGD.__doc__


class Adadelta(_Old, _of_3.Adadelta):
    __doc__ = _of_3.Adadelta.__doc__


class Adam(_Old, _of_3.Adam):
    __doc__ = _of_3.Adam.__doc__


class Adamax(_Old, _of_3.Adamax):
    __doc__ = _of_3.Adamax.__doc__


class Ftrl(_Old, _of_3.Ftrl):
    __doc__ = _of_3.Ftrl.__doc__


class Adagrad(_Old, _of_3.Adagrad):
    __doc__ = _of_3.Adagrad.__doc__

    @classmethod
    def from_config(cls, config: dict[str, Tree], custom_objects: Tree = None) -> Tree:
        """Returns the optimizer of a configuration; accumulators start at 0 unless it states otherwise."""
        return super().from_config({"initial_accumulator_value": 0.0, **config}, custom_objects)

    def update_step(self: Tree, gradient: Tree, variable: Tree, learning_rate: Tree) -> None:
        """Updates a variable by its gradient."""
        rate, gradient = (ops.cast(each, variable.dtype) for each in (learning_rate, gradient))
        accumulator = self._accumulators[self._get_variable_index(variable)]
        self.assign_add(accumulator, ops.square(gradient))
        self.assign_sub(variable, rate * gradient / (ops.sqrt(accumulator) + self.epsilon))


class RMSprop(_Old, _of_3.RMSprop):
    __doc__ = _of_3.RMSprop.__doc__

    def update_step(self: Tree, gradient: Tree, variable: Tree, learning_rate: Tree) -> None:
        """Updates a variable by its gradient."""
        if self.momentum > 0:
            super().update_step(gradient, variable, learning_rate)
            return
        rate, gradient = (ops.cast(each, variable.dtype) for each in (learning_rate, gradient))
        at, rho = self._get_variable_index(variable), self.rho
        squares = self._velocities[at]
        self.assign(squares, rho * squares + (1 - rho) * ops.square(gradient))
        variance = squares
        if self.centered:
            mean = self._average_gradients[at]
            self.assign(mean, rho * mean + (1 - rho) * gradient)
            variance = squares - ops.square(mean)
        self.assign_sub(variable, rate * gradient / (ops.sqrt(variance) + self.epsilon))


class Nadam(_Old, _of_3.Nadam):
    """Adam with Nesterov's momentum (Dozat, 2016).

    Args:
      args: as in Keras 3.
      schedule_decay: s in the momentum of step t, ``beta_1 * (1 - 0.5 * 0.96 ** (s * t))``.
      decay: without effect, as in TensorFlow 1.15.
      arguments: as in Keras 3.
    """

    def __init__(self, *args: Tree, schedule_decay: float = _SCHEDULE, decay: float = 0.0, **arguments: Tree) -> None:
        super().__init__(*args, **arguments)
        self.schedule_decay = schedule_decay

    def _momentum_at(self: Tree, step: Tree, dtype: str) -> Tree:
        return self.beta_1 * (1.0 - 0.5 * ops.power(0.96, self.schedule_decay * ops.cast(step, dtype)))

    def _backend_update_step(self: Tree, grads: Tree, trainable_variables: Tree, learning_rate: Tree) -> None:
        momentum = self._momentum_at(self.iterations + 1, self._u_product.dtype)
        self.assign(self._u_product, self._u_product * momentum)
        # Not Nadam's method of Keras 3, which multiplies by its own momentum.
        super(_of_3.Nadam, self)._backend_update_step(grads, trainable_variables, learning_rate)

    def update_step(self: Tree, gradient: Tree, variable: Tree, learning_rate: Tree) -> None:
        """Updates a variable by its gradient."""
        dtype = variable.dtype
        rate, gradient = (ops.cast(each, dtype) for each in (learning_rate, gradient))
        at = self._get_variable_index(variable)
        m, v = self._momentums[at], self._velocities[at]
        now, after = (self._momentum_at(self.iterations + ahead, dtype) for ahead in (1, 2))
        product = ops.cast(self._u_product, dtype)
        self.assign(m, self.beta_1 * m + (1 - self.beta_1) * gradient)
        self.assign(v, self.beta_2 * v + (1 - self.beta_2) * ops.square(gradient))
        # A tensor of a graph times a variable would read the variable's value before the assignment.
        momentum = (1.0 - now) * gradient / (1.0 - product) + ops.multiply(after, m) / (1.0 - product * after)
        variance = v / (1.0 - ops.power(self.beta_2, ops.cast(self.iterations + 1, dtype)))
        self.assign_sub(variable, rate * momentum / (ops.sqrt(variance) + self.epsilon))

    def get_config(self: Tree) -> dict[str, Tree]:
        """Returns the arguments that recreate this optimizer."""
        return {
            **super().get_config(),
            **({} if self.schedule_decay == 0.004 else {"schedule_decay": self.schedule_decay}),
        }


CLASSES: Final = (SGD, Adadelta, Adagrad, Adam, Adamax, Ftrl, Nadam, RMSprop)
if is_eager():  # where Keras's names mean Keras 3's classes
    for _kind in CLASSES:
        _keras.saving.register_keras_serializable("headwater")(_kind)


def accept_old_optimizers() -> None:
    """Makes names, configurations and saved models of Keras's optimizers mean the classes of this module."""
    for kind in CLASSES:
        replace_class(getattr(_of_3, kind.__name__), kind)
        optimizers.ALL_OBJECTS_DICT[kind.__name__.lower()] = kind
