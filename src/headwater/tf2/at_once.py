"""Eager execution of functions that add operations to a graph: the operations are computed, and arrays are returned.

Each call has its own graph, with placeholders for the arrays that the function gets as arguments or captures. The
graph's operations are then evaluated by the same JAX functions as in every other graph, one by one, or traced while a
function is being compiled.
"""

from __future__ import annotations

import functools
import os
import threading
import zlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import jax
import jax.core
import jax.numpy as jnp
import keras
import numpy as np

from headwater.dtypes import DType, from_numpy
from headwater.graph.ancestry import needed_operations
from headwater.graph.composites import CompositeTensor
from headwater.graph.constants import constant_value
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, make_const, register_tensor_conversion_function
from headwater.graph.graph import Graph
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.operation import Operation, Tensor, set_equality
from headwater.graph.ops.bodies import call
from headwater.graph.ops.dataset_functions import LoneContext
from headwater.graph.ops.faults import error_of, fault_of
from headwater.graph.registry import Kind, as_outputs
from headwater.graph.runtime.device_settings import list_physical_devices
from headwater.keras.graphs.captured import array_of, run_in_session
from headwater.keras.internals import any_symbolic_tensors, in_stateless_scope
from headwater.tf1.compat.dialect import is_eager
from headwater.tf1.functional.apply import one
from headwater.tf2.random_state import current_generator
from headwater.tf2.symbolic_calls import call_symbolically
from headwater.tf2.tape import value_of
from headwater.tf2.tensors import HostTensor, host_tensor, known
from headwater.tf2.tracing import RunsInPython, tracing

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_Variable = keras.Variable

Function = Callable[..., Any]


class _Building(threading.local):
    depth = 0


_building = _Building()


@contextmanager
def building() -> Generator[None]:
    """A context in which functions add operations to the default graph."""
    _building.depth += 1
    try:
        yield
    finally:
        _building.depth -= 1


class CallGraph(Graph):
    """The graph of one call.

    Attributes:
      given: the placeholder of each array that the call uses, and the array, by the array's id.
    """

    def __init__(self) -> None:
        super().__init__()
        self.captures = not is_eager()
        self.given: dict[int, tuple[Tensor, Tree]] = {}
        self._constants: dict[int, tuple[Tensor, Tree]] = {}
        self._outside: dict[Tensor, Tensor] = {}

    def known(self, value: object) -> Tensor:
        """Returns the constant for an array."""
        if id(value) not in self._constants:
            self._constants[id(value)] = (make_const(np.asarray(value)), value)
        return self._constants[id(value)][0]

    def create_op(self, op_type: str, inputs: Sequence[Tensor], *args: Any, **kwargs: Any) -> Operation:
        """Adds an operation; in TensorFlow 1's dialect also of tensors of the program's graph, which have values in its
        session."""
        if self.captures:
            inputs = [each if each.graph is self else self._from_outside(each) for each in inputs]
        return super().create_op(op_type, inputs, *args, **kwargs)

    def _from_outside(self, tensor: Tensor) -> Tensor:
        if tensor not in self._outside:
            value = constant_value(tensor)
            self._outside[tensor] = self.capture(array_of(tensor)) if value is None else make_const(value)
        return self._outside[tensor]

    @contextmanager
    def control_dependencies(self, control_inputs: Sequence[Tree] | None) -> Generator[None]:
        """See `Graph.control_dependencies`; operations of the program's graph are run in its session."""
        own: list[Tree] | None = None if control_inputs is None else []
        for each in control_inputs or ():
            if isinstance(each, Operation | Tensor) and each.graph is not self and self.captures:
                run_in_session(each if isinstance(each, Operation) else each.op)
            elif own is not None and isinstance(each, Operation | Tensor):
                own.append(each)
        with super().control_dependencies(own):
            yield

    def evaluate(self, tensor: Tensor) -> Tree:
        """Returns the value of a tensor."""
        return Evaluation(self).structure(tensor)

    def capture(self, value: Any) -> Tensor:
        """Returns the placeholder for an array."""
        if id(value) not in self.given:
            # While Keras computes the shape of a layer's output, some sizes are symbols.
            shape = tuple(size if isinstance(size, int) else None for size in value.shape)
            attrs = {"dtype": from_numpy(np.dtype(value.dtype)), "shape": shape}
            op = self.create_op("Placeholder", [], attrs, "given")
            # Numbered before all other operations: a branch or loop body that is being built captures it from outside.
            op.count_as(-1 - len(self.given))
            self.given[id(value)] = (op.outputs[0], value)
        return self.given[id(value)][0]


def _converted(value: object, dtype: DType | None, name: str | None, as_ref: bool) -> Tree:
    del as_ref
    if isinstance(value, _Variable):
        value = value_of(value)
        if isinstance(value, Tensor):
            return value
    graph = get_default_graph()
    if isinstance(graph, CallGraph):
        return graph.capture(value)
    return convert_to_tensor(np.asarray(value), dtype, name)


register_tensor_conversion_function((jax.Array, _Variable, HostTensor), _converted)


