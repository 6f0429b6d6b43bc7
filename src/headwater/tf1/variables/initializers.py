"""Initial values of variables: objects called with a shape and an element type."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from headwater.dtypes import DType, as_dtype, float32
from headwater.graph.convert import constant, convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.shapes import as_shape
from headwater.tf1.functional.arrays import fill, reshape, transpose
from headwater.tf1.functional.factorisations import qr
from headwater.tf1.functional.linalg import diag_part
from headwater.tf1.functional.math import multiply, sign
from headwater.tf1.functional.random import random_normal, random_uniform, truncated_normal
from headwater.tf1.variables.partitioned import PartitionInfo

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.types import TensorLike
    from headwater.shapes import ShapeLike


_LARGEST_CONST = 1000  # elements; a larger tensor of one value is filled at run time rather than kept in the graph
_TRUNCATED_STDDEV = 0.87962566103423978  # standard deviation of a unit normal cut at two


class Initializer:
    """Base of all initializers: ``initializer(shape, dtype)`` returns a tensor.

    ``partition_info`` describes the whole tensor of which this is a part; None if it is not a part.
    """

    _fields: ClassVar[tuple[str, ...]] = ()

    def __call__(
        self, shape: ShapeLike, dtype: DTypeLike | None = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        raise NotImplementedError

    def get_config(self) -> dict[str, object]:
        """The constructor's arguments, which `from_config` takes."""
        config = {name: getattr(self, name) for name in self._fields}
        return {key: value.name if isinstance(value, DType) else value for key, value in config.items()}

    @classmethod
    def from_config(cls, config: Mapping[str, object]) -> Self:
        """The initializer that has this configuration."""
        return cls(**{key: value for key, value in config.items() if key in cls._fields})


def _floating(dtype: DTypeLike) -> DType:
    found = as_dtype(dtype)
    if not found.is_floating:
        raise ValueError(f"Expected floating point type, got {found!r}.")
    return found


def _one_value(value: TensorLike, shape: ShapeLike, dtype: DType, name: str) -> Tensor:
    dims = [int(d) for d in as_shape(shape)]
    if math.prod(dims) <= _LARGEST_CONST:
        return constant(value, dtype, shape=dims, name=name)
    return fill(dims, convert_to_tensor(value, dtype), name=name)


