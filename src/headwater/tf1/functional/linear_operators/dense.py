"""Linear operators of full matrices, and of triangular, circulant, Toeplitz and Householder matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headwater import dtypes
from headwater.dtypes import as_dtype
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.shapes import TensorShape
from headwater.tf1.functional import arrays, fourier, indexing, linalg, math, reductions
from headwater.tf1.functional.checks import assert_less
from headwater.tf1.functional.factorisations import matrix_triangular_solve
from headwater.tf1.functional.linear_operators.base import LinearOperator, makers, with_same_batch
from headwater.tf1.functional.sizes import size_of

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.operation import Operation


class LinearOperatorFullMatrix(LinearOperator):
    """A matrix given by all its elements.

    Args:
      matrix: [..., M, N].
      is_non_singular: see `LinearOperator`, as for all hints.
      is_self_adjoint, is_positive_definite, is_square: a hint.

    Raises:
      ValueError: ``matrix`` has less than two dimensions.
    """

    def __init__(
        self,
        matrix: TensorLike,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorFullMatrix",
    ) -> None:
        with name_scope(name, "", [matrix]):
            self._matrix = convert_to_tensor(matrix, name="matrix")
        _check_rank(self._matrix, 2, "matrix")
        super().__init__(
            self._matrix.dtype, [self._matrix], is_non_singular, is_self_adjoint, is_positive_definite, is_square, name
        )

    def _shape(self) -> TensorShape:
        return self._matrix.shape

    def _shape_tensor(self) -> Tensor:
        return arrays.shape(self._matrix)

    def _to_dense(self) -> Tensor:
        return self._matrix


def _check_rank(tensor: Tensor, least: int, name: str) -> None:
    if tensor.dims is not None and len(tensor.dims) < least:
        raise ValueError(f"Argument {name} must have at least {least} dimensions.  Found: {tensor}")


class LinearOperatorLowerTriangular(LinearOperator):
    """The lower triangle of a matrix.

    Args:
      tril: [..., N, N]; elements above the diagonal are ignored.
      is_non_singular: a hint: no element of the diagonal is 0.
      is_self_adjoint: a hint: the matrix is diagonal.
      is_positive_definite: a hint.
      is_square: True.

    Raises:
      ValueError: ``is_square`` is False, or ``tril`` has less than two dimensions.
    """

    def __init__(
        self,
        tril: TensorLike,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowerTriangular",
    ) -> None:
        if is_square is False:
            raise ValueError("Only square lower triangular operators supported at this time.")
        with name_scope(name, "", [tril]):
            self._tril = convert_to_tensor(tril, name="tril")
        _check_rank(self._tril, 2, "tril")
        super().__init__(
            self._tril.dtype, [self._tril], is_non_singular, is_self_adjoint, is_positive_definite, True, name
        )

    def _shape(self) -> TensorShape:
        return self._tril.shape

    def _shape_tensor(self) -> Tensor:
        return arrays.shape(self._tril)

    def _to_dense(self) -> Tensor:
        return linalg.matrix_band_part(self._tril, -1, 0)

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        matrix, rhs = with_same_batch(self._to_dense(), rhs)
        return matrix_triangular_solve(matrix, rhs, lower=True, adjoint=adjoint)

    def _diag_part(self) -> Tensor:
        return linalg.matrix_diag_part(self._tril)

    def _determinant(self) -> Tensor:
        return reductions.reduce_prod(self._diag_part(), -1)

    def _log_abs_determinant(self) -> Tensor:
        return reductions.reduce_sum(math.log(math.abs(self._diag_part())), -1)


class LinearOperatorHouseholder(LinearOperator):
    """The reflection ``I - 2 v v^H / |v|²``.

    Args:
      reflection_axis: v, [..., N].
      is_non_singular, is_self_adjoint: True.
      is_positive_definite: False.
      is_square: True.

    Raises:
      ValueError: a hint contradicts these values.

    Attributes:
      reflection_axis: the vector v.
    """

    def __init__(
        self,
        reflection_axis: int,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorHouseholder",
    ) -> None:
        with name_scope(name, "", [reflection_axis]):
            self.reflection_axis: Tensor = convert_to_tensor(reflection_axis, name="reflection_axis")
        _check_rank(self.reflection_axis, 1, "reflection_axis")
        if is_self_adjoint is False:
            raise ValueError("A Householder operator is always self adjoint.")
        if is_positive_definite:
            raise ValueError("A Householder operator is always non-positive definite.")
        if is_square is False:
            raise ValueError("A Householder operator is always square.")
        if is_non_singular is False:
            raise ValueError("A Householder operator is always non-singular.")
        super().__init__(self.reflection_axis.dtype, [self.reflection_axis], is_non_singular, True, False, True, name)

    def _shape(self) -> TensorShape:
        shape = self.reflection_axis.shape
        return shape.concatenate(shape[-1:]) if shape.ndims is not None else TensorShape(None)

    def _shape_tensor(self) -> Tensor:
        shape = arrays.shape(self.reflection_axis)
        return arrays.concat([shape, shape[-1:]], 0)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        x = linalg.adjoint(x) if adjoint_arg else x
        length = math.sqrt(reductions.reduce_sum(math.square(math.abs(self.reflection_axis)), -1, keepdims=True))
        axis = arrays.expand_dims(self.reflection_axis / math.cast(length, self.dtype), -1)
        return x - 2.0 * axis * linalg.matmul(axis, x, adjoint_a=True)

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        return self._matmul(rhs, adjoint, False)

    def _determinant(self) -> Tensor:
        return -arrays.ones_like(self.reflection_axis[..., 0])

    def _log_abs_determinant(self) -> Tensor:
        return arrays.zeros_like(math.abs(self.reflection_axis[..., 0]))

    def _inverse(self) -> LinearOperator:
        return self


class LinearOperatorToeplitz(LinearOperator):
    """A matrix whose diagonals are constant.

    Args:
      col: its first column, [..., N].
      row: its first row, [..., N]; its first element is ignored.
      is_non_singular, is_self_adjoint, is_positive_definite: a hint.
      is_square: True.

    Raises:
      ValueError: ``is_square`` is False.

    Attributes:
      col: the first column.
      row: the first row.
    """

    def __init__(
        self,
        col: TensorLike,
        row: TensorLike,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorToeplitz",
    ) -> None:
        if is_square is False:
            raise ValueError("Only square Toeplitz operators currently supported.")
        with name_scope(name, "", [row, col]):
            self.row: Tensor = convert_to_tensor(row, name="row")
            self.col: Tensor = convert_to_tensor(col, name="col")
        for tensor, what in ((self.row, "row"), (self.col, "col")):
            _check_rank(tensor, 1, what)
        super().__init__(
            self.row.dtype, [self.row, self.col], is_non_singular, is_self_adjoint, is_positive_definite, True, name
        )

    def _shape(self) -> TensorShape:
        shape = arrays.broadcast_static_shape(self.row.shape, self.col.shape)
        return shape.concatenate(shape[-1:]) if shape.ndims is not None else TensorShape(None)

    def _shape_tensor(self) -> Tensor:
        shape = arrays.broadcast_dynamic_shape(arrays.shape(self.row), arrays.shape(self.col))
        return arrays.concat([shape, shape[-1:]], 0)

    def _to_dense(self) -> Tensor:
        row, col = (
            arrays.broadcast_to(part, self.shape_tensor()[:-1]) if self.row.dims != self.col.dims else part
            for part in (self.row, self.col)
        )
        # The elements from the lower left corner to the upper right one: element (i, j) has the index n - 1 - i + j.
        edge = arrays.concat([arrays.reverse(col, [-1]), row[..., 1:]], -1)
        size = size_of(col, -1)
        if isinstance(size, int):
            steps = np.arange(size)
            places = size - 1 - steps[:, None] + steps
        else:
            steps = arrays.range(size)
            places = size - 1 - arrays.expand_dims(steps, 1) + steps
        return indexing.gather(edge, places, axis=-1)


class _Circulant(LinearOperator):
    """Base of operators defined by a spectrum: matrices that are diagonal in the Fourier basis.

    Attributes:
      spectrum: the eigenvalues.
    """

    _block_depth = 1

    def __init__(
        self,
        spectrum: TensorLike,
        input_output_dtype: DTypeLike = dtypes.complex64,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str | None = None,
    ) -> None:
        with name_scope(name, type(self).__name__, [spectrum]):
            self.spectrum: Tensor = convert_to_tensor(spectrum, name="spectrum")
        _check_rank(self.spectrum, self._block_depth, "spectrum")
        if is_square is False:
            raise ValueError("A [[nested] block] circulant operator is always square.")
        if not self.spectrum.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A real spectrum always corresponds to a self-adjoint operator.")
            is_self_adjoint = True
        super().__init__(
            as_dtype(input_output_dtype),
            [self.spectrum],
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            True,
            name,
        )

    @property
    def block_depth(self) -> int:
        """The number of dimensions of the Fourier transform."""
        return self._block_depth

    @property
    def block_shape(self) -> TensorShape:
        """The sizes of the transformed dimensions."""
        return self.spectrum.shape[-self._block_depth :]

    def block_shape_tensor(self) -> Tensor:
        """Returns the sizes of the transformed dimensions as a tensor."""
        return arrays.shape(self.spectrum)[-self._block_depth :]

    def _shape(self) -> TensorShape:
        size = self.block_shape.num_elements()
        return self.spectrum.shape[: -self._block_depth].concatenate(TensorShape([size, size]))

    def _shape_tensor(self) -> Tensor:
        size = reductions.reduce_prod(self.block_shape_tensor())
        return arrays.concat([arrays.shape(self.spectrum)[: -self._block_depth], arrays.stack([size, size])], 0)

    def _complex(self, x: Tensor) -> Tensor:
        return x if x.dtype.is_complex else math.cast(x, dtypes.complex64)

    def _transform(self, x: Tensor, inverse: bool = False) -> Tensor:
        if inverse:
            return (fourier.ifft, fourier.ifft2d, fourier.ifft3d)[self._block_depth - 1](x)
        return (fourier.fft, fourier.fft2d, fourier.fft3d)[self._block_depth - 1](x)

    def convolution_kernel(self, name: str = "convolution_kernel") -> Tensor:
        """Returns the convolution kernel: the inverse Fourier transform of the spectrum."""
        with name_scope(name, "", self.graph_parents):
            return math.cast(self._transform(self._complex(self.spectrum), inverse=True), self.dtype)

    def _through(self, x: Tensor, spectrum: Tensor) -> Tensor:
        """The columns of ``x`` [..., N, R], transformed, multiplied and transformed back."""
        columns = self._complex(arrays.matrix_transpose(x))
        split = arrays.concat([arrays.shape(columns)[:-1], self.block_shape_tensor()], 0)
        blocks = self._transform(arrays.reshape(columns, split)) * arrays.expand_dims(spectrum, -self._block_depth - 1)
        found = self._transform(blocks, inverse=True)
        flat = arrays.concat([arrays.shape(found)[: -self._block_depth], [-1]], 0)
        found = arrays.matrix_transpose(arrays.reshape(found, flat))
        return math.cast(found if self.dtype.is_complex else math.real(found), self.dtype)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        spectrum = self._complex(self.spectrum)
        return self._through(linalg.adjoint(x) if adjoint_arg else x, math.conj(spectrum) if adjoint else spectrum)

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        spectrum = self._complex(self.spectrum)
        return self._through(rhs, 1.0 / (math.conj(spectrum) if adjoint else spectrum))

    def _over_blocks(self, reduce: Any, x: Tensor) -> Tensor:
        return reduce(x, list(range(-self._block_depth, 0)))

    def _determinant(self) -> Tensor:
        return math.cast(self._over_blocks(reductions.reduce_prod, self.spectrum), self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        found = self._over_blocks(reductions.reduce_sum, math.log(math.abs(self.spectrum)))
        return math.cast(found, self.dtype)

    def _diag_part(self) -> Tensor:
        mean = math.cast(self._over_blocks(reductions.reduce_mean, self._complex(self.spectrum)), self.dtype)
        return arrays.expand_dims(mean, -1) * arrays.ones(self.shape_tensor()[-1:], self.dtype)

    def _adjoint(self) -> LinearOperator:
        return type(self)(math.conj(self.spectrum), self.dtype, self.is_non_singular)

    def _inverse(self) -> LinearOperator:
        # Complex even if the operator's own type is real, as in TensorFlow 1.15.
        return type(self)(1.0 / self.spectrum, is_non_singular=self.is_non_singular)

    def assert_hermitian_spectrum(self, name: str = "assert_hermitian_spectrum") -> Operation:
        """An operation that fails if the spectrum belongs to a matrix that is not real."""
        with name_scope(name, "", self.graph_parents):
            kernel = self._transform(self._complex(self.spectrum), inverse=True)
            apart = reductions.reduce_max(math.abs(math.imag(kernel)))
            return assert_less(apart, math.cast(1e-6, apart.dtype), message="Spectrum was not Hermitian")


class LinearOperatorCirculant(_Circulant):
    """A circulant matrix: each row is the previous one rotated by one: ``F^H diag(spectrum) F``.

    Args:
      spectrum: the eigenvalues, [..., N].
      input_output_dtype: type of its operands and results.
      is_non_singular: a hint.
      is_self_adjoint: follows from a real spectrum.
      is_positive_definite: a hint.
      is_square: True.

    Raises:
      ValueError: a hint contradicts the spectrum.
    """


class LinearOperatorCirculant2D(_Circulant):
    """A block circulant matrix with circulant blocks: `LinearOperatorCirculant` with a two-dimensional spectrum."""

    _block_depth = 2


class LinearOperatorCirculant3D(_Circulant):
    """Like `LinearOperatorCirculant`, with a spectrum of three dimensions."""

    _block_depth = 3


makers.triangular = LinearOperatorLowerTriangular
makers.full_matrix = LinearOperatorFullMatrix
