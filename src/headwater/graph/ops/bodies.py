"""Parts of a graph inside an attribute: the branches of a condition, the body of a loop.

A body is a `FunctionAttr` with a serialised ``GraphDef`` as attribute ``graph``; ``inputs`` and ``outputs`` name
tensors of it. If the body draws random numbers, ``key`` names the input that holds their key.
"""

from __future__ import annotations

import contextlib
import dataclasses
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.dtypes import DType, string
from headwater.errors import FailedPreconditionError, UnimplementedError
from headwater.graph.attr_value import read_attr
from headwater.graph.kernels.registry import NoKernel, kernel_of
from headwater.graph.ops.faults import error_of, fault_of
from headwater.graph.ops.inner_faults import are_noted, record_faults
from headwater.graph.registry import MAX_KNOWN_ELEMENTS, FunctionAttr, Inference, Kind, OpDef, Spec, as_outputs, lookup
from headwater.graph.resources.host_context import HostContext
from headwater.lazy_jax import is_jax_array, jax, jnp
from headwater.shapes import TensorShape
from headwater.tensorboard_protos import graph_pb2

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray


def declared(inference: Inference) -> Sequence[Spec]:
    """Returns the outputs that attributes ``Tout`` and ``output_shapes`` declare."""
    types: Sequence[DType] = inference.attrs["Tout"]
    shapes: Sequence[TensorShape] = inference.attrs["output_shapes"]
    return [Spec(dtype, shape.as_dims) for dtype, shape in zip(types, shapes, strict=True)]


