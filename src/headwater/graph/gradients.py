"""Gradients: adds a backward operation for every operation on a path from xs to ys.

By default the backward operation is a ``Vjp``: the vector-Jacobian product of the forward operation's lowering,
computed by JAX (``jax.vjp``). It repeats the forward computation; if both are in one executable, XLA removes the
repetition. Gradient functions are registered only for operations for which mathematics or memory requires another rule.

For ys with gradients g the result for x is  sum over y of  g_y * dy/dx.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headwater.dtypes import int32
from headwater.graph.bag_gradient import gathered_bags_gradient, joined_bags_gradient
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, function_attr, name_scope
from headwater.graph.gather_gradient import gather_gradient, joined_gradient, routed_gradient
from headwater.graph.graph import Graph
from headwater.graph.indexed_slices import IndexedSlices, concat_slices, to_dense
from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import Kind, as_outputs, lookup_gradient, register_gradient

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


Gradient = Tensor | IndexedSlices


for _name in ("Gather", "GatherV2"):
    register_gradient(_name, gather_gradient)
register_gradient("GatherRouted", routed_gradient)
register_gradient("JoinRouted", joined_gradient)
register_gradient("GatherBags", gathered_bags_gradient)
register_gradient("JoinBags", joined_bags_gradient)


class AggregationMethod:
    """TensorFlow's methods of adding up gradients; all are equivalent here, since XLA computes one sum."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


class UnconnectedGradients:
    """Choices for the gradient of an x on which no y depends."""

    NONE = "none"
    ZERO = "zero"


def gradients(
    ys: TensorLike,
    xs: TensorLike,
    grad_ys: object = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: object = None,
    unconnected_gradients: str = UnconnectedGradients.NONE,
) -> list[Gradient | None]:
    """Returns the sum over ``ys`` of the derivatives with respect to each of ``xs``.

    Args:
      ys: a tensor or several.
      xs: a tensor or variable, or several.
      grad_ys: a gradient for each of ``ys``, of its shape; None means ones.
      name: name scope of the new operations.
      colocate_gradients_with_ops: ignored; a backward operation is always colocated with its forward operation.
      gate_gradients: ignored; a step computes all gradients before it uses any of them outside of the executable.
      aggregation_method: ignored; see `AggregationMethod`.
      stop_gradients: tensors treated as constants.
      unconnected_gradients: ``"none"`` or ``"zero"``.

    Returns:
      For each x a tensor of its shape, or `IndexedSlices` if it is only used in gathers, or None (zeros with
      ``"zero"``) if no y depends on it.

    Raises:
      TypeError: a y is not numeric, or is complex without a given gradient.
      ValueError: ys and xs are of two graphs, or a given gradient does not fit its y.
      LookupError: an operation on a path has no gradient.
    """
    del colocate_gradients_with_ops, gate_gradients
    if aggregation_method not in (None, 0, 1, 2):
        raise ValueError(f"Invalid aggregation_method specified {aggregation_method!r}.")
    if unconnected_gradients not in (UnconnectedGradients.NONE, UnconnectedGradients.ZERO):
        raise ValueError(f"Unknown value for unconnected_gradients: {unconnected_gradients!r}")
    targets = [to_dense(convert_to_tensor(y)) for y in _listed(ys)]
    sources = [convert_to_tensor(x, as_ref=True) for x in _listed(xs)]
    stops = {convert_to_tensor(s, as_ref=True).op for s in _listed(stop_gradients)}
    given = _listed(grad_ys) if grad_ys is not None else [None] * len(targets)
    if len(given) != len(targets):
        raise ValueError(f"Passed {len(given)} grad_ys for {len(targets)} ys")
    with name_scope(name, values=[*targets, *sources]):
        graph = get_default_graph()
        back = _Backward(graph, targets, sources, stops)
        for index, (y, grad) in enumerate(zip(targets, given, strict=True)):
            seed = _seed(y, grad, index)
            if seed is not None:
                back.add(y, seed)
        found = back.run()
        if unconnected_gradients == UnconnectedGradients.ZERO:
            return [_zeros_like(x) if g is None else g for x, g in zip(sources, found, strict=True)]
        return found


def _listed(value: object) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]  # pyright: ignore[reportUnknownArgumentType]


def _seed(y: Tensor, grad: Gradient | None, index: int) -> Gradient | None:
    """Returns the gradient of ``y`` itself; None for integers, which have no gradient."""
    if y.dtype.is_integer:
        return None
    if not y.dtype.is_differentiable:
        raise TypeError(f"ys[{index}] must be numeric to have a gradient, not {y!r}")
    if grad is None and y.dtype.is_complex:
        raise TypeError(f"Gradients of complex tensors must set grad_ys (ys[{index}] is {y!r})")
    if grad is None:
        return y.graph.create_op("OnesLike", [y], name=f"grad_ys_{index}", device=y.op.device).outputs[0]
    if isinstance(grad, IndexedSlices):
        return grad
    seed = convert_to_tensor(grad, y.dtype.base_dtype, name=f"grad_ys_{index}")
    if y.shape.num_elements() == 1 and seed.shape.num_elements() == 1 and y.shape != seed.shape:
        return y.graph.create_op("Reshape", [seed, convert_to_tensor([1] * len(y.shape.as_list()), int32)]).outputs[0]
    y.shape.assert_is_compatible_with(seed.shape)
    return seed