# Composite tensors --------------------------------------------------------------------------------------------------


class EagerComposite:
    """A sparse or ragged tensor with values.

    Attributes:
      arrays: its parts.
    """

    arrays: tuple[Any, ...]

    def numpy(self) -> Any:
        """Returns the value as one NumPy array."""
        raise NotImplementedError

    def to_value(self) -> Any:
        """Returns the value as NumPy arrays."""
        raise NotImplementedError


_results: dict[type, Callable[[Any, Callable[[Any], Any]], object]] = {}


def register_result(kind: type, convert: Callable[[Any, Callable[[Any], Any]], object]) -> bool:
    """Registers the function that converts results of one class to their eager form.

    Args:
      kind: the class of results.
      convert: takes a result, and a function that returns the value of a tensor.

    Returns:
      Whether the class had no function before; an earlier function is replaced.
    """
    new = kind not in _results
    _results[kind] = convert
    return new


def adds_operations() -> bool:
    """Returns whether functions add operations to the default graph."""
    return _building.depth > 0


def tensor_in_graph(value: Any) -> Any:
    """Returns the array ``value``; as a tensor while functions add operations to a graph."""
    if not _building.depth:
        return value
    graph = get_default_graph()
    if isinstance(graph, CallGraph) and np.dtype(value.dtype).kind in "iu" and not isinstance(value, jax.core.Tracer):
        return graph.known(value)  # sizes and positions have static values, as in TensorFlow
    return convert_to_tensor(value)


def at_once(function: Function, path: str = "") -> Function:
    """Wraps ``function``, which works on a graph's tensors, to work on arrays.

    It still adds operations if its arguments are tensors of a graph, or if it is called while a graph is being built.

    Args:
      path: its name in ``tf``. With a name it also accepts Keras's symbolic tensors, see `symbolic_calls`.
    """

    @functools.wraps(function)
    def run(*args: object, **kwargs: object) -> Tree:
        if _building.depth or _has_tensor(args) or _has_tensor(kwargs):
            return function(*args, **kwargs)
        if path and any_symbolic_tensors(args, kwargs):
            return call_symbolically(path, args, kwargs)
        graph = CallGraph()
        with graph.as_default(), building():
            result = function(*args, **kwargs)
        return Evaluation(graph).structure(result)

    return run


def attach() -> None:
    """Makes ``==`` and ``!=`` of a graph's tensors compare elements while functions add operations."""
    set_equality(_equal, _unequal)


def _equal(tensor: Tensor, other: object) -> object:
    if other is None or not _building.depth:
        return tensor is other
    return _compared("Equal", tensor, other)


def _unequal(tensor: Tensor, other: object) -> object:
    if other is None or not _building.depth:
        return tensor is not other
    return _compared("NotEqual", tensor, other)


def _compared(op_type: str, tensor: Tensor, other: Any) -> Tensor:
    """Returns element by element whether values are equal, or differ; one value if the shapes are incompatible."""
    return one(op_type, tensor, other, incompatible_shape_error=False)


def _has_tensor(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_tensor, value))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, Mapping):
        return any(map(_has_tensor, value.values()))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return isinstance(value, Tensor | CompositeTensor) and not isinstance(value, EagerComposite)


class Evaluation:
    """Values of a graph's tensors."""

    def __init__(self, graph: CallGraph) -> None:
        self._graph = graph
        self._values: dict[Tensor, object] = dict(graph.given.values())
        self._done: set[Operation] = {tensor.op for tensor in self._values}

    def structure(self, result: object) -> Tree:
        """``result`` with values in place of tensors; None for an operation without results."""
        if isinstance(result, Tensor):
            if self._graph.captures and result.graph is not self._graph:
                return array_of(result)
            self._compute(result.op)
            return as_value(self._values[result])
        if isinstance(result, Operation):
            if self._graph.captures and result.graph is not self._graph:
                run_in_session(result)
                return None
            self._compute(result)
            return None
        if isinstance(result, EagerComposite):
            return result
        convert = _results.get(type(result))
        if convert is not None:
            return convert(result, self.structure)
        if isinstance(result, IndexedSlices):
            raise NotImplementedError("a result of type IndexedSlices cannot be computed eagerly")
        if isinstance(result, tuple) and hasattr(result, "_fields"):
            made: object = type(result)
            return made(*map(self.structure, result))  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(result, (list, tuple)):
            return type(result)(map(self.structure, result))  # pyright: ignore
        if isinstance(result, dict):
            return {key: self.structure(value) for key, value in result.items()}  # pyright: ignore
        return result

    def _compute(self, wanted: Operation) -> None:
        for op in needed_operations([wanted], self._done):
            results = outputs_of(op, [self._values[tensor] for tensor in op.inputs])
            self._values.update(zip(op.outputs, results, strict=True))
            self._done.add(op)


