"""Variables of a scope that belong to no model, and their optimizers, in functions that a coordinator schedules.

The chief holds their values. It sends the values with each call of a function that uses them, and takes the changed
values from the answer. Calls of functions that change them are serialized, so that the values are the result of some
sequential order of the calls, as with TensorFlow's operations on one server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import jax.numpy as jnp
import numpy as np

from headwater.tf2.function import Function

if TYPE_CHECKING:
    from headwater.keras.types import Tree

#: How a function uses such variables.
Use = Literal["nothing", "reads", "writes"]


class FreeVariables:
    """The variables and optimizers of one scope.

    Args:
      variables: returns the variables that belong to no model and no metric, in the order of their creation.
      optimizers: returns the optimizers that belong to no model.
    """

    def __init__(self, variables: Callable[[], Sequence[Any]], optimizers: Callable[[], Sequence[Any]]) -> None:
        self._variables = variables
        self._optimizers = optimizers

    def __bool__(self) -> bool:
        return bool(self._variables())

    def values(self) -> Tree:
        """Returns all values: of the variables, and for each optimizer the numbers of the variables that it changes
        (None before it is built) with the values of its own variables."""
        variables = self._variables()
        places = {id(variable): at for at, variable in enumerate(variables)}
        state: list[Any] = [[np.asarray(variable.value) for variable in variables]]
        for optimizer in self._optimizers():
            changed = [places.get(id(v), -1) for v in optimizer._trainable_variables] if optimizer.built else None
            if changed is not None and -1 in changed:
                raise ValueError(
                    f"optimizer {optimizer.name!r} changes variables of a model and others: create one for each, and "
                    "pass the model its own with model.compile(optimizer=...)"
                )
            state.append([changed, [np.asarray(variable.value) for variable in optimizer.variables]])
        return state

    def assign_values(self, state: Tree) -> None:
        """Sets the values from the result of `values` on another task."""
        variables = self._variables()
        _assign(variables, state[0])
        for optimizer, (changed, values) in zip(self._optimizers(), state[1:], strict=True):
            if changed is not None and not optimizer.built:
                optimizer.build([variables[at] for at in changed])
            _assign(optimizer.variables, values)

    def use_by(self, function: Callable[..., object]) -> Use:
        """Returns how ``function`` has used the variables so far; ``"writes"`` if this is unknown."""
        found = function.variables_used() if isinstance(function, Function) else None
        if found is None:
            return "writes"
        used, written = found
        mine = {id(variable) for variable in self._variables()}
        mine.update(id(variable) for optimizer in self._optimizers() for variable in optimizer.variables)
        return "writes" if written & mine else "reads" if used & mine else "nothing"


def _assign(variables: Sequence[Any], values: Sequence[Any]) -> None:
    for variable, value in zip(variables, values, strict=False):
        variable._direct_assign(jnp.asarray(value, variable.dtype))