def _zeros_like(x: Tensor) -> Tensor:
    return x.graph.create_op("ZerosLike", [x], device=x.op.device).outputs[0]


class _Backward:
    """One reverse pass over the operations between sources and targets."""

    def __init__(self, graph: Graph, targets: list[Tensor], sources: list[Tensor], stops: set[Operation]) -> None:
        self._graph = graph
        self._sources = sources
        self._grads: dict[Tensor, list[Gradient]] = {}
        self._order = _between(targets, sources, stops)
        self._on_path = {tensor for op in self._order for tensor in op.outputs} | set(sources)

    def add(self, tensor: Tensor, grad: Gradient) -> None:
        self._grads.setdefault(tensor, []).append(grad)

    def run(self) -> list[Gradient | None]:
        for op in reversed(self._order):
            outputs = [self._total(tensor) for tensor in op.outputs]
            if any(grad is not None for grad in outputs):
                self._add_input_gradients(op, outputs)
        return [self._total(tensor) for tensor in self._sources]

    def _total(self, tensor: Tensor) -> Gradient | None:
        parts = self._grads.get(tensor)
        if not parts:
            return None
        if len(parts) > 1:
            slices = [part for part in parts if isinstance(part, IndexedSlices)]
            if len(slices) == len(parts):
                parts[:] = [concat_slices(slices)]
            else:
                dense = [to_dense(part) for part in parts]
                parts[:] = [self._graph.create_op("AddN", dense, {"N": len(dense)}, device=tensor.op.device).outputs[0]]
        return parts[0]

    def _add_input_gradients(self, op: Operation, outputs: list[Gradient | None]) -> None:
        """Adds the gradients of the inputs of ``op``, given the gradients of its outputs."""
        wanted = [self._wants(op, index) for index in range(len(op.inputs))]
        if not any(wanted):
            return
        function = lookup_gradient(op.attrs.get("_gradient_op_type", op.type))
        with self._graph.name_scope(f"{op.name}_grad"), self._same_device(op):
            result: object = NotImplemented
            if function is not None:
                filled = [_zeros_like(t) if g is None else g for t, g in zip(op.outputs, outputs, strict=True)]
                result = function(op, *filled)
            found = _vjp(op, outputs, wanted) if result is NotImplemented else as_outputs(result)
            if len(found) != len(op.inputs):
                raise ValueError(f"The gradient of {op!r} gives {len(found)} values for {len(op.inputs)} inputs")
            for tensor, want, grad in zip(op.inputs, wanted, found, strict=True):
                if want and grad is not None:
                    if isinstance(grad, Tensor):
                        grad.set_shape(tensor.dims)
                    self.add(tensor, grad)

    def _wants(self, op: Operation, index: int) -> bool:
        tensor = op.inputs[index]
        return tensor in self._on_path and tensor.dtype.is_differentiable

    @contextmanager
    def _same_device(self, op: Operation) -> Generator[None]:
        """Requests exactly the device of ``op``, regardless of the scopes in which `gradients` is called."""
        with self._graph.colocate_with(None, ignore_existing=True), self._graph.device(op.device):
            yield


def _between(targets: list[Tensor], sources: list[Tensor], stops: set[Operation]) -> list[Operation]:
    """Returns the operations on paths from sources to targets that avoid ``stops``, inputs first."""
    wanted = set(sources)
    reaches: dict[Operation, bool] = {}
    order: list[Operation] = []
    for target in targets:
        stack: list[tuple[Operation, bool]] = [(target.op, False)]
        while stack:
            op, inputs_done = stack.pop()
            if inputs_done:
                through = any(reaches[t.op] or t in wanted for t in op.inputs)
                reaches[op] = through or any(t in wanted for t in op.outputs)
                if through:
                    order.append(op)
            elif op not in reaches:
                reaches[op] = False
                if op not in stops:
                    stack.append((op, True))
                    stack.extend((t.op, False) for t in op.inputs if t.op not in reaches)
    return order


def _vjp(op: Operation, outputs: Iterable[Gradient | None], wanted: list[bool]) -> Sequence[Gradient | None]:
    definition = op.definition
    if not definition.differentiable:
        return [None] * len(op.inputs)
    if definition.kind is not Kind.PURE:
        raise LookupError(
            f"No gradient defined for operation '{op.name}' (op type: {op.type}). "
            "Register one with tf.RegisterGradient, or stop gradients before it."
        )
    static = definition.static_positions(op.attrs, len(op.inputs))
    wanted = [want and index not in static and index not in definition.constants for index, want in enumerate(wanted)]
    if not any(wanted):
        return [None] * len(op.inputs)
    grads = [None if grad is None else to_dense(grad) for grad in outputs]
    attrs = {"f": function_attr(op), "wanted": tuple(wanted), "given": tuple(grad is not None for grad in grads)}
    inputs = [*op.inputs, *(grad for grad in grads if grad is not None)]
    results = iter(op.graph.create_op("Vjp", inputs, attrs).outputs)
    return [next(results) if want else None for want in wanted]
