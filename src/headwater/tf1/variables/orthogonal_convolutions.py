"""Initial values of convolutions that preserve the norm of their input up to a factor.

Source: Xiao et al., "Dynamical Isometry and a Mean Field Theory of CNNs" (2018). A kernel with several taps is the
    product of an orthogonal matrix and of kernels with the two taps ``P`` and ``I - P`` along one dimension, where
    ``P`` is an orthogonal projection.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from headwater.dtypes import DType, as_dtype, float32
from headwater.shapes import as_shape
from headwater.tf1.functional.arrays import reshape, stack, transpose, zeros
from headwater.tf1.functional.linalg import matmul
from headwater.tf1.functional.math import cast, greater, multiply, subtract
from headwater.tf1.functional.random import random_normal
from headwater.tf1.variables.initializers import Initializer, Orthogonal

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.operation import Tensor
    from headwater.shapes import ShapeLike
    from headwater.tf1.variables.partitioned import PartitionInfo

_WORDS = {3: "three", 4: "four", 5: "five"}


class ConvolutionDeltaOrthogonal(Initializer):
    """Kernels with one tap, in the middle, that is an orthogonal matrix.

    Args:
      gain: factor of the norm.
      seed: the seed of the random numbers.
      dtype: element type if a call specifies none.
    """

    _fields: ClassVar[tuple[str, ...]] = ("gain", "seed", "dtype")
    _ranks: ClassVar[tuple[int, ...]] = (3, 4, 5)

    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: DTypeLike = float32) -> None:
        self.gain = gain
        self.seed = seed
        self.dtype: DType = as_dtype(dtype)
        if not self.dtype.is_floating:
            raise ValueError(f"Expected floating point type, got {self.dtype!r}.")

    def __call__(
        self, shape: ShapeLike, dtype: DTypeLike | None = None, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        """A kernel.

        Args:
          shape: sizes, then the numbers of input and output channels.

        Raises:
          ValueError: the number of dimensions is wrong, there are more input than output channels, or sizes differ.
        """
        del partition_info
        dims = [int(dim) for dim in as_shape(shape)]
        if len(dims) not in self._ranks:
            first, last = _WORDS[self._ranks[0]], _WORDS[self._ranks[-1]]
            rank = (
                f"{first}-dimensional"
                if first == last
                else f"at least {first}-dimensional and at most {last}-dimensional"
            )
            raise ValueError(f"The tensor to initialize must be {rank}")
        *sizes, taken, given = dims
        if taken > given:
            raise ValueError("In_filters cannot be greater than out_filters.")
        draws = _Draws(self.seed, as_dtype(dtype or self.dtype))
        taps = self._taps(sizes, draws.matrix(given)[:taken], given, draws)
        nothing = zeros([taken, given], draws.dtype)
        places = itertools.product(*map(range, sizes))
        return self.gain * reshape(stack([taps.get(place, nothing) for place in places]), dims)

    def _taps(self, sizes: list[int], matrix: Tensor, channels: int, draws: _Draws) -> dict[tuple[int, ...], Tensor]:
        """Returns the kernel's matrices by position; missing ones are 0."""
        del channels, draws
        return {tuple((size - 1) // 2 for size in sizes): matrix}


class _ConvolutionOrthogonal(ConvolutionDeltaOrthogonal):
    def _taps(self, sizes: list[int], matrix: Tensor, channels: int, draws: _Draws) -> dict[tuple[int, ...], Tensor]:
        if len(set(sizes)) > 1:
            raise ValueError("Kernel sizes must be equal.")
        taps: dict[tuple[int, ...], Tensor] = {(0,) * len(sizes): matrix}
        for _, axis in itertools.product(range(sizes[0] - 1), range(len(sizes))):
            projection = draws.projection(channels)
            pair = projection, subtract(np.eye(channels, dtype=draws.dtype.numpy_dtype), projection)
            longer: dict[tuple[int, ...], Tensor] = {}
            for (place, tap), step in itertools.product(taps.items(), (0, 1)):
                moved = (*place[:axis], place[axis] + step, *place[axis + 1 :])
                product = matmul(tap, pair[step])
                longer[moved] = longer[moved] + product if moved in longer else product
            taps = longer
        return taps


class ConvolutionOrthogonal1D(_ConvolutionOrthogonal):
    """Orthogonal kernels of one dimension; see `ConvolutionDeltaOrthogonal` for the arguments."""

    _ranks = (3,)


class ConvolutionOrthogonal2D(_ConvolutionOrthogonal):
    """Orthogonal kernels of two dimensions of one size; see `ConvolutionDeltaOrthogonal` for the arguments."""

    _ranks = (4,)


class ConvolutionOrthogonal3D(_ConvolutionOrthogonal):
    """Orthogonal kernels of three dimensions of one size; see `ConvolutionDeltaOrthogonal` for the arguments."""

    _ranks = (5,)


class _Draws:
    """Returns random matrices, with a different seed for each if a seed is given."""

    def __init__(self, seed: int | None, dtype: DType) -> None:
        self._seeds = itertools.repeat(None) if seed is None else itertools.count(seed)
        self.dtype = dtype

    def matrix(self, size: int) -> Tensor:
        """An orthogonal matrix."""
        return Orthogonal(seed=next(self._seeds))([size, size], self.dtype)

    def projection(self, size: int) -> Tensor:
        """The projection on a random space of random dimension."""
        chosen = greater(random_normal([size], dtype=self.dtype, seed=next(self._seeds)), 0.0)
        basis = multiply(self.matrix(size), cast(chosen, self.dtype))
        return matmul(basis, transpose(basis))
