"""State of callbacks during training, such as the best value so far. The state is saved with the model, so that a
restarted `fit` continues from this state.

The state of Keras's own callbacks and of their subclasses is saved. The state of any other callback is saved only if
the callback has a true attribute ``saves_state``. An attribute is part of the state if it has changed since training
began and consists of numbers, strings, arrays, lists and dictionaries. Settings do not change during training, so they
are not saved, and the program's settings apply after a restart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import keras
import numpy as np

from headwater.keras.internals import OWN_MODULES, Callback

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray

_ARRAY = "array"
_TUPLE = "tuple"
_MAP = "map"
#: Attributes that Keras sets again in each run, and attributes that hold the position within `fit`. Keras negates
#: ``min_delta`` in each run if lower values are better; a restored value would be negated twice.
_NOT_STATE = frozenset({"params", "validation_data", "_current_epoch", "seen", "_within_epoch", "min_delta"})


class _NotPlainError(Exception):
    """A value does not consist of numbers, strings, arrays, lists and dictionaries only."""


class CallbackStates:
    """State of the callbacks of a `fit` at the end of the last epoch.

    Args:
      callbacks: all callbacks, in their order.
    """

    def __init__(self, callbacks: Sequence[Any]) -> None:
        counts: dict[str, int] = {}
        self._callbacks: dict[str, object] = {}
        for callback in filter(_keeps_state, callbacks):
            kind = type(callback).__name__
            counts[kind] = counts.get(kind, -1) + 1
            self._callbacks[f"{kind} {counts[kind]}"] = callback
        self._before: dict[str, dict[str, str]] = {}
        self._taken: tuple[str, list[HostArray]] = "{}", []

    def record_initial(self) -> None:
        """Records all attributes when training begins; called after ``on_train_begin`` of all callbacks."""
        self._before = {name: _attributes(callback)[0] for name, callback in self._callbacks.items()}
        self._taken = "{}", []

    def collect_changes(self) -> None:
        """Collects the changed attributes when an epoch ends; called after ``on_epoch_end`` of all callbacks."""
        arrays: list[HostArray] = []
        states: dict[str, dict[str, object]] = {}
        for name, callback in self._callbacks.items():
            texts, values = _attributes(callback)
            before = self._before.get(name, {})
            changed = [attribute for attribute, text in texts.items() if before.get(attribute) != text]
            states[name] = {attribute: _pack(values[attribute], arrays) for attribute in changed}
        self._taken = json.dumps(states), arrays

    def saved(self) -> tuple[str, list[HostArray]]:
        """Returns the state for a file: JSON, and the arrays to which it refers by number."""
        return self._taken

    def restore(self, text: str, arrays: Sequence[HostArray]) -> None:
        """Restores the callbacks' state from the result of `saved` in an earlier run."""
        states: Mapping[str, Mapping[str, object]] = json.loads(text)
        for name, state in states.items():
            callback = self._callbacks.get(name)
            for attribute, value in state.items() if callback is not None else ():
                setattr(callback, attribute, _unpack(value, arrays))
        self._taken = text, list(arrays)


def _keeps_state(callback: object) -> bool:
    kinds = [kind for kind in type(callback).__mro__ if kind not in (Callback, keras.callbacks.LambdaCallback)]
    keras_own = any(kind.__module__.startswith(f"{OWN_MODULES}.callbacks") for kind in kinds)
    return keras_own or bool(getattr(callback, "saves_state", False))


def _attributes(callback: object) -> tuple[dict[str, str], dict[str, Any]]:
    """The attributes that may be state: as texts to detect changes, and as values."""
    texts: dict[str, str] = {}
    values: dict[str, Any] = {}
    for name, value in vars(callback).items():
        if name in _NOT_STATE:
            continue
        arrays: list[HostArray] = []
        try:
            text = json.dumps(_pack(value, arrays))
        except _NotPlainError:
            continue
        texts[name] = text + "".join(str(hash(array.tobytes())) for array in arrays)
        values[name] = value
    return texts, values


def _pack(value: object, arrays: list[HostArray]) -> object:
    """Converts ``value`` to a JSON value; appends its arrays to ``arrays``."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.number | np.bool_):
        return value.item()
    if isinstance(value, np.ndarray | jax.Array):
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise _NotPlainError
        arrays.append(array)
        return {_ARRAY: len(arrays) - 1}
    if isinstance(value, tuple):
        return {_TUPLE: [_pack(each, arrays) for each in value]}
    if isinstance(value, list):
        return [_pack(each, arrays) for each in value]
    if isinstance(value, dict):
        return {_MAP: [[_pack(key, arrays), _pack(each, arrays)] for key, each in value.items()]}
    raise _NotPlainError


def _unpack(value: object, arrays: Sequence[HostArray]) -> object:
    if isinstance(value, list):
        return [_unpack(each, arrays) for each in value]
    if not isinstance(value, dict):
        return value
    ((kind, held),) = value.items()
    if kind == _ARRAY:
        return arrays[held]
    if kind == _TUPLE:
        return tuple(_unpack(each, arrays) for each in held)
    return {_unpack(key, arrays): _unpack(each, arrays) for key, each in held}
