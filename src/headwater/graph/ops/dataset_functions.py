"""Functions of a dataset's elements: bodies of graphs, run for one element or for many at once.

The compilable operations of a body are compiled in as few pieces as its host operations permit. For a block of
elements, each piece is mapped over the rows (`jax.vmap`), and host operations use their form for many rows, if there is
one.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from headwater.data.composites import element_of, flat_element, flat_specs, is_dense
from headwater.data.node import Block, Context, Element, Function
from headwater.data.spec import TensorSpec
from headwater.dtypes import from_numpy, resource, string, variant
from headwater.errors import UnimplementedError
from headwater.graph.kernels.registry import NoKernel, kernel_of
from headwater.graph.ops.bodies import (
    Body,
    BodyNode,
    call,
    decode_body,
    evaluate,
    inner_nodes,
    run_kernel,
    static_inputs,
)
from headwater.graph.ops.rows import RowForm, row_form
from headwater.graph.ops.straight_lines import HostCall, Named, as_array, straight_line
from headwater.graph.registry import FunctionAttr, Inference, Kind, Spec, as_outputs
from headwater.lazy_jax import jax

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray

_Env = dict[str, Any]
_R = TypeVar("_R")
_HOST_ONLY = (string, resource, variant)
_MAX_SHAPES: Final = 8
"""Number of combinations of shapes for which a piece is compiled."""


@dataclass(frozen=True, slots=True)
class LoneStep:
    """Replaces the running step for elements that are produced outside of a step."""

    number: int = 0
    session: str = ""

    def check(self) -> None:
        """Does nothing: outside of a step there is no deadline and no cancellation."""


@dataclass(frozen=True, slots=True)
class LoneContext:
    """Replaces the runtime's context of host operations for elements that are produced outside of a step."""

    op_name: str = "dataset"
    task: str = ""
    step: object = field(default_factory=LoneStep)
    resources: object = None
    variables: dict[str, object] = field(default_factory=dict[str, Any])
    arguments: tuple[str, ...] = ()

    def resource(
        self,
        container: str,
        name: str,
        kind: type[_R],
        make: Callable[[], _R],
        signature: Mapping[str, object] | None = None,
    ) -> _R:
        """Creates a resource that belongs to the caller, not to a task."""
        del container, name, kind, signature
        return make()


_LONE = LoneContext()

#: Host operations that compute in Python, holding the interpreter's lock, and wait for nothing.
_IN_PYTHON = frozenset(
    {
        "AsString",
        "ParseSingleExample",
        "StringLength",
        "StringLower",
        "StringSplit",
        "StringSplitV2",
        "StringStrip",
        "StringToNumber",
        "StringUpper",
    }
)


class BodyFunction(Function):
    """A body as a function of elements.

    Attributes:
      quiet: whether the call has no visible side effects.

    Args:
      name: the function's name in error messages.
      function: the attribute that holds the body. Its first inputs are an element's components.
      inputs: static properties of an element.
      captured: values of the body's other inputs, in order, except the key of random numbers.
      specs: static properties of its results.
    """

    def __init__(
        self,
        name: str,
        function: FunctionAttr,
        inputs: Sequence[TensorSpec],
        captured: Sequence[object],
        specs: tuple[TensorSpec, ...],
    ) -> None:
        self.name = name
        self._specs = specs
        self._dense = is_dense((*inputs, *specs))
        plan = _planned(function, flat_specs(inputs), _Captured(captured))
        self._params, self._known, self._pieces = plan.params, plan.known, plan.pieces
        body = decode_body(function)
        self._outputs = body.outputs
        self._counter = itertools.count()
        self._line = straight_line(self._pieces, self._params, self._known, self._outputs)
        self.in_python: bool = self._line is not None and all(
            node.definition.kind is Kind.PURE or node.definition.name in _IN_PYTHON for node in body.nodes
        )
        self.quiet: bool = not any(node.definition.has_effect(node.attrs) for node in inner_nodes({"f": function}))
        self.columnar: bool = (
            self._dense and bool(self._params) and all(piece.rows is not None for piece in self._pieces)
        )

    def specs(self) -> tuple[TensorSpec, ...]:
        return self._specs

    def __call__(self, context: Context, element: Element) -> Element:
        given = element if self._dense else flat_element(element)
        if self._line is not None:
            next(self._counter)
            found = self._line(given, context.host or _LONE)
            return found if self._dense else element_of(self._specs, found)
        env = self._known | dict(zip(self._params, given, strict=True))
        turn = next(self._counter)
        host = context.host or _LONE
        for piece in self._pieces:
            piece.one(env, host, turn)
        found = tuple(np.asarray(env[name]) for name in self._outputs)
        return found if self._dense else element_of(self._specs, found)

    def rows(self, context: Context, block: Block) -> Block:
        env = self._known | dict(zip(self._params, block, strict=True))
        count = len(block[0])
        turn = next(itertools.islice(self._counter, count - 1, None))
        host = context.host or _LONE
        varying = set(self._params)
        for piece in self._pieces:
            assert piece.rows is not None
            piece.rows(env, host, turn, count)
            varying.update(piece.outputs)
        return tuple(
            np.asarray(env[name])
            if name in varying
            else np.broadcast_to(np.asarray(env[name]), (count, *np.shape(env[name])))
            for name in self._outputs
        )