class Zeros(Initializer):
    """Zeros."""

    _fields = ("dtype",)

    def __init__(self, dtype: DTypeLike = float32) -> None:
        self.dtype: DType = as_dtype(dtype)

    def __call__(
        self, shape: ShapeLike, dtype: DTypeLike | None = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        kind = as_dtype(dtype or self.dtype)
        return _one_value(_zero(kind), shape, kind, "zeros")


class Ones(Initializer):
    """Ones."""

    _fields = ("dtype",)

    def __init__(self, dtype: DTypeLike = float32) -> None:
        self.dtype: DType = as_dtype(dtype)

    def __call__(
        self, shape: ShapeLike, dtype: DTypeLike | None = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        kind = as_dtype(dtype or self.dtype)
        return _one_value(kind.as_numpy_dtype(1), shape, kind, "ones")


ZEROS = Zeros()
"""Default of initializer arguments."""
ONES = Ones()
"""Default of initializer arguments."""


def _zero(dtype: DType) -> Any:
    return b"" if dtype.name == "string" else dtype.as_numpy_dtype(0)


class Constant(Initializer):
    """One value, or the values of a list or array in order, the last one repeated if the shape has more elements.

    Args:
      value: a number, or a list or array of them.
      dtype: element type if the caller specifies none.
      verify_shape: require that ``value`` has exactly the requested shape.

    Raises:
      TypeError: ``value`` is of another type.
    """

    _fields = ("value", "dtype")

    def __init__(self, value: TensorLike = 0, dtype: DType = float32, verify_shape: bool = False) -> None:
        if not (np.isscalar(value) or isinstance(value, list | tuple | np.ndarray)):
            raise TypeError(
                f"Invalid type for initial value: {type(value)} (expected Python scalar, list or tuple of "
                "values, or numpy.ndarray)."
            )
        self.value: TensorLike = value
        self.dtype: DType = as_dtype(dtype)
        self._verify_shape = verify_shape

    def __call__(
        self,
        shape: ShapeLike,
        dtype: DTypeLike | None = None,
        partition_info: PartitionInfo | None = None,
        verify_shape: bool | None = None,
    ) -> Tensor:
        kind = as_dtype(dtype or self.dtype)
        verify = self._verify_shape if verify_shape is None else verify_shape
        if np.isscalar(self.value) and not verify:
            return _one_value(self.value, shape, kind, "Const")
        return constant(self.value, kind, shape=shape, verify_shape=verify)


class RandomUniform(Initializer):
    """Uniform between ``minval`` and ``maxval`` (exclusive; None: 1 for floating types)."""

    _fields = ("minval", "maxval", "seed", "dtype")

    def __init__(
        self,
        minval: TensorLike = 0,
        maxval: TensorLike | None = None,
        seed: int | None = None,
        dtype: DTypeLike = float32,
    ) -> None:
        self.minval = minval
        self.maxval = maxval
        self.seed = seed
        self.dtype: DType = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: PartitionInfo | None = None) -> Tensor:
        return random_uniform(shape, self.minval, self.maxval, as_dtype(dtype or self.dtype), seed=self.seed)


class RandomNormal(Initializer):
    """Normal of ``mean`` and standard deviation ``stddev``."""

    _fields = ("mean", "stddev", "seed", "dtype")

    def __init__(
        self, mean: TensorLike = 0.0, stddev: TensorLike = 1.0, seed: int | None = None, dtype: DTypeLike = float32
    ) -> None:
        self.mean = mean
        self.stddev = stddev
        self.seed = seed
        self.dtype: DType = _floating(dtype)

    def __call__(
        self, shape: ShapeLike, dtype: DTypeLike | None = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        return random_normal(shape, self.mean, self.stddev, as_dtype(dtype or self.dtype), seed=self.seed)


class TruncatedNormal(RandomNormal):
    """Like `RandomNormal`; values more than two standard deviations away are drawn again."""

    def __call__(
        self, shape: ShapeLike, dtype: DTypeLike | None = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        return truncated_normal(shape, self.mean, self.stddev, as_dtype(dtype or self.dtype), seed=self.seed)


class UniformUnitScaling(Initializer):
    """Uniform within ±``factor`` · sqrt(3 / n), n the size of all dimensions but the last: keeps a layer's scale."""

    _fields = ("factor", "seed", "dtype")

    def __init__(self, factor: float = 1.0, seed: int | None = None, dtype: DTypeLike = float32) -> None:
        self.factor = factor
        self.seed = seed
        self.dtype: DType = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: PartitionInfo | None = None) -> Tensor:
        kind = as_dtype(dtype or self.dtype)
        whole = _whole(shape, partition_info)
        limit = math.sqrt(3 / max(math.prod(whole[:-1]), 1.0)) * self.factor
        return random_uniform(shape, -limit, limit, kind, seed=self.seed)


class VarianceScaling(Initializer):
    """Random values of variance ``scale`` / n, which preserve the scale of activations through a layer.

    Args:
      scale: positive factor.
      mode: n is the number of inputs (``fan_in``), of outputs (``fan_out``), or the mean of both (``fan_avg``).
      distribution: ``truncated_normal`` (also ``normal``), ``untruncated_normal``, or ``uniform``.
      seed: the seed of the random values.
      dtype: element type if the caller specifies none.

    Raises:
      ValueError: an argument has an invalid value.
    """

    _fields = ("scale", "mode", "distribution", "seed", "dtype")

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
        dtype: DTypeLike = float32,
    ) -> None:
        if scale <= 0.0:
            raise ValueError("`scale` must be positive float.")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"Invalid `mode` argument: {mode}")
        if distribution.lower() not in ("normal", "uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError(f"Invalid `distribution` argument: {distribution}")
        self.scale = scale
        self.mode = mode
        self.distribution: str = distribution.lower()
        self.seed = seed
        self.dtype: DType = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: PartitionInfo | None = None) -> Tensor:
        kind = as_dtype(dtype or self.dtype)
        fan_in, fan_out = _fans(_whole(shape, partition_info))
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2.0}[self.mode]
        variance = self.scale / max(1.0, fan)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return random_uniform(shape, -limit, limit, kind, seed=self.seed)
        if self.distribution == "untruncated_normal":
            return random_normal(shape, 0.0, math.sqrt(variance), kind, seed=self.seed)
        return truncated_normal(shape, 0.0, math.sqrt(variance) / _TRUNCATED_STDDEV, kind, seed=self.seed)


