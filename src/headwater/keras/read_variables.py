"""Variables that a compiled step of Keras reads although they belong to no layer of its model.

A loss that a callback weakens is an example: ``weight = K.variable(1.0)`` in the loss, ``K.set_value(weight, 0.0)`` in
the callback. JAX would compile the value at the time of tracing into the step. Here the step reads the current value.
"""

from __future__ import annotations

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from headwater.keras.internals import JaxVariable, get_stateless_scope, in_stateless_scope
from headwater.keras.types import Tree

ASSIGNED = "_has_been_assigned"
"""The attribute of variables that have another value than their initial one."""
_COPY = "_value_in_steps"
"""The attribute with the current value as a NumPy array, of variables that compiled steps read."""
_variable: Tree = JaxVariable


def read_variables_in_steps() -> None:
    """Makes functions that JAX traces in a stateless scope read variables which are not part of their state."""
    value, put, assign = _variable.value, _variable.assign, _variable._direct_assign

    def get(self: Tree) -> Tree:
        found = value.__get__(self)
        if not in_stateless_scope() or self._value is None or isinstance(self._value, jax.core.Tracer):
            return found
        scope: Tree = get_stateless_scope()
        if scope.get_current_value(self) is not None or not isinstance(jnp.ones(()), jax.core.Tracer):
            return found
        copied = vars(self)
        if _COPY not in copied:
            object.__setattr__(self, _COPY, np.asarray(self._value))
        read = jax.pure_callback(lambda: vars(self)[_COPY], jax.ShapeDtypeStruct(self._value.shape, self._value.dtype))
        return self._maybe_autocast(read)

    def set(self: Tree, new: Tree) -> Tree:
        # A function of `tf` has computed the value in the graph of one eager call.
        if not in_stateless_scope():
            object.__setattr__(self, ASSIGNED, True)
        evaluate = getattr(getattr(new, "graph", None), "evaluate", None)
        return put(self, new if evaluate is None else evaluate(new))

    def direct_assign(self: Tree, new: Tree) -> None:
        assign(self, new)
        if _COPY in vars(self):
            object.__setattr__(self, _COPY, np.asarray(self._value))

    _variable.value = property(get, value.fset, doc=value.__doc__)
    _variable.assign = set
    _variable._direct_assign = direct_assign
