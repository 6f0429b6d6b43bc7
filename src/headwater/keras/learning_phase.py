"""``keras.backend.set_learning_phase``: the default of ``training`` for layers that are called directly.

Keras 3 has the argument ``training`` only: ``fit`` passes True, ``evaluate`` and ``predict`` pass False. The phase set
here applies if a layer or model is called on values without this argument.

In TensorFlow 1.15, a layer that is called with ``training`` on a symbolic tensor keeps this value in every use of the
model: ``Dropout(0.5)(x, training=True)`` also drops units in `predict`. A phase that is set before a model is created
becomes a part of the model. Keras 3 replaces both values in each call; `keep_given_phases` keeps them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from headwater.keras.internals import Layer, any_symbolic_tensors, functional
from headwater.keras.types import Tree

_functional: Any = functional
_layer: Any = Layer
_symbolic: Any = any_symbolic_tensors
_TRAINING = "training"


class _Phase:
    """The phase of this process; None if none is set."""

    value: int | None = None
    watched = False


_phase = _Phase()


def learning_phase() -> int:
    """Returns 1 for training, 0 for inference (the default)."""
    return _phase.value or 0


def chosen_phase() -> int | None:
    """Returns the phase that `set_learning_phase` has set; None if none is set."""
    return _phase.value


def set_learning_phase(value: int) -> None:
    """Sets the default of ``training`` for calls of layers and models without this argument.

    Args:
      value: 1 for training, 0 for inference.

    Raises:
      ValueError: ``value`` is neither 0 nor 1.
    """
    if value not in (0, 1):
        raise ValueError("Expected learning phase to be 0 or 1.")
    _phase.value = int(value)
    if not _phase.watched:
        _phase.watched = True
        _watch_calls()


def restore_learning_phase(value: int | None) -> None:
    """Restores a phase that `chosen_phase` has returned."""
    _phase.value = value


def marking(variable: ContextVar[bool], function: Callable[..., Tree]) -> Callable[..., Tree]:
    """Returns ``function`` such that a context variable is True while it runs."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Tree:
        token = variable.set(True)
        try:
            return function(*args, **kwargs)
        finally:
            variable.reset(token)

    return call


def keep_given_phases() -> None:
    """Patches Keras: functional models keep the ``training`` of symbolic calls, or the phase set at these calls."""
    operation_fn, resolve = _functional.operation_fn, _layer._resolve_and_populate_arg
    loading = ContextVar("a functional model is made from a configuration", default=False)

    @functools.wraps(resolve)
    def resolved(self: Any, arg_name: str, call_spec: Any, call_context: Any, kwargs: dict[str, object]) -> None:
        resolve(self, arg_name, call_spec, call_context, kwargs)
        if arg_name != _TRAINING or arg_name not in kwargs or not _symbolic(call_spec.user_arguments_dict.values()):
            return
        is_set = arg_name in call_spec.user_arguments_dict
        if loading.get():  # Keras 3 saves defaults like arguments
            is_set = kwargs[arg_name] != self._call_signature.parameters[arg_name].default
        if not is_set and _phase.value is not None:
            kwargs[arg_name] = bool(_phase.value)
        elif not is_set:
            del kwargs[arg_name]

    @functools.wraps(operation_fn)
    def operation_with_given_phase(operation: object, **context: object) -> Callable[..., object]:
        others = {name: value for name, value in context.items() if name != _TRAINING}
        if _phase.value == 0 and context.get(_TRAINING):
            context[_TRAINING] = False  # `fit` of TensorFlow 1.15 uses the phase
        replacing, keeping = operation_fn(operation, **context), operation_fn(operation, **others)
        return lambda *args, **kwargs: (replacing if kwargs.get(_TRAINING) is None else keeping)(*args, **kwargs)

    _layer._resolve_and_populate_arg = resolved
    _functional.operation_fn = operation_with_given_phase
    _functional.functional_from_config = marking(loading, _functional.functional_from_config)


def _watch_calls() -> None:
    resolve = _layer._resolve_and_populate_arg

    @functools.wraps(resolve)
    def resolved(self: object, arg_name: str, call_spec: Any, call_context: Any, kwargs: dict[str, object]) -> None:
        arguments = call_spec.user_arguments_dict
        is_set = arg_name != _TRAINING or arg_name in arguments
        # Symbolic calls ignore the phase: it would become part of the model, and `fit` could not change it.
        if not is_set and call_context.get_value(arg_name) is None and not _symbolic(arguments.values()):
            call_context.set_value(arg_name, bool(_phase.value))
        resolve(self, arg_name, call_spec, call_context, kwargs)

    _layer._resolve_and_populate_arg = resolved
