"""``tf.keras.backend``: values, variables, functions of models, and functions that concern sessions."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import sys
import weakref
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import keras
import numpy as np
from keras import KerasTensor

from headwater.dtypes import DTypeLike, as_dtype
from headwater.graph import convert
from headwater.graph.context import get_default_graph
from headwater.graph.convert import name_scope as graph_name_scope
from headwater.graph.graph import Graph
from headwater.graph.operation import Tensor
from headwater.graph.sparse_tensor import SparseTensor, SparseTensorValue
from headwater.keras.backend.sessions import get_session
from headwater.keras.graphs.phase import builds_graph
from headwater.keras.internals import backend as keras_backend
from headwater.keras.internals import global_state, in_stateless_scope
from headwater.keras.internals import name_scope as keras_name_scope
from headwater.keras.learning_phase import chosen_phase, restore_learning_phase, set_learning_phase
from headwater.keras.types import Value
from headwater.tf1.functional import arrays, random, script
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.ragged import placeholder as ragged_placeholder
from headwater.tf1.functional.sparse import sparse_placeholder, sparse_tensor_to_dense
from headwater.tf1.training.moving_averages import assign_moving_average
from headwater.tf1.variables.variables import Variable

if TYPE_CHECKING:
    import numpy.typing as npt

    from headwater.graph.registry import HostArray

_keras: Any = keras
ops: Any = keras.ops
Dims = Sequence[int | None]


def _adds_to_graph(value: object = None) -> bool:
    return builds_graph() or isinstance(value, Tensor)


def _calls_function() -> bool:
    """Returns whether the default graph is the graph of one call of a function on arrays."""
    return type(get_default_graph()) is not Graph


def variable(
    value: npt.ArrayLike | Tensor,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    constraint: Callable[..., Any] | None = None,
) -> Any:
    """A variable with this value: of the default graph, or of Keras where no graph is built."""
    kind = as_dtype(dtype or _keras.config.floatx())
    if _adds_to_graph(value):
        if hasattr(value, "tocoo"):
            return _sparse(value)
        return Variable(value, dtype=kind, name=name, constraint=constraint)
    created = keras.Variable(np.asarray(value, kind.numpy_dtype), dtype=kind.name, name=name)
    created.constraint = constraint  # pyright: ignore[reportAttributeAccessIssue]
    return created


def _sparse(matrix: Any) -> SparseTensor:
    """Returns a matrix of SciPy as a sparse tensor."""
    parts = matrix.tocoo()
    places = np.stack([parts.row, parts.col], axis=1).astype(np.int64)
    return SparseTensor(places, parts.data, parts.shape)


def constant(
    value: Value, dtype: DTypeLike | None = None, shape: Sequence[int] | None = None, name: str | None = None
) -> Any:
    """Returns a constant of shape ``shape``; a single number is repeated."""
    kind = as_dtype(dtype or _keras.config.floatx())
    if _adds_to_graph():
        verified = shape is not None and np.size(value) > 1
        return convert.constant(value, kind, shape, name or "Const", verify_shape=verified)
    array = np.asarray(value, kind.numpy_dtype)
    if shape is not None:
        array = np.broadcast_to(array, shape) if array.size == 1 else array.reshape(shape)
    return jnp.asarray(array)


def placeholder(
    shape: Dims | None = None,
    ndim: int | None = None,
    dtype: DTypeLike | None = None,
    sparse: bool = False,
    name: str | None = None,
    ragged: bool = False,
) -> Any:
    """Returns an input: of a shape, or of ``ndim`` dimensions of unknown sizes.

    It is a placeholder of the default graph, or a symbolic tensor of Keras where no graph is built.

    Raises:
      NotImplementedError: ``ragged`` is set and no graph is built: Keras 3 on JAX has no ragged tensors.
      ValueError: ``sparse`` and ``ragged`` are both set.
    """
    kind = as_dtype(dtype or _keras.config.floatx())
    if sparse and ragged:
        raise ValueError("Cannot set both sparse and ragged to True when creating a placeholder.")
    if _adds_to_graph():
        dims = [None] * ndim if not shape and ndim else shape
        if sparse:
            return sparse_placeholder(kind, dims, name)
        if ragged:
            sizes = tuple(dims or ())
            rank = max((axis for axis, size in enumerate(sizes) if axis and size is None), default=0)
            return ragged_placeholder(kind, rank, sizes[rank + 1 :], name)
        return arrays.placeholder(kind, dims, name)
    if ragged:
        raise NotImplementedError("ragged: Keras 3 on JAX has no ragged tensors.")
    dims = tuple(shape) if shape is not None else (None,) * (ndim or 0)
    return _keras.Input(batch_shape=dims, dtype=kind.name, sparse=sparse, name=name)


def _filled(function: Callable[..., Tensor], shape: Sequence[int], dtype: DTypeLike | None, name: str | None) -> Any:
    """Returns a variable; in a graph a tensor if its shape is not fully known."""
    kind = as_dtype(dtype or _keras.config.floatx())
    if not _adds_to_graph():
        return variable(np.full(tuple(shape), function is arrays.ones, kind.numpy_dtype), kind, name)
    tensor = function(shape, kind, name)
    return variable(tensor, kind, name) if tensor.shape.is_fully_defined() else tensor


def zeros(shape: Sequence[int], dtype: DTypeLike | None = None, name: str | None = None) -> Any:
    """A variable of zeros; a tensor if its shape is not fully known."""
    return _filled(arrays.zeros, shape, dtype, name)


def ones(shape: Sequence[int], dtype: DTypeLike | None = None, name: str | None = None) -> Any:
    """A variable of ones; a tensor if its shape is not fully known."""
    return _filled(arrays.ones, shape, dtype, name)


def eye(size: int, dtype: DTypeLike | None = None, name: str | None = None) -> Any:
    """A variable with the identity matrix."""
    return variable(np.eye(size), dtype, name)


def zeros_like(x: Value, dtype: DTypeLike | None = None, name: str | None = None) -> Value:
    """Zeros of the shape of ``x``."""
    del name
    return ops.zeros_like(x, dtype=dtype)


def ones_like(x: Value, dtype: DTypeLike | None = None, name: str | None = None) -> Value:
    """Ones of the shape of ``x``."""
    del name
    return ops.ones_like(x, dtype=dtype)


def random_uniform_variable(
    shape: Sequence[int],
    low: float,
    high: float,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> Any:
    """A variable of random numbers from the uniform distribution between ``low`` and ``high``."""
    return variable(random_uniform(shape, low, high, dtype, seed), dtype, name)


def random_normal_variable(
    shape: Sequence[int],
    mean: float,
    scale: float,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    seed: int | None = None,
) -> Any:
    """A variable of random numbers from a normal distribution."""
    return variable(random_normal(shape, mean, scale, dtype, seed), dtype, name)


def _drawn(
    function: str, shape: Sequence[int], low: float, high: float, dtype: DTypeLike | None, seed: int | None
) -> Any:
    """Returns random numbers: in a graph of each step, seeded by NumPy's generator, as in TensorFlow 1.15."""
    kind = as_dtype(dtype or _keras.config.floatx())
    if _calls_function():  # its steps draw different numbers without a seed
        return getattr(random, function)(shape, low, high, dtype=kind, seed=seed)
    if _adds_to_graph():
        seed = np.random.randint(10_000_000) if seed is None else seed
        return getattr(random, function)(shape, low, high, dtype=kind, seed=seed)
    return getattr(_keras.random, function.removeprefix("random_"))(tuple(shape), low, high, kind.name, seed)


