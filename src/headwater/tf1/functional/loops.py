"""`while_loop`, and its gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.data.spec import TensorSpec
from headwater.dtypes import DType
from headwater.graph import bodies
from headwater.graph.composites import CompositeTensor, components_of
from headwater.graph.constants import constant_value
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import FunctionAttr, Kind, lookup, register_gradient
from headwater.graph.tensor_names import full_name, operation_of
from headwater.shapes import TensorShape, as_shape, less_specific
from headwater.tensorboard_protos import graph_pb2
from headwater.tf1.functional import arrays, math, nest, program_order
from headwater.tf1.functional.apply import one
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.leaves import flow_of, like_leaf
from headwater.tf1.functional.tensor_arrays import TensorArray

if TYPE_CHECKING:
    from headwater.graph.types import Structure, TensorLike
    from headwater.tensorboard_protos import NodeDef


def while_loop(
    cond: Callable[..., object],
    body: Callable[..., object],
    loop_vars: object,
    shape_invariants: Structure = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: TensorLike | None = None,
    return_same_structure: bool = False,
) -> Structure:
    """Replaces ``loop_vars`` by ``body(*loop_vars)`` while ``cond(*loop_vars)`` is true.

    A loop is compiled, and has gradients, unless an operation in it changes a variable, handles strings or runs on the
    host, or a shape changes between iterations (which ``shape_invariants`` must declare); then it runs on the host, one
    operation after the other. If changing shapes are the only reason, it still has a gradient, computed iteration by
    iteration; otherwise `tf.gradients` through the loop raises LookupError.

    The gradient stores the intermediate values of every iteration. The number of iterations is taken from
    ``maximum_iterations``, from a counter in the graph, or from the run itself; see
    `headwater.graph.ops.control_flow`.

    Args:
      loop_vars: a list or tuple of nested structures of tensors, sparse tensors, `tf.IndexedSlices` and TensorArrays.
      shape_invariants: for each variable the static shape before and after each iteration; its own if None. For a
        sparse tensor it is the dense shape, with any number of elements; for `tf.IndexedSlices` the shape of the
        values.
      parallel_iterations: a hint for speed.
      back_prop: False: no gradient flows through the loop: `tf.gradients` returns None.
      swap_memory: a hint for speed.
      maximum_iterations: the largest number of iterations.
      return_same_structure: return a list of one variable as a list. Otherwise the first variable is returned if
        there is only one tensor or, with ``maximum_iterations``, only one variable.

    Raises:
      TypeError: ``cond`` or ``body`` is not callable, or ``cond`` does not return a boolean.
      ValueError: there are no variables, or ``body`` returns another structure or shape.
    """
    del swap_memory
    if not callable(cond):
        raise TypeError("cond must be callable.")
    if not callable(body):
        raise TypeError("body must be callable.")
    if parallel_iterations < 1:
        raise TypeError("parallel_iterations must be a positive integer.")
    if not isinstance(loop_vars, list | tuple):
        loop_vars = [loop_vars]
    if not loop_vars:
        raise ValueError("No loop variables provided")
    original = loop_vars  # pyright: ignore[reportUnknownVariableType]
    with name_scope(name, "while", nest.flatten(original)):
        loop = _Loop(original, shape_invariants, maximum_iterations)
        leaves = loop.run(cond, body)
        if not back_prop:
            leaves = [_without_gradient(leaf) for leaf in leaves]
    packed = nest.pack(original, leaves)
    count = len(leaves) if maximum_iterations is None else len(packed)
    return packed if return_same_structure or count != 1 else packed[0]


def _without_gradient(leaf: object) -> CompositeTensor | TensorArray | Tensor:
    return like_leaf(leaf, (arrays.stop_gradient(flow_of(part)) for part in components_of(leaf)))


class _Loop:
    """A loop under construction. If the number of iterations is bounded, a counter is its first variable."""

    def __init__(self, loop_vars: Structure, invariants: Structure, maximum: Any) -> None:
        self._graph = get_default_graph()
        self._structure = loop_vars
        self._values: list[object] = [
            leaf if isinstance(leaf, TensorArray | CompositeTensor) else convert_to_tensor(leaf)
            for leaf in nest.flatten(loop_vars)
        ]
        self._leaves: list[Any] = [part for value in self._values for part in components_of(value)]
        self._maximum = None if maximum is None else convert_to_tensor(maximum, dtypes.int32, name="maximum_iterations")
        counter = [] if maximum is None else [convert_to_tensor(0, name="iteration_counter")]
        self._start: list[Tensor] = [*counter, *map(flow_of, self._leaves)]
        self._counted = len(counter)
        shapes = [tensor.dims for tensor in self._start]
        self._loose = [False] * len(shapes)
        if invariants is not None:
            given = _flat_shapes(invariants)
            if len(given) != len(self._values):
                raise ValueError("The two structures don't have the same nested structure: shape_invariants, loop_vars")
            given = [
                part
                for value, shape in zip(self._values, given, strict=True)
                for part in (value.component_shapes(shape) if isinstance(value, CompositeTensor) else [shape])
            ]
            for index, (leaf, shape) in enumerate(zip(self._leaves, given, strict=True), self._counted):
                if not isinstance(leaf, TensorArray):
                    if not less_specific(shape.as_dims, shapes[index]):
                        raise ValueError(
                            f"The shape invariant specified for {leaf.name} is not compatible with the initial shape "
                            f"of the loop variable. It enters the loop with shape {leaf.shape}, but the specified "
                            f"shape invariant is {shape}."
                        )
                    self._loose[index] = shape.as_dims != shapes[index]
                    shapes[index] = shape.as_dims
        for index, leaf in enumerate(self._leaves, self._counted):
            if isinstance(leaf, TensorArray):
                dims = leaf.flow.dims
                shapes[index] = dims if dims and len(dims) > 1 and not leaf.dynamic_size else None
        self._params = [self._param(tensor, dims) for tensor, dims in zip(self._start, shapes, strict=True)]

    def _param(self, tensor: Tensor, dims: Any) -> Tensor:
        attrs = {"dtype": tensor.dtype.base_dtype, "shape": TensorShape(dims)}
        op = self._graph.create_op("Placeholder", [], attrs, "Identity")
        self._graph.prevent_fetching(op)
        self._graph.prevent_feeding(op.outputs[0])
        return op.outputs[0]

    def _arguments(self) -> Structure:
        return nest.pack(self._structure, self._packed(self._inner))

    def _packed(self, tensors: Sequence[Tensor]) -> list[CompositeTensor | Tensor | TensorArray]:
        """The values of the loop, made of ``tensors``."""
        found = iter(tensors)
        return [like_leaf(value, found) for value in self._values]

    @property
    def _inner(self) -> list[Tensor]:
        return self._params[self._counted :]

    def run(self, cond: Callable[..., Structure], body: Callable[..., object]) -> list[Any]:
        first = self._graph.version
        holds = convert_to_tensor(cond(*self._arguments()))
        if holds.dtype.base_dtype != dtypes.bool_:
            raise TypeError(f"cond must return a boolean, not {holds.dtype.name}")
        if holds.dims:
            raise ValueError(f"Shape must be rank 0 but is rank {len(holds.dims)} for the result of cond")
        if self._maximum is not None:
            holds = math.logical_and(self._params[0] < self._maximum, holds)
        middle = self._graph.version
        result = body(*self._arguments())
        with control_dependencies(program_order.effects_of_body(self._graph, middle)):
            results = self._results(result)
        if self._counted:
            results.insert(0, self._params[0] + 1)
        loop_condition, turn = bodies.record_turns(self._graph, [(first, [holds]), (middle, results)], self._params)
        changing = self._check_shapes(results)
        op = self._operation(loop_condition, turn, changing)
        self._graph.close_loop(self._params)
        outputs = op.outputs[self._counted : -1]
        return self._packed(outputs)

    def _results(self, result: Structure) -> list[Tensor]:
        """Returns the body's results as tensors in order."""
        single = len(self._structure) == 1 and not (nest.is_nested(result) and len(result) == 1)
        if single or not nest.is_nested(result):
            result = [result]
        values = nest.flatten(result)
        kinds = [[type(v) if isinstance(v, CompositeTensor) else None for v in some] for some in (self._values, values)]
        leaves = [part for value in values for part in components_of(value)]
        if kinds[0] != kinds[1] or len(leaves) != len(self._leaves):
            raise ValueError(
                "The two structures don't have the same nested structure. First structure: loop_vars, "
                f"{self._values}, second structure: result of body, {values}"
            )
        found: list[Tensor] = []
        for leaf, param in zip(leaves, self._inner, strict=True):
            tensor = flow_of(leaf) if isinstance(leaf, TensorArray) else convert_to_tensor(leaf)
            if tensor.dtype.base_dtype != param.dtype:
                raise ValueError(
                    f"body returned a tensor of type {tensor.dtype.name} for a loop variable of type {param.dtype.name}"
                )
            found.append(tensor.graph.create_op("Identity", [tensor], name="NextIteration").outputs[0])
        return found

    def _check_shapes(self, results: Sequence[Tensor]) -> bool:
        """Returns whether a shape may change between iterations.

        Raises:
          ValueError: a shape changes although its variable's static shape excludes it.
        """
        changing = False
        for index, (start, param, result) in enumerate(zip(self._start, self._params, results, strict=True)):
            leaf = self._leaves[index - self._counted] if index >= self._counted else None
            if isinstance(leaf, TensorArray):
                changing |= leaf.dynamic_size
                continue
            if not less_specific(param.dims, result.dims):
                raise ValueError(
                    f"Input tensor '{start.name}' enters the loop with shape {start.shape}, but has shape "
                    f"{result.shape} after one iteration. To allow the shape to vary across iterations, use the "
                    "`shape_invariants` argument of tf.while_loop to specify a less-specific shape."
                )
            changing |= self._loose[index] and start.dims != result.dims
        return changing

    def _operation(self, loop_condition: bodies.Recorded, turn: bodies.Recorded, changing: bool) -> Operation:
        shapes: list[TensorShape] = []
        for param, result in zip(self._params, turn.outputs, strict=True):
            loose = param.dims is None and not changing
            shapes.append(TensorShape(result.dims if loose else param.dims))
        bound = -1
        if self._maximum is not None:
            known = constant_value(self._maximum)
            bound = -1 if known is None else int(known)
        return bodies.add_loop(self._start, self._params, loop_condition, turn, shapes, on_host=changing, bound=bound)


