"""Kernels and gradients for matrices: products, diagonals, bands. Leading dimensions, where allowed, are a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.graph.kernels.common import Arrays, Needed, conjugate, sum_to
from headwater.graph.kernels.pieces import compute_pieces, divided
from headwater.graph.kernels.registry import NoKernel, gradient_kernel, kernel

if TYPE_CHECKING:
    from headwater.graph.registry import Attrs, HostArray

#: Number of multiplications for which a thread is used, and the largest number of pieces of a product: BLAS copies the
#: factor that is not divided once for each piece.
_PIECE_PRODUCTS: Final = 1 << 23
_MAX_PIECES: Final = 4

# Products ---------------------------------------------------------------------------------------------------------


def product(a: HostArray, b: HostArray) -> HostArray:
    """Returns a b, by BLAS; types of 16 bits, which BLAS lacks, are converted to float32."""
    if a.dtype.itemsize == 2 and a.dtype.kind in "fV":
        return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
    count = min(_MAX_PIECES, a.size * b.shape[-1] // _PIECE_PRODUCTS) if a.ndim == b.ndim else 1
    if count > 1 and a.shape[-1] == b.shape[-2] and a.dtype == b.dtype:
        return _product_in_pieces(a, b, count)
    return a.dot(b) if a.ndim == b.ndim == 2 else np.matmul(a, b)  # the latter takes twice as long for small matrices


def _product_in_pieces(a: HostArray, b: HostArray, count: int) -> HostArray:
    """Divides the batch, or else the longer side of the result, into pieces for several threads."""
    if a.ndim > 2:
        if a.shape[:-2] != b.shape[:-2] or len(a) < count:
            return np.matmul(a, b)
        result = np.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
        parts = [(a[piece], b[piece], result[piece]) for piece in divided(len(a), count)]
    else:
        result = np.empty((len(a), b.shape[1]), a.dtype)
        if len(a) >= b.shape[1]:
            parts = [(a[piece], b, result[piece]) for piece in divided(len(a), count)]
        else:
            parts = [(a, b[:, piece], result[:, piece]) for piece in divided(b.shape[1], count)]
    compute_pieces(lambda part: np.matmul(part[0], part[1], out=part[2]), parts)
    return result


@kernel("MatMul")
def matmul(a: HostArray, b: HostArray, *, transpose_a: bool = False, transpose_b: bool = False) -> HostArray:
    """a b, each transposed first if requested."""
    return product(a.T if transpose_a else a, b.T if transpose_b else b)


@kernel("SparseMatMul")
def sparse_matmul(a: HostArray, b: HostArray, *, transpose_a: bool = False, transpose_b: bool = False) -> HostArray:
    """Like `matmul`, for matrices that may contain many zeros."""
    return matmul(a.astype(np.float32), b.astype(np.float32), transpose_a=transpose_a, transpose_b=transpose_b)


def adjoint(x: HostArray) -> HostArray:
    """Transposes and conjugates each matrix."""
    return conjugate(x.T if x.ndim == 2 else x.swapaxes(-1, -2))


def _pulled(inputs: Arrays, g: HostArray, needed: Needed, adj_x: bool, adj_y: bool) -> Arrays:
    """Returns the gradients of two factors, conjugated and transposed if requested."""
    x, y = inputs
    for_x = for_y = None
    if needed[0]:
        right = y if adj_y else adjoint(y)
        for_x = product(adjoint(right), adjoint(g)) if adj_x else product(g, right)
    if needed[1]:
        left = x if adj_x else adjoint(x)
        for_y = product(adjoint(g), adjoint(left)) if adj_y else product(left, g)
    return for_x, for_y


@gradient_kernel("MatMul")
def matmul_gradient(inputs: Arrays, grads: Arrays, needed: Needed, attrs: Attrs) -> Arrays:
    """The gradient times the other factor."""
    if inputs[0].dtype.kind == "c":
        raise NoKernel
    return _pulled(inputs, grads[0], needed, attrs.get("transpose_a", False), attrs.get("transpose_b", False))


@gradient_kernel("SparseMatMul")
def sparse_matmul_gradient(inputs: Arrays, grads: Arrays, needed: Needed, attrs: Attrs) -> Arrays:
    """Like `matmul_gradient`."""
    found = matmul_gradient([value.astype(np.float32) for value in inputs], grads, needed, attrs)
    return [None if g is None else g.astype(value.dtype) for g, value in zip(found, inputs, strict=True)]


@kernel("BatchMatMul", "BatchMatMulV2")
def batch_matmul(x: HostArray, y: HostArray, *, adj_x: bool = False, adj_y: bool = False) -> HostArray:
    """x y for each matrix of the batches, which broadcast; each conjugated and transposed first if requested."""
    return product(adjoint(x) if adj_x else x, adjoint(y) if adj_y else y)


@gradient_kernel("BatchMatMul", "BatchMatMulV2")
def batch_matmul_gradient(inputs: Arrays, grads: Arrays, needed: Needed, attrs: Attrs) -> Arrays:
    """Like `matmul_gradient`, summed over the dimensions along which a batch is repeated."""
    found = _pulled(inputs, grads[0], needed, attrs.get("adj_x", False), attrs.get("adj_y", False))
    return [None if g is None else sum_to(g, value.shape) for g, value in zip(found, inputs, strict=True)]


def _terms(equation: str, count: int) -> tuple[list[str], str]:
    """Returns the index letters of each input and of the result."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if "." in equation or len(terms) != count or any(len(set(term)) < len(term) for term in terms):
        raise NoKernel
    if not arrow:
        right = "".join(letter for letter in sorted(set(left) - {","}) if left.count(letter) == 1)
    return terms, right