def random_uniform(
    shape: Sequence[int],
    minval: float = 0.0,
    maxval: float = 1.0,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
) -> Any:
    """Returns random numbers from the uniform distribution between ``minval`` and ``maxval``."""
    return _drawn("random_uniform", shape, minval, maxval, dtype, seed)


def random_normal(
    shape: Sequence[int],
    mean: float = 0.0,
    stddev: float = 1.0,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
) -> Any:
    """Returns random numbers from a normal distribution."""
    return _drawn("random_normal", shape, mean, stddev, dtype, seed)


def truncated_normal(
    shape: Sequence[int],
    mean: float = 0.0,
    stddev: float = 1.0,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
) -> Any:
    """Returns random numbers from a normal distribution, less than two standard deviations from its mean."""
    return _drawn("truncated_normal", shape, mean, stddev, dtype, seed)


def random_binomial(
    shape: Sequence[int], p: float = 0.0, dtype: DTypeLike | None = None, seed: int | None = None
) -> Any:
    """Returns random numbers that are 1 with probability ``p``, and otherwise 0."""
    return ops.cast(random_uniform(shape, dtype=dtype, seed=seed) <= p, as_dtype(dtype or _keras.config.floatx()).name)


# Reading and changing -------------------------------------------------------------------------------------------


def eval(x: Value) -> HostArray:
    """Returns the value of ``x`` as a NumPy array.

    Raises:
      ValueError: ``x`` is symbolic: it has values only in calls of a function or model.
    """
    if isinstance(x, KerasTensor):
        raise ValueError(f"{x.name} is symbolic: use `keras.backend.function` to compute its value.")
    if isinstance(x, Tensor | Variable | SparseTensor):
        with x.graph.as_default():
            session: Any = get_session()
        value = session.run(x)
        return _dense(value) if isinstance(value, SparseTensorValue) else value
    return np.asarray(ops.convert_to_numpy(x.value if isinstance(x, keras.Variable) else x))


