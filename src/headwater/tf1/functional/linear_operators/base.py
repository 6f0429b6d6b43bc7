"""Base of all linear operators: products, solutions and determinants, by default computed from the matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from headwater.dtypes import DType, as_dtype
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Operation, Tensor
from headwater.graph.types import TensorLike
from headwater.shapes import Dimension, TensorShape, dimension_value
from headwater.tf1.functional import arrays, linalg, math, reductions
from headwater.tf1.functional.checks import assert_less, assert_positive
from headwater.tf1.functional.factorisations import cholesky, cholesky_solve, matrix_determinant, matrix_solve, slogdet

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike


_SINGULAR_BELOW = 1e-6
"""Assertions consider a matrix singular if its determinant, relative to the scale of its elements, is smaller."""


class _Makers:
    """Registry of derived operator classes: this module needs them, but cannot import them, since they import it."""

    adjoint: Callable[..., LinearOperator]
    inversion: Callable[..., LinearOperator]
    composition: Callable[..., LinearOperator]
    triangular: Callable[..., LinearOperator]
    full_matrix: Callable[..., LinearOperator]


makers = _Makers()


class LinearOperator:
    """A matrix [..., M, N], or a batch of matrices, represented without its elements.

    Subclasses define `_shape`, `_shape_tensor` and either `_to_dense` or `_matmul`.

    Args:
      dtype: type of its elements.
      graph_parents: tensors that it is made of.
      is_non_singular: whether it has an inverse; None if that is not known.
      is_self_adjoint: whether it is its own adjoint.
      is_positive_definite: whether the real part of ``x^H A x`` is positive for all ``x`` but 0.
      is_square: whether M is N.

    Raises:
      ValueError: the hints contradict each other.
    """

    def __init__(
        self,
        dtype: DTypeLike,
        graph_parents: list[Tensor] | None = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        if is_positive_definite:
            if is_non_singular is False:
                raise ValueError("A positive definite matrix is always non-singular.")
            is_non_singular = True
        if is_non_singular:
            if is_square is False:
                raise ValueError("A non-singular matrix is always square.")
            is_square = True
        if is_self_adjoint:
            if is_square is False:
                raise ValueError("A self-adjoint matrix is always square.")
            is_square = True
        self.dtype: DType = as_dtype(dtype).base_dtype
        self.graph_parents: list[Tensor] = list(graph_parents or ())
        self.is_non_singular: bool | None = is_non_singular
        self.is_self_adjoint: bool | None = is_self_adjoint
        self.is_positive_definite: bool | None = is_positive_definite
        self._is_square_hint = is_square
        self.name: str = name or type(self).__name__

    # Defined by subclasses ----------------------------------------------------------------------------------------

    def _shape(self) -> TensorShape:
        raise NotImplementedError("_shape is not implemented.")

    def _shape_tensor(self) -> Tensor:
        raise NotImplementedError("_shape_tensor is not implemented.")

    def _to_dense(self) -> Tensor:
        rows = self.shape.as_dims
        size = self.domain_dimension_tensor() if rows is None or rows[-1] is None else rows[-1]
        unit = linalg.eye(size, dtype=self.dtype)
        return self._matmul(unit, False, False)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return multiply(self._to_dense(), x, adjoint, adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        matrix, rhs = with_same_batch(self._to_dense(), rhs)
        if self.is_positive_definite and self.is_self_adjoint:
            return cholesky_solve(cholesky(matrix), rhs)
        return matrix_solve(matrix, rhs, adjoint=adjoint)

    def _determinant(self) -> Tensor:
        return matrix_determinant(self._to_dense())

    def _log_abs_determinant(self) -> Tensor:
        return slogdet(self._to_dense())[1]

    def _diag_part(self) -> Tensor:
        return linalg.matrix_diag_part(self._to_dense())

    def _trace(self) -> Tensor:
        return reductions.reduce_sum(self._diag_part(), -1)

    def _adjoint(self) -> LinearOperator:
        return makers.adjoint(self)

    def _inverse(self) -> LinearOperator:
        return makers.inversion(self)

    def _cholesky(self) -> LinearOperator:
        return makers.triangular(cholesky(self._to_dense()), is_non_singular=True, is_square=True)

    def _after(self, left: LinearOperator) -> LinearOperator:
        """The product ``left self``."""
        return makers.composition([left, self])

    # Properties -----------------------------------------------------------------------------------------------------

    @property
    def is_square(self) -> bool | None:
        """Whether there are as many rows as columns; None if neither the shape nor a hint tells.

        Raises:
          ValueError: the hint contradicts the shape.
        """
        rows, columns = dimension_value(self.range_dimension), dimension_value(self.domain_dimension)
        if rows is None or columns is None:
            return self._is_square_hint
        square = rows == columns
        if self._is_square_hint is not None and self._is_square_hint != square:
            raise ValueError(f"Static shape is inconsistent with is_square = {self._is_square_hint}: {self.shape}")
        return square

    @property
    def shape(self) -> TensorShape:
        """The shape [..., M, N]."""
        return self._shape()

    @property
    def batch_shape(self) -> TensorShape:
        """The dimensions before the last two."""
        return self.shape[:-2]

    @property
    def tensor_rank(self) -> int | None:
        """The number of dimensions, if known."""
        return self.shape.ndims

    @property
    def domain_dimension(self) -> Dimension:
        """The number of columns, N."""
        return self.shape[-1]

    @property
    def range_dimension(self) -> Dimension:
        """The number of rows, M."""
        return self.shape[-2]

    def _scope(self, name: str) -> Any:
        return name_scope(f"{self.name}/{name}", "", self.graph_parents)

    def shape_tensor(self, name: str = "shape_tensor") -> Tensor:
        """The shape as a tensor."""
        with self._scope(name):
            static = self.shape.as_dims
            if static is not None and None not in static:
                return convert_to_tensor(list(cast("tuple[int, ...]", static)), "int32")
            return self._shape_tensor()

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """The dimensions before the last two as a tensor."""
        return self.shape_tensor(name)[:-2]

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Tensor:
        """The number of dimensions as a tensor."""
        return arrays.size(self.shape_tensor(name))

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Tensor:
        """Returns the number of columns, N, as a tensor."""
        return self.shape_tensor(name)[-1]

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Tensor:
        """Returns the number of rows, M, as a tensor."""
        return self.shape_tensor(name)[-2]

    # Computations ---------------------------------------------------------------------------------------------------

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """Returns the matrix as a dense tensor."""
        with self._scope(name):
            return self._to_dense()

    def matmul(self, x: TensorLike, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """Returns the product with a matrix [..., N, R], or the composition with an operator.

        Args:
          x: the right factor.
          adjoint: use the adjoint of this operator.
          adjoint_arg: use the adjoint of ``x``.

        Raises:
          ValueError: the sizes do not match.
        """
        if isinstance(x, LinearOperator):
            left, right = self.adjoint() if adjoint else self, x.adjoint() if adjoint_arg else x
            check_sizes(left.domain_dimension, right.range_dimension)
            return right._after(left)
        with self._scope(name):
            x = self._as_matrix(x)
            check_sizes(self.range_dimension if adjoint else self.domain_dimension, x.shape[-1 if adjoint_arg else -2])
            return self._matmul(x, adjoint, adjoint_arg)

    def matvec(self, x: TensorLike, adjoint: bool = False, name: str = "matvec") -> Tensor:
        """The product with a vector [..., N]."""
        with self._scope(name):
            x = convert_to_tensor(x, self.dtype, name="x")
            check_sizes(self.range_dimension if adjoint else self.domain_dimension, x.shape[-1])
            return arrays.squeeze(self._matmul(arrays.expand_dims(x, -1), adjoint, False), [-1])

    def solve(self, rhs: TensorLike, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """Solves ``A X = rhs`` for a matrix [..., M, R] or an operator rhs.

        Args:
          rhs: the right-hand side.
          adjoint: solve with the adjoint.
          adjoint_arg: take the adjoint of ``rhs``.

        Raises:
          NotImplementedError: the operator is not square, or is known to be singular.
          ValueError: the sizes do not match.
        """
        self._must_be_square("Exact solve")
        if self.is_non_singular is False:
            raise NotImplementedError("Exact solve not implemented for an operator that is expected to be singular.")
        if isinstance(rhs, LinearOperator):
            left, right = self.adjoint() if adjoint else self, rhs.adjoint() if adjoint_arg else rhs
            check_sizes(left.domain_dimension, right.range_dimension)
            return right._after(left.inverse())
        with self._scope(name):
            rhs = self._as_matrix(rhs)
            check_sizes(self.domain_dimension, rhs.shape[-1 if adjoint_arg else -2])
            return self._solve(linalg.adjoint(rhs) if adjoint_arg else rhs, adjoint)

    def solvevec(self, rhs: TensorLike, adjoint: bool = False, name: str = "solve") -> Tensor:
        """Solves ``A x = rhs`` for a vector rhs [..., M]."""
        rhs = convert_to_tensor(rhs, self.dtype, name="rhs")
        return arrays.squeeze(self.solve(arrays.expand_dims(rhs, -1), adjoint, name=name), [-1])

    def determinant(self, name: str = "det") -> Tensor:
        """The determinant.

        Raises:
          NotImplementedError: the operator is not square.
        """
        self._must_be_square("Determinant")
        with self._scope(name):
            return self._determinant()

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        """The logarithm of the determinant's absolute value.

        Raises:
          NotImplementedError: the operator is not square.
        """
        self._must_be_square("Determinant")
        with self._scope(name):
            return self._log_abs_determinant()

    def diag_part(self, name: str = "diag_part") -> Tensor:
        """Returns the diagonal."""
        with self._scope(name):
            return self._diag_part()

    def trace(self, name: str = "trace") -> Tensor:
        """The sum of the diagonal."""
        with self._scope(name):
            return self._trace()

    def add_to_tensor(self, x: TensorLike, name: str = "add_to_tensor") -> Tensor:
        """The matrix added to a tensor [..., M, N]."""
        with self._scope(name):
            return self._to_dense() + convert_to_tensor(x, self.dtype, name="x")

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """Returns the adjoint: this operator if it is known to be self-adjoint."""
        if self.is_self_adjoint:
            return self
        with self._scope(name):
            return self._adjoint()

    H = property(adjoint, doc="The adjoint.")

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """The inverse.

        Raises:
          ValueError: the operator is not square, or is known to be singular.
        """
        if self.is_square is False:
            raise ValueError("Cannot take the Inverse: This operator represents a non square matrix.")
        if self.is_non_singular is False:
            raise ValueError("Cannot take the Inverse: This operator represents a singular matrix.")
        with self._scope(name):
            return self._inverse()

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        """Returns the Cholesky factor: the lower triangular L with this operator = L L^H.

        Raises:
          ValueError: it is not known to be positive definite and self-adjoint.
        """
        if not (self.is_positive_definite and self.is_self_adjoint):
            raise ValueError("Cannot take the Cholesky decomposition: Not a positive definite self adjoint matrix.")
        with self._scope(name):
            return self._cholesky()

    def assert_non_singular(self, name: str = "assert_non_singular") -> Operation:
        """Returns an operation that fails if the matrix is numerically singular."""
        with self._scope(name):
            matrix = self._to_dense()
            scale = reductions.reduce_max(reductions.reduce_sum(math.abs(matrix), -1), -1)
            unit = matrix / math.cast(arrays.expand_dims(arrays.expand_dims(scale, -1), -1), self.dtype)
            return assert_less(
                math.cast(_SINGULAR_BELOW, scale.dtype), math.abs(matrix_determinant(unit)), message="Singular matrix"
            )

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> Operation:
        """An operation that fails if the matrix is not positive definite."""
        with self._scope(name):
            return assert_positive(
                math.real(linalg.matrix_diag_part(cholesky(self._to_dense()))), message="Not positive definite"
            )

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> Operation:
        """An operation that fails if the matrix is not its own adjoint."""
        with self._scope(name):
            matrix = self._to_dense()
            apart = reductions.reduce_max(math.abs(matrix - linalg.adjoint(matrix)))
            return assert_less(
                apart, math.cast(_SINGULAR_BELOW, apart.dtype), message="Matrix was not equal to its adjoint."
            )

    def _as_matrix(self, x: TensorLike) -> Tensor:
        x = convert_to_tensor(x, self.dtype, name="x")
        if x.dims is not None and len(x.dims) < 2:
            raise IndexError(f"a matrix is needed, and this has the shape {x.shape}")
        return x

    def _must_be_square(self, what: str) -> None:
        if self.is_square is False:
            raise NotImplementedError(f"{what} not implemented for an operator that is expected to not be square.")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} of shape {self.shape} and {self.dtype.name}>"


def check_sizes(first: Any, second: Any) -> None:
    """Raises ValueError unless two dimensions may be equal."""
    Dimension(first).assert_is_compatible_with(Dimension(second))


def with_same_batch(matrix: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Broadcasts the batch dimensions of two batches of matrices."""
    one, two = matrix.dims, other.dims
    if one is not None and two is not None and None not in one[:-2] and one[:-2] == two[:-2]:
        return matrix, other
    outer = arrays.broadcast_dynamic_shape(arrays.shape(matrix)[:-2], arrays.shape(other)[:-2])
    return tuple(arrays.broadcast_to(x, arrays.concat([outer, arrays.shape(x)[-2:]], 0)) for x in (matrix, other))  # pyright: ignore[reportReturnType]


def multiply(matrix: Tensor, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
    """The product of two batches of matrices, or of their adjoints."""
    return linalg.matmul(matrix, x, adjoint_a=adjoint, adjoint_b=adjoint_arg)
