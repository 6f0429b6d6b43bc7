"""Further names for programs of TensorFlow 2: ``tf.Tensor``, the execution mode, and adaptations of Keras."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import jax
import keras
import numpy as np

from headwater.graph.operation import Tensor as GraphTensor
from headwater.keras.internals import in_stateless_scope
from headwater.tf2 import at_once, composites, data, operators, random_state, shapes, symbolic_calls, tensors
from headwater.tf2.strategies import watch_optimizers
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
    return tracing() is None


def inside_function() -> bool:
    """Returns whether this is in a function that is being compiled."""
    return tracing() is not None


@contextmanager
def init_scope() -> Generator[None]:
    """A context of eager execution.

    Raises:
      NotImplementedError: in a function that is being compiled.
    """
    if _in_scope():
        raise NotImplementedError("tf.init_scope in a tf.function: create variables before the function runs")
    yield


def py_function(func: Callable[..., Any], inp: Any, Tout: object, name: str | None = None) -> Tree:
    """Calls ``func`` with tensors in Python; a function that uses it is not compiled."""
    del name
    if tracing() is not None:
        raise RunsInPython("tf.py_function runs on the host")
    found = func(*[tensors.convert_to_tensor(item) for item in inp])
    if isinstance(Tout, (list, tuple)):
        return [tensors.constant(np.asarray(value), dtype) for value, dtype in zip(found, Tout, strict=True)]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return tensors.constant(np.asarray(found), Tout)


def adapt_libraries() -> None:
    """Adapts arrays and Keras to programs of TensorFlow 2. Idempotent."""
    at_once.attach()
    composites.attach()
    data.attach()
    operators.attach()
    tensors.attach()
    shapes.attach()
    random_state.attach()
    symbolic_calls.attach()
    watch_optimizers()
    metric: Any = keras.metrics.Metric
    if not hasattr(metric, "reset_states"):
        metric.reset_states = lambda self: self.reset_state()  # pyright: ignore[reportUnknownLambdaType, reportUnknownMemberType]