def _flat_shapes(invariants: Structure) -> list[TensorShape]:
    """Returns the shapes in a structure of shapes and `TensorSpec`.

    Raises:
      ValueError: the structure contains another object.
    """
    if isinstance(invariants, TensorShape) or invariants is None:
        return [as_shape(invariants)]
    if isinstance(invariants, TensorSpec):
        return [invariants.shape]
    if not isinstance(invariants, dict | list | tuple):
        raise ValueError(f"`shape_invariants` must consist of TensorShape and TensorSpec, not {invariants!r}")
    if isinstance(invariants, dict):
        return [shape for key in sorted(invariants) for shape in _flat_shapes(invariants[key])]  # pyright: ignore
    return [shape for item in invariants for shape in _flat_shapes(item)]  # pyright: ignore


# The gradient ---------------------------------------------------------------------------------------------------


def _gradient(op: Operation, *grads: Tensor) -> list[Tensor | None] | list[None]:
    """Returns the gradient as the vector-Jacobian product of a loop with a static number of iterations."""
    attrs = {key: value for key, value in op.attrs.items() if key in op.definition.attrs}
    wanted = [tensor.dtype.is_differentiable for tensor in op.inputs]
    outputs = op.outputs[:-1]
    given = [tensor.dtype.is_differentiable for tensor in outputs]
    if not any(wanted) or not any(given):
        return [None] * len(op.inputs)
    forward = FunctionAttr("WhileScan", tuple(sorted(attrs.items())))
    inputs = [*op.inputs, _trips(op), *(g for g, has in zip(grads, given, strict=False) if has)]
    found = iter(
        op.graph.create_op(
            "Vjp",
            [convert_to_tensor(t) for t in inputs],
            {"f": forward, "wanted": (*wanted, False), "given": tuple(given)},
        ).outputs
    )
    return [next(found) if want else None for want in wanted]


