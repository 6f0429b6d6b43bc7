"""Cholesky factors, determinants, inverses and solutions of linear equations, by LAPACK; and their gradients.

Executables compute matrices that LAPACK rejects, complex gradients and 16-bit types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from headwater.graph.kernels.common import Arrays, Needed
from headwater.graph.kernels.matrices import adjoint as adjoint_of
from headwater.graph.kernels.registry import NoKernel, gradient_kernel, kernel

if TYPE_CHECKING:
    from headwater.graph.registry import Attrs, HostArray

T = TypeVar("T")


def _by_lapack(compute: Callable[..., T], *arrays: HostArray) -> T:
    if any(value.dtype.itemsize == 2 for value in arrays):
        raise NoKernel
    try:
        return compute(*arrays)
    except np.linalg.LinAlgError:
        raise NoKernel from None


def _inverse(matrix: HostArray) -> HostArray:
    return _by_lapack(np.linalg.inv, matrix)


def _solved(matrix: HostArray, rhs: HostArray) -> HostArray:
    return _by_lapack(np.linalg.solve, matrix, rhs)


def _real(*arrays: HostArray) -> None:
    if any(value.dtype.kind == "c" for value in arrays):
        raise NoKernel


@kernel("Cholesky")
def cholesky(input: HostArray) -> HostArray:
    """The lower triangular L with L Lᴴ = input; only the input's lower triangle is read."""
    return _by_lapack(np.linalg.cholesky, input)


@gradient_kernel("Cholesky", outputs=True)
def cholesky_gradient(_inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs, outputs: Arrays) -> Arrays:
    """L⁻ᵀ Φ(Lᵀ g) L⁻¹ with Φ the lower triangle with half of the diagonal (Murray 2016, arXiv:1602.07527), divided
    between both triangles."""
    factor, g = outputs[0], np.tril(grads[0])
    _real(factor)
    inner = np.tril(adjoint_of(factor) @ g)
    side = np.arange(factor.shape[-1])
    inner[..., side, side] /= 2
    right = _solved(adjoint_of(factor), inner)
    full = adjoint_of(_solved(adjoint_of(factor), adjoint_of(right)))
    return ((full + adjoint_of(full)) / 2,)


@kernel("MatrixInverse")
def matrix_inverse(input: HostArray, *, adjoint: bool = False) -> HostArray:
    """Returns the inverse of ``input``, or of its adjoint."""
    return _inverse(adjoint_of(input) if adjoint else input)


@gradient_kernel("MatrixInverse", outputs=True)
def matrix_inverse_gradient(_inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs, outputs: Arrays) -> Arrays:
    """-Yᵀ g Yᵀ for the inverse Y."""
    _real(outputs[0])
    turned = adjoint_of(outputs[0])
    slope = -(turned @ grads[0] @ turned)
    return (adjoint_of(slope) if attrs.get("adjoint", False) else slope,)


@kernel("MatrixDeterminant")
def matrix_determinant(input: HostArray) -> HostArray:
    """The determinant."""
    return np.asarray(_by_lapack(np.linalg.det, input), input.dtype)


@gradient_kernel("MatrixDeterminant", outputs=True)
def matrix_determinant_gradient(
    inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs, outputs: Arrays
) -> Arrays:
    """The determinant times the transposed inverse."""
    _real(inputs[0])
    return ((grads[0] * outputs[0])[..., None, None] * adjoint_of(_inverse(inputs[0])),)


@kernel("MatrixSolve")
def matrix_solve(matrix: HostArray, rhs: HostArray, *, adjoint: bool = False) -> HostArray:
    """X with matrix X = rhs."""
    return _solved(adjoint_of(matrix) if adjoint else matrix, rhs)


@gradient_kernel("MatrixSolve", outputs=True)
def matrix_solve_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs, outputs: Arrays) -> Arrays:
    """Returns the gradients -b xᵀ of the matrix and b of the right-hand side, where x is the solution and b solves the
    transposed system for the gradient."""
    matrix, rhs = inputs
    _real(matrix, rhs)
    turned = attrs.get("adjoint", False)
    for_rhs = _solved(matrix if turned else adjoint_of(matrix), grads[0])
    slope = -(outputs[0] @ adjoint_of(for_rhs)) if turned else -(for_rhs @ adjoint_of(outputs[0]))
    return slope, for_rhs


def _triangle(matrix: HostArray, lower: bool) -> HostArray:
    return np.tril(matrix) if lower else np.triu(matrix)


@kernel("MatrixTriangularSolve")
def matrix_triangular_solve(
    matrix: HostArray, rhs: HostArray, *, lower: bool = True, adjoint: bool = False
) -> HostArray:
    """X with matrix X = rhs, for a triangular matrix of which one triangle is read."""
    return matrix_solve(_triangle(matrix, lower), rhs, adjoint=adjoint)


@gradient_kernel("MatrixTriangularSolve", outputs=True)
def matrix_triangular_solve_gradient(
    inputs: Arrays, grads: Arrays, needed: Needed, attrs: Attrs, outputs: Arrays
) -> Arrays:
    """Like `matrix_solve_gradient`, within the triangle."""
    lower = attrs.get("lower", True)
    solved = (_triangle(inputs[0], lower), inputs[1])
    slope, for_rhs = matrix_solve_gradient(solved, grads, needed, attrs, outputs)
    return _triangle(slope, lower), for_rhs
