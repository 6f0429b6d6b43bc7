"""Functions of a program of TensorFlow 1 that Keras calls with arrays: losses, metrics, activations and others.

They use functions of `tf`, which add operations. While Keras computes arrays, the operations are evaluated immediately.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable

import keras

from headwater.keras.graphs.phase import builds_graph
from headwater.keras.graphs.states import as_eager_function, computes_eagerly
from headwater.keras.old_activations import hard_sigmoid
from headwater.keras.old_losses import CosineSimilarity, cosine_proximity
from headwater.keras.old_names import OLD
from headwater.keras.types import Tree
from headwater.tf1.compat.dialect import is_eager

_keras: Tree = keras
_SPACES = ("activations", "constraints", "initializers", "losses", "metrics", "regularizers")
_CLASSES = {"Constraint": "__call__", "Initializer": "__call__", "Loss": "call", "Regularizer": "__call__"}
"""Classes of objects that Keras calls, and the method that a program defines."""
_OTHERWISE = {
    ("activations", "hard_sigmoid"): hard_sigmoid,
    ("losses", "cosine_similarity"): cosine_proximity,
    ("losses", "CosineSimilarity"): CosineSimilarity,
}
"""Names that mean something else in Keras 3."""
_marked = "_accepts_arrays"


def accept_program_functions() -> None:
    """Patches Keras's functions named ``get``, which resolve arguments, to adapt the program's functions."""
    for space in _SPACES:
        get = getattr(_keras, space).get
        replaced = _wrap_get(space, get)
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == "keras" and vars(module).get("get") is get:
                module.get = replaced  # pyright: ignore[reportAttributeAccessIssue]
    _keras.layers.Lambda.call = _wrap_lambda_call(_keras.layers.Lambda.call)


def _wrap_get(space: str, get: Callable[..., Tree]) -> Callable[..., Tree]:
    old = OLD.get(space, {})

    @functools.wraps(get)
    def adapted(identifier: Tree) -> Tree:
        if is_eager():
            return get(identifier)
        if isinstance(identifier, str) and identifier in old and not _has(get, identifier):
            module, _, name = old[identifier].partition(":")
            return getattr(importlib.import_module(module), name)
        is_text = isinstance(identifier, str) and "headwater.tf2.namespace" not in sys.modules
        replacement = _OTHERWISE.get((space, identifier)) if is_text else None
        return _adapt(
            get(identifier) if replacement is None else replacement() if isinstance(replacement, type) else replacement
        )

    return adapted


def _has(get: Callable[..., Tree], name: str) -> bool:
    try:
        get(name)
    except ValueError:
        return False
    return True


def _adapt(value: Tree) -> Tree:
    if isinstance(value, (_keras.metrics.Metric, _keras.Layer)):
        return value  # its own methods accept arrays
    kind = type(value)
    method = next((method for base, method in _CLASSES.items() if base in {each.__name__ for each in kind.__mro__}), "")
    owner = value if not method else kind
    module = getattr(owner, "__module__", None) or ""
    is_of_tf = not method and module.startswith("headwater.tf1.")
    if hasattr(owner, _marked) or module.startswith(("keras.", "jax.")) or (computes_eagerly(module) and not is_of_tf):
        return value
    if method:
        setattr(kind, method, _of_arrays(getattr(kind, method)))
        setattr(kind, _marked, True)
        return value
    return _of_arrays(value) if callable(value) else value


def _wrap_lambda_call(original: Callable[..., Tree]) -> Callable[..., Tree]:
    of_arrays = _of_arrays(original)

    @functools.wraps(original)
    def call(self: Tree, *args: Tree, **kwargs: Tree) -> Tree:
        is_of_2 = computes_eagerly(getattr(self.function, "__module__", None) or "")
        return (original if is_of_2 else of_arrays)(self, *args, **kwargs)

    return call


def _of_arrays(function: Callable[..., Tree]) -> Callable[..., Tree]:
    @functools.wraps(function)
    def call(*args: Tree, **kwargs: Tree) -> Tree:
        return (function if builds_graph() or is_eager() else as_eager_function(function))(*args, **kwargs)

    setattr(call, _marked, True)
    return call
