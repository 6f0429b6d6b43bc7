"""Matrix factorisations, and solutions of linear equations."""

from __future__ import annotations

from typing import Any

from headwater.graph.convert import name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import math, reductions
from headwater.tf1.functional.apply import apply, one


def cholesky(input: TensorLike, name: str | None = None) -> Tensor:
    """The lower triangular L with L Lᴴ = input."""
    return one("Cholesky", input, name=name)


def cholesky_solve(chol: TensorLike, rhs: TensorLike, name: str | None = None) -> Tensor:
    """Solves A X = rhs, given the Cholesky factor of A."""
    with name_scope(name, "cholesky_solve", [chol, rhs]):
        half = matrix_triangular_solve(chol, rhs, adjoint=False, lower=True)
        return matrix_triangular_solve(chol, half, adjoint=True, lower=True)


def matrix_inverse(input: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Returns the inverse matrices."""
    return one("MatrixInverse", input, adjoint=adjoint, name=name)


def matrix_determinant(input: TensorLike, name: str | None = None) -> Tensor:
    """The determinant."""
    return one("MatrixDeterminant", input, name=name)


def matrix_solve(matrix: TensorLike, rhs: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Solves matrix X = rhs."""
    return one("MatrixSolve", matrix, rhs, adjoint=adjoint, name=name)


def matrix_square_root(input: TensorLike, name: str | None = None) -> Tensor:
    """Returns X with X X = input."""
    return one("MatrixSquareRoot", input, name=name)


def expm(input: TensorLike, name: str | None = None) -> Tensor:
    """Σₙ inputⁿ / n!, of matrices."""
    return one("MatrixExponential", input, name=name or "matrix_exponential")


def matrix_triangular_solve(
    matrix: TensorLike, rhs: TensorLike, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Solves matrix X = rhs for a triangular matrix."""
    return one("MatrixTriangularSolve", matrix, rhs, lower=lower, adjoint=adjoint, name=name)


def qr(input: TensorLike, full_matrices: bool = False, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Q R = input, with orthogonal Q and upper triangular R."""
    q, r = apply("Qr", input, full_matrices=full_matrices, name=name).outputs
    return q, r


def svd(tensor: TensorLike, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """Returns descending singular values, and left and right singular vectors as columns (values only on request)."""
    s, u, v = apply("Svd", tensor, compute_uv=compute_uv, full_matrices=full_matrices, name=name).outputs
    return (s, u, v) if compute_uv else s


def self_adjoint_eig(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues in ascending order, and eigenvectors as columns."""
    values, vectors = apply("SelfAdjointEigV2", tensor, compute_v=True, name=name).outputs
    return values, vectors


def self_adjoint_eigvals(tensor: TensorLike, name: str | None = None) -> Tensor:
    """Eigenvalues in ascending order."""
    return one("SelfAdjointEigV2", tensor, compute_v=False, name=name)


def eig(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors, as columns, of any square matrices: complex, in no particular order."""
    values, vectors = apply("Eig", tensor, compute_v=True, name=name).outputs
    return values, vectors


def eigvals(tensor: TensorLike, name: str | None = None) -> Tensor:
    """Eigenvalues of any square matrices: complex, in no particular order."""
    return one("Eig", tensor, compute_v=False, name=name)


def logdet(matrix: TensorLike, name: str | None = None) -> Tensor:
    """The logarithm of the determinant of a positive definite matrix."""
    with name_scope(name, "logdet", [matrix]):
        diagonal = one("MatrixDiagPart", cholesky(matrix))
        return 2.0 * reductions.reduce_sum(math.log(math.real(diagonal)), [-1])


def slogdet(input: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Sign, and logarithm of the absolute value, of the determinant."""
    sign, value = apply("LogMatrixDeterminant", input, name=name).outputs
    return sign, value
