"""`scan_over`: a function applied along sequences, with states carried between iterations, as one operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headwater import dtypes
from headwater.dtypes import DType
from headwater.graph import bodies
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.shapes import Dims, TensorShape, merge_dims
from headwater.tf1.functional import program_order
from headwater.tf1.functional.default_graph import control_dependencies

Step = Callable[[Sequence[Tensor], Sequence[Tensor]], tuple[Sequence[Any], Sequence[Any]]]


def scan_over(
    step: Step, states: Sequence[Tensor], sequences: Sequence[Tensor], name: str = "while"
) -> tuple[list[Tensor], list[Tensor]]:
    """Applies ``step(states, slices)`` to each slice of the sequences along their first dimension.

    Args:
      step: returns the states after an iteration, and further results.
      states: before the first iteration.
      sequences: at least one; with equal first dimensions.

    Returns:
      The states after the last iteration, and the further results of all iterations, each stacked.

    Raises:
      ValueError: an iteration changes the shape or type of a state.
    """
    graph = get_default_graph()
    length: Dims = (None,)
    for sequence in sequences:
        length = merge_dims(length, None if sequence.dims is None else sequence.dims[:1])
    with name_scope(name, None, [*states, *sequences]):
        shapes = [tensor.dims for tensor in states] + [t.dims and t.dims[1:] for t in sequences]
        kinds = [tensor.dtype.base_dtype for tensor in (*states, *sequences)]
        params = [_param(kind, dims) for kind, dims in zip(kinds, shapes, strict=True)]
        first = graph.version
        after, results = step(params[: len(states)], params[len(states) :])
        with control_dependencies(program_order.effects_of_body(graph, first)):
            outputs = [
                graph.create_op("Identity", [convert_to_tensor(value)], name="NextIteration").outputs[0]
                for value in (*after, *results)
            ]
        for before, now in zip(states, outputs, strict=False):
            if now.dtype.base_dtype != before.dtype.base_dtype or not now.shape.is_compatible_with(before.shape):
                raise ValueError(
                    f"A state of type {before.dtype.name} and shape {before.shape} is of type {now.dtype.name} and "
                    f"shape {now.shape} after a step"
                )
        (turn,) = bodies.record_turns(graph, [(first, outputs)], params)
        captured = bodies.captures([turn])
        on_host = turn.on_host or any(t.dtype.base_dtype == dtypes.string for t in (*captured, *params))
        key = None if on_host else bodies.random_key([turn])
        inputs = [*captured, *([] if key is None else [key])]
        count = len(states)
        dims = [merge_dims(a.dims, b.dims) for a, b in zip(states, outputs, strict=False)]
        stacked = [None if t.dims is None or length is None else (*length, *t.dims) for t in outputs[count:]]
        attrs: dict[str, object] = {
            "body": bodies.function_of("body", turn, [*params, *inputs], key),
            "states": count,
            "sequences": len(sequences),
            "Tout": tuple(t.dtype.base_dtype for t in outputs),
            "output_shapes": tuple(TensorShape(d) for d in (*dims, *stacked)),
        }
        if on_host:
            attrs["refs"] = tuple(len(params) + i for i, tensor in enumerate(captured) if tensor in turn.changed)
        op = graph.create_op(
            "Scan" if on_host else "StatelessScan",
            [*states, *sequences, *inputs],
            attrs,
            "Exit",
            control_inputs=list(turn.before),
        )
        return list(op.outputs[:count]), list(op.outputs[count:])


def _param(dtype: DType, dims: Any) -> Tensor:
    """Returns a placeholder for a value that differs between iterations."""
    graph = get_default_graph()
    op = graph.create_op("Placeholder", [], {"dtype": dtype, "shape": TensorShape(dims)}, "Identity")
    graph.prevent_fetching(op)
    graph.prevent_feeding(op.outputs[0])
    return op.outputs[0]