class _Captured:
    """Captured values of a function, compared by identity."""

    def __init__(self, values: Sequence[object]) -> None:
        self.values = [np.asarray(value) for value in values]
        self._id = tuple(
            (id(value), 0) if value.dtype == object else (value.tobytes(), str(value.dtype), value.shape)
            for value in self.values
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Captured) and self._id == other._id

    def __hash__(self) -> int:
        return hash(self._id)


@dataclass(frozen=True, slots=True)
class _Plan:
    """A compiled body.

    Attributes:
      params: names of the tensors that are an element's components.
      known: values that are the same for all elements.
      pieces: the pieces to run, in order.
    """

    params: tuple[str, ...]
    known: _Env
    pieces: tuple[_Piece, ...]


@functools.lru_cache(maxsize=256)
def _planned(function: FunctionAttr, inputs: tuple[TensorSpec, ...], captured: _Captured) -> _Plan:
    """Returns the plan for a function. It is cached, so that later iterations over a dataset reuse compiled pieces."""
    body = decode_body(function)
    fixed = [item for item in body.inputs if item != body.key]
    params = tuple(fixed[: len(fixed) - len(captured.values)])
    known: _Env = dict(zip(fixed[len(params) :], captured.values, strict=True))
    if body.key:
        known[body.key] = _key(body)
    pieces = _Planner(body, dict(zip(params, inputs, strict=True)), known).pieces()
    return _Plan(params, known, tuple(pieces))