@kernel("Einsum")
def einsum(*inputs: HostArray, equation: str) -> HostArray:
    """Multiplies the inputs' elements and sums the products over all indices that the result does not have."""
    return np.einsum(equation, *inputs, optimize=len(inputs) > 1)


@gradient_kernel("Einsum")
def einsum_gradient(inputs: Arrays, grads: Arrays, needed: Needed, attrs: Attrs) -> Arrays:
    """Returns the gradient times the other factors, with the indices of each; missing indices are broadcast."""
    terms, right = _terms(attrs["equation"], len(inputs))
    found: list[Any] = []
    for place, (term, value, wanted) in enumerate(zip(terms, inputs, needed, strict=True)):
        if not wanted:
            found.append(None)
            continue
        others = [conjugate(other) for index, other in enumerate(inputs) if index != place]
        letters = [right, *(other for index, other in enumerate(terms) if index != place)]
        kept = "".join(letter for letter in term if any(letter in other for other in letters))
        summed = np.einsum(f"{','.join(letters)}->{kept}", grads[0], *others, optimize=True)
        shape = tuple(size if letter in kept else 1 for letter, size in zip(term, value.shape, strict=True))
        found.append(np.broadcast_to(summed.reshape(shape), value.shape).astype(value.dtype, copy=False))
    return found


# Diagonals and bands ----------------------------------------------------------------------------------------------


@kernel("MatrixBandPart")
def matrix_band_part(input: HostArray, num_lower: HostArray, num_upper: HostArray) -> HostArray:
    """Replaces elements by zeros outside of a band: the main diagonal, ``num_lower`` diagonals below it and
    ``num_upper`` above it; -1 includes all."""
    return np.where(_band(input.shape, num_lower, num_upper), input, input.dtype.type(0))


def _band(shape: tuple[int, ...], num_lower: HostArray, num_upper: HostArray) -> HostArray:
    below = np.arange(shape[-2])[:, np.newaxis] - np.arange(shape[-1])
    return ((num_lower < 0) | (below <= num_lower)) & ((num_upper < 0) | (-below <= num_upper))


@gradient_kernel("MatrixBandPart")
def matrix_band_part_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The band of the gradient."""
    return matrix_band_part(grads[0], inputs[1], inputs[2]), None, None


@kernel("Diag")
def diag(diagonal: HostArray) -> HostArray:
    """Returns a tensor of twice the rank, with the elements of ``diagonal`` at the indices (i, …, i, …), whose two
    halves are equal, and zeros elsewhere."""
    return np.diag(diagonal.reshape(-1)).reshape(diagonal.shape * 2)


def require_halves(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the first half of a shape with two equal halves; ValueError if they differ."""
    half = len(shape) // 2
    if len(shape) % 2:
        raise ValueError(f"The rank of the tensor should be even, got shape {list(shape)}")
    if shape[:half] != shape[half:]:
        raise ValueError(f"Invalid shape {list(shape)}: the halves do not match.")
    return shape[:half]


@kernel("DiagPart")
def diag_part(input: HostArray) -> HostArray:
    """Returns the elements at the indices (i, …, i, …), whose two halves are equal."""
    half = require_halves(input.shape)
    count = int(np.prod(half, dtype=np.int64))
    return input.reshape(count, count).diagonal().reshape(half)


@gradient_kernel("Diag")
def diag_gradient(_inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient's diagonal."""
    return (diag_part(grads[0]),)


@gradient_kernel("DiagPart")
def diag_part_gradient(_inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient on the diagonal."""
    return (diag(grads[0]),)


def _require_matrices(input: HostArray) -> None:
    if input.ndim < 2:
        raise ValueError(f"input must be at least 2-dim, received shape: {list(input.shape)}")


def _require_diagonals(diagonal: HostArray) -> None:
    if not diagonal.ndim:
        raise ValueError("diagonal must be at least 1-dim, received shape: []")


@kernel("MatrixDiag")
def matrix_diag(diagonal: HostArray) -> HostArray:
    """Square matrices with these main diagonals."""
    _require_diagonals(diagonal)
    side = diagonal.shape[-1]
    result = np.zeros((*diagonal.shape, side), diagonal.dtype)
    result[..., np.arange(side), np.arange(side)] = diagonal
    return result


@kernel("MatrixDiagPart")
def matrix_diag_part(input: HostArray) -> HostArray:
    """Main diagonals."""
    _require_matrices(input)
    return input.diagonal(0, -2, -1)


@kernel("MatrixSetDiag")
def matrix_set_diag(input: HostArray, diagonal: HostArray) -> HostArray:
    """Matrices with their main diagonals replaced."""
    _require_matrices(input)
    _require_diagonals(diagonal)
    result = np.array(input)
    steps = np.arange(diagonal.shape[-1])
    result[..., steps, steps] = diagonal
    return result


@gradient_kernel("MatrixDiag")
def matrix_diag_gradient(_inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient's diagonals."""
    return (matrix_diag_part(grads[0]),)


@gradient_kernel("MatrixDiagPart")
def matrix_diag_part_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient on the diagonals."""
    return (matrix_set_diag(np.zeros_like(inputs[0]), grads[0]),)


@gradient_kernel("MatrixSetDiag")
def matrix_set_diag_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient with zeros on its diagonals, and its diagonals."""
    return matrix_set_diag(grads[0], np.zeros_like(inputs[1])), matrix_diag_part(grads[0])


@kernel("Cross")
def cross(a: HostArray, b: HostArray) -> HostArray:
    """The cross product of vectors in three dimensions."""
    return np.cross(a, b)


@gradient_kernel("Cross")
def cross_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradients of both factors."""
    a, b = inputs
    return np.cross(b, grads[0]), np.cross(grads[0], a)
