"""``keras.backend.set_learning_phase``: the default of ``training`` for layers that are called directly.

Keras 3 has the argument ``training`` only: ``fit`` passes True, ``evaluate`` and ``predict`` pass False. The phase set
here applies if a layer or model is called on values without this argument.
"""

from __future__ import annotations

import functools
from typing import Any

from headwater.keras.internals import Layer, any_symbolic_tensors

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


def _watch_calls() -> None:
    resolve = _layer._resolve_and_populate_arg

    @functools.wraps(resolve)
    def resolved(self: object, arg_name: str, call_spec: Any, call_context: Any, kwargs: dict[str, object]) -> None:
        given = arg_name != _TRAINING or arg_name in call_spec.user_arguments_dict
        # Symbolic calls ignore the phase: it would become part of the model, and `fit` could not change it.
        if not given and call_context.get_value(arg_name) is None and not _symbolic(call_spec.user_arguments_dict):
            call_context.set_value(arg_name, bool(_phase.value))
        resolve(self, arg_name, call_spec, call_context, kwargs)

    _layer._resolve_and_populate_arg = resolved
