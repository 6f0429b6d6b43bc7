"""``tf.keras.backend``: values, variables, functions of models, and functions that concern sessions."""

from __future__ import annotations

import contextlib
import dataclasses
import typing
import weakref
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import jax
import jax.numpy as jnp
import keras
import numpy as np
from keras import KerasTensor

from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph, get_default_session
from headwater.graph.gradients import gradients as graph_gradients
from headwater.graph.graph import Graph
from headwater.graph.operation import Tensor
from headwater.graph.session.session import Session
from headwater.keras.internals import Function, global_state
from headwater.keras.internals import backend as keras_backend
from headwater.keras.internals import name_scope as keras_name_scope
from headwater.keras.learning_phase import learning_phase, set_learning_phase
from headwater.keras.types import Value
from headwater.tf1.variables.state import is_variable_initialized
from headwater.tf1.variables.variables import Variable as GraphVariable

if TYPE_CHECKING:
    import numpy.typing as npt

    from headwater.graph.registry import HostArray

_keras: Any = keras
ops: Any = keras.ops
Dims = Sequence[int | None]


class RunsGraphs(Protocol):
    """The interface of a session that `set_session` stores."""

    def run(self, fetches: object, feed_dict: object = None) -> object:
        """Runs part of a graph."""


class _Kept:
    session: RunsGraphs | None = None
    by_graph: weakref.WeakKeyDictionary[Graph, Session] = weakref.WeakKeyDictionary()


def variable(
    value: npt.ArrayLike,
    dtype: str | None = None,
    name: str | None = None,
    constraint: Callable[..., Value] | None = None,
) -> keras.Variable:
    """A variable with this value."""
    kind = dtype or _keras.config.floatx()
    made = keras.Variable(np.asarray(value, _numpy_type(kind)), dtype=kind, name=name)
    made.constraint = constraint  # pyright: ignore[reportAttributeAccessIssue]
    return made


def _numpy_type(name: str) -> np.dtype[np.generic]:
    return jnp.dtype(name)


def constant(
    value: Value, dtype: str | None = None, shape: Sequence[int] | None = None, name: str | None = None
) -> jax.Array:
    """Returns a constant of shape ``shape``; a single number is repeated."""
    del name
    array = np.asarray(value, _numpy_type(dtype or _keras.config.floatx()))
    if shape is not None:
        array = np.broadcast_to(array, shape) if array.size == 1 else array.reshape(shape)
    return jnp.asarray(array)


def placeholder(
    shape: Dims | None = None,
    ndim: int | None = None,
    dtype: str | None = None,
    sparse: bool = False,
    name: str | None = None,
    ragged: bool = False,
) -> KerasTensor:
    """Returns an input of a function or model: of a shape, or of ``ndim`` dimensions of unknown sizes.

    Raises:
      NotImplementedError: ``ragged`` is set: Keras 3 on JAX has no ragged tensors.
    """
    if ragged:
        raise NotImplementedError("ragged: Keras 3 on JAX has no ragged tensors.")
    dims = tuple(shape) if shape is not None else (None,) * (ndim or 0)
    return _keras.Input(batch_shape=dims, dtype=dtype or _keras.config.floatx(), sparse=sparse, name=name)


def zeros(shape: Sequence[int], dtype: str | None = None, name: str | None = None) -> keras.Variable:
    """A variable of zeros."""
    return variable(np.zeros(tuple(shape)), dtype, name)


def ones(shape: Sequence[int], dtype: str | None = None, name: str | None = None) -> keras.Variable:
    """A variable of ones."""
    return variable(np.ones(tuple(shape)), dtype, name)


def eye(size: int, dtype: str | None = None, name: str | None = None) -> keras.Variable:
    """A variable with the identity matrix."""
    return variable(np.eye(size), dtype, name)


def zeros_like(x: Value, dtype: str | None = None, name: str | None = None) -> Value:
    """Zeros of the shape of ``x``."""
    del name
    return ops.zeros_like(x, dtype=dtype)


