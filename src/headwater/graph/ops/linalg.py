"""Matrices: products, diagonals, bands, factorisations. Leading dimensions, where allowed, are a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headwater.dtypes import DType, float32, int32
from headwater.graph.kernels.matrices import require_halves
from headwater.graph.ops.common import as_ints, output
from headwater.graph.ops.define import by_evaluation, pure
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.lazy_jax import custom_jvp, jax, jnp, scipy_linalg
from headwater.shapes import Dims, broadcast_dims, merge_dims

# Products ---------------------------------------------------------------------------------------------------------


def _same_types(inference: Inference, first: str, second: str) -> None:
    x, y = (spec.dtype.base_dtype for spec in inference.inputs)
    if x != y:
        raise TypeError(
            f"Input '{second}' of '{inference.op_type}' Op has type {y.name} that does not match type {x.name} of "
            f"argument '{first}'."
        )


def _contracted(a: int | None, b: int | None) -> None:
    if a is not None and b is not None and a != b:
        raise ValueError(f"Dimensions must be equal, but are {a} and {b}")


def _matmul_spec(inference: Inference) -> Sequence[Spec]:
    _same_types(inference, "a", "b")
    return output(inference, _matmul_dims(inference))


def _matmul_dims(inference: Inference) -> Dims:
    rows: list[tuple[int | None, ...]] = []
    for spec, name in zip(inference.inputs, ("transpose_a", "transpose_b"), strict=True):
        dims = spec.dims if spec.dims is not None else (None, None)
        if len(dims) != 2:
            raise ValueError(f"Shape must be rank 2 but is rank {len(dims)}")
        rows.append(dims[::-1] if inference.attrs.get(name) else dims)
    _contracted(rows[0][1], rows[1][0])
    return rows[0][0], rows[1][1]


@pure("MatMul", inputs="a:T|numeric, b:T", infer=_matmul_spec)
def matmul(a: jax.Array, b: jax.Array, *, transpose_a: bool = False, transpose_b: bool = False) -> jax.Array:
    """a b, each transposed first if requested."""
    return jnp.matmul(a.T if transpose_a else a, b.T if transpose_b else b)


def _sparse_matmul_spec(inference: Inference) -> Sequence[Spec]:
    return [Spec(float32, _matmul_dims(inference))]


@pure("SparseMatMul", inputs="a:Ta|floating=float32, b:Tb|floating=float32", infer=_sparse_matmul_spec)
def sparse_matmul(a: jax.Array, b: jax.Array, *, transpose_a: bool = False, transpose_b: bool = False) -> jax.Array:
    """Like `matmul`, for matrices that may contain many zeros."""
    return matmul(a.astype(np.float32), b.astype(np.float32), transpose_a=transpose_a, transpose_b=transpose_b)


def _batch_spec(inference: Inference) -> Sequence[Spec]:
    _same_types(inference, "x", "y")
    x, y = inference.inputs[0].dims, inference.inputs[1].dims
    for dims in (x, y):
        if dims is not None and len(dims) < 2:
            raise ValueError(f"Shape must be at least rank 2 but is rank {len(dims)}")
    if x is None or y is None:
        return output(inference, None)
    left = x[-2:][::-1] if inference.attrs.get("adj_x") else x[-2:]
    right = y[-2:][::-1] if inference.attrs.get("adj_y") else y[-2:]
    _contracted(left[1], right[0])
    batch = broadcast_dims(x[:-2], y[:-2])
    assert batch is not None
    return output(inference, (*batch, left[0], right[1]))


def _adjoint(x: jax.Array) -> jax.Array:
    return jnp.conj(jnp.swapaxes(x, -1, -2))


def _batch_matmul(x: jax.Array, y: jax.Array, *, adj_x: bool = False, adj_y: bool = False) -> jax.Array:
    """x y for each matrix of the batches, which broadcast; each conjugated and transposed first if requested."""
    return jnp.matmul(_adjoint(x) if adj_x else x, _adjoint(y) if adj_y else y)


pure("BatchMatMul", inputs="x:T|numeric, y:T", infer=_batch_spec)(_batch_matmul)
pure("BatchMatMulV2", inputs="x:T|numeric, y:T", infer=_batch_spec)(_batch_matmul)


def _einsum(*inputs: jax.Array, equation: str) -> jax.Array:
    """Multiplies the inputs' elements and sums the products over all indices that the result does not have."""
    return jnp.einsum(equation, *inputs)


