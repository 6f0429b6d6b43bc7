"""Further names for programs of TensorFlow 2: ``tf.Tensor``, the execution mode, and adaptations of Keras."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import jax
import jax.core
import keras

from headwater.graph.operation import Tensor as GraphTensor
from headwater.keras.internals import in_stateless_scope
from headwater.tf1.functional.script import py_func as graph_py_func
from headwater.tf2 import (
    at_once,
    composites,
    data,
    model_steps,
    operators,
    random_state,
    shapes,
    symbolic_calls,
    tensors,
)
from headwater.tf2.strategies import watch_optimizers
from headwater.tf2.tape import value_of
from headwater.tf2.tracing import RunsInPython, tracing

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_in_scope = in_stateless_scope


class _TensorType(type):
    """JAX's arrays are tensors."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (jax.Array, tensors.HostTensor, GraphTensor))


class Tensor(metaclass=_TensorType):
    """For ``isinstance``: an array, or a tensor of a graph that is being built."""


def executing_eagerly() -> bool:
    """Returns whether this thread executes eagerly, not in a function that is being compiled."""
    return tracing() is None and not at_once.adds_operations()


def inside_function() -> bool:
    """Returns whether this is in a function that is being compiled."""
    return not executing_eagerly()


@contextmanager
def init_scope() -> Generator[None]:
    """A context of eager execution.

    Raises:
      NotImplementedError: in a function that is being compiled.
    """
    if _in_scope():
        raise NotImplementedError("tf.init_scope in a tf.function: create variables before the function runs")
    yield


def py_function(
    func: Callable[..., Any] | None = None, inp: object = None, Tout: object = None, name: str | None = None
) -> Tree:
    """Calls ``func`` with tensors in Python; a function that uses it is not compiled.

    Without ``func`` returns a decorator.
    """
    del name
    return _on_host(tensors.convert_to_tensor, "tf.py_function", func, inp, Tout)


def numpy_function(
    func: Callable[..., Any] | None = None,
    inp: object = None,
    Tout: object = None,
    stateful: bool = True,
    name: str | None = None,
) -> Tree:
    """Like `py_function`, with NumPy arrays."""
    del stateful, name
    return _on_host(_to_numpy, "tf.numpy_function", func, inp, Tout)


def _to_numpy(value: object) -> Any:
    found = tensors.to_numpy(tensors.convert_to_tensor(value))
    return found if found.ndim else found[()]


def _values(found: object) -> Any:
    """Converts the results of a function to NumPy arrays."""
    if isinstance(found, (list, tuple)):
        return [tensors.to_numpy(value) for value in found]  # pyright: ignore[reportUnknownVariableType]
    return [] if found is None else tensors.to_numpy(found)


def _on_host(convert: Callable[[Any], Any], name: str, func: Callable[..., Any] | None, inp: Any, types: Any) -> Tree:
    if func is None:
        return lambda given: lambda *args: _on_host(convert, name, given, args, types)  # pyright: ignore
    if at_once.adds_operations():
        return graph_py_func(lambda *args: _values(func(*map(convert, args))), inp, [] if types is None else types)
    if tracing() is not None or any(isinstance(item, jax.core.Tracer) for item in inp):
        raise RunsInPython(f"{name} runs on the host")
    found = func(*map(convert, inp))
    if isinstance(types, (list, tuple)):
        several = found if isinstance(found, (list, tuple)) else [] if found is None else [found]  # pyright: ignore[reportUnknownVariableType]
        if len(several) != len(types):  # pyright: ignore[reportUnknownArgumentType]
            raise ValueError(f"{name}: the function returned {len(several)} values for {len(types)} types")  # pyright: ignore[reportUnknownArgumentType]
        return [tensors.constant(tensors.to_numpy(value), dtype) for value, dtype in zip(several, types, strict=True)]  # pyright: ignore
    return None if types is None else tensors.constant(tensors.to_numpy(found), types)


def _returning_values(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a metric's ``result`` with values in place of variables, which Keras cannot return from a step."""

    @functools.wraps(method)
    def result(self: object) -> Tree:
        found = method(self)
        return value_of(found) if isinstance(found, keras.Variable) else found

    return result


def adapt_libraries() -> None:
    """Adapts arrays and Keras to programs of TensorFlow 2. Idempotent."""
    at_once.attach()
    composites.attach()
    data.attach()
    model_steps.attach()
    operators.attach()
    tensors.attach()
    shapes.attach()
    random_state.attach()
    symbolic_calls.attach()
    watch_optimizers()
    metric: Any = keras.metrics.Metric
    if "__init_subclass__" not in vars(metric):

        def define(cls: Any, **kwargs: object) -> None:
            super(metric, cls).__init_subclass__(**kwargs)
            if "result" in vars(cls):
                cls.result = _returning_values(cls.result)

        metric.__init_subclass__ = classmethod(define)
    if not hasattr(metric, "reset_states"):
        metric.reset_states = lambda self: self.reset_state()  # pyright: ignore[reportUnknownLambdaType, reportUnknownMemberType]