def _trips(op: Operation) -> Tensor:
    used, loop = _end_depends_on(op)
    if used:
        attrs = {"cond": op.attrs["cond"], "body": op.attrs["body"], "used": tuple(used), "loop": tuple(loop)}
        return op.graph.create_op("WhileTrips", [op.inputs[i] for i in used], attrs).outputs[0]
    bound = op.attrs.get("bound", -1)
    return convert_to_tensor([bound, 0], dtypes.int32) if bound >= 0 else one("RoundedTrips", op.outputs[-1])


def _end_depends_on(op: Operation) -> tuple[list[int], list[int]]:
    """Returns inputs that determine the number of iterations, and which of them change, if all are integers."""
    cond, body = (dict(op.attrs[name].attrs) for name in ("cond", "body"))
    names = list(cond["inputs"])
    results = list(body["outputs"])
    used: set[int] = set()
    todo = _uses(cond, cond["outputs"])
    while todo is not None and todo - used:
        used |= todo
        more = [_uses(body, [results[i]]) for i in todo if i < len(results)]
        if any(item is None for item in more):
            todo = None
        else:
            todo = set[int]().union(*(item for item in more if item is not None))
    integers = all(_is_integer(op.inputs[i].dtype) for i in used)
    if todo is None or not integers or not any(i < len(results) for i in used) or len(names) != len(op.inputs):
        return [], []
    return sorted(used), sorted(i for i in used if i < len(results))


