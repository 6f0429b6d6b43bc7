"""Variables that a compiled step of Keras reads although they belong to no layer of its model.

A loss that a callback weakens is an example: ``weight = K.variable(1.0)`` in the loss, ``K.set_value(weight, 0.0)`` in
the callback. JAX would compile the value at the time of tracing into the step. Here the step reads the current value.
Keras on JAX also loses a step's assignments to such variables, among them the states of stateful recurrent layers. Here
the steps of `fit`, `evaluate` and `predict` of one process make them.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextvars import ContextVar

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

from headwater.keras.internals import JAXTrainer, JaxVariable, get_stateless_scope, in_stateless_scope
from headwater.keras.types import Tree
from headwater.tf1.compat.dialect import is_eager

ASSIGNED = "_has_been_assigned"
"""The attribute of variables whose value differs from their initial value."""
_COPY = "_value_in_steps"
"""The attribute with the current value as a NumPy array, of variables that compiled steps read."""
_OUTSIDE = "_variables_outside"
"""The attribute of a stateless scope with the ids of assigned variables whose values it did not get."""
_STATE = "rnn_state"
"""Keras's name of the states of recurrent layers."""
_variable: Tree = JaxVariable
_trainer: Tree = JAXTrainer
_in_step: ContextVar[bool] = ContextVar("a step of one process runs", default=False)


def read_variables_in_steps() -> None:
    """Makes functions that JAX traces in a stateless scope read variables which are not part of their state."""
    value, put, assign = _variable.value, _variable.assign, _variable._direct_assign

    def get(self: Tree) -> Tree:
        if isinstance(self._value, np.ndarray) and not _is_tracing():  # a step has assigned it
            self._value = jnp.asarray(self._value)
        listed = value.__get__(self)
        if not in_stateless_scope() or self._value is None or isinstance(self._value, jax.core.Tracer):
            return listed
        scope: Tree = get_stateless_scope()
        if scope.get_current_value(self) is not None or not _is_tracing():
            return listed
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
        is_lost = _is_lost(self)
        result = put(self, new if evaluate is None else evaluate(new))
        if is_lost:
            io_callback(functools.partial(_store, self), None, jax.lax.stop_gradient(result), ordered=True)
        return result

    def direct_assign(self: Tree, new: Tree) -> None:
        assign(self, new)
        if _COPY in vars(self):
            object.__setattr__(self, _COPY, np.asarray(self._value))

    for name in ("train", "test", "predict"):
        _note_steps(name)
    _variable.value = property(get, value.fset, doc=value.__doc__)
    _variable.assign = set
    _variable._direct_assign = direct_assign


def _is_tracing() -> bool:
    return isinstance(jnp.ones(()), jax.core.Tracer)


def _is_lost(variable: Tree) -> bool:
    """Returns whether Keras would lose an assignment to ``variable`` in a step.

    TensorFlow 1.15's steps make no other assignments than to states of layers, unless the loss depends on them.
    """
    scope: Tree = get_stateless_scope()
    if not _in_step.get() or scope is None or variable._value is None or isinstance(variable._value, jax.core.Tracer):
        return False
    outside = vars(scope).setdefault(_OUTSIDE, set())
    if scope.get_current_value(variable) is None:
        outside.add(id(variable))
    is_of_1 = "headwater.keras.namespace" in sys.modules and not is_eager()
    return id(variable) in outside and (variable.name == _STATE or not is_of_1)


def _store(variable: Tree, value: Tree) -> None:
    variable._value = np.asarray(value)
    object.__setattr__(variable, _COPY, variable._value)


def _note_steps(name: str) -> None:
    """Makes steps of Keras's own trainer known to assignments while they are traced."""
    maker, attribute = f"make_{name}_function", f"{name}_function"
    make: Callable[..., None] = getattr(_trainer, maker)

    @functools.wraps(make)
    def make_function(self: Tree, force: bool = False) -> None:
        before = getattr(self, attribute)
        make(self, force)
        function = getattr(self, attribute)
        if function is before:
            return

        @functools.wraps(function)
        def run(*args: Tree) -> Tree:
            token = _in_step.set(True)
            try:
                return function(*args)
            finally:
                _in_step.reset(token)

        setattr(self, attribute, run)

    setattr(_trainer, maker, make_function)
