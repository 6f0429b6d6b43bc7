"""The gradient of a gather of rows: only the gathered rows, instead of a tensor of mostly zeros."""

from __future__ import annotations

from types import NotImplementedType

import numpy as np

from headwater.dtypes import float32, int32
from headwater.graph.constants import constant_value
from headwater.graph.convert import make_const
from headwater.graph.indexed_slices import IndexedSlices, to_dense
from headwater.graph.operation import Operation, Tensor


def gather_gradient(op: Operation, grad: Tensor | IndexedSlices) -> NotImplementedType | list[IndexedSlices | None]:
    """Returns ``IndexedSlices`` of ``grad``'s rows at the gathered indices; NotImplemented for another axis than 0."""
    params, indices, *axes = op.inputs
    axis = constant_value(axes[0]) if axes else np.array(0)
    if axis is None or int(axis) or op.attrs.get("batch_dims"):
        return NotImplemented
    shape = shape_of(params)
    rows = np.array([-1], np.int32)
    row_shape = constant_value(shape)
    if row_shape is not None and 0 not in row_shape[1:]:
        values_shape = make_const(np.concatenate([rows, row_shape[1:]]), "values_shape")
    else:  # a row may have no elements, so the number of rows cannot be inferred from the number of elements
        sizes = op.graph.create_op("Shape", [indices], {"out_type": int32}).outputs[0]
        count = op.graph.create_op("Prod", [sizes, make_const(np.array([0], np.int32))], {"keep_dims": True}).outputs[0]
        bounds = [make_const(np.array([value], np.int32)) for value in (1, 0, 1)]
        tail = op.graph.create_op("StridedSlice", [shape, *bounds], {"end_mask": 1}).outputs[0]
        parts = [count, tail, make_const(np.array(0, np.int32), "axis")]
        values_shape = op.graph.create_op("ConcatV2", parts, {"N": len(parts) - 1}).outputs[0]
    values = op.graph.create_op("Reshape", [to_dense(grad), values_shape]).outputs[0]
    flat = op.graph.create_op("Reshape", [indices, make_const(rows)]).outputs[0]
    return [IndexedSlices(values, flat, shape), *[None] * (len(op.inputs) - 1)]


def shape_of(params: Tensor) -> Tensor:
    """Returns the shape of a tensor, as a constant if known."""
    if params.dims is not None and None not in params.dims:
        return make_const(np.array(params.dims, np.int32), "Shape")
    return params.graph.create_op("Shape", [params], {"out_type": int32}).outputs[0]


def joined_gradient(op: Operation, grad: Tensor | IndexedSlices) -> list[Tensor | None]:
    """Returns the gradients of the rows of each part of a partitioned table; gradients of equal ids are added up."""
    places, *found = op.inputs
    routed = [each.op.inputs[1] for each in found]
    halves = {"halves": bool(op.attrs.get("halves"))}
    return [None, *op.graph.create_op("SplitRouted", [to_dense(grad), places, *routed], halves).outputs]


def routed_gradient(op: Operation, grad: Tensor | IndexedSlices) -> list[IndexedSlices | None]:
    """Returns ``IndexedSlices`` of the rows requested from one part of a partitioned table.

    The slices have a row for each id, as in TensorFlow, for programs that read their values. For updates, rows of equal
    ids are added up, which leaves fewer rows (`IndexedSlices.summed`).
    """
    params, routed = op.inputs
    grad = to_dense(grad)
    rows = op.graph.create_op("UpdateRows", [routed]).outputs[0]
    shape = shape_of(params)
    split, whole = grad.op, grad
    if op.attrs.get("halves"):  # converted on the task of the variable, so that the gradient is sent in half precision
        whole = op.graph.create_op("Cast", [grad], {"DstT": float32}, device=op.device).outputs[0]
    summed = IndexedSlices(whole, rows, shape, distinct=True)
    if split.type != "SplitRouted":
        return [summed, None]
    apart = op.graph.create_op("RowsOfPart", split.inputs, {"part": split.outputs.index(grad)}, device=split.device)
    values, indices = apart.outputs
    rows = op.graph.create_op("UpdateRows", [indices]).outputs[0]
    return [IndexedSlices(values, rows, shape, summed=summed), None]
