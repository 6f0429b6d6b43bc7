"""Functions in the library of a ``GraphDef``: conversion of the graph of a function to a ``FunctionDef``.

Operations of TensorFlow become nodes of the same type. Operations that TensorFlow does not have, such as a whole layer
that JAX computes, become ``XlaCallModule`` nodes, which contain the operation as StableHLO for any sizes; TensorFlow
2.13 and newer run them.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import jax
from jax import export
from jax.extend.mlir import ir, passmanager
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir

from headwater.dtypes import resource
from headwater.graph.ancestry import needed_operations
from headwater.graph.attr_value import write_attr
from headwater.graph.constants import constant_value
from headwater.graph.foreign.outputs import output_names
from headwater.graph.graph_def import node_def
from headwater.graph.ops.bodies import call
from headwater.graph.registry import Kind, function_of
from headwater.keras.graphs.functions import FunctionGraph
from headwater.tensorboard_protos import function_pb2, node_def_pb2

if TYPE_CHECKING:
    from headwater.graph.operation import Operation, Tensor
    from headwater.keras.types import Tree
    from headwater.tensorboard_protos import NodeDef

_STABLEHLO = "1.0.0"
"""The version of StableHLO in files: old, so that as many releases of TensorFlow as possible can read it."""

_PLATFORMS = (("cpu", "cuda"), ("cpu",))
_LOCATIONS = "jax_traceback_in_locations_limit"
_WITHOUT_OUTPUTS = frozenset({"Assert", "NoOp"})


@dataclass(kw_only=True)
class FunctionParts:
    """A function and its captured state.

    Attributes:
      name: the function's name in the library.
      graph: its operations.
      inputs: the tensors that are its arguments.
      outputs: its results.
      written: the variables that it assigns, and the value of each.
      captures: filled by `function_def`: the variables and tables that it uses, in the order of its further arguments.
    """

    name: str
    graph: FunctionGraph
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    written: Sequence[tuple[Tree, Tensor]] = ()
    captures: list[Tree] = field(default_factory=list)


def function_def(parts: FunctionParts) -> Tree:
    """Returns a ``FunctionDef``.

    Raises:
      ValueError: an operation cannot be exported; the message names it.
    """
    return _Writer(parts).write()


class _Writer:
    def __init__(self, parts: FunctionParts) -> None:
        self._parts = parts
        self._proto = function_pb2.FunctionDef()
        self._references: dict[Tensor, str] = {}
        self._captured: dict[int, str] = {}
        self._read: dict[int, str] = {}

    def write(self) -> Tree:
        signature = self._proto.signature
        signature.name = self._parts.name
        for at, tensor in enumerate(self._parts.inputs):
            signature.input_arg.add(name=f"input_{at}", type=tensor.dtype.base_dtype.as_datatype_enum)
            self._references[tensor] = f"input_{at}"
        variables = {tensor.op: variable for variable, tensor in self._parts.graph.variables.values()}
        ends = [*self._parts.outputs, *(value for _, value in self._parts.written)]
        for op in needed_operations(tensor.op for tensor in ends):
            if op in variables:
                self._add_read(op, variables[op])
            elif op.type == "HeldTable":
                held = function_of(op.attrs["token"])
                assert held is not None
                self._references[op.outputs[0]] = self._capture(held())
            elif op.outputs and op.outputs[0] in self._references:
                continue
            else:
                self._add(op)
        for at, (variable, value) in enumerate(self._parts.written):
            self._add_assignment(f"assign_{at}", variable, value)
        for at, tensor in enumerate(self._parts.outputs):
            signature.output_arg.add(name=f"output_{at}", type=tensor.dtype.base_dtype.as_datatype_enum)
            self._proto.ret[f"output_{at}"] = self._references[tensor]
        signature.is_stateful = bool(self._proto.control_ret) or bool(self._captured)
        return self._proto

    def _capture(self, value: Tree) -> str:
        """Returns the argument for a variable or table."""
        if id(value) not in self._captured:
            name = f"capture_{len(self._captured)}"
            self._captured[id(value)] = name
            self._proto.signature.input_arg.add(name=name, type=resource.as_datatype_enum)
            self._parts.captures.append(value)
        return self._captured[id(value)]

    def _add_read(self, op: Operation, variable: Tree) -> None:
        node = self._proto.node_def.add(name=op.name, op="ReadVariableOp", input=[self._capture(variable)])
        node.attr["dtype"].type = op.outputs[0].dtype.as_datatype_enum
        self._references[op.outputs[0]] = f"{op.name}:value:0"
        self._read[id(variable)] = op.name

    def _add_assignment(self, name: str, variable: Tree, value: Tensor) -> None:
        node = self._proto.node_def.add(name=name, op="AssignVariableOp")
        node.input.extend([self._capture(variable), self._references[value]])
        if id(variable) in self._read:
            node.input.append(f"^{self._read[id(variable)]}")
        node.attr["dtype"].type = value.dtype.as_datatype_enum
        self._add_effect(name)

    def _add_effect(self, name: str) -> None:
        self._proto.control_ret[name] = name
        self._proto.signature.control_output.append(name)

    def _add(self, op: Operation) -> None:
        node = node_def(op)
        if op.type in _WITHOUT_OUTPUTS:
            names: list[str] | None = []
        elif op.type == "XlaCallModule":  # from a saved model that was loaded
            names = [f"output:{at}" for at in range(len(op.outputs))]
        else:
            names = output_names(node)
        if names is None:
            node, names = _module(op)
        del node.input[:]
        node.device = ""
        for attr in [attr for attr in node.attr if attr.startswith("_") and attr != "_exported"]:
            del node.attr[attr]
        node.input.extend(self._references[tensor] for tensor in _inputs(op, node))
        node.input.extend(
            f"^{control.name}" for control in op.control_inputs if control.type not in ("Placeholder", "HeldTable")
        )
        self._proto.node_def.append(node)
        self._references.update((tensor, f"{op.name}:{name}") for tensor, name in zip(op.outputs, names, strict=True))
        if not names:
            self._add_effect(op.name)


# Modules of XLA -----------------------------------------------------------------------------------------------------


def _inputs(op: Operation, node: NodeDef) -> list[Tensor]:
    if node.op == op.type:
        return list(op.inputs)
    fixed = _static_values(op)
    return [tensor for at, tensor in enumerate(op.inputs) if at not in fixed]


def _static_values(op: Operation) -> dict[int, Tree]:
    """Returns the values of the inputs that a lowering needs as constants, by position."""
    found: dict[int, Tree] = {}
    for at in op.definition.static_positions(op.attrs, len(op.inputs)) if op.type != "JaxFunction" else ():
        found[at] = constant_value(op.inputs[at])
        if found[at] is None:
            raise ValueError(
                f"{op.name} ({op.type}) cannot be exported: its input {op.inputs[at].name} has to be a constant"
            )
    return found


def _module(op: Operation) -> tuple[NodeDef, list[str]]:
    """Returns the ``XlaCallModule`` node of an operation, and the names of its outputs."""
    fixed = _static_values(op) if op.definition.kind is Kind.PURE else {}
    tensors = [tensor for at, tensor in enumerate(op.inputs) if at not in fixed]
    if op.definition.kind is not Kind.PURE or any(not tensor.dtype.is_numpy_compatible for tensor in tensors):
        raise ValueError(f"{op.name} ({op.type}) cannot be exported: it runs in Headwater's processes only")
    if op.type == "JaxFunction":
        python = function_of(op.attrs["token"])
        assert python is not None
        compute = python
    else:
        attrs = {key: value for key, value in op.attrs.items() if key in op.definition.attrs}

        def lowered(*arrays: Tree) -> Tree:
            rest = iter(arrays)
            values = [fixed[at] if at in fixed else next(rest) for at in range(len(op.inputs))]
            return call(op.definition, values, attrs)

        compute = lowered

    label = op.attrs.get("label") or op.type

    def run(*arrays: Tree) -> list[Tree]:
        found: Sequence[Tree] = compute(*arrays)
        return [
            jax.numpy.asarray(value, tensor.dtype.numpy_dtype) for value, tensor in zip(found, op.outputs, strict=True)
        ]

    exported = _exported(run, tensors, str(label))
    node = node_def_pb2.NodeDef(name=op.name, op="XlaCallModule")
    module = stablehlo.serialize_portable_artifact_str(_legalized(exported.mlir_module()), _STABLEHLO)
    for key, value in {
        "version": exported.calling_convention_version,
        "module": module,
        "platforms": tuple(platform.upper() for platform in exported.platforms),
        "Tin": tuple(tensor.dtype.base_dtype for tensor in tensors),
        "Tout": tuple(tensor.dtype.base_dtype for tensor in op.outputs),
        "Sout": tuple(tensor.shape for tensor in op.outputs),
        "_exported": bytes(exported.serialize()),
    }.items():
        write_attr(node.attr[key], value)
    return node, [f"output:{at}" for at in range(len(op.outputs))]


@functools.cache
def _register_passes() -> None:
    stablehlo.register_stablehlo_passes()


def _legalized(module: str) -> str:
    """Returns a module without operations that older releases of StableHLO cannot refine to known shapes."""
    _register_passes()
    with mlir.make_ir_context():
        parsed = ir.Module.parse(module)
        for name in ("stablehlo-legalize-composite-to-call", "chlo-legalize-to-stablehlo"):
            passmanager.PassManager.parse(f"builtin.module(func.func({name}))").run(parsed.operation)
        return str(parsed)


@contextmanager
def _without_locations() -> Generator[None]:
    """A context in which JAX does not write paths of files into modules."""
    before = getattr(jax.config, _LOCATIONS)
    jax.config.update(_LOCATIONS, 0)
    try:
        yield
    finally:
        jax.config.update(_LOCATIONS, before)


def _exported(function: Callable[..., Tree], tensors: Sequence[Tensor], label: str) -> Tree:
    """Exports ``function`` for arrays of the tensors' shapes.

    An unknown size is a symbol. First, only unknown numbers of rows are assumed to be equal; if the function requires
    it, all unknown sizes of the same axis.
    """
    errors: list[Exception] = []
    for shared, platforms in itertools.product((False, True), _PLATFORMS):
        scope = export.SymbolicScope()
        specs: list[Tree] = []
        for at, tensor in enumerate(tensors):
            if tensor.dims is None:
                raise ValueError(
                    f"{label} cannot be exported: {tensor.name} has an unknown number of dimensions; give its shape in "
                    "the signature"
                )
            words = [
                str(size) if size is not None else f"d{axis}" if shared or not axis else f"d{axis}_{at}"
                for axis, size in enumerate(tensor.dims)
            ]
            shape = export.symbolic_shape(",".join(words), scope=scope) if words else ()
            specs.append(jax.ShapeDtypeStruct(shape, tensor.dtype.numpy_dtype))
        try:
            with _without_locations():
                return export.export(jax.jit(function, keep_unused=True), platforms=platforms)(*specs)
        except Exception as error:  # noqa: BLE001  of JAX or of the function; the last one is raised
            errors.append(error)
    raise ValueError(f"{label} cannot be exported for unknown sizes; give sizes in the signature") from errors[0]