def _einsum_spec(inference: Inference) -> Sequence[Spec]:
    left, arrow, right = inference.attrs["equation"].partition("->")
    terms = left.split(",")
    if "." in left or len(terms) != len(inference.inputs) or any(spec.dims is None for spec in inference.inputs):
        return output(inference, None)
    if not arrow:
        right = "".join(letter for letter in sorted(set(left) - {","}) if left.count(letter) == 1)
    sizes: dict[str, int | None] = {}
    for term, spec in zip(terms, inference.inputs, strict=True):
        if len(term) != len(spec.dims or ()):
            raise ValueError(f"{term!r} in {left!r} does not fit an input of rank {len(spec.dims or ())}")
        for letter, size in zip(term, spec.dims or (), strict=True):
            known = sizes.get(letter)
            _contracted(known, size)
            sizes[letter] = size if known is None else known
    return output(inference, tuple(sizes[letter] for letter in right))


pure("Einsum", inputs="inputs:T|numeric*", infer=_einsum_spec)(_einsum)


def _cross(a: jax.Array, b: jax.Array) -> jax.Array:
    """The cross product of vectors in three dimensions."""
    return jnp.cross(a, b)


def _cross_spec(inference: Inference) -> Sequence[Spec]:
    dims = merge_dims(inference.inputs[0].dims, inference.inputs[1].dims)
    if dims is not None and (not dims or dims[-1] not in (None, 3)):
        raise ValueError(f"Dimension must be 3 but is {dims[-1] if dims else 'absent'}")
    return output(inference, dims)


pure("Cross", inputs="a:T|numeric, b:T", infer=_cross_spec)(_cross)

# Diagonals and bands ----------------------------------------------------------------------------------------------


