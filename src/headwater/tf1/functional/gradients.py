"""Gradients, with the rules that differ from the vector-Jacobian product of an operation's lowering.

Import `gradients` from here, so that these rules are registered.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from headwater.graph.ancestry import ancestors
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.gradients import AggregationMethod, UnconnectedGradients, gradients
from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import register_gradient
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, indexing, math, reductions
from headwater.tf1.functional.apply import one

if TYPE_CHECKING:
    from headwater.graph.types import Structure


Rule = Callable[..., Any]


class RegisterGradient:
    """Decorator: registers the gradient function of an operation type, or of a name in ``gradient_override_map``.

    The function takes the operation and the gradient of each of its outputs, and returns one for each input (None for
    none).

    Args:
      op_type: the operation type, or the name.

    Raises:
      TypeError: ``op_type`` is not a string.
      KeyError: it has a gradient function already.
    """

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f: Rule) -> Rule:
        register_gradient(self._op_type, f)
        return f


def _nothing(op: Operation, *grads: object) -> list[None]:
    del grads
    return [None] * len(op.inputs)


def NotDifferentiable(op_type: str) -> None:
    """Declares that no gradient flows through operations of type ``op_type``.

    Raises:
      TypeError: ``op_type`` is not a string.
      KeyError: it has a gradient function already.
    """
    RegisterGradient(op_type)(_nothing)


NoGradient = NotDifferentiable


def custom_gradient(f: Callable[..., Structure]) -> Callable[..., Tensor]:
    """Decorator: ``f(*x)`` returns a result and a function from gradients of the result to gradients of ``x``.

    The result is a tensor or a list of tensors. If the second function has an argument ``variables``, it is called with
    the variables that the result depends on, and returns the gradients of ``x`` and the gradients of these variables.
    """

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: object) -> Any:
        inputs = [arrays.identity(convert_to_tensor(item)) for item in args]
        result, grad_function = f(*inputs, **kwargs)
        several = isinstance(result, list | tuple)
        listed = cast("Sequence[Any]", result) if several else [result]
        results = [convert_to_tensor(item) for item in listed]
        variables = _variables_of(results, inputs) if _takes_variables(grad_function) else []

        def gradient(op: Operation, *grads: object) -> list[Any]:
            del op
            if not variables:
                return [*no_gradients, *_listed(grad_function(*grads[: len(results)]))]
            found, of_variables = grad_function(*grads[: len(results)], variables=variables)
            if len(of_variables) != len(variables):
                raise ValueError(f"the function returned {len(of_variables)} gradients for {len(variables)} variables")
            return [*no_gradients, *_listed(found), *of_variables]

        no_gradients = [None] * len(results)

        name = f"CustomGradient-{next(_custom_gradients)}"
        RegisterGradient(name)(gradient)
        with get_default_graph().gradient_override_map({"IdentityN": name}):
            outputs = arrays.identity_n([*results, *inputs, *variables])[: len(results)]
        return outputs if several else outputs[0]

    return decorated


_custom_gradients = itertools.count()


def _listed(found: object) -> list[object]:
    return list(found) if isinstance(found, list | tuple) else [found]  # pyright: ignore[reportUnknownArgumentType]


def _takes_variables(function: Callable[..., object]) -> bool:
    parameters = inspect.signature(function).parameters
    return "variables" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _variables_of(results: Sequence[Tensor], inputs: Sequence[Tensor]) -> list[Any]:
    """Returns the variables of the graph that ``results`` depend on, in the order in which they were made."""
    used, _ = ancestors(results, inputs)
    graph = get_default_graph()
    kept = [graph.get_collection(name) for name in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES)]
    return [variable for variable in itertools.chain(*kept) if variable.op in used]


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: returns ``f`` unchanged. XLA chooses the intermediate values that a gradient recomputes."""

    @functools.wraps(f)
    def decorated(*args: object, **kwargs: object) -> Any:
        return f(*args, **kwargs)

    return decorated


def grad_pass_through(f: Callable[..., object]) -> Callable[..., Tensor]:
    """Decorator: passes the gradient of the function's result to its only argument unchanged."""

    @custom_gradient
    def passing(x: TensorLike) -> object:
        return f(x), lambda grad: grad  # pyright: ignore[reportUnknownVariableType, reportUnknownLambdaType]

    return passing


