"""Matrix functions (``tf.linalg``): LU, logarithm, rank, pseudoinverse, norms, tridiagonal systems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from headwater.dtypes import as_dtype, int32
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, factorisations, indexing, linalg, math, reductions, searching
from headwater.tf1.functional.apply import apply, one
from headwater.tf1.functional.conditions import cond
from headwater.tf1.functional.indexing import where_v2
from headwater.tf1.functional.sizes import size_of

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike


class Lu(NamedTuple):
    """L and U in one matrix, without the ones on L's diagonal; and the row permutation of the input."""

    lu: Tensor
    p: Tensor


def lu(input: TensorLike, output_idx_type: DTypeLike = int32, name: str | None = None) -> Lu:
    """L U = P input, with lower triangular L, upper triangular U and a permutation P."""
    return Lu(*apply("Lu", input, output_idx_type=as_dtype(output_idx_type), name=name).outputs)


def lu_reconstruct(
    lower_upper: TensorLike, perm: TensorLike, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Returns the matrices ``[..., n, n]`` that `lu` decomposed."""
    del validate_args  # wrong shapes raise errors in any case
    with name_scope(name, "lu_reconstruct", [lower_upper, perm]):
        both, order = convert_to_tensor(lower_upper), convert_to_tensor(perm)
        diagonal = arrays.ones(arrays.shape(both)[:-1], both.dtype)
        lower = linalg.matrix_set_diag(linalg.matrix_band_part(both, -1, 0), diagonal)
        product = linalg.matmul(lower, linalg.matrix_band_part(both, 0, -1))
        return _rows(product, searching.argsort(order))


def lu_solve(
    lower_upper: TensorLike, perm: TensorLike, rhs: TensorLike, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Solves A X = ``rhs``, matrices ``[..., n, k]``, with the result of `lu` of the matrices A."""
    del validate_args
    with name_scope(name, "lu_solve", [lower_upper, perm, rhs]):
        both, right = convert_to_tensor(lower_upper), convert_to_tensor(rhs)
        diagonal = arrays.ones(arrays.shape(both)[:-1], both.dtype)
        ordered = _rows(right, convert_to_tensor(perm))
        forward = factorisations.matrix_triangular_solve(linalg.matrix_set_diag(both, diagonal), ordered)
        return factorisations.matrix_triangular_solve(both, forward, lower=False)


def lu_matrix_inverse(
    lower_upper: TensorLike, perm: TensorLike, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Returns the inverses of the matrices that `lu` decomposed."""
    with name_scope(name, "lu_matrix_inverse", [lower_upper, perm]):
        both = convert_to_tensor(lower_upper)
        sizes = arrays.shape(both)
        identity = linalg.eye(sizes[-1], batch_shape=sizes[:-2], dtype=both.dtype)
        return lu_solve(both, perm, identity, validate_args)


def _rows(matrix: Tensor, order: Tensor) -> Tensor:
    """The rows of matrices in another order."""
    return indexing.gather(matrix, order, axis=-2, batch_dims=len(order.shape.as_list()) - 1)


def logm(input: TensorLike, name: str | None = None) -> Tensor:
    """Returns the matrix logarithm of ``input``; complex."""
    return one("MatrixLogarithm", input, name=name)


def normalize(
    tensor: TensorLike, ord: object = "euclidean", axis: int | None = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Divides ``tensor`` by its norm along ``axis``; also returns the norm, with kept dimensions. See `tf.norm`."""
    with name_scope(name, "normalize", [tensor]):
        tensor = convert_to_tensor(tensor)
        size = math.cast(linalg.norm(tensor, ord, axis, keepdims=True), tensor.dtype)
        return tensor / size, size


def matrix_rank(
    a: TensorLike, tol: TensorLike | None = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Returns the number of singular values of each matrix above ``tol``.

    Args:
      tol: the machine precision, times the larger side, times the largest singular value if None.
      validate_args: nothing is left to check when a step runs.

    Raises:
      TypeError: the matrix is not floating.
      ValueError: it has less than two dimensions.
    """
    del validate_args
    with name_scope(name, "matrix_rank"):
        a = _floating_matrix(a)
        s = factorisations.svd(a, compute_uv=False)
        if tol is None:
            tol = _precision(a) * reductions.reduce_max(s, -1, keepdims=True)
        return reductions.reduce_sum(math.cast(s > tol, int32), -1)


def matrix_solve_ls(
    matrix: TensorLike, rhs: TensorLike, l2_regularizer: float = 0.0, fast: bool = True, name: str | None = None
) -> Tensor:
    """Returns X that minimises ‖matrix X - rhs‖² + l2_regularizer ‖X‖², by the normal equations.

    With more columns than rows, and no regulariser, X is the solution of least norm.

    Args:
      fast: False solves by singular values instead, which serves matrices of any rank and ignores ``l2_regularizer``.
    """
    with name_scope(name, "matrix_solve_ls", [matrix, rhs]):
        matrix = convert_to_tensor(matrix, name="matrix")
        if not fast:
            return linalg.matmul(pinv(matrix), rhs)
        dtype = matrix.dtype.base_dtype
        rows, columns = size_of(matrix, -2), size_of(matrix, -1)

        def solve(tall: bool) -> Tensor:
            weight = linalg.eye(columns if tall else rows, dtype=dtype) * convert_to_tensor(l2_regularizer, dtype)
            factor = factorisations.cholesky(linalg.matmul(matrix, matrix, adjoint_a=tall, adjoint_b=not tall) + weight)
            if tall:
                return factorisations.cholesky_solve(factor, linalg.matmul(matrix, rhs, adjoint_a=True))
            return linalg.matmul(matrix, factorisations.cholesky_solve(factor, rhs), adjoint_a=True)

        if isinstance(rows, int) and isinstance(columns, int):
            return solve(rows >= columns)
        return cond(math.greater_equal(rows, columns), lambda: solve(True), lambda: solve(False))


def pinv(
    a: TensorLike, rcond: TensorLike | None = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Returns the Moore-Penrose inverse, which solves least squares.

    Args:
      rcond: singular values below this fraction of the largest count as zero; ten times the larger side, times the
        machine precision if None.
      validate_args: nothing is left to check when a step runs.

    Raises:
      TypeError: the matrix is not floating.
      ValueError: it has less than two dimensions.
    """
    del validate_args
    with name_scope(name, "pinv"):
        a = _floating_matrix(a)
        limit = 10.0 * _precision(a) if rcond is None else convert_to_tensor(rcond, a.dtype, name="rcond")
        s, u, v = factorisations.svd(a, full_matrices=False)
        least = arrays.expand_dims(limit, -1) * reductions.reduce_max(s, -1, keepdims=True)
        s = where_v2(s > least, s, np.array(np.inf, s.dtype.numpy_dtype))
        return linalg.matmul(v / arrays.expand_dims(s, -2), u, adjoint_b=True)


def _floating_matrix(a: TensorLike) -> Tensor:
    a = convert_to_tensor(a, name="a")
    if not a.dtype.is_floating:
        raise TypeError(f"Input `a` must have `float`-like `dtype` (saw {a.dtype.name}).")
    if a.dims is not None and len(a.dims) < 2:
        raise ValueError(f"Input `a` must have at least 2 dimensions (saw: {len(a.dims)}).")
    return a


def _precision(a: Tensor) -> Tensor:
    """The machine precision times the larger side."""
    epsilon = np.finfo(a.dtype.numpy_dtype).eps
    sides = arrays.shape(a)[-2:]
    return math.cast(reductions.reduce_max(sides), a.dtype) * epsilon


# Three diagonals --------------------------------------------------------------------------------------------------


def _diagonals(diagonals: Any, diagonals_format: str) -> tuple[Tensor, Tensor, Tensor]:
    """The upper, the main and the lower diagonal, each as long as the matrix; see `tridiagonal_solve`."""
    if diagonals_format == "compact":
        whole = convert_to_tensor(diagonals)
        if whole.dims is not None and len(whole.dims) < 2:
            raise ValueError(f"Expected diagonals to have rank at least 2, not {len(whole.dims)}")
        if whole.dims is not None and whole.dims[-2] not in (3, None):
            raise ValueError(f"Expected 3 diagonals got {whole.dims[-2]}")
        return whole[..., 0, :], whole[..., 1, :], whole[..., 2, :]
    if diagonals_format == "sequence":
        if not isinstance(diagonals, tuple | list) or len(diagonals) != 3:  # pyright: ignore[reportUnknownArgumentType]
            raise ValueError("Expected diagonals to be a sequence of length 3.")
        upper, main, lower = (convert_to_tensor(item) for item in cast("Sequence[TensorLike]", diagonals))
        return _as_long(upper, main, before=False), main, _as_long(lower, main, before=True)
    if diagonals_format == "matrix":
        matrix = convert_to_tensor(diagonals)
        main = one("MatrixDiagPart", matrix)
        upper = one("MatrixDiagPart", matrix[..., :-1, 1:])
        lower = one("MatrixDiagPart", matrix[..., 1:, :-1])
        return _as_long(upper, main, before=False), main, _as_long(lower, main, before=True)
    raise ValueError(f"Unrecognized diagonals_format: {diagonals_format}")


def _as_long(diagonal: Tensor, main: Tensor, before: bool) -> Tensor:
    """Returns a diagonal next to the main one, padded by one element if it is shorter."""
    lengths = [(item.dims or (None,))[-1] for item in (diagonal, main)]
    if None in lengths or lengths[0] == lengths[1]:
        return diagonal
    pads = [[0, 0]] * (len(diagonal.dims or ()) - 1) + [[1, 0] if before else [0, 1]]
    return arrays.pad(diagonal, pads)


def tridiagonal_solve(
    diagonals: object,
    rhs: TensorLike,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
) -> Tensor:
    """Solves A X = rhs for tridiagonal matrices A.

    Args:
      diagonals: ``compact``: [..., 3, n], the upper, the main and the lower diagonal, the last element of the first and
        the first of the last unused; ``sequence``: a list of them; ``matrix``: [..., n, n].
      rhs: [..., n] or [..., n, k].
      transpose_rhs: use the transpose of ``rhs``, and return the transpose of the result.
      conjugate_rhs: use the conjugate of ``rhs``.
      partial_pivoting: accepted; rows are always exchanged for accuracy.

    Raises:
      ValueError: the format is unknown, or shapes do not match.
    """
    del partial_pivoting
    with name_scope(name, "tridiagonal_solve", [diagonals, rhs]):
        upper, main, lower = _diagonals(diagonals, diagonals_format)
        rhs = convert_to_tensor(rhs)
        vector = rhs.dims is not None and main.dims is not None and len(rhs.dims) == len(main.dims)
        right = math.conj(rhs) if conjugate_rhs else rhs
        if vector:
            right = arrays.expand_dims(right, -1)
        elif transpose_rhs:
            right = arrays.matrix_transpose(right)
        stacked = arrays.stack([upper, main, lower], -2)
        result = one("TridiagonalSolve", stacked, right)
        if vector:
            return arrays.squeeze(result, [-1])
        return arrays.matrix_transpose(result) if transpose_rhs else result


def tridiagonal_matmul(
    diagonals: object, rhs: TensorLike, diagonals_format: str = "compact", name: str | None = None
) -> Tensor:
    """A matrix with three diagonals, given as to `tridiagonal_solve`, times ``rhs`` [..., n, k]."""
    upper, main, lower = _diagonals(diagonals, diagonals_format)
    rhs = convert_to_tensor(rhs)
    with name_scope(name, "tridiagonal_matmul", [upper, main, lower, rhs]):
        none = arrays.zeros_like(rhs[..., :1, :])
        below = arrays.concat([rhs[..., 1:, :], none], -2)
        above = arrays.concat([none, rhs[..., :-1, :]], -2)
        upper, main, lower = (arrays.expand_dims(item, -1) for item in (upper, main, lower))
        return main * rhs + upper * below + lower * above
