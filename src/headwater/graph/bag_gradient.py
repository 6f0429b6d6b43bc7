"""Gradients of lookups with rows combined in bags; see `headwater.graph.ops.bags`."""

from __future__ import annotations

from collections.abc import Callable

from headwater.dtypes import bfloat16
from headwater.graph.gather_gradient import shape_of
from headwater.graph.indexed_slices import IndexedSlices, to_dense
from headwater.graph.operation import Operation, Tensor


class SpreadSlices(IndexedSlices):
    """The gradient of one part's rows. Either the gradient of the bags or the gradient of the rows is sent to the task
    of the part, whichever is smaller.

    Args:
      arrived: the gradient of the output of ``GatherBags``, on the task where it was computed.
      gather: the ``GatherBags``.
      indices: the rows.
      dense_shape: shape of the part.
    """

    def __init__(self, arrived: Tensor, gather: Operation, indices: Tensor, dense_shape: Tensor) -> None:
        self._arrived = arrived
        self._gather = gather
        travels = arrived
        if gather.attrs.get("halves"):
            device = arrived.device
            travels = gather.graph.create_op("Cast", [arrived], {"DstT": bfloat16}, device=device).outputs[0]
        spread = gather.graph.create_op("SpreadBags", [travels, *gather.inputs[1:]], device=gather.device)
        super().__init__(spread.outputs[0], indices, dense_shape, distinct=True)

    def scaled(self, values: Callable[[Tensor], Tensor]) -> IndexedSlices:
        """Returns the slices with other values, which are computed before they are sent."""
        assert self.dense_shape is not None
        return SpreadSlices(values(self._arrived), self._gather, self.indices, self.dense_shape)


def joined_bags_gradient(op: Operation, grad: Tensor | IndexedSlices) -> list[Tensor | None]:
    """Returns the gradients of each part's rows, and of the ids' weights."""
    parts = [each.op for each in op.inputs[5:]]
    routed = [part.inputs[1] for part in parts]
    grad = to_dense(grad)
    split = op.graph.create_op("SplitBags", [grad, *op.inputs[:5], *routed]).outputs
    if not op.attrs["weighted"]:
        return [*[None] * 5, *split]
    # These operations run only if a program uses the gradient of the weights, which needs the rows themselves.
    rows = [
        part.graph.create_op("GatherRouted", part.inputs[:2], {"halves": False}, device=part.device).outputs[0]
        for part in parts
    ]
    inputs = [grad, op.outputs[0], *op.inputs[:4], *rows]
    slope = op.graph.create_op("GradientOfBagWeights", inputs, {"combiner": op.attrs["combiner"]}).outputs[0]
    return [None, None, slope, None, None, *split]


def gathered_bags_gradient(op: Operation, grad: Tensor | IndexedSlices) -> list[IndexedSlices | None]:
    """Returns ``IndexedSlices`` of the rows requested from one part.

    Programs that read the values get them on the task where the gradient was computed, which also has the bags.
    """
    params, routed = op.inputs[:2]
    grad = to_dense(grad)
    rows = op.graph.create_op("UpdateRows", [routed]).outputs[0]
    shape = shape_of(params)
    nothing: list[None] = [None] * (len(op.inputs) - 1)
    summed = SpreadSlices(grad, op, rows, shape)
    split = grad.op
    if split.type != "SplitBags":
        return [summed, *nothing]
    of_rows = op.graph.create_op("SplitBags", split.inputs, {"of_rows": True}, device=split.device)
    values = of_rows.outputs[split.outputs.index(grad)]
    return [IndexedSlices(values, rows, shape, summed=summed, distinct=True), *nothing]
