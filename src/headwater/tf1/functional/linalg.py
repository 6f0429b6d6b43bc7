"""Matrices: products, diagonals, norms, factorisations. Leading dimensions, where allowed, are a batch."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater import dtypes
from headwater.graph.constants import constant_value
from headwater.graph.convert import constant, convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, math, reductions
from headwater.tf1.functional.apply import apply, one

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.shapes import ShapeLike


# Products ---------------------------------------------------------------------------------------------------------


def matmul(
    a: TensorLike,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """a b, for matrices or batches of them.

    Args:
      transpose_a, transpose_b: transpose the matrices first.
      adjoint_a, adjoint_b: conjugate and transpose them first.
      a_is_sparse, b_is_sparse: hints; matrices of which one is of type bfloat16 and one of float32 have a product of
        type float32.

    Raises:
      ValueError: both transpose and adjoint of a matrix are requested, or shapes do not match.
    """
    del a_is_sparse, b_is_sparse  # products of both hints have no other kernel here
    if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
        raise ValueError("Only one of transpose and adjoint can be True for a matrix.")
    with name_scope(name, "MatMul", [a, b]) as scope:
        a = convert_to_tensor(a, name="a")
        b = convert_to_tensor(b, a.dtype.base_dtype, name="b") if not isinstance(b, Tensor) else b
        if all(t.dims is None or len(t.dims) > 2 for t in (a, b)):
            a, adjoint_a = (math.conj(a), True) if transpose_a else (a, adjoint_a)
            b, adjoint_b = (math.conj(b), True) if transpose_b else (b, adjoint_b)
            return one("BatchMatMulV2", a, b, adj_x=adjoint_a, adj_y=adjoint_b, name=scope)
        if any(t.dims is not None and len(t.dims) > 2 for t in (a, b)):
            return one(
                "BatchMatMulV2",
                math.conj(a) if transpose_a else a,
                math.conj(b) if transpose_b else b,
                adj_x=adjoint_a or transpose_a,
                adj_y=adjoint_b or transpose_b,
                name=scope,
            )
        a, transpose_a = (math.conj(a), True) if adjoint_a else (a, transpose_a)
        b, transpose_b = (math.conj(b), True) if adjoint_b else (b, transpose_b)
        if {a.dtype.base_dtype, b.dtype.base_dtype} == {dtypes.bfloat16, dtypes.float32}:
            return sparse_matmul(a, b, transpose_a, transpose_b, name=scope)
        return one("MatMul", a, b, transpose_a=transpose_a, transpose_b=transpose_b, name=scope)


def sparse_matmul(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Returns a b for matrices with many zeros; in float32."""
    attrs = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    return one("SparseMatMul", a, b, a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse, name=name, **attrs)


def adjoint(matrix: TensorLike, name: str | None = None) -> Tensor:
    """The conjugate, with its last two dimensions exchanged."""
    with name_scope(name, "adjoint", [matrix]):
        return arrays.matrix_transpose(convert_to_tensor(matrix, name="matrix"), conjugate=True)