@dataclass(frozen=True, slots=True)
class BodyNode:
    """One operation of a body.

    Attributes:
      name: its name in the graph it was made in.
      definition: its type.
      inputs: names of its input tensors (``operation:output``).
      attrs: the attributes that its lowering takes.
    """

    name: str
    definition: OpDef
    inputs: tuple[str, ...]
    attrs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Body:
    """A decoded body.

    Attributes:
      nodes: the operations, sorted topologically.
      inputs: names of the input tensors.
      outputs: names of the results; an empty name for a result that only the other branch of a condition computes.
      key: name of the input that is the key of random numbers; empty if there is none.
    """

    nodes: tuple[BodyNode, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    key: str


def full_name(tensor: str) -> str:
    """Returns ``a:0`` for ``a``. The empty name, which marks an output that a branch does not compute, is unchanged."""
    return tensor if ":" in tensor or not tensor else f"{tensor}:0"


@lru_cache(maxsize=1024)
def decode_body(function: FunctionAttr) -> Body:
    """The body in an attribute."""
    attrs = dict(function.attrs)
    data = attrs["graph"]
    graph = graph_pb2.GraphDef.FromString(data.encode() if isinstance(data, str) else data)
    nodes: list[BodyNode] = []
    for node in graph.node:
        definition = lookup(node.op)
        own = {key: read_attr(value) for key, value in node.attr.items() if key in definition.attrs}
        inputs = tuple(full_name(item) for item in node.input if not item.startswith("^"))
        nodes.append(BodyNode(node.name, definition, inputs, own))
    return Body(
        tuple(nodes), tuple(map(full_name, attrs["inputs"])), tuple(map(full_name, attrs["outputs"])), attrs["key"]
    )


def inner_nodes(attrs: Mapping[str, object]) -> list[BodyNode]:
    """Returns the operations of the bodies in an operation's attributes, and of the bodies in theirs."""
    found: list[BodyNode] = []
    for value in attrs.values():
        if isinstance(value, FunctionAttr) and "graph" in dict(value.attrs):
            for node in decode_body(value).nodes:
                found += [node, *inner_nodes(node.attrs)]
    return found


def needed(body: Body, outputs: Iterable[str]) -> tuple[BodyNode, ...]:
    """Returns the nodes from which ``outputs`` are computed."""
    wanted = {name.rpartition(":")[0] for name in outputs if name not in body.inputs}
    found: list[BodyNode] = []
    for node in reversed(body.nodes):
        if node.name in wanted:
            found.append(node)
            wanted.update(name.rpartition(":")[0] for name in node.inputs if name not in body.inputs)
    return tuple(reversed(found))


def static_inputs(body: Body) -> frozenset[int]:
    """Returns the positions of the inputs whose values must be known when the body is compiled."""
    wanted: set[str] = set()
    for node in reversed(body.nodes):
        wanted.update(node.inputs[i] for i in node.definition.static_positions(node.attrs, len(node.inputs)))
        used = any(name.rpartition(":")[0] == node.name for name in wanted)
        if used and node.definition.name not in ("Shape", "Size", "Rank", "ShapeN"):
            wanted.update(node.inputs)
    return frozenset(index for index, name in enumerate(body.inputs) if name in wanted)


# While compiling ------------------------------------------------------------------------------------------------


def call(definition: OpDef, inputs: Sequence[Any], attrs: Mapping[str, object]) -> tuple[object, ...]:
    """Returns the outputs of a pure operation. If its inputs are small integers that are known while compiling, its
    outputs are known, too."""
    lower = definition.traced or definition.lower
    if not _foldable(inputs):
        return as_outputs(lower(*inputs, **attrs))
    with jax.ensure_compile_time_eval():
        return tuple(np.asarray(value) for value in as_outputs(lower(*inputs, **attrs)))


def _foldable(inputs: Sequence[jax.Array]) -> bool:
    return bool(inputs) and all(
        isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "iub" and value.size <= MAX_KNOWN_ELEMENTS
        for value in inputs
    )


def evaluate(
    body: Body, inputs: Sequence[Any], outputs: Sequence[str] | None = None, turn: Any = None
) -> tuple[Any, ...]:
    """Traces a body of pure and random operations; returns its outputs.

    Args:
      inputs: a value for each of the body's inputs.
      outputs: the results to compute; the body's outputs if None.
      turn: number of a loop's iteration, so that iterations draw different random numbers.
    """
    env = dict(zip(body.inputs, inputs, strict=True))
    wanted = body.outputs if outputs is None else outputs
    for node in body.nodes if outputs is None else needed(body, outputs):
        definition = node.definition
        values = [env[name] for name in node.inputs]
        if definition.kind is Kind.RANDOM:
            key = jax.random.fold_in(jax.random.wrap_key_data(env[body.key]), zlib.crc32(node.name.encode()))
            key = key if turn is None else jax.random.fold_in(key, turn)
            results = as_outputs(definition.lower(key, *values, **node.attrs))
        else:
            values = [
                _constant(value) if index in definition.constants else value for index, value in enumerate(values)
            ]
            if are_noted():
                record_faults({node.name: fault_of(definition.name, values, node.attrs)})
            results = call(definition, values, node.attrs)
            if not definition.differentiable:
                results = tuple(map(_constant, results))
        env.update((f"{node.name}:{index}", value) for index, value in enumerate(results))
    return tuple(env[name] if name else None for name in wanted)


def _constant(value: Any) -> jax.Array:
    """Stops gradients through ``value``; values known when compiling stay known."""
    return jax.lax.stop_gradient(value) if is_jax_array(value) else value


# On the host ----------------------------------------------------------------------------------------------------


def interpret(body: Body, context: HostContext, inputs: Sequence[jax.Array], turn: int = 0) -> tuple[Any, ...]:
    """Runs a body of any operations on the host, one operation after the other, and returns its outputs.

    Args:
      context: the runtime's `HostContext`.
      inputs: NumPy arrays; cells for variables.
      turn: number of a loop's iteration.
    """
    env = dict(zip(body.inputs, inputs, strict=True))
    for node in body.nodes:
        values = [env[name] for name in node.inputs]
        results = _interpret_node(node, context, values, turn)
        env.update((f"{node.name}:{index}", value) for index, value in enumerate(results))
    return tuple(_value(env[name], context) if name else None for name in body.outputs)


def _interpret_node(node: BodyNode, context: Any, values: Sequence[Any], turn: int) -> tuple[Any, ...]:
    definition = node.definition
    refs = definition.ref_positions(node.attrs)
    if definition.kind is Kind.STATEFUL:
        with context.resources.lock:
            current = [
                _variable(value, context, needed=index in definition.reads) if index in refs else _value(value, context)
                for index, value in enumerate(values)
            ]
            for position, changed in zip(definition.updates, definition.lower(*current, **node.attrs), strict=True):
                values[position].value = jnp.asarray(changed)
                cell = values[position]
                cell.counts[cell.slot] += 1
        return (values[definition.updates[0]],)
    arrays = [value if index in refs else _value(value, context) for index, value in enumerate(values)]
    if definition.kind is Kind.HOST:
        inner = dataclasses.replace(context, op_name=node.name, arguments=node.inputs)
        return _arrays(definition.lower(inner, *arrays, **node.attrs))
    if definition.kind is Kind.RANDOM:
        first, second = int(node.attrs.get("seed") or 0), int(node.attrs.get("seed2") or 0)
        key = jax.random.key(first or zlib.crc32(f"{context.step.session} {node.name}".encode()))
        for part in (second, context.step.number, turn):
            key = jax.random.fold_in(key, part & 0xFFFFFFFF)
        return _arrays(definition.lower(key, *arrays, **node.attrs))
    strings = any(value.dtype == object for value in arrays) or node.attrs.get("dtype") == string
    lower = definition.string_lower if strings else definition.lower
    if not strings and fault_of(definition.name, arrays, node.attrs):
        raise error_of(definition.name, node.name, node.attrs)
    if lower is None:
        raise UnimplementedError(f"{definition.name} ({node.name!r}) does not support strings")
    # Prefer a kernel: JAX would compile the operation again for each shape, and shapes often grow in loops on the host.
    if not strings:
        with contextlib.suppress(NoKernel):
            return run_kernel(node, arrays)
    return _arrays(lower(*arrays, **node.attrs))


def run_kernel(node: BodyNode, inputs: Sequence[HostArray]) -> tuple[HostArray, ...]:
    """Runs a pure operation on its kernel. The results share no memory with the inputs.

    Raises:
      NoKernel: the operation has no kernel, or none for these inputs.
    """
    kernel = kernel_of(node.definition.name)
    if kernel is None:
        raise NoKernel
    with np.errstate(all="ignore"):  # as in an executable
        return _own(_arrays(kernel(*inputs, **node.attrs)), inputs)


def _arrays(result: jax.Array) -> tuple[HostArray, ...]:
    return tuple(np.asarray(value) for value in as_outputs(result))


def _own(results: Sequence[HostArray], inputs: Sequence[Any]) -> tuple[HostArray, ...]:
    """Copies results that share memory with an input, such as a fed array, which the program may change."""
    return tuple(
        result.copy() if any(np.may_share_memory(result, value) for value in inputs) else result for result in results
    )


def _variable(cell: object, context: HostContext, *, needed: bool) -> jax.Array | None:
    """Returns a variable's value for an operation that changes the variable. If the variable has no value, raises an
    error if the value is ``needed``, and otherwise returns None."""
    value = _value(cell, context, needed)
    return None if value is None else jnp.asarray(value)


def _value(value: Any, context: HostContext, needed: bool = True) -> Any:
    """Returns the value of a variable, given its cell; returns other arguments unchanged."""
    if not hasattr(value, "initialized"):
        return value
    with context.resources.lock:
        if value.initialized:
            return np.array(value.value)
    if needed:
        raise FailedPreconditionError(f"Attempting to use uninitialized value {value.name}")
    return None