def _is_integer(dtype: DType) -> bool:
    return dtype.base_dtype.is_integer or dtype.base_dtype.is_bool


def _uses(function: dict[str, Any], outputs: Sequence[str]) -> set[int] | None:
    """Returns the positions of a body's inputs on which some outputs depend; None if outputs are random."""
    data = function["graph"]
    nodes = {node.name: node for node in graph_pb2.GraphDef.FromString(data).node}
    inputs = {name: index for index, name in enumerate(function["inputs"])}
    found: set[int] = set()
    seen: set[str] = set()
    stack = [*map(full_name, outputs)]
    while stack:
        name = stack.pop()
        if name in inputs:
            if name == function["key"]:
                return None
            found.add(inputs[name])
        elif name not in seen:
            seen.add(name)
            node = nodes[operation_of(name)]
            stack.extend(full_name(item) for item in node.input if not item.startswith("^"))
            if node.op.startswith("Random") or node.op in ("TruncatedNormal", "Multinomial"):
                return None
    return found


def _host_gradient(op: Operation, *grads: Tensor) -> list[Tensor | None] | list[None]:
    """Computes the gradient iteration by iteration on the host, for loops that are not compiled due to shapes only.

    Raises:
      LookupError: the loop is not compiled for another reason. Without the error, a part of a model would silently not
        be trained.
    """
    outputs = op.outputs[:-1]
    wanted = [tensor.dtype.is_differentiable for tensor in op.inputs]
    given = [grad for grad, tensor in zip(grads, outputs, strict=False) if tensor.dtype.is_differentiable]
    if not given:
        return [None] * len(op.inputs)
    if op.attrs.get("refs") or not (_is_computed(op.attrs["cond"]) and _is_computed(op.attrs["body"])):
        raise LookupError(
            f"no gradient for the loop {op.name!r}: an operation in it changes a variable, handles text, draws "
            "random numbers while shapes change, or cannot be compiled. Use tf.stop_gradient if none is needed"
        )
    attrs = {"cond": op.attrs["cond"], "body": op.attrs["body"], "wanted": tuple(wanted)}
    made = op.graph.create_op("WhileGradient", [*op.inputs, *(convert_to_tensor(grad) for grad in given)], attrs)
    found = iter(made.outputs)
    return [next(found) if want else None for want in wanted]


def _is_computed(function: FunctionAttr) -> bool:
    """Returns whether a body only computes: all its operations are pure, and none handles strings."""
    data = dict(function.attrs)["graph"]
    return all(_is_pure(node) for node in graph_pb2.GraphDef.FromString(data).node)


def _is_pure(node: NodeDef) -> bool:
    definition = lookup(node.op)
    if any(attr.type == dtypes.string.as_datatype_enum for attr in node.attr.values()):
        return False
    return definition.kind is Kind.PURE or definition.traced is not None


register_gradient("StatelessWhile", _gradient)
register_gradient("While", _host_gradient)
