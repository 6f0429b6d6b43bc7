"""Diagonal linear operators: diagonal matrices, identities and their multiples, zeros."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.dtypes import as_dtype
from headwater.graph.constants import constant_value
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.shapes import ShapeLike, TensorShape
from headwater.tf1.functional import arrays, linalg, math, reductions
from headwater.tf1.functional.linear_operators.base import LinearOperator
from headwater.tf1.functional.sizes import known

if TYPE_CHECKING:
    from headwater.dtypes import DType, DTypeLike


class LinearOperatorDiag(LinearOperator):
    """A diagonal matrix.

    Args:
      diag: the diagonal, [..., N].
      is_non_singular: see `LinearOperator`, as for the others.
      is_self_adjoint: follows from the type of real numbers.
      is_positive_definite: a hint.
      is_square: True.

    Raises:
      ValueError: ``is_square`` is False, or ``diag`` is a scalar.

    Attributes:
      diag: the diagonal.
    """

    def __init__(
        self,
        diag: TensorLike,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorDiag",
    ) -> None:
        with name_scope(name, "", [diag]):
            self.diag: Tensor = convert_to_tensor(diag, name="diag")
        if self.diag.dims == ():
            raise ValueError("Argument diag must have at least 1 dimension.")
        if is_square is False:
            raise ValueError("Only square diagonal operators currently supported.")
        if not self.diag.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A real diagonal operator is always self adjoint.")
            is_self_adjoint = True
        super().__init__(
            self.diag.dtype, [self.diag], is_non_singular, is_self_adjoint, is_positive_definite, True, name
        )

    def _shape(self) -> TensorShape:
        shape = self.diag.shape
        return shape.concatenate(shape[-1:]) if shape.ndims is not None else TensorShape(None)

    def _shape_tensor(self) -> Tensor:
        shape = arrays.shape(self.diag)
        return arrays.concat([shape, shape[-1:]], 0)

    def _to_dense(self) -> Tensor:
        return linalg.matrix_diag(self.diag)

    def _column(self, adjoint: bool) -> Tensor:
        return arrays.expand_dims(math.conj(self.diag) if adjoint else self.diag, -1)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return self._column(adjoint) * (linalg.adjoint(x) if adjoint_arg else x)

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        return rhs / self._column(adjoint)

    def _determinant(self) -> Tensor:
        return reductions.reduce_prod(self.diag, -1)

    def _log_abs_determinant(self) -> Tensor:
        return reductions.reduce_sum(math.log(math.abs(self.diag)), -1)

    def _diag_part(self) -> Tensor:
        return self.diag

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorDiag(math.conj(self.diag), self.is_non_singular, None, self.is_positive_definite)

    def _inverse(self) -> LinearOperator:
        return LinearOperatorDiag(1.0 / self.diag, self.is_non_singular, None, self.is_positive_definite)

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorDiag(math.sqrt(self.diag), is_positive_definite=True)

    def _after(self, left: LinearOperator) -> LinearOperator:
        if type(left) is LinearOperatorDiag:
            return LinearOperatorDiag(left.diag * self.diag)
        return super()._after(left)


class _Sized(LinearOperator):
    """Base of operators defined by their sizes, with few values or none.

    Attributes:
      _rows: M, a number or a tensor.
      _columns: N.
      _batch: the outer dimensions.
    """

    _rows: Tensor
    _columns: object
    _batch: Any

    def add_to_tensor(self, mat: TensorLike, name: str = "add_to_tensor") -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The matrix added to a tensor [..., M, N], under TensorFlow's name for the argument here."""
        return super().add_to_tensor(mat, name)

    def _outer(self) -> TensorShape:
        value = constant_value(self._batch) if isinstance(self._batch, Tensor) else self._batch
        return TensorShape(None) if value is None else TensorShape([int(size) for size in value])

    def _outer_tensor(self) -> Tensor:
        return convert_to_tensor(self._batch, dtypes.int32)

    def _shape(self) -> TensorShape:
        inner = [size if isinstance(size, int) else None for size in (self._rows, self._columns)]
        return self._outer().concatenate(TensorShape(inner))

    def _shape_tensor(self) -> Tensor:
        return arrays.concat([self._outer_tensor(), arrays.stack([self._rows, self._columns])], 0)


class _Identity(_Sized):
    """A multiple of the identity, by a number for each matrix of the batch."""

    def _factor(self) -> Tensor:
        raise NotImplementedError

    def _spread(self, times: int) -> Tensor:
        """The factor with further dimensions of 1."""
        factor = self._factor()
        for _ in range(times):
            factor = arrays.expand_dims(factor, -1)
        return factor

    def _to_dense(self) -> Tensor:
        outer = self._outer()
        batch = outer.as_list() if outer.is_fully_defined() else self._outer_tensor()
        return self._spread(2) * linalg.eye(self._rows, batch_shape=batch, dtype=self.dtype)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        factor = self._spread(2)
        x = linalg.adjoint(x) if adjoint_arg else x
        found = (math.conj(factor) if adjoint else factor) * x
        outer = self._outer()
        if outer.ndims == 0:
            return found
        return arrays.broadcast_to(
            found,
            arrays.concat(
                [arrays.broadcast_dynamic_shape(self._outer_tensor(), arrays.shape(x)[:-2]), arrays.shape(x)[-2:]], 0
            ),
        )

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        factor = self._spread(2)
        unit = self._matmul(rhs, False, False) / factor
        return unit / (math.conj(factor) if adjoint else factor)

    def _diag_part(self) -> Tensor:
        shape = arrays.concat([self._outer_tensor(), arrays.stack([self._rows])], 0)
        return arrays.broadcast_to(self._spread(1), shape)

    def _determinant(self) -> Tensor:
        return math.pow(self._per_matrix(), math.cast(self._rows, self.dtype))

    def _log_abs_determinant(self) -> Tensor:
        factor = math.log(math.abs(self._per_matrix()))
        return factor * math.cast(self._rows, factor.dtype)

    def _per_matrix(self) -> Tensor:
        return arrays.broadcast_to(self._factor(), self._outer_tensor())


