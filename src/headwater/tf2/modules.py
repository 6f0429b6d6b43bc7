"""`tf.Module` of TensorFlow 2: its variables are Keras's variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from headwater.tf1.variables.module import Module as GraphModule

_Variable: Any = keras.Variable
_Layer: Any = keras.layers.Layer


class Module(GraphModule):
    __doc__ = GraphModule.__doc__

    @property
    def variables(self) -> tuple[Any, ...]:
        """All variables, including the variables of its modules and layers, by the names of attributes."""
        return self._variables_of(lambda layer: layer.variables)

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """The variables that optimizers change."""
        return tuple(
            variable for variable in self._variables_of(lambda layer: layer.trainable_variables) if variable.trainable
        )

    @property
    def non_trainable_variables(self) -> tuple[Any, ...]:
        """The other variables."""
        trainable = set(map(id, self.trainable_variables))
        return tuple(variable for variable in self.variables if id(variable) not in trainable)

    def _variables_of(self, inner: Callable[[Any], Any]) -> tuple[Any, ...]:
        found: dict[int, Any] = {}
        for owner in self._flatten(lambda value: isinstance(value, (_Variable, _Layer))):
            for variable in inner(owner) if isinstance(owner, _Layer) else [owner]:
                found.setdefault(id(variable), variable)
        return tuple(found.values())
