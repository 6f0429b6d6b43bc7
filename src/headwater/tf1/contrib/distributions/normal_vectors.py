"""Normal distributions of vectors, and of scalars with a softplus scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.dtypes import float32
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, factorisations, linalg, math, nn, random, reductions
from headwater.tf1.functional.distributions.base import FULLY_REPARAMETERIZED, Distribution
from headwater.tf1.functional.distributions.continuous import Normal
from headwater.tf1.functional.distributions.divergence import RegisterKL

if TYPE_CHECKING:
    from headwater.shapes import TensorShape

_LOG_2PI = float(np.log(2 * np.pi))


class _NormalVectors(Distribution):
    """Base of normal distributions of vectors: x = loc + scale z, with standard normal z.

    Args:
      arguments: the arguments of the class, which `copy` uses.
      loc: the mean, [..., k]; None for zeros.
      scale: [..., k] or [..., k, k]; see subclasses.
      matrix_dims: the number of dimensions of the scale of one vector.

    Attributes:
      loc: the mean; None if it was not given.
    """

    def __init__(
        self,
        arguments: Mapping[str, object],
        loc: TensorLike | None,
        scale: Tensor,
        matrix_dims: int,
        validate_args: bool,
        allow_nan_stats: bool,
        name: str,
    ) -> None:
        self._scale = scale
        self._sizes = scale.shape[: -matrix_dims + 1] if matrix_dims > 1 else scale.shape
        self._size_tensor = arrays.shape(scale)[: -matrix_dims + 1] if matrix_dims > 1 else arrays.shape(scale)
        self.loc: Tensor | None = None if loc is None else convert_to_tensor(loc, scale.dtype, name="loc")
        if self.loc is not None:
            self._sizes = arrays.broadcast_static_shape(self.loc.shape, self._sizes)
            self._size_tensor = arrays.broadcast_dynamic_shape(arrays.shape(self.loc), self._size_tensor)
        parents = [scale] if self.loc is None else [self.loc, scale]
        super().__init__(
            scale.dtype.base_dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, arguments, parents, name
        )

    def _batch_shape(self) -> TensorShape:
        return self._sizes[:-1]

    def _batch_shape_tensor(self) -> Tensor:
        return self._size_tensor[:-1]

    def _event_shape(self) -> TensorShape:
        return self._sizes[-1:]

    def _event_shape_tensor(self) -> Tensor:
        return self._size_tensor[-1:]

    def scaled(self, z: Tensor) -> Tensor:
        """Returns scale z."""
        raise NotImplementedError

    def standardized(self, x: Tensor) -> Tensor:
        """Returns scale⁻¹ x."""
        raise NotImplementedError

    def diagonal(self) -> Tensor:
        """Returns the diagonal of the scale, [..., k]."""
        raise NotImplementedError

    def scale_matrix(self) -> Tensor:
        """Returns the scale, [..., k, k]."""
        raise NotImplementedError

    def log_determinant(self) -> Tensor:
        """Returns the logarithm of the determinant of the scale, at the size of the batch."""
        found = reductions.reduce_sum(math.log(math.abs(self.diagonal())), -1)
        return found + arrays.zeros(self.batch_shape_tensor(), self.dtype)

    def _dimensions(self) -> Tensor:
        return math.cast(self._size_tensor[-1], self.dtype)

    def _sample_n(self, n: object, seed: int | None) -> Tensor:
        sizes = arrays.concat([arrays.stack([n]), self._size_tensor], 0)
        drawn = self.scaled(random.random_normal(sizes, dtype=self.dtype, seed=seed))
        return drawn if self.loc is None else drawn + self.loc

    def _log_prob(self, x: Tensor) -> Tensor:
        z = self.standardized(x if self.loc is None else x - self.loc)
        apart = reductions.reduce_sum(math.square(z), -1) + self._dimensions() * _LOG_2PI
        return -0.5 * apart - self.log_determinant()

    def _entropy(self) -> Tensor:
        return 0.5 * self._dimensions() * (1.0 + _LOG_2PI) + self.log_determinant()

    def _mean(self) -> Tensor:
        zeros = arrays.zeros(self._size_tensor, self.dtype)
        return zeros if self.loc is None else self.loc + zeros

    _mode = _mean

    def _covariance(self) -> Tensor:
        matrix = self.scale_matrix()
        return linalg.matmul(matrix, matrix, adjoint_b=True)

    def _variance(self) -> Tensor:
        return reductions.reduce_sum(math.square(self.scale_matrix()), -1)


class MultivariateNormalDiag(_NormalVectors):
    """Normal distribution of vectors with independent elements.

    Args:
      loc: the mean, [..., k]; zeros if None.
      scale_diag: the standard deviations, [..., k]; ones if None.
      scale_identity_multiplier: added to all standard deviations, or their value when ``scale_diag`` is None: [...].
      validate_args: accepted.
      allow_nan_stats: whether undefined statistics are NaN.

    Raises:
      ValueError: neither ``loc`` nor ``scale_diag`` tells the size of vectors.
    """

    def __init__(
        self,
        loc: TensorLike | None = None,
        scale_diag: TensorLike | None = None,
        scale_identity_multiplier: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiag",
    ) -> None:
        arguments = dict(locals())
        scale = _diagonal(loc, scale_diag, scale_identity_multiplier)
        super().__init__(arguments, loc, scale, 1, validate_args, allow_nan_stats, name)

    def scaled(self, z: Tensor) -> Tensor:
        """Returns the elements of z times their deviations."""
        return z * self._scale

    def standardized(self, x: Tensor) -> Tensor:
        """Returns the elements of x divided by their deviations."""
        return x / self._scale

    def diagonal(self) -> Tensor:
        """Returns the standard deviations, [..., k]."""
        return self._scale

    def scale_matrix(self) -> Tensor:
        """Returns the diagonal matrix of the standard deviations, [..., k, k]."""
        return linalg.matrix_diag(self._scale)

    def _variance(self) -> Tensor:
        return math.square(self._scale)

    def _stddev(self) -> Tensor:
        return math.abs(self._scale)


def _diagonal(loc: Any, diagonal: Any, multiplier: Any) -> Tensor:
    """Returns the standard deviations, [..., k]."""
    if diagonal is not None:
        found = convert_to_tensor(diagonal, name="scale_diag", preferred_dtype=float32)
        if multiplier is None:
            return found
        return found + arrays.expand_dims(convert_to_tensor(multiplier, found.dtype), -1)
    if loc is None:
        raise ValueError("Need to know the number of dimensions: pass loc or scale_diag.")
    mean = convert_to_tensor(loc, name="loc", preferred_dtype=float32)
    ones = arrays.ones(arrays.shape(mean)[-1:], mean.dtype)
    ones.set_shape(mean.shape[-1:])
    return ones if multiplier is None else ones * arrays.expand_dims(convert_to_tensor(multiplier, mean.dtype), -1)


class MultivariateNormalDiagWithSoftplusScale(MultivariateNormalDiag):
    """`MultivariateNormalDiag` with the standard deviations softplus(``scale_diag``)."""

    def __init__(
        self,
        loc: TensorLike,
        scale_diag: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiagWithSoftplusScale",
    ) -> None:
        arguments = dict(locals())
        super().__init__(loc, nn.softplus(scale_diag), None, validate_args, allow_nan_stats, name)
        self._parameters = {key: value for key, value in arguments.items() if key not in ("self", "__class__")}


class MultivariateNormalTriL(_NormalVectors):
    """Normal distribution of vectors with a lower triangular scale, the Cholesky factor of the covariance.

    Args:
      loc: the mean, [..., k]; zeros if None.
      scale_tril: the scale, [..., k, k], whose upper triangle is ignored; the unit matrix if None.
      validate_args: accepted.
      allow_nan_stats: whether undefined statistics are NaN.

    Raises:
      ValueError: neither ``loc`` nor ``scale_tril`` is given.
    """

    def __init__(
        self,
        loc: TensorLike | None = None,
        scale_tril: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalTriL",
    ) -> None:
        arguments = dict(locals())
        if scale_tril is None:
            scale = linalg.matrix_diag(_diagonal(loc, None, None))
        else:
            scale = linalg.matrix_band_part(convert_to_tensor(scale_tril, preferred_dtype=float32), -1, 0)
        super().__init__(arguments, loc, scale, 2, validate_args, allow_nan_stats, name)

    def scaled(self, z: Tensor) -> Tensor:
        """Returns scale z."""
        return linalg.matvec(self._scale, z)

    def standardized(self, x: Tensor) -> Tensor:
        """Returns scale⁻¹ x."""
        x += arrays.zeros(self._size_tensor, self.dtype)
        spread = arrays.concat([arrays.shape(x)[:-1], arrays.shape(self._scale)[-2:]], 0)
        columns = factorisations.matrix_triangular_solve(
            arrays.broadcast_to(self._scale, spread), arrays.expand_dims(x, -1)
        )
        return arrays.squeeze(columns, [-1])

    def diagonal(self) -> Tensor:
        """Returns the diagonal of the scale, [..., k]."""
        return linalg.matrix_diag_part(self._scale)

    def scale_matrix(self) -> Tensor:
        """Returns the scale, [..., k, k]."""
        return self._scale


class MultivariateNormalFullCovariance(MultivariateNormalTriL):
    """`MultivariateNormalTriL` of a covariance matrix, [..., k, k]; the unit matrix if None."""

    def __init__(
        self,
        loc: TensorLike | None = None,
        covariance_matrix: TensorLike | None = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalFullCovariance",
    ) -> None:
        arguments = dict(locals())
        scale = None if covariance_matrix is None else factorisations.cholesky(covariance_matrix)
        super().__init__(loc, scale, validate_args, allow_nan_stats, name)
        self._parameters = {key: value for key, value in arguments.items() if key not in ("self", "__class__")}


class NormalWithSoftplusScale(Normal):
    """`Normal` with the standard deviation softplus(``scale``)."""

    def __init__(
        self,
        loc: TensorLike,
        scale: TensorLike,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "NormalWithSoftplusScale",
    ) -> None:
        arguments = dict(locals())
        super().__init__(loc, nn.softplus(scale), validate_args, allow_nan_stats, name)
        self._parameters = {key: value for key, value in arguments.items() if key not in ("self", "__class__")}


@RegisterKL(MultivariateNormalDiag, MultivariateNormalDiag)
def _of_diagonals(a: MultivariateNormalDiag, b: MultivariateNormalDiag, name: str | None = None) -> Tensor:
    del name
    ratio = math.square(a.diagonal()) / math.square(b.diagonal())
    apart = math.square(b.standardized(b.mean() - a.mean()))
    return 0.5 * reductions.reduce_sum(ratio + apart - 1.0 - math.log(ratio), -1)


@RegisterKL(_NormalVectors, _NormalVectors)
def _of_vectors(a: _NormalVectors, b: _NormalVectors, name: str | None = None) -> Tensor:
    del name
    # Columns of b's inverse scale times a's scale: the trace is the sum of their squares.
    first, second = a.scale_matrix(), b.scale_matrix()
    shape = arrays.broadcast_dynamic_shape(arrays.shape(first), arrays.shape(second))
    columns = factorisations.matrix_triangular_solve(
        arrays.broadcast_to(second, shape), arrays.broadcast_to(first, shape)
    )
    trace = reductions.reduce_sum(math.square(columns), [-2, -1])
    apart = reductions.reduce_sum(math.square(b.standardized(b.mean() - a.mean())), -1)
    size = math.cast(a.event_shape_tensor()[0], a.dtype)
    return b.log_determinant() - a.log_determinant() + 0.5 * (trace + apart - size)