class LinearOperatorIdentity(_Identity):
    """The identity, or a batch of it.

    Args:
      num_rows: the number of rows of each matrix.
      batch_shape: the outer dimensions; None: no outer dimensions.
      dtype: None: float32.
      is_non_singular: True, like the following hints.
      is_self_adjoint, is_positive_definite, is_square: True.
      assert_proper_shapes: accepted; shapes that a step computes are always checked.

    Raises:
      ValueError: a hint is False.
    """

    def __init__(
        self,
        num_rows: TensorLike,
        batch_shape: TensorLike | ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        is_non_singular: bool = True,
        is_self_adjoint: bool = True,
        is_positive_definite: bool = True,
        is_square: bool = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorIdentity",
    ) -> None:
        del assert_proper_shapes
        for hint, what in (
            (is_self_adjoint, "self adjoint"),
            (is_square, "square"),
            (is_non_singular, "non-singular"),
            (is_positive_definite, "positive-definite"),
        ):
            if not hint:
                raise ValueError(f"An identity operator is always {what}.")
        self._rows = self._columns = _size(num_rows, "num_rows")
        self._batch = () if batch_shape is None else batch_shape
        super().__init__(as_dtype(dtype or dtypes.float32), None, True, True, True, True, name)

    def _factor(self) -> Tensor:
        return convert_to_tensor(1, self.dtype)

    def _adjoint(self) -> LinearOperator:
        return self

    def _inverse(self) -> LinearOperator:
        return self

    def _cholesky(self) -> LinearOperator:
        return self

    def _after(self, left: LinearOperator) -> LinearOperator:
        return left if self._batch == () else super()._after(left)


class LinearOperatorScaledIdentity(_Identity):
    """The identity times a number, or for each matrix of a batch its own number.

    Args:
      num_rows: the number of rows of each matrix.
      multiplier: the number, [...].
      is_non_singular: a hint.
      is_self_adjoint: follows from the type of real numbers.
      is_positive_definite: a hint.
      is_square: True.
      assert_proper_shapes: accepted; shapes that a step computes are always checked.

    Raises:
      ValueError: ``is_square`` is False.

    Attributes:
      multiplier: the factor of the identity.
    """

    def __init__(
        self,
        num_rows: TensorLike,
        multiplier: TensorLike,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:
        del assert_proper_shapes
        if not is_square:
            raise ValueError("A ScaledIdentity operator is always square.")
        with name_scope(name, "", [multiplier]):
            self.multiplier: Tensor = convert_to_tensor(multiplier, name="multiplier")
        self._rows = self._columns = _size(num_rows, "num_rows")
        if not self.multiplier.dtype.is_complex:
            is_self_adjoint = True
        super().__init__(
            self.multiplier.dtype, [self.multiplier], is_non_singular, is_self_adjoint, is_positive_definite, True, name
        )

    def _factor(self) -> Tensor:
        return self.multiplier

    def _outer(self) -> TensorShape:
        return self.multiplier.shape

    def _outer_tensor(self) -> Tensor:
        return arrays.shape(self.multiplier)

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._rows, math.conj(self.multiplier), self.is_non_singular)

    def _inverse(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(
            self._rows, 1.0 / self.multiplier, self.is_non_singular, None, self.is_positive_definite
        )

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._rows, math.sqrt(self.multiplier), is_positive_definite=True)


def _size(value: TensorLike, name: str) -> Any:
    size = known(value)
    if isinstance(size, int) and size < 0:
        raise ValueError(f"{name} must be non-negative. Found: {size}")
    return size


class LinearOperatorZeros(_Sized):
    """A matrix of zeros, or a batch of it.

    Args:
      num_rows: M.
      num_columns: N; None: M.
      batch_shape: the outer dimensions; None: no outer dimensions.
      dtype: None: float32.
      is_non_singular: False.
      is_self_adjoint: whether it is square.
      is_positive_definite: False.
      is_square: whether M is N.
      assert_proper_shapes: accepted; shapes that a step computes are always checked.

    Raises:
      ValueError: a hint contradicts this.
    """

    def __init__(
        self,
        num_rows: TensorLike,
        num_columns: TensorLike | None = None,
        batch_shape: ShapeLike | None = None,
        dtype: DType | None = None,
        is_non_singular: bool = False,
        is_self_adjoint: bool = True,
        is_positive_definite: bool = False,
        is_square: bool = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorZeros",
    ) -> None:
        del assert_proper_shapes
        if not is_self_adjoint and is_square:
            raise ValueError("A zero operator is always self adjoint.")
        if is_non_singular:
            raise ValueError("A zero operator is always singular.")
        if is_positive_definite:
            raise ValueError("A zero operator is always not positive-definite.")
        self._rows = _size(num_rows, "num_rows")
        self._columns = self._rows if num_columns is None else _size(num_columns, "num_columns")
        self._batch = () if batch_shape is None else batch_shape
        super().__init__(as_dtype(dtype or dtypes.float32), None, False, is_self_adjoint, False, is_square, name)

    def _to_dense(self) -> Tensor:
        return arrays.zeros(self.shape_tensor(), self.dtype)

    def _determinant(self) -> Tensor:
        return arrays.zeros(self.batch_shape_tensor(), self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        return math.log(math.abs(self._determinant()))