def ones_like(x: Value, dtype: str | None = None, name: str | None = None) -> Value:
    """Ones of the shape of ``x``."""
    del name
    return ops.ones_like(x, dtype=dtype)


def random_uniform_variable(
    shape: Sequence[int],
    low: float,
    high: float,
    dtype: str | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> keras.Variable:
    """A variable of random numbers from the uniform distribution between ``low`` and ``high``."""
    return variable(random_uniform(shape, low, high, dtype, seed), dtype, name)


def random_normal_variable(
    shape: Sequence[int],
    mean: float,
    scale: float,
    dtype: str | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> keras.Variable:
    """A variable of random numbers from a normal distribution."""
    return variable(random_normal(shape, mean, scale, dtype, seed), dtype, name)


def random_uniform(
    shape: Sequence[int], minval: float = 0.0, maxval: float = 1.0, dtype: str | None = None, seed: int | None = None
) -> Value:
    """Returns random numbers from the uniform distribution between ``minval`` and ``maxval``."""
    return _keras.random.uniform(tuple(shape), minval, maxval, dtype, seed)


def random_normal(
    shape: Sequence[int], mean: float = 0.0, stddev: float = 1.0, dtype: str | None = None, seed: int | None = None
) -> Value:
    """Returns random numbers from a normal distribution."""
    return _keras.random.normal(tuple(shape), mean, stddev, dtype, seed)


def truncated_normal(
    shape: Sequence[int], mean: float = 0.0, stddev: float = 1.0, dtype: str | None = None, seed: int | None = None
) -> Value:
    """Returns random numbers from a normal distribution, less than two standard deviations from its mean."""
    return _keras.random.truncated_normal(tuple(shape), mean, stddev, dtype, seed)


def random_binomial(shape: Sequence[int], p: float = 0.0, dtype: str | None = None, seed: int | None = None) -> Value:
    """Returns random numbers that are 1 with probability ``p``, and otherwise 0."""
    kind = dtype or _keras.config.floatx()
    return ops.cast(_keras.random.uniform(tuple(shape), seed=seed) <= p, kind)


# Reading and changing -------------------------------------------------------------------------------------------


def eval(x: Value) -> HostArray:
    """Returns the value of ``x`` as a NumPy array.

    Raises:
      ValueError: ``x`` is symbolic: it has values only in calls of a function or model.
    """
    if isinstance(x, KerasTensor):
        raise ValueError(f"{x.name} is symbolic: use `keras.backend.function` to compute its value.")
    if isinstance(x, Tensor | GraphVariable):
        session: Any = get_session()
        return session.run(x)
    return np.asarray(ops.convert_to_numpy(x.value if isinstance(x, keras.Variable) else x))


get_value: Callable[[Value], HostArray] = eval


def batch_get_value(tensors: Sequence[Value]) -> list[HostArray]:
    """The values of several variables."""
    return [eval(tensor) for tensor in tensors]


def set_value(x: keras.Variable, value: Value) -> None:
    """Sets a variable."""
    x.assign(value)


def batch_set_value(tuples: Sequence[tuple[keras.Variable, Value]]) -> None:
    """Sets several variables; takes pairs of a variable and its value."""
    for each, value in tuples:
        each.assign(value)


def update(x: keras.Variable, new_x: Value) -> Value:
    """Sets a variable, and returns its value."""
    return x.assign(new_x)


def update_add(x: keras.Variable, increment: Value) -> Value:
    """Adds to a variable, and returns its value."""
    return x.assign_add(increment)


def update_sub(x: keras.Variable, decrement: Value) -> Value:
    """Subtracts from a variable, and returns its value."""
    return x.assign_sub(decrement)


@dataclasses.dataclass(slots=True)
class _Average:
    """The state of a moving average that started at zero."""

    biased: Value
    updates: int = 0


def moving_average_update(x: keras.Variable, value: Value, momentum: float) -> Value:
    """Updates the moving average ``x``, in which each value has ``momentum`` times the weight of the next one.

    The value of ``x`` before the first update has no weight, as in TensorFlow 1.15.
    """
    average = _averages.setdefault(id(x), _Average(ops.zeros_like(x.value)))
    if average.updates == 0:
        weakref.finalize(x, _averages.pop, id(x), None)
    average.updates += 1
    average.biased = average.biased * momentum + ops.cast(value, x.dtype) * (1 - momentum)
    return x.assign(average.biased / (1 - momentum**average.updates))


_averages: dict[int, _Average] = {}


def int_shape(x: Value) -> tuple[int | None, ...] | None:
    """The sizes of ``x``; None for unknown dimensions."""
    return keras_backend.standardize_shape(x.shape) if hasattr(x, "shape") else None


def shape(x: Value) -> Value:
    """The sizes of ``x`` as one tensor of integers."""
    return ops.stack([ops.cast(size, "int32") for size in ops.shape(x)])


def ndim(x: Value) -> int:
    """The number of dimensions."""
    return len(x.shape)


def dtype(x: Value) -> str:
    """The name of the type of elements."""
    return _keras.backend.standardize_dtype(x.dtype)


def count_params(x: Value) -> int:
    """The number of elements."""
    return int(np.prod(x.shape))


def is_sparse(tensor: Value) -> bool:
    """Whether ``tensor`` is sparse."""
    return bool(getattr(tensor, "sparse", False)) or hasattr(tensor, "todense")


def to_dense(tensor: Value) -> Value:
    """Returns a dense tensor with the same elements."""
    return ops.convert_to_tensor(tensor, sparse=False)


def cast(x: Value, dtype: str) -> Value:
    """Converts the elements to another type."""
    return ops.cast(x, dtype)


def cast_to_floatx(x: Value | keras.Variable | npt.ArrayLike) -> Value | HostArray:
    """Converts to Keras's default floating-point type; the result for a NumPy array or a list is a NumPy array."""
    kind = _keras.config.floatx()
    return ops.cast(x, kind) if isinstance(x, jax.Array | KerasTensor | keras.Variable) else np.asarray(x, kind)


def print_tensor(x: Value, message: str = "") -> Value:
    """Prints a value when it is computed, and returns it."""
    return _Printed(message)(x)


class _Printed(_keras.Operation):
    def __init__(self, message: str) -> None:
        super().__init__()
        self._message = message

    def call(self, x: Value) -> Value:
        value = ops.convert_to_tensor(x)
        jax.debug.print("{message} {value}", message=self._message, value=value, ordered=False)
        return value

    def compute_output_spec(self, x: KerasTensor) -> KerasTensor:
        return KerasTensor(x.shape, x.dtype)


# Functions of symbolic tensors ----------------------------------------------------------------------------------


class BackendFunction:
    """A function that computes symbolic tensors from values of others, and updates variables at each call.

    Args:
      inputs: symbolic tensors.
      outputs: the results: a symbolic tensor, or lists and dictionaries of symbolic tensors.
      updates: pairs of a variable and the symbolic tensor that becomes its value.
    """

    def __init__(
        self, inputs: Sequence[KerasTensor], outputs: Value, updates: Sequence[tuple[keras.Variable, Value]]
    ) -> None:
        self._variables = [each for each, _ in updates]
        self._outputs = outputs
        leaves = _keras.tree.flatten(outputs)
        self._count = len(leaves)
        self._function = Function(list(inputs), [*leaves, *(new for _, new in updates)])

    def __call__(self, inputs: Sequence[Value]) -> Value:
        """The outputs' values as NumPy arrays, in their structure."""
        values = [np.asarray(value) if isinstance(value, int | float) else value for value in inputs]
        found = self._function([ops.convert_to_tensor(value) for value in values])
        for each, value in zip(self._variables, found[self._count :], strict=True):
            each.assign(value)
        return _keras.tree.pack_sequence_as(self._outputs, [np.asarray(value) for value in found[: self._count]])


def function(
    inputs: Sequence[KerasTensor],
    outputs: Value,
    updates: Sequence[tuple[keras.Variable, Value]] | None = None,
    name: str | None = None,
    **kwargs: object,
) -> BackendFunction:
    """A function that computes symbolic tensors from others.

    Args:
      inputs: a list of symbolic tensors, whose values are the function's arguments.
      outputs: its results.
      updates: pairs of a variable and the symbolic tensor that becomes its value with each call.

    Raises:
      ValueError: further arguments are given. They would be arguments of a session, which Keras 3 does not have.
    """
    del name
    if kwargs:
        raise ValueError(f"Invalid argument {next(iter(kwargs))!r} passed to K.function: Keras 3 runs no session.")
    return BackendFunction(inputs, outputs, updates or ())


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


def gradients(loss: KerasTensor, variables: Value) -> list[Any]:
    """The gradients of the sum of ``loss`` with respect to symbolic tensors that it is computed from.

    Raises:
      ValueError: one of ``variables`` is not symbolic: gradients of weights are computed by optimizers.
    """
    if isinstance(loss, Tensor):
        return [*graph_gradients(loss, variables)]
    wanted: list[Value] = list(variables) if isinstance(variables, list | tuple) else [variables]
    for each in wanted:
        if not isinstance(each, KerasTensor):
            raise ValueError(f"{each!r} is not a symbolic tensor; gradients of weights are computed by the optimizer.")
    known = {id(each) for each in wanted}
    others = [each for each in _keras.utils.get_source_inputs(loss) if id(each) not in known]
    found = _Gradients(Function([*others, *wanted], [loss]), len(wanted))([*others, *wanted])
    return found


def stop_gradient(variables: Value) -> Value:
    """Returns the same value, or list of values, as a constant for gradients."""
    return _keras.tree.map_structure(ops.stop_gradient, variables)


# Sessions ---------------------------------------------------------------------------------------------------------


def get_session(op_input_list: Sequence[Value] = ()) -> RunsGraphs:
    """Returns the session of the default graph: the default session, the session that was passed to `set_session`, or
    a new one.

    The graph's variables without a value are initialised in it.

    Raises:
      ValueError: no session was set, and the default graph is empty. Models of Keras 3 run without a session.
    """
    del op_input_list
    graph = get_default_graph()
    session: Any = get_default_session() or _Kept.session
    if session is None or getattr(session, "graph", graph) is not graph:
        if not graph.get_operations():
            raise ValueError("No session was set with `keras.backend.set_session`; models of Keras 3 need none.")
        session = _Kept.by_graph.get(graph)
        if session is None:
            session = _Kept.by_graph[graph] = Session(graph=graph)
    _initialize(session, graph)
    return session


def _initialize(session: Any, graph: Graph) -> None:
    """Gives the variables of ``graph`` that have no value their initial value in ``session``."""
    variables = list(graph.get_collection(GraphKeys.GLOBAL_VARIABLES))
    if not variables or getattr(session, "graph", None) is not graph or graph.finalized:
        return
    missing = session.run([is_variable_initialized(each) for each in variables])
    session.run([each.initializer for each, has_value in zip(variables, missing, strict=True) if not has_value])


def set_session(session: RunsGraphs) -> None:
    """Keeps a session for `get_session`. Models of Keras 3 run without one."""
    _Kept.session = session


def manual_variable_initialization(value: bool) -> None:
    """Accepts only False, because variables of Keras 3 have values from the start.

    Raises:
      ValueError: ``value`` is true.
    """
    if value:
        raise ValueError("Variables of Keras 3 have values from the start; their initialisation cannot be deferred.")


def reset_uids() -> None:
    """Resets the counters that make names of layers unique."""
    global_state.get_global_attribute("object_name_uids", {}, set_to_default=True).clear()


@contextlib.contextmanager
def learning_phase_scope(value: int) -> Generator[None]:
    """Sets the learning phase within a block.

    Raises:
      ValueError: ``value`` is neither 0 nor 1.
    """
    before = learning_phase()
    set_learning_phase(value)
    try:
        yield
    finally:
        set_learning_phase(before)


@contextlib.contextmanager
def name_scope(name: str | None, default_name: str | None = None, values: object = None) -> Generator[str]:
    """A context in which names of new variables begin with ``name``; yields this prefix."""
    del values
    scope = name or default_name or ""
    with keras_name_scope(scope):
        yield f"{scope}/"
