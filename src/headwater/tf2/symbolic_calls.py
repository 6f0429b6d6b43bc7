"""Calls of functions of ``tf`` on Keras's symbolic tensors. Each becomes an operation of a functional model.

Keras 2 does the same in its class ``TFOpLambda``; Keras 3 has such operations only for its own functions.

Keras determines the shape of a result by tracing with a symbol in place of each unknown size. A function that uses a
size as a number, as in ``tf.zeros([tf.shape(x)[0], 2])``, cannot be traced so. `attach` makes Keras trace it with two
numbers instead: a size of the result is unknown if it differs.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import keras

from headwater.dtypes import DType
from headwater.keras.internals import Function, backend, tree

if TYPE_CHECKING:
    from headwater.keras.types import Tree

#: Numbers in place of unknown sizes: primes, so that no quotient of two sizes is the same for both.
_SIZES = 83, 89

#: The module of the functions by name. Its functions need this module, so it is imported at the first call.
_NAMESPACE = "headwater.tf2.namespace"

_trace_with_symbols: Callable[..., Any] = backend.compute_output_spec


def attach() -> None:
    """Makes Keras determine the shapes of functions that use unknown sizes as numbers. Idempotent."""
    backend.compute_output_spec = _output_spec


def _output_spec(function: Callable[..., Tree], *args: object, **kwargs: object) -> Tree:
    try:
        return _trace_with_symbols(function, *args, **kwargs)
    except Exception:  # of JAX, or of the function, which finds a symbol where it expects a number
        if not any(_has_unknown_size(one) for one in tree.flatten((args, kwargs))):
            raise
        found: list[Tree] = []
        with contextlib.suppress(Exception):  # if tracing fails, raise the first error, which names the cause
            found = [_trace_with_size(function, args, kwargs, size) for size in _SIZES]
        if not found:
            raise
        return tree.map_structure(_common, *found)


def _has_unknown_size(value: object) -> bool:
    return isinstance(value, keras.KerasTensor) and None in value.shape


def _trace_with_size(function: Callable[..., Tree], args: Tree, kwargs: Tree, size: int) -> Tree:
    """Traces ``function`` with ``size`` in place of each unknown size of its symbolic arguments."""

    def sized(value: Any) -> Tree:
        if not _has_unknown_size(value):
            return value
        shape = [size if known is None else known for known in value.shape]
        return keras.KerasTensor(shape, value.dtype, sparse=value.sparse)

    given: Tree = tree.map_structure(sized, (args, kwargs))
    args, kwargs = given
    return _trace_with_symbols(function, *args, **kwargs)


def _common(first: Any, second: Any) -> Tree:
    """Returns a result with the sizes that are the same for both numbers, or the result itself if it is no tensor."""
    if not isinstance(first, keras.KerasTensor):
        return first
    shape = [size if size == other else None for size, other in zip(first.shape, second.shape, strict=True)]
    return keras.KerasTensor(shape, first.dtype, sparse=first.sparse)


@keras.saving.register_keras_serializable("headwater")
class FunctionCall(keras.Operation):
    """A function of ``tf`` as an operation of a functional model.

    Args:
      path: the function's name in ``tf``, such as ``"math.reduce_mean"``; saved models contain it.
      name: the operation's name.
    """

    def __init__(self, path: str, name: str | None = None) -> None:
        super().__init__(name=name)
        self._path = path

    def call(self, *args: object, **kwargs: object) -> Tree:
        """Computes the function of arrays."""
        tf = importlib.import_module(_NAMESPACE).tf
        function: Tree = functools.reduce(getattr, self._path.split("."), tf)
        return function(*args, **kwargs)

    def compute_output_spec(self, *args: object, **kwargs: object) -> Tree:
        """Returns the symbolic results."""
        given = tree.flatten((args, kwargs))
        symbolic = [one for one in given if isinstance(one, keras.KerasTensor)]

        # Only the symbolic tensors are traced: axes and shapes must stay Python values.
        def traced(*arrays: object) -> Tree:
            rest = iter(arrays)
            leaves = [next(rest) if isinstance(one, keras.KerasTensor) else one for one in given]
            filled_args, filled = tree.pack_sequence_as((args, kwargs), leaves)
            return self.call(*filled_args, **filled)

        try:
            return backend.compute_output_spec(traced, *symbolic)
        except Exception:  # noqa: BLE001  if it has another cause, the next call raises it, too
            # An argument may be a size, such as `tf.shape(x)[0]`, which is a number only where `x` is traced, too.
            sources = [source for tensor in symbolic for source in keras.utils.get_source_inputs(tensor)]
            inputs = list({id(source): source for source in sources}.values())
            before = Function(inputs, symbolic)
            return backend.compute_output_spec(lambda *arrays: traced(*before(list(arrays))), *inputs)


def call_symbolically(path: str, args: Tree, kwargs: Tree) -> Tree:
    """Adds the call of a function of ``tf`` to the model of its symbolic arguments; returns the symbolic results.

    Args:
      path: the function's name in ``tf``.
      args: its positional arguments.
      kwargs: its other arguments. ``name`` is ignored: several calls may have the same name, but the names of a model's
        operations are unique.
    """
    given: Tree = tree.map_structure(_plain, (args, kwargs))
    args, kwargs = given
    kwargs.pop("name", None)
    return FunctionCall(path)(*args, **kwargs)


def _plain(value: object) -> object:
    """Returns a value that Keras can save in the configuration of a model."""
    return value.name if isinstance(value, DType) else value