class GlorotUniform(VarianceScaling):
    """Uniform within ±sqrt(6 / (inputs + outputs)) (Glorot and Bengio, 2010)."""

    _fields = ("seed", "dtype")

    def __init__(self, seed: int | None = None, dtype: DTypeLike = float32) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)


class GlorotNormal(VarianceScaling):
    """Truncated normal of variance 2 / (inputs + outputs) (Glorot and Bengio, 2010)."""

    _fields = ("seed", "dtype")

    def __init__(self, seed: int | None = None, dtype: DTypeLike = float32) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)


class Orthogonal(Initializer):
    """A random matrix with orthonormal rows or columns, times ``gain`` (Saxe et al., 2014).

    With more than two dimensions, all but the last are treated as one.
    """

    _fields = ("gain", "seed", "dtype")

    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: DTypeLike = float32) -> None:
        self.gain = gain
        self.seed = seed
        self.dtype: DType = _floating(dtype)

    def __call__(
        self, shape: ShapeLike, dtype: DTypeLike | None = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        kind = as_dtype(dtype or self.dtype)
        dims = [int(d) for d in as_shape(shape)]
        if len(dims) < 2:
            raise ValueError("The tensor to initialize must be at least two-dimensional")
        rows, columns = math.prod(dims[:-1]), dims[-1]
        tall = random_normal([max(rows, columns), min(rows, columns)], dtype=kind, seed=self.seed)
        q, r = qr(tall)
        # The decomposition alone prefers some bases; the signs of R's diagonal correct this (Mezzadri, "How to
        # generate random matrices from the classical compact groups", 2007).
        basis = multiply(q, sign(diag_part(r)))
        return self.gain * reshape(transpose(basis) if rows < columns else basis, dims)


class Identity(Initializer):
    """``gain`` times the identity matrix; two dimensions only."""

    _fields = ("gain", "dtype")

    def __init__(self, gain: float = 1.0, dtype: DTypeLike = float32) -> None:
        self.gain = gain
        self.dtype: DType = _floating(dtype)

    def __call__(
        self, shape: ShapeLike, dtype: DTypeLike | None = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        kind = as_dtype(dtype or self.dtype)
        whole = _whole(shape, partition_info)
        if len(whole) != 2:
            raise ValueError("Identity matrix initializer can only be used for 2D matrices.")
        matrix = self.gain * np.eye(whole[0], whole[1])
        if partition_info is not None:
            begin = partition_info.var_offset
            dims = [int(d) for d in as_shape(shape)]
            matrix = matrix[begin[0] : begin[0] + dims[0], begin[1] : begin[1] + dims[1]]
        return constant(matrix.astype(kind.numpy_dtype), kind, name="eye")


def _whole(shape: ShapeLike, partition_info: PartitionInfo | None) -> Sequence[int]:
    return [int(d) for d in as_shape(shape)] if partition_info is None else partition_info.full_shape


def _fans(shape: Sequence[int]) -> tuple[float, float]:
    """Numbers of inputs and outputs of a layer with weights of this shape; a convolution counts its field."""
    if not shape:
        return 1.0, 1.0
    if len(shape) == 1:
        return float(shape[0]), float(shape[0])
    field = math.prod(shape[:-2])
    return float(shape[-2] * field), float(shape[-1] * field)


def he_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal of variance 2 / inputs (He et al., 2015)."""
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform of variance 2 / inputs (He et al., 2015)."""
    return VarianceScaling(2.0, "fan_in", "uniform", seed)


def lecun_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal of variance 1 / inputs (LeCun et al., 1998)."""
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform of variance 1 / inputs (LeCun et al., 1998)."""
    return VarianceScaling(1.0, "fan_in", "uniform", seed)