def outputs_of(op: Operation, values: Sequence[object]) -> Sequence[object]:
    """Computes the outputs of an operation from the values of its inputs.

    Raises:
      NotImplementedError: it changes a variable of a graph, or is not defined for text.
    """
    definition = op.definition
    attrs = {key: value for key, value in op.attrs.items() if key in definition.attrs}
    if definition.kind is Kind.STATEFUL or definition.ref_positions(op.attrs):
        raise NotImplementedError(f"{op.type} changes a variable of a graph, which is not possible eagerly")
    traced = any(isinstance(value, jax.core.Tracer) for value in values)
    if definition.kind is Kind.HOST and definition.traced is None:
        # An assertion about known values has the same outcome in each call; other effects happen in each call.
        has_effect = not values or (definition.effect and op.type != "Assert")
        if traced or (tracing() is not None and has_effect):
            raise RunsInPython(f"{op.type} runs on the host")
        context = LoneContext(op_name=op.name, arguments=tuple(tensor.name for tensor in op.inputs))
        return as_outputs(definition.lower(context, *map(np.asarray, values), **attrs))
    if any(_is_text(value) for value in values) or attrs.get("dtype") == "string":
        if definition.string_lower is None:
            raise NotImplementedError(f"{op.type} does not support text")
        return as_outputs(definition.string_lower(*map(np.asarray, values), **attrs))
    static = definition.static_positions(op.attrs, len(values))
    values = [np.asarray(value) if at in static else value for at, value in enumerate(values)]
    if definition.kind is Kind.RANDOM:
        return as_outputs(definition.lower(_key(op), *values, **attrs))
    if not traced and tracing() is None and fault_of(definition.name, values, op.attrs):
        raise error_of(definition.name, op.name, op.attrs)
    values = [_fixed(value) if at in definition.constants else value for at, value in enumerate(values)]
    results = (
        call(definition, values, attrs) if traced or not _computes_sizes(values) else _known(definition, values, attrs)
    )
    return results if definition.differentiable else tuple(map(_fixed, results))


def _computes_sizes(values: Sequence[Any]) -> bool:
    """Returns whether a function is traced and ``values`` are known integers, such as sizes."""
    is_traced = tracing() is not None or in_stateless_scope()
    return is_traced and bool(values) and all(np.dtype(value.dtype).kind in "iub" for value in values)


def _known(definition: Any, values: Sequence[object], attrs: dict[str, Any]) -> Sequence[object]:
    """Computes results that stay known while a function is traced, so that they can be sizes."""
    with jax.ensure_compile_time_eval():
        return call(definition, values, attrs)


def _is_text(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "OSU"


def _fixed(value: object) -> Tree:
    """Returns ``value`` without a gradient."""
    return jax.lax.stop_gradient(value) if isinstance(value, jax.Array) else value


def as_value(value: object) -> Tree:
    """Converts a value for programs. Sizes that are known while a function is traced stay NumPy values."""
    if isinstance(value, jax.Array):
        return value
    array = np.asarray(value)
    if array.dtype.kind in "OSU":
        return host_tensor(array)
    # JAX traces a function of the program in `tf.function`, and a layer in Keras's training step.
    traced = tracing() is not None or in_stateless_scope()
    return array.view(HostTensor) if traced and array.dtype.kind in "iub" else known(array)


# Random numbers -----------------------------------------------------------------------------------------------------


class _Seeds:
    seed: int | None = None
    required = False


_generators: dict[tuple[int, int], Any] = {}
_DETERMINISTIC = "--xla_gpu_exclude_nondeterministic_ops"


def set_seed(seed: int) -> None:
    """Sets the seed of all further random numbers."""
    _Seeds.seed = int(seed)
    _generators.clear()


def enable_op_determinism() -> None:
    """Makes random operations without a seed an error. Operations on CPUs are deterministic in any case.

    Raises:
      NotImplementedError: this process uses GPUs, for which the environment variable ``XLA_FLAGS`` must be set.
    """
    if list_physical_devices("GPU") and _DETERMINISTIC not in os.environ.get("XLA_FLAGS", ""):
        raise NotImplementedError(f"start the process with XLA_FLAGS={_DETERMINISTIC}=true for deterministic GPUs")
    _Seeds.required = True


def _key(op: Operation) -> jax.Array:
    """Returns a random key for an operation.

    The generator's state is a variable, so that each call of a compiled function draws different numbers.
    """
    pair = int(op.attrs.get("seed") or 0), int(op.attrs.get("seed2") or 0)
    of_model = current_generator()
    if _Seeds.required and _Seeds.seed is None and pair == (0, 0):
        raise RuntimeError(
            "Random ops require a seed to be set when determinism is enabled. Please set a seed before running the op, "
            "e.g. by calling tf.random.set_seed(1)."
        )
    if of_model is None and pair not in _generators:
        fixed = None if _Seeds.seed is None and pair == (0, 0) else zlib.crc32(repr((_Seeds.seed, pair)).encode())
        _generators[pair] = keras.random.SeedGenerator(fixed)
    words = jnp.asarray((of_model or _generators[pair]).next(), np.uint32)
    salt = op.type if of_model is None else f"{op.type} {pair}"
    return jax.random.fold_in(jax.random.wrap_key_data(words), zlib.crc32(salt.encode()))
