"""Kernels and gradients of operations between a sparse tensor (indices, values and shape) and a dense tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headwater.graph.kernels.common import Arrays, Needed, conjugate, ints
from headwater.graph.kernels.indexing import gather_nd, scattered
from headwater.graph.kernels.registry import NoKernel, gradient_kernel, kernel
from headwater.graph.kernels.rows import add_rows, take

if TYPE_CHECKING:
    from headwater.graph.registry import Attrs, HostArray


def _places(indices: HostArray, adjoint: bool) -> tuple[HostArray, HostArray]:
    """Returns, for each element, the row of the product and the row of the dense matrix that it connects."""
    return (indices[:, 1], indices[:, 0]) if adjoint else (indices[:, 0], indices[:, 1])


@kernel("SparseTensorDenseMatMul")
def product(
    indices: HostArray,
    values: HostArray,
    shape: HostArray,
    b: HostArray,
    *,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
) -> HostArray:
    """Returns the matrix product of a sparse matrix and ``b``, each replaced by its conjugate transpose if
    requested."""
    into, out_of = _places(indices, adjoint_a)
    left, right = conjugate(values) if adjoint_a else values, conjugate(b.T) if adjoint_b else b
    result = np.zeros((ints(shape)[1 if adjoint_a else 0], right.shape[1]), values.dtype)
    add_rows(result, into, take(right, out_of) * left[:, np.newaxis])
    return result


@gradient_kernel("SparseTensorDenseMatMul")
def product_gradient(inputs: Arrays, grads: Arrays, needed: Needed, attrs: Attrs) -> Arrays:
    """Returns the gradients of the values and of the dense matrix."""
    indices, values, _, b = inputs
    if values.dtype.kind == "c":
        raise NoKernel
    into, out_of = _places(indices, attrs.get("adjoint_a", False))
    adjoint_b = attrs.get("adjoint_b", False)
    right, rows = b.T if adjoint_b else b, take(grads[0], into)
    for_values = np.einsum("ij,ij->i", rows, take(right, out_of)) if needed[1] else None
    for_right = None
    if needed[3]:
        for_right = np.zeros(right.shape, b.dtype)
        add_rows(for_right, out_of, rows * values[:, np.newaxis])
    return None, for_values, None, for_right.T if adjoint_b and for_right is not None else for_right


def _beside_dense(op_type: str, combine: np.ufunc) -> None:
    @kernel(op_type)
    def combined(indices: HostArray, values: HostArray, shape: HostArray, dense: HostArray) -> HostArray:  # pyright: ignore[reportUnusedFunction]
        return combine(values, np.broadcast_to(dense, ints(shape))[tuple(indices.T)])


_beside_dense("SparseDenseCwiseAdd", np.add)
_beside_dense("SparseDenseCwiseMul", np.multiply)
_beside_dense("SparseDenseCwiseDiv", np.divide)


@kernel("SparseTensorDenseAdd")
def add_to_dense(indices: HostArray, values: HostArray, shape: HostArray, b: HostArray) -> HostArray:
    """The dense tensor with the values added at their places."""
    del shape
    return scattered(np.add, np.array(b), indices, values)


@gradient_kernel("SparseTensorDenseAdd")
def add_to_dense_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradients of the values and of the dense tensor: the gradient at the places, and the whole gradient."""
    return None, gather_nd(grads[0], inputs[0]), None, grads[0]