def _key(body: Body) -> HostArray:
    """The key of a body's random numbers, from the first seeds in it."""
    for node in body.nodes:
        seeds = int(node.attrs.get("seed") or 0), int(node.attrs.get("seed2") or 0)
        if node.definition.kind is Kind.RANDOM and seeds != (0, 0):
            return np.asarray([seed & 0xFFFFFFFF for seed in seeds], np.uint32)
    return np.asarray([secrets.randbits(32), secrets.randbits(32)], np.uint32)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A group of operations that run together.

    Attributes:
      outputs: names of its output tensors.
      one: ``one(env, host, turn)`` computes the piece for one element.
      rows: ``rows(env, host, last_turn, count)`` computes the piece for a block of elements; None if unsupported.
      host: the lowering of the host operation, if the piece is a single host operation.
    """

    outputs: tuple[str, ...]
    one: Callable[[_Env, Any, int], None]
    rows: Callable[[_Env, Any, int, int], None] | None
    host: HostCall | None = None


class _Planner:
    """Divides a body into pieces. Values that do not depend on an element and can be computed now are added to
    ``known``."""

    def __init__(self, body: Body, params: dict[str, TensorSpec], known: _Env) -> None:
        self._body = body
        self._known = known
        self._varying = set(params)
        self._specs = {name: Spec(spec.dtype, spec.dims) for name, spec in params.items()}
        for name, value in known.items():
            array = np.asarray(value)
            self._specs[name] = Spec(string if array.dtype == object else from_numpy(array.dtype), array.shape)
        self._pieces: list[_Piece] = []
        self._open: list[BodyNode] = []
        self._made: set[str] = set()

    def pieces(self) -> list[_Piece]:
        for node in self._body.nodes:
            self._infer(node)
            if not self._compute_known(node):
                self._place(node)
        self._close()
        return self._pieces

    def _compute_known(self, node: BodyNode) -> bool:
        """Computes the outputs of a node while planning, if all its inputs are known; returns whether the outputs are
        known."""
        if node.definition.kind is not Kind.PURE or any(name not in self._known for name in node.inputs):
            return False
        values = [self._known[name] for name in node.inputs]
        if self._has_host_only_types(node):
            if node.definition.string_lower is None:
                return False
            results = tuple(map(as_array, as_outputs(node.definition.string_lower(*values, **node.attrs))))
        else:
            with jax.ensure_compile_time_eval():
                results = call(node.definition, values, node.attrs)
        self._known.update((f"{node.name}:{index}", np.asarray(value)) for index, value in enumerate(results))
        return True

    def _infer(self, node: BodyNode) -> None:
        """Records the types of a node's outputs."""
        inputs = [self._specs[name] for name in node.inputs]
        known = [self._known.get(name) for name in node.inputs]
        values = [None if value is None else np.asarray(value) for value in known]
        inference = Inference(node.definition.name, node.attrs, inputs, lambda i: values[i], lambda i: None)
        self._specs.update(
            (f"{node.name}:{index}", spec) for index, spec in enumerate(node.definition.infer(inference))
        )

    def _place(self, node: BodyNode) -> None:
        if node.definition.kind is Kind.STATEFUL:
            raise UnimplementedError(
                f"{node.definition.name} {node.name!r} changes a variable, which a function of a dataset cannot do"
            )
        texts = self._has_host_only_types(node)
        if node.definition.kind is Kind.HOST or texts:
            if any(name.rpartition(":")[0] in self._made for name in node.inputs):
                self._close()
            self._pieces.append(self._host(node))
        else:
            self._open.append(node)
            self._made.add(node.name)
        if node.definition.kind is Kind.RANDOM or any(self._varies(name) for name in node.inputs):
            self._varying.add(f"{node.name}:")

    def _varies(self, name: str) -> bool:
        return name in self._varying or name.rpartition(":")[0] + ":" in self._varying

    def _has_host_only_types(self, node: BodyNode) -> bool:
        """Returns whether a node has inputs or outputs of a type without a JAX equivalent, such as strings."""
        outputs = (f"{node.name}:{index}" for index in itertools.count())
        given = itertools.takewhile(lambda name: name in self._specs, outputs)
        return any(self._specs[name].dtype.base_dtype in _HOST_ONLY for name in (*node.inputs, *given))

    def _host(self, node: BodyNode) -> _Piece:
        definition = node.definition
        count = _output_count(node, self._body)
        names = tuple(f"{node.name}:{index}" for index in range(count))
        lower = definition.lower if definition.kind is Kind.HOST else definition.string_lower
        if lower is None:
            raise UnimplementedError(f"{definition.name} ({node.name!r}) has no form for strings")
        with_context = definition.kind is Kind.HOST

        def one(env: _Env, host: Any, turn: int) -> None:
            values = [np.asarray(env[name]) for name in node.inputs]
            inner = dataclasses.replace(host, op_name=node.name, arguments=node.inputs)
            with Named(node):
                found = lower(inner, *values, **node.attrs) if with_context else lower(*values, **node.attrs)
            env.update(zip(names, map(as_array, as_outputs(found)), strict=False))

        called = HostCall(node, names, functools.partial(lower, **node.attrs), with_context)
        varying = tuple(map(self._varies, node.inputs))
        form: RowForm | None = row_form(definition.name, node.attrs, varying) if any(varying) else None
        if form is None:
            return _Piece(names, one, None, called)

        def rows(env: _Env, host: Any, turn: int, count: int) -> None:
            inner = dataclasses.replace(host, op_name=node.name, arguments=node.inputs)
            with Named(node):
                found = form(inner, [np.asarray(env[name]) for name in node.inputs])
            env.update(zip(names, found, strict=False))

        return _Piece(names, one, rows, called)

    def _close(self) -> None:
        """Ends the current piece of compiled operations."""
        if not self._open:
            return
        nodes, made = tuple(self._open), {node.name for node in self._open}
        self._open, self._made = [], set()
        used = {name for node in self._body.nodes if node not in nodes for name in node.inputs} | {*self._body.outputs}
        outputs = tuple(sorted(name for name in used if name.rpartition(":")[0] in made))
        inputs = tuple(
            dict.fromkeys(
                name
                for node in nodes
                for name in node.inputs
                if name.rpartition(":")[0] not in made and name not in self._known
            )
        )
        if outputs:
            self._pieces.append(self._compiled(nodes, inputs, outputs))

    def _compiled(self, nodes: tuple[BodyNode, ...], inputs: tuple[str, ...], outputs: tuple[str, ...]) -> _Piece:
        known = {name: self._known[name] for node in nodes for name in node.inputs if name in self._known}
        key = self._body.key
        if key:
            known[key] = self._known[key]
        body = Body(nodes, (*inputs, *known), outputs, key)
        rest = list(known.values())
        static = any(index < len(inputs) for index in static_inputs(body))
        cpu = jax.devices("cpu")[0]

        def compute(values: Sequence[jax.Array], turn: object) -> tuple[jax.Array, ...]:
            return evaluate(body, [*values, *rest], turn=turn)

        jitted = compute if static else jax.jit(compute)
        on_kernels = _on_kernels(nodes, known)
        compiled: set[object] = set()

        def one(env: _Env, host: object, turn: int) -> None:
            values = [env[name] for name in inputs]
            if on_kernels is not None:
                # If shapes keep changing, as of sparse tensors, kernels take less time than compilations. If a shape
                # depends on values, nothing is compiled, and kernels take less time than JAX's single operations.
                shapes = tuple(map(np.shape, values))
                if static or (len(compiled) >= _MAX_SHAPES and shapes not in compiled):
                    with suppress(NoKernel), Named(nodes[-1]):
                        found = on_kernels(dict(zip(inputs, values, strict=True)))
                        env.update((name, found[name]) for name in outputs)
                        return
                compiled.add(shapes)
            with jax.default_device(cpu), Named(nodes[-1]):
                found = jitted(values, np.uint32(turn & 0xFFFFFFFF))
            env.update(zip(outputs, map(np.asarray, found), strict=True))

        varying = [self._varies(name) for name in inputs]
        if static or (not any(varying) and not any(node.definition.kind is Kind.RANDOM for node in nodes)):
            return _Piece(outputs, one, None)
        mapped = jax.jit(jax.vmap(compute, in_axes=([0 if varies else None for varies in varying], 0)))

        def rows(env: _Env, host: object, turn: int, count: int) -> None:
            # Round the size of a block up to a power of two, so that few sizes have to be compiled.
            size = 1 << (count - 1).bit_length()
            values = [
                _padded(env[name], size) if varies else env[name] for name, varies in zip(inputs, varying, strict=True)
            ]
            turns = (np.arange(size, dtype=np.int64) + (turn - count + 1)).astype(np.uint32)
            with jax.default_device(cpu), Named(nodes[-1]):
                found = mapped(values, turns)
            env.update((name, np.asarray(value)[:count]) for name, value in zip(outputs, found, strict=True))

        return _Piece(outputs, one, rows)


def _on_kernels(nodes: Sequence[BodyNode], known: _Env) -> Callable[[_Env], _Env] | None:
    """Returns a function that runs operations on kernels, from the arrays of their inputs to the arrays of all tensors.
    Returns None if an operation is random or has no kernel."""
    if any(node.definition.kind is not Kind.PURE or kernel_of(node.definition.name) is None for node in nodes):
        return None

    def run(given: _Env) -> _Env:
        env = known | given
        for node in nodes:
            found = run_kernel(node, [np.asarray(env[name]) for name in node.inputs])
            env.update((f"{node.name}:{index}", value) for index, value in enumerate(found))
        return env

    return run


def _output_count(node: BodyNode, body: Body) -> int:
    prefix = f"{node.name}:"
    used = [name for item in body.nodes for name in item.inputs] + list(body.outputs)
    return 1 + max((int(name.rpartition(":")[2]) for name in used if name.startswith(prefix)), default=-1)


def _padded(value: jax.Array, size: int) -> HostArray | jax.Array:
    missing = size - len(value)
    return np.concatenate([value, np.repeat(value[-1:], missing, axis=0)]) if missing else value