def matvec(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Multiplies a matrix (or a batch of matrices) by a vector (or a batch of vectors)."""
    with name_scope(name, "MatVec", [a, b]):
        column = arrays.expand_dims(b, -1)
        product = matmul(
            a, column, transpose_a=transpose_a, adjoint_a=adjoint_a, a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse
        )
        return arrays.squeeze(product, [-1])


def batch_matmul(
    x: TensorLike, y: TensorLike, adj_x: bool = False, adj_y: bool = False, name: str | None = None
) -> Tensor:
    """x y for each matrix of two batches of one shape."""
    return one("BatchMatMul", x, y, adj_x=adj_x, adj_y=adj_y, name=name)


def tensordot(a: TensorLike, b: TensorLike, axes: TensorLike, name: str | None = None) -> Tensor:
    """Sums of products over pairs of dimensions of ``a`` and ``b``.

    Args:
      axes: n for the last n dimensions of a with the first n of b; or two lists, which dimensions of a go with which of
        b.

    Raises:
      ValueError: ``axes`` has the wrong form.
    """
    with name_scope(name, "Tensordot", [a, b, axes]) as scope:
        a, b = convert_to_tensor(a, name="a"), convert_to_tensor(b, name="b")
        if isinstance(axes, Tensor):
            known = constant_value(axes)
            axes = axes if known is None else known
        if a.dims is None or b.dims is None or isinstance(axes, Tensor):
            return _tensordot_of_unknown_rank(a, b, axes, scope)
        left, right = _pairs(axes, len(a.dims), len(b.dims))
        free_a = [i for i in builtins.range(len(a.dims)) if i not in left]
        free_b = [i for i in builtins.range(len(b.dims)) if i not in right]
        sizes_a, sizes_b = arrays.shape(a), arrays.shape(b)
        inner_a, outer_a = (_product(a, sizes_a, where) for where in (left, free_a))
        inner_b, outer_b = (_product(b, sizes_b, where) for where in (right, free_b))
        rows = arrays.reshape(arrays.transpose(a, [*free_a, *left]), [outer_a, inner_a])
        columns = arrays.reshape(arrays.transpose(b, [*right, *free_b]), [inner_b, outer_b])
        shape = [_size(a, sizes_a, i) for i in free_a] + [_size(b, sizes_b, i) for i in free_b]
        product = matmul(rows, columns)
        result = arrays.reshape(product, shape if shape else constant([], dtypes.int32), name=scope)
        result.set_shape([a.dims[i] for i in free_a] + [b.dims[i] for i in free_b])
        return result


def _tensordot_of_unknown_rank(a: Tensor, b: Tensor, axes: Any, scope: str) -> Tensor:
    """`tensordot` with an order of dimensions that is computed in each run."""
    rank_a, rank_b = arrays.rank(a), arrays.rank(b)
    if not isinstance(axes, Tensor) and np.ndim(axes) == 0:
        left, right = arrays.range(rank_a - axes, rank_a), arrays.range(axes)
    else:
        left, right = (arrays.reshape(convert_to_tensor(part, dtypes.int32), [-1]) for part in (axes[0], axes[1]))
        left, right = (left + rank_a) % rank_a, (right + rank_b) % rank_b
    free_a = apply("ListDiff", arrays.range(rank_a), left).outputs[0]
    free_b = apply("ListDiff", arrays.range(rank_b), right).outputs[0]
    sizes_a, sizes_b = (one("GatherV2", arrays.shape(x), free, 0) for x, free in ((a, free_a), (b, free_b)))
    inner = one("Prod", one("GatherV2", arrays.shape(a), left, 0), [0])
    rows = arrays.reshape(arrays.transpose(a, arrays.concat([free_a, left], 0)), arrays.stack([-1, inner]))
    columns = arrays.reshape(arrays.transpose(b, arrays.concat([right, free_b], 0)), arrays.stack([inner, -1]))
    return arrays.reshape(matmul(rows, columns), arrays.concat([sizes_a, sizes_b], 0), name=scope)


def _size(tensor: Tensor, sizes: Tensor, axis: int) -> Any:
    known = None if tensor.dims is None else tensor.dims[axis]
    return sizes[axis] if known is None else known


def _product(tensor: Tensor, sizes: Tensor, axes: Sequence[int]) -> Any:
    """Returns the number of elements in some dimensions: a number if it is known, else a tensor."""
    result: object = 1
    for axis in axes:
        result = result * _size(tensor, sizes, axis)
    return result


def _pairs(axes: Any, rank_a: int, rank_b: int) -> tuple[list[int], list[int]]:
    if np.ndim(axes) == 0:
        count = int(axes)
        if count < 0 or count > min(rank_a, rank_b):
            raise ValueError(f"'axes' must be at least 0 and at most the ranks {rank_a} and {rank_b}, not {count}")
        return list(builtins.range(rank_a - count, rank_a)), list(builtins.range(count))
    if len(axes) != 2:
        raise ValueError("'axes' must be an integer or have length 2.")
    left, right = ([int(i) for i in np.ravel(part)] for part in axes)
    if len(left) != len(right):
        raise ValueError(f"Different number of contraction axes 'a' and 'b', {len(left)} != {len(right)}.")
    outside = next((i for i in left if i >= rank_a), None) or next((i for i in right if i >= rank_b), None)
    if outside is not None:
        raise IndexError(f"'axes' contains {outside}; the ranks are {rank_a} and {rank_b}")
    return [i % rank_a for i in left], [i % rank_b for i in right]


def einsum(equation: str, *inputs: object, name: str | None = None) -> Tensor:
    """Products of elements summed over the indices that the result lacks: ``einsum("ij,jk->ik", a, b)``."""
    operands: Any = inputs
    if len(inputs) == 1 and isinstance(inputs[0], list | tuple):
        operands = inputs[0]  # pyright: ignore[reportUnknownVariableType]
    wanted = equation.partition("->")[0].count(",") + 1
    if len(operands) != wanted:
        raise ValueError(f"Got {len(operands)} arguments for equation {equation!r}, expecting {wanted}")
    return one("Einsum", list(operands), equation=equation.replace(" ", ""), name=name or "einsum")


def cross(a: TensorLike, b: TensorLike, name: str | None = None) -> Tensor:
    """The cross product of vectors in three dimensions."""
    return one("Cross", a, b, name=name)


# Diagonals and bands ----------------------------------------------------------------------------------------------


def eye(
    num_rows: Any,
    num_columns: TensorLike | None = None,
    batch_shape: ShapeLike = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Returns the identity matrix, or a batch; cropped or padded with zeros if the number of columns differs."""
    with name_scope(name, "eye", [num_rows, num_columns, batch_shape]):
        columns = num_rows if num_columns is None else num_columns
        computed = isinstance(num_rows, Tensor) or isinstance(columns, Tensor)
        length: Any = math.minimum(num_rows, columns) if computed else min(num_rows, columns)
        if columns is num_rows:
            return matrix_diag(arrays.ones(_batched(batch_shape, length), dtype))
        whole = arrays.zeros(_batched(batch_shape, num_rows, columns), dtype)
        return matrix_set_diag(whole, arrays.ones(_batched(batch_shape, length), dtype))


def _batched(batch_shape: Any, *sizes: Any) -> Any:
    """The shape of a batch of tensors of ``sizes``."""
    if isinstance(batch_shape, Tensor):
        return arrays.concat([batch_shape, arrays.stack(list(sizes))], 0)
    return [*(batch_shape or ()), *sizes]


def diag(diagonal: TensorLike, name: str | None = None) -> Tensor:
    """The tensor of twice the rank with these elements where both halves of the index agree."""
    return one("Diag", diagonal, name=name)


def diag_part(input: TensorLike, name: str | None = None) -> Tensor:
    """The elements where both halves of the index agree."""
    return one("DiagPart", input, name=name)


def _is_number(value: TensorLike, number: int) -> bool:
    return isinstance(value, int) and value == number


def matrix_diag(
    diagonal: TensorLike,
    name: str = "diag",
    k: TensorLike = 0,
    num_rows: TensorLike = -1,
    num_cols: TensorLike = -1,
    padding_value: TensorLike = 0,
) -> Tensor:
    """Matrices with the given diagonals; ``k`` is a number or the lowest and highest, counted up from the main one."""
    diagonal = convert_to_tensor(diagonal)
    if _is_number(k, 0) and _is_number(num_rows, -1) and _is_number(num_cols, -1):
        return one("MatrixDiag", diagonal, name=name)
    padding = convert_to_tensor(padding_value, diagonal.dtype.base_dtype)
    return one("MatrixDiagV2", diagonal, k, num_rows, num_cols, padding, name=name)


def matrix_diag_part(
    input: TensorLike, name: str = "diag_part", k: TensorLike = 0, padding_value: TensorLike = 0
) -> Tensor:
    """Diagonals of matrices; shorter ones of a band filled with ``padding_value``."""
    input = convert_to_tensor(input)
    if _is_number(k, 0):
        return one("MatrixDiagPart", input, name=name)
    return one("MatrixDiagPartV2", input, k, convert_to_tensor(padding_value, input.dtype.base_dtype), name=name)


def matrix_set_diag(input: TensorLike, diagonal: TensorLike, name: str = "set_diag", k: TensorLike = 0) -> Tensor:
    """Matrices with the given diagonals replaced."""
    if _is_number(k, 0):
        return one("MatrixSetDiag", input, diagonal, name=name)
    return one("MatrixSetDiagV2", input, diagonal, k, name=name)


def matrix_band_part(
    input: TensorLike, num_lower: TensorLike, num_upper: TensorLike, name: str | None = None
) -> Tensor:
    """Sets elements to 0 outside of ``num_lower`` diagonals below and ``num_upper`` above the main one; -1 is all."""
    return one("MatrixBandPart", input, num_lower, num_upper, name=name)


def trace(x: TensorLike, name: str | None = None) -> Tensor:
    """The sum of the main diagonal."""
    with name_scope(name, "Trace", [x]) as scope:
        return reductions.reduce_sum(one("MatrixDiagPart", convert_to_tensor(x, name="x")), [-1], name=scope)


# Norms ------------------------------------------------------------------------------------------------------------


def norm(
    tensor: TensorLike,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """A norm: of all elements, along a dimension, or of matrices.

    Args:
      ord: ``euclidean``, 1, 2, another positive number, or ``numpy.inf``; for matrices (two axes) ``euclidean`` or
        ``fro``, 1, 2 (the largest singular value) or ``numpy.inf``.
      axis: None, one dimension, or two for matrices.

    Raises:
      ValueError: ``ord`` is unknown, or does not match ``axis``.
    """
    keep = bool(reductions.either(keepdims, keep_dims, "keepdims", "keep_dims"))
    matrix = _matrix_axes(axis)
    of_matrix = matrix is not None
    if not of_matrix and axis is not None and not isinstance(axis, Tensor) and np.ndim(axis) and np.size(axis) != 1:
        raise ValueError("'axis' must be None, an integer, or a tuple of 2 unique integers")
    allowed = ("euclidean", "fro", 1, 2, np.inf) if of_matrix else ("euclidean", 1, 2, np.inf)
    if ord not in allowed and (of_matrix or not np.isreal(ord) or isinstance(ord, str) or ord <= 0):
        raise ValueError(f"'ord' must be one of {allowed}{'' if of_matrix else ' or a positive number'}, not {ord!r}")
    with name_scope(name, "norm", [tensor]):
        x = convert_to_tensor(tensor)
        if ord in ("fro", "euclidean") or (ord == 2 and not of_matrix):
            squares = reductions.reduce_sum(x * math.conj(x), axis, keepdims=True)
            result = math.sqrt(squares)
        elif matrix is not None and ord == 2:
            return _spectral_norm(x, matrix, keep)
        else:
            size = math.abs(x)
            if matrix is not None:
                along, across = matrix if ord == 1 else matrix[::-1]
                result = reductions.reduce_max(reductions.reduce_sum(size, along, keepdims=True), across, keepdims=True)
            elif ord == 1:
                result = reductions.reduce_sum(size, axis, keepdims=True)
            elif ord == np.inf:
                result = reductions.reduce_max(size, axis, keepdims=True)
            else:
                powers = reductions.reduce_sum(math.pow(size, ord), axis, keepdims=True)
                result = math.pow(powers, 1.0 / ord)
        if keep:
            return result
        return arrays.squeeze(result, axis)


def _matrix_axes(axis: int) -> tuple[int, int] | None:
    """Returns the two dimensions of matrices in ``axis``; None if it does not have two."""
    if isinstance(axis, Tensor) or np.size(axis) != 2:
        return None
    rows, columns = np.ravel(axis)
    return int(rows), int(columns)


def _spectral_norm(x: Tensor, axis: Sequence[int], keep: bool) -> Tensor:
    if x.dims is None:
        raise ValueError("the 2-norm of matrices needs a tensor of known rank")
    gone = [a % len(x.dims) for a in axis]
    order = [i for i in builtins.range(len(x.dims)) if i not in gone] + gone
    values = apply("Svd", arrays.transpose(x, order), compute_uv=False, full_matrices=False).outputs[0]
    result = reductions.reduce_max(values, -1)
    for place in sorted(gone) if keep else ():
        result = arrays.expand_dims(result, place)
    return result
