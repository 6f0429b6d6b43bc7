"""``tf.keras.backend``: functions and gradients of models and graphs."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
from keras import KerasTensor

from headwater.graph.convert import convert_to_tensor
from headwater.graph.gradients import gradients as graph_gradients
from headwater.keras.backend.sessions import get_session
from headwater.keras.graphs.phase import builds_graph
from headwater.keras.internals import Function, functional, tree
from headwater.keras.types import Value
from headwater.tf1.functional.control_flow import group
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.variables.state import assign

if TYPE_CHECKING:
    from headwater.tensorboard_protos import RunMetadata, RunOptions

_functional: Any = functional
_keras: Any = keras
ops: Any = keras.ops


class BackendFunction:
    """A function that computes symbolic tensors from values of its inputs, and updates variables at each call.

    Args:
      inputs: symbolic tensors; any other element is the learning phase.
      outputs: the results: a symbolic tensor, or lists and dictionaries of symbolic tensors.
      updates: pairs of a variable and the symbolic tensor that becomes its value.
    """

    def __init__(
        self, inputs: Sequence[Value], outputs: Value, updates: Sequence[tuple[keras.Variable, Value]]
    ) -> None:
        self._variables = [each for each, _ in updates]
        self._outputs = outputs
        leaves = _keras.tree.flatten(outputs)
        self._count = len(leaves)
        self._is_phase = [not isinstance(each, KerasTensor) for each in inputs]
        symbols = [each for each in inputs if isinstance(each, KerasTensor)]
        self._function = Function(symbols, [*leaves, *(new for _, new in updates)])

    def __call__(self, inputs: Sequence[Value]) -> Value:
        """The outputs' values as NumPy arrays, in their structure."""
        phases = [value for value, is_phase in zip(inputs, self._is_phase, strict=True) if is_phase]
        values = [np.asarray(v) for v, is_phase in zip(inputs, self._is_phase, strict=True) if not is_phase]
        training = bool(phases[-1]) if phases else None
        tensors = [ops.convert_to_tensor(value) for value in values]
        results = self._function._run_through_graph(
            tensors, operation_fn=lambda op: _functional.operation_fn(op, training=training)
        )
        for each, value in zip(self._variables, results[self._count :], strict=True):
            each.assign(value)
        return _keras.tree.pack_sequence_as(self._outputs, [np.asarray(value) for value in results[: self._count]])


class GraphFunction:
    """A function that computes tensors of a graph from values of its inputs, in the session of `get_session`.

    Args:
      inputs: tensors that each call feeds.
      outputs: a tensor or variable, or nested lists and dictionaries of them.
      updates: pairs of a variable and its next value, or operations; they run after the first output.
      feed_dict: further values to feed.
      fetches: further tensors or operations to run.
      options: for `Session.run`.
      run_metadata: for `Session.run`.
    """

    def __init__(
        self,
        inputs: Value,
        outputs: Any,
        updates: Sequence[Any],
        feed_dict: Mapping[Any, Any] | None = None,
        fetches: Any = (),
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> None:
        self.inputs: list[Any] = tree.flatten(inputs)
        self.outputs: list[Any] = [convert_to_tensor(each) for each in tree.flatten(outputs)]
        self.feed_dict, self.fetches = feed_dict, fetches if isinstance(fetches, list) else [*tree.flatten(fetches)]
        self._structure, self._settings = outputs, (options, run_metadata)
        with control_dependencies(self.outputs[:1]):
            self.updates_op = group(*(assign(*each) if isinstance(each, tuple) else each for each in updates))

    def __call__(self, inputs: Value) -> Any:
        """Returns the outputs' values as NumPy arrays, in their structure."""
        with self.updates_op.graph.as_default():
            session: Any = get_session()
        feeds = {**dict(zip(self.inputs, tree.flatten(inputs), strict=True)), **(self.feed_dict or {})}
        feeds = {each: value for each, value in feeds.items() if value is not None}
        results = session.run([self.outputs, self.fetches, self.updates_op], feeds, *self._settings)
        return tree.pack_sequence_as(self._structure, results[0])


def function(
    inputs: Any, outputs: Any, updates: Sequence[Any] | None = None, name: str | None = None, **kwargs: Any
) -> BackendFunction | GraphFunction:
    """Returns a function that computes tensors of a graph, or symbolic tensors of Keras, from other tensors.

    Args:
      inputs: a list of tensors, whose values are the function's arguments. The learning phase may be one of them.
      outputs: its results.
      updates: pairs of a variable and the tensor that becomes its value with each call.
      kwargs: arguments of `Session.run`, for a function of a graph.

    Raises:
      TypeError: ``updates`` is no list.
      ValueError: further arguments are given.
    """
    del name
    if not isinstance(updates, list | tuple | None):
        raise TypeError("`updates` in a Keras backend function should be a list or tuple.")
    symbolic = any(isinstance(each, KerasTensor) for each in tree.flatten((inputs, outputs)))
    unknown = [key for key in kwargs if symbolic or key not in ("feed_dict", "fetches", "options", "run_metadata")]
    if unknown:
        raise ValueError(f"Invalid argument {unknown[0]!r} passed to K.function.")
    if symbolic or not builds_graph():
        return BackendFunction(inputs, outputs, updates or ())
    return GraphFunction(inputs, outputs, updates or (), **kwargs)


class _Gradients(_keras.Operation):
    """An operation that returns the gradients of the sum of a tensor with respect to the tensors from which a model
    computes it."""

    def __init__(self, function: Callable[[list[Value]], list[Value]], count: int) -> None:
        super().__init__()
        self._function = function
        self._count = count

    def call(self, tensors: list[jax.Array]) -> list[jax.Array]:
        def total(wanted: list[jax.Array], others: list[jax.Array]) -> jax.Array:
            return jnp.sum(typing.cast("jax.Array", self._function([*others, *wanted])[0]))

        cut = len(tensors) - self._count
        return jax.grad(total)(list(tensors[cut:]), list(tensors[:cut]))

    def compute_output_spec(self, tensors: list[KerasTensor]) -> list[KerasTensor]:
        return [KerasTensor(tensor.shape, tensor.dtype) for tensor in tensors[len(tensors) - self._count :]]


def gradients(loss: Any, variables: Any) -> list[Any]:
    """The gradients of the sum of ``loss`` with respect to symbolic tensors that it is computed from.

    Raises:
      ValueError: one of ``variables`` is not symbolic: gradients of weights are computed by optimizers.
    """
    if not isinstance(loss, KerasTensor) and builds_graph():
        return [*graph_gradients(loss, variables)]
    wanted: list[Value] = list(variables) if isinstance(variables, list | tuple) else [variables]
    for each in wanted:
        if not isinstance(each, KerasTensor):
            raise ValueError(f"{each!r} is not a symbolic tensor; gradients of weights are computed by the optimizer.")
    known = {id(each) for each in wanted}
    others = [each for each in _keras.utils.get_source_inputs(loss) if id(each) not in known]
    results = _Gradients(Function([*others, *wanted], [loss]), len(wanted))([*others, *wanted])
    return results