def _diag_spec(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims
    return output(inference, None if dims is None else dims + dims)


@pure("Diag", inputs="diagonal:T|numeric", infer=_diag_spec)
def diag(diagonal: jax.Array) -> jax.Array:
    """Returns a tensor of twice the rank, with the elements of ``diagonal`` at the indices (i, …, i, …), whose two
    halves are equal, and zeros elsewhere."""
    return jnp.diag(jnp.ravel(diagonal)).reshape(diagonal.shape * 2)


def _diag_part_spec(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims
    if dims is None:
        return output(inference, None)
    half = len(dims) // 2
    if len(dims) % 2 or not dims:
        raise ValueError(f"Input must have even and non-zero rank, input rank is {len(dims)}")
    return output(inference, merge_dims(dims[:half], dims[half:]))


@pure("DiagPart", inputs="input:T|numeric", infer=_diag_part_spec)
def diag_part(input: jax.Array) -> jax.Array:
    """Returns the elements at the indices (i, …, i, …), whose two halves are equal."""
    half = require_halves(input.shape)
    count = int(np.prod(half, dtype=np.int64))
    return jnp.diagonal(input.reshape(count, count)).reshape(half)


def _band(k: object) -> tuple[int, int]:
    bounds = as_ints(k)
    return bounds[0], bounds[-1]


def _place_diagonals(target: jax.Array, diagonal: jax.Array, lower: int, upper: int) -> jax.Array:
    """Returns ``target`` with diagonals ``lower`` to ``upper`` replaced. ``diagonal`` has the uppermost diagonal first,
    each aligned to the left."""
    rows, columns = target.shape[-2:]
    if lower == upper:
        diagonal = diagonal[..., None, :]
    for offset in range(lower, upper + 1):
        length = min(rows + min(offset, 0), columns - max(offset, 0))
        steps = np.arange(length)
        values = diagonal[..., upper - offset, :length]
        target = target.at[..., steps - min(offset, 0), steps + max(offset, 0)].set(values)
    return target


def _matrix_diag_shape(diagonal: jax.Array, lower: int, upper: int, num_rows: int, num_cols: int) -> tuple[int, int]:
    length = diagonal.shape[-1]
    rows, columns = length - min(upper, 0), length + max(lower, 0)
    if num_rows == -1 and num_cols == -1:
        side = max(rows, columns)
        return side, side
    return (rows if num_rows == -1 else num_rows), (columns if num_cols == -1 else num_cols)


def _matrix_diag(diagonal: jax.Array, k: object, num_rows: object, num_cols: object, padding_value: Any) -> jax.Array:
    lower, upper = _band(k)
    shape = _matrix_diag_shape(diagonal, lower, upper, as_ints(num_rows)[0], as_ints(num_cols)[0])
    batch = diagonal.shape[: -1 if lower == upper else -2]
    return _place_diagonals(jnp.full((*batch, *shape), padding_value, diagonal.dtype), diagonal, lower, upper)


pure(
    "MatrixDiagV2",
    inputs="diagonal:T, k:int32, num_rows:int32, num_cols:int32, padding_value:T",
    static=(1, 2, 3),
    infer=by_evaluation(_matrix_diag, (1, 2, 3)),
)(_matrix_diag)


def _old_matrix_diag_spec(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims
    return output(inference, None if dims is None else (*dims, dims[-1]))


@pure("MatrixDiag", inputs="diagonal:T", infer=_old_matrix_diag_spec)
def matrix_diag(diagonal: jax.Array) -> jax.Array:
    """Square matrices with these main diagonals."""
    return _matrix_diag(diagonal, 0, -1, -1, 0)


def _matrix_diag_part(input: jax.Array, k: jax.Array, padding_value: jax.Array) -> jax.Array:
    lower, upper = _band(k)
    rows, columns = input.shape[-2:]
    longest = min(rows + min(upper, 0), columns - max(lower, 0))
    found: list[jax.Array] = []
    for offset in range(upper, lower - 1, -1):
        values = jnp.diagonal(input, offset, -2, -1)
        missing = longest - values.shape[-1]
        pads = [(0, 0)] * (values.ndim - 1) + [(0, missing)]
        found.append(jnp.pad(values, pads, constant_values=padding_value) if missing else values)
    return found[0] if lower == upper else jnp.stack(found, -2)


pure(
    "MatrixDiagPartV2",
    inputs="input:T, k:int32, padding_value:T",
    static=(1,),
    infer=by_evaluation(_matrix_diag_part, (1,)),
)(_matrix_diag_part)


def _main_diagonal_spec(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims
    if dims is None:
        return output(inference, None)
    side = None if None in dims[-2:] else min(dims[-2] or 0, dims[-1] or 0)
    return output(inference, (*dims[:-2], side))


@pure("MatrixDiagPart", inputs="input:T", infer=_main_diagonal_spec)
def matrix_diag_part(input: jax.Array) -> jax.Array:
    """Main diagonals."""
    return jnp.diagonal(input, 0, -2, -1)


def _like_first(inference: Inference) -> Sequence[Spec]:
    return output(inference, inference.inputs[0].dims)


@pure("MatrixSetDiagV2", inputs="input:T, diagonal:T, k:int32", static=(2,), infer=_like_first)
def matrix_set_diag(input: jax.Array, diagonal: jax.Array, k: HostArray) -> jax.Array:
    """Matrices with the given diagonals replaced."""
    return _place_diagonals(jnp.asarray(input), diagonal, *_band(k))


@pure("MatrixSetDiag", inputs="input:T, diagonal:T", infer=_like_first)
def old_matrix_set_diag(input: jax.Array, diagonal: jax.Array) -> jax.Array:
    """Matrices with their main diagonals replaced."""
    return _place_diagonals(jnp.asarray(input), diagonal, 0, 0)


@pure("MatrixBandPart", inputs="input:T, num_lower:Tindex|index=int64, num_upper:Tindex", infer=_like_first)
def matrix_band_part(input: jax.Array, num_lower: jax.Array, num_upper: jax.Array) -> jax.Array:
    """Replaces elements by zeros outside of a band: the main diagonal, ``num_lower`` diagonals below it and
    ``num_upper`` above it; -1 includes all."""
    below = np.arange(input.shape[-2])[:, None] - np.arange(input.shape[-1])[None, :]
    keep = ((num_lower < 0) | (below <= num_lower)) & ((num_upper < 0) | (-below <= num_upper))
    return jnp.where(keep, input, jnp.zeros((), input.dtype))


# Factorisations ---------------------------------------------------------------------------------------------------


def _square_dims(inference: Inference) -> Dims:
    dims = inference.inputs[0].dims
    if dims is None:
        return None
    if len(dims) < 2:
        raise ValueError(f"Shape must be at least rank 2 but is rank {len(dims)}")
    _contracted(dims[-1], dims[-2])
    side = dims[-1] if dims[-2] is None else dims[-2]
    return (*dims[:-2], side, side)


def _square_spec(inference: Inference) -> Sequence[Spec]:
    return output(inference, _square_dims(inference))


def _mirrored(matrix: jax.Array) -> jax.Array:
    """Returns the Hermitian matrix that has the lower triangle of ``matrix``, the only part that TensorFlow reads."""
    lower = jnp.tril(matrix)
    return lower + _adjoint(jnp.tril(lower, -1))


@custom_jvp
def _shared(matrix: jax.Array) -> jax.Array:
    """Returns the same as `_mirrored`, but divides the gradient between both triangles."""
    return _mirrored(matrix)


@_shared.defjvp
def _shared_jvp(primals: Sequence[jax.Array], tangents: Sequence[jax.Array]) -> tuple[jax.Array, jax.Array]:
    return _mirrored(*primals), (tangents[0] + _adjoint(tangents[0])) / 2


@pure("Cholesky", inputs="input:T|inexact", infer=_square_spec)
def cholesky(input: jax.Array) -> jax.Array:
    """The lower triangular L with L Lᴴ = input.

    The gradient is shared by both triangles, as if the mean of the input and its adjoint were taken.
    """
    return jnp.linalg.cholesky(_shared(jnp.asarray(input)), symmetrize_input=False)


@pure("MatrixInverse", inputs="input:T|inexact", infer=_square_spec)
def matrix_inverse(input: jax.Array, *, adjoint: bool = False) -> jax.Array:
    """The inverse."""
    return jnp.linalg.inv(_adjoint(input) if adjoint else input)


@pure("MatrixSquareRoot", inputs="input:T|inexact", infer=_square_spec, differentiable=False)
def matrix_square_root(input: jax.Array) -> jax.Array:
    """X with X X = input."""
    if not input.size:
        return jnp.asarray(input)
    root = jnp.vectorize(scipy_linalg.sqrtm, signature="(n,n)->(n,n)")(input)
    return (root if input.dtype.kind == "c" else root.real).astype(input.dtype)


@pure("MatrixExponential", inputs="input:T|inexact", infer=_square_spec)
def matrix_exponential(input: jax.Array) -> jax.Array:
    """Σₙ inputⁿ / n!."""
    return scipy_linalg.expm(input)


def _determinant_spec(inference: Inference) -> Sequence[Spec]:
    dims = _square_dims(inference)
    return output(inference, None if dims is None else dims[:-2])


@pure("MatrixDeterminant", inputs="input:T|inexact", infer=_determinant_spec)
def matrix_determinant(input: jax.Array) -> jax.Array:
    """The determinant."""
    return jnp.linalg.det(input)


@pure("LogMatrixDeterminant", inputs="input:T|inexact", infer=lambda inference: [*_determinant_spec(inference)] * 2)
def log_matrix_determinant(input: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Sign and logarithm of the absolute value of the determinant."""
    return tuple(jnp.linalg.slogdet(input))


def _solve_spec(inference: Inference) -> Sequence[Spec]:
    matrix, rhs = _square_dims(inference), inference.inputs[1].dims
    if matrix is not None and rhs is not None and len(rhs) > 1:
        _contracted(matrix[-1], rhs[-2])
    return output(inference, rhs)


@pure("MatrixSolve", inputs="matrix:T|inexact, rhs:T", infer=_solve_spec)
def matrix_solve(matrix: jax.Array, rhs: jax.Array, *, adjoint: bool = False) -> jax.Array:
    """X with matrix X = rhs."""
    return jnp.linalg.solve(_adjoint(matrix) if adjoint else matrix, rhs)


@pure("MatrixTriangularSolve", inputs="matrix:T|inexact, rhs:T", infer=_solve_spec)
def matrix_triangular_solve(
    matrix: jax.Array, rhs: jax.Array, *, lower: bool = True, adjoint: bool = False
) -> jax.Array:
    """X with matrix X = rhs, for a triangular matrix."""
    return scipy_linalg.solve_triangular(matrix, rhs, trans="C" if adjoint else "N", lower=lower)


def _factorisation(op_type: str, compute: Callable[..., object], inputs: str = "input:T|inexact") -> None:
    pure(op_type, inputs=inputs, infer=by_evaluation(compute))(compute)


def _qr(input: jax.Array, *, full_matrices: bool = False) -> tuple[jax.Array, ...]:
    """Q R = input, with orthogonal Q and upper triangular R."""
    return tuple(jnp.linalg.qr(input, mode="complete" if full_matrices else "reduced"))


def _svd(input: jax.Array, *, compute_uv: bool = True, full_matrices: bool = False) -> tuple[jax.Array, ...]:
    """Singular values in descending order, then left and right singular vectors as columns."""
    if not compute_uv:
        empty = jnp.zeros((0,), input.dtype)
        return jnp.linalg.svd(input, compute_uv=False), empty, empty
    u, s, vh = jnp.linalg.svd(input, full_matrices=full_matrices)
    return s, u, _adjoint(vh)


def _self_adjoint_eig(input: jax.Array, *, compute_v: bool = True) -> tuple[jax.Array, jax.Array]:
    """Eigenvalues in ascending order, then eigenvectors as columns."""
    if not compute_v:
        return jnp.linalg.eigvalsh(_mirrored(input), symmetrize_input=False), jnp.zeros((0,), input.dtype)
    values, vectors = jnp.linalg.eigh(_mirrored(input), symmetrize_input=False)
    return values.astype(input.dtype), vectors


@custom_jvp
def _eigen_pairs(input: jax.Array) -> tuple[jax.Array, jax.Array]:
    values, vectors = jnp.linalg.eig(input)
    return values, vectors


@_eigen_pairs.defjvp
def _eigen_pairs_jvp(
    primals: Sequence[jax.Array], tangents: Sequence[jax.Array]
) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
    # A V = V diag(e). The eigenvectors keep the length 1, and do not turn in the complex plane, as in TensorFlow.
    values, vectors = _eigen_pairs(*primals)
    change = jnp.linalg.solve(vectors, tangents[0].astype(vectors.dtype) @ vectors)
    gaps = values[..., None, :] - values[..., :, None]
    mixed = vectors @ jnp.where(gaps == 0, 0, change / jnp.where(gaps == 0, 1, gaps))
    lengths = jnp.sum(jnp.conj(vectors) * mixed, axis=-2, keepdims=True).real
    return (values, vectors), (jnp.diagonal(change, axis1=-2, axis2=-1), mixed - vectors * lengths)


def _eig(input: jax.Array, *, compute_v: bool = True) -> tuple[jax.Array, jax.Array]:
    """Complex eigenvalues, then eigenvectors as columns; in no particular order."""
    kind = jnp.result_type(input, np.complex64)
    if not input.size:
        return jnp.zeros(input.shape[:-1], kind), jnp.zeros(input.shape, kind)
    if not compute_v:
        return jnp.linalg.eigvals(input), jnp.zeros((0,), kind)
    return _eigen_pairs(input)


_factorisation("Eig", _eig)
_factorisation("Qr", _qr)
_factorisation("Svd", _svd)
_factorisation("SelfAdjointEigV2", _self_adjoint_eig)


def _lu_specs(inference: Inference) -> Sequence[Spec]:
    dims = _square_dims(inference)
    own = inference.inputs[0].dtype.base_dtype
    return [Spec(own, dims), Spec(inference.attrs.get("output_idx_type", int32), None if dims is None else dims[:-1])]


@pure("Lu", inputs="input:T|inexact", infer=_lu_specs)
def lu(input: jax.Array, *, output_idx_type: DType = int32) -> tuple[jax.Array, jax.Array]:
    """Returns L and U in one matrix, and the permutation: for each row of this matrix, the number of the input's
    row."""
    factors, _, permutation = jax.lax.linalg.lu(input)
    return factors, permutation.astype(output_idx_type.numpy_dtype)


@pure("MatrixLogarithm", inputs="input:T|complex", infer=_square_spec, differentiable=False)
def matrix_logarithm(input: jax.Array) -> jax.Array:
    """X with exp(X) = input, by way of eigenvalues."""
    values, vectors = jnp.linalg.eig(input)
    return (vectors * jnp.log(values)[..., None, :] @ jnp.linalg.inv(vectors)).astype(input.dtype)


@pure("TridiagonalSolve", inputs="diagonals:T|inexact, rhs:T", infer=lambda inference: [inference.inputs[1]])
def tridiagonal_solve(diagonals: jax.Array, rhs: jax.Array, *, partial_pivoting: bool = True) -> jax.Array:
    """X with A X = rhs; ``diagonals`` [..., 3, n] are the upper, the main and the lower diagonal of A."""
    del partial_pivoting
    upper, main, lower = (jnp.asarray(diagonals)[..., place, :] for place in range(3))
    # Set the elements that lie outside of the matrix to zero.
    upper, lower = upper.at[..., -1].set(0), lower.at[..., 0].set(0)
    return jax.lax.linalg.tridiagonal_solve(lower, main, upper, jnp.asarray(rhs))