def _dense(value: SparseTensorValue) -> HostArray:
    values, places = np.asarray(value.values), np.asarray(value.indices)
    dense = np.zeros(tuple(np.asarray(value.dense_shape)), values.dtype)
    dense[tuple(places.T)] = values
    return dense


get_value: Callable[[Value], HostArray] = eval


def batch_get_value(tensors: Sequence[Value]) -> list[HostArray]:
    """The values of several variables."""
    return [eval(tensor) for tensor in tensors]


def set_value(x: keras.Variable | Variable, value: Value) -> None:
    """Sets a variable; a variable of a graph in the session."""
    if isinstance(x, Variable):
        with x.graph.as_default():
            session: Any = get_session()
            x.load(np.asarray(value, x.dtype.base_dtype.numpy_dtype), session)
    else:
        x.assign(value)


def batch_set_value(tuples: Sequence[tuple[keras.Variable, Value]]) -> None:
    """Sets several variables; takes pairs of a variable and its value."""
    for each, value in tuples:
        set_value(each, value)


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


def moving_average_update(x: keras.Variable, value: Value, momentum: float) -> Value | Tensor:
    """Updates the moving average ``x``, in which each value has ``momentum`` times the weight of the next one.

    The value of ``x`` before the first update has no weight, as in TensorFlow 1.15.
    """
    if isinstance(x, Variable):
        return assign_moving_average(x, value, momentum, zero_debias=True)
    if in_stateless_scope():
        raise NotImplementedError(
            f"moving_average_update of {x.path!r} in a layer that fit trains: use x.assign(momentum * x + "
            "(1 - momentum) * value)"
        )
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


def shape(x: Value) -> Value | Tensor:
    """The sizes of ``x`` as one tensor of integers."""
    if isinstance(x, Tensor | Variable) or (_calls_function() and not isinstance(x, KerasTensor)):
        return arrays.shape(x)
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
    """Returns whether ``tensor`` is sparse."""
    return isinstance(tensor, SparseTensor) or bool(getattr(tensor, "sparse", False)) or hasattr(tensor, "todense")


def to_dense(tensor: Value) -> Value | Tensor:
    """Returns a dense tensor with the same elements."""
    if isinstance(tensor, SparseTensor):
        return sparse_tensor_to_dense(tensor)
    return ops.convert_to_tensor(tensor, sparse=False)


def cast(x: Value, dtype: str) -> Value:
    """Converts the elements to another type."""
    return ops.cast(x, dtype)


def cast_to_floatx(x: Value | keras.Variable | npt.ArrayLike) -> Value | HostArray:
    """Converts to Keras's default floating-point type; the result for a NumPy array or a list is a NumPy array."""
    kind = _keras.config.floatx()
    return ops.cast(x, kind) if isinstance(x, jax.Array | KerasTensor | keras.Variable) else np.asarray(x, kind)


def print_tensor(x: Value, message: str = "") -> Value | Tensor:
    """Prints a value when it is computed, and returns it."""
    if isinstance(x, Tensor | Variable):
        with control_dependencies([script.print_(message, x, output_stream=sys.stdout, summarize=-1)]):
            return arrays.identity(x)
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


def stop_gradient(variables: Value) -> Value:
    """Returns the same value, or list of values, as a constant for gradients."""
    return _keras.tree.map_structure(ops.stop_gradient, variables)


# Settings ---------------------------------------------------------------------------------------------------------


def reset_uids() -> None:
    """Resets the counters that make names of layers unique."""
    global_state.set_global_attribute("object_name_uids", collections.defaultdict[str, int](int))


@contextlib.contextmanager
def learning_phase_scope(value: int) -> Generator[None]:
    """Sets the learning phase within a block.

    Raises:
      ValueError: ``value`` is neither 0 nor 1.
    """
    before = chosen_phase()
    set_learning_phase(value)
    try:
        yield
    finally:
        restore_learning_phase(before)


@contextlib.contextmanager
def name_scope(
    name: str | None, default_name: str | None = None, values: Sequence[Any] | None = None
) -> Generator[str]:
    """A context in which names of new variables begin with ``name``; yields this prefix."""
    if builds_graph():
        with graph_name_scope(name, default_name, values) as entered:
            yield entered
        return
    scope = name or default_name or ""
    with keras_name_scope(scope):
        yield f"{scope}/"