def hessians(
    ys: TensorLike,
    xs: TensorLike,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
) -> list[Tensor]:
    """Returns the second derivatives of Σ ys for each of ``xs``, which must be vectors of known length.

    Raises:
      ValueError: an x is not such a vector, or ys do not depend on it.
    """
    sources = list(xs) if isinstance(xs, list | tuple) else [xs]  # pyright: ignore[reportUnknownArgumentType]
    options: dict[str, Any] = {
        "colocate_gradients_with_ops": colocate_gradients_with_ops,
        "gate_gradients": gate_gradients,
        "aggregation_method": aggregation_method,
    }
    results: list[Tensor] = []
    with name_scope(name, "hessians"):
        for x in sources:
            tensor = convert_to_tensor(x)
            count = tensor.shape.num_elements()
            if count is None:
                raise ValueError(f"hessians needs tensors of known shape, not {tensor.shape}")
            slope = gradients(ys, x, **options)[0]
            if slope is None:
                raise ValueError(f"ys do not depend on {x!r}")
            flat = arrays.reshape(slope, [-1])
            rows = [gradients(flat[i], x, unconnected_gradients="zero", **options)[0] for i in range(count)]
            shape = [*convert_to_tensor(x).shape.as_list(), *convert_to_tensor(x).shape.as_list()]
            results.append(arrays.reshape(arrays.stack(rows), shape))
    return results


# Rules ------------------------------------------------------------------------------------------------------------


@RegisterGradient("DynamicPartition")
def _dynamic_partition(op: Operation, *grads: Tensor) -> list[Tensor | None]:
    data, partitions = op.inputs
    sizes = arrays.shape(partitions)
    order = arrays.reshape(arrays.range(arrays.size(partitions)), sizes)
    places = indexing.dynamic_partition(order, partitions, op.get_attr("num_partitions"))
    rows = indexing.dynamic_stitch(places, [convert_to_tensor(grad) for grad in grads])
    return [arrays.reshape(rows, arrays.shape(data)), None]


def _per_row(data: Tensor, values: Tensor) -> Tensor:
    """Reshapes a number per segment so that it broadcasts against rows of ``data``."""
    if data.dims is None:
        return arrays.reshape(values, arrays.concat([[-1], arrays.ones_like(arrays.shape(data)[1:])], 0))
    return arrays.reshape(values, [-1] + [1] * (len(data.dims) - 1))


@RegisterGradient("SegmentSum")
def _segment_sum(op: Operation, grad: Tensor) -> list[Tensor | None]:
    return [indexing.gather(convert_to_tensor(grad), op.inputs[1]), None]


@RegisterGradient("SegmentMean")
def _segment_mean(op: Operation, grad: Tensor) -> list[Tensor | None]:
    data, ids = op.inputs
    counts = reductions.segment_sum(arrays.ones(arrays.shape(ids), data.dtype.base_dtype), ids)
    return [indexing.gather(convert_to_tensor(grad) / _per_row(data, counts), ids), None]


def _segment_extreme(op: Operation, grad: Tensor) -> list[Tensor | None]:
    """Divides the gradient equally among equal extremes."""
    data, ids = op.inputs
    hit = math.cast(math.equal(data, indexing.gather(op.outputs[0], ids)), data.dtype.base_dtype)
    share = convert_to_tensor(grad) / reductions.segment_sum(hit, ids)
    return [hit * indexing.gather(share, ids), None]


RegisterGradient("SegmentMax")(_segment_extreme)
RegisterGradient("SegmentMin")(_segment_extreme)


def _chosen_segments(kind: str) -> Rule:
    """The gradient of segments of chosen rows."""

    def rule(op: Operation, grad: Tensor) -> list[Tensor | None]:
        data, indices, ids = op.inputs[:3]
        grad, count = convert_to_tensor(grad), arrays.shape(data)[0]
        if kind == "Sum":
            rows = reductions.unsorted_segment_sum(indexing.gather(grad, ids), indices, count)
        else:
            rows = one(f"SparseSegment{kind}Grad", grad, indices, ids, count)
        return [rows, *[None] * (len(op.inputs) - 1)]

    return rule


for _kind in ("Sum", "Mean", "SqrtN"):
    RegisterGradient(f"SparseSegment{_kind}")(_chosen_segments(_kind))
    RegisterGradient(f"SparseSegment{_kind}WithNumSegments")(_chosen_segments(_kind))


@RegisterGradient("Print")
def _print(op: Operation, grad: TensorLike) -> object:
    return [grad, *[None] * (len(op.inputs) - 1)]


@RegisterGradient("CheckNumerics")
def _check_numerics(op: Operation, grad: Tensor) -> Tensor:
    return one("CheckNumerics", grad, message="Not a number (NaN) or infinity (Inf) values detected in gradient.")


__all__ = [
    "AggregationMethod",
    "NoGradient",
    "NotDifferentiable",
    "RegisterGradient",
    "UnconnectedGradients",
    "gradients",
    "hessians",
]
