"""Random numbers of types other than float32, by compiled operations."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.graph.kernels.common import ints
from headwater.graph.registry import HostArray, lookup
from headwater.lazy_jax import jax

if TYPE_CHECKING:
    from headwater.dtypes import DType

# Pyright finds the types of these functions of JAX in part only.
_jax: Any = jax


def drawn(op_type: str, key: tuple[int, int], shape: HostArray, *, dtype: DType, **seeds: int) -> HostArray:
    """Returns an array of random numbers, as the kernels of `headwater.graph.kernels.random`.

    Each number depends only on its position, so a draw that was compiled for one size is also used for smaller sizes.
    """
    del seeds
    sizes = ints(shape)
    count = math.prod(sizes)
    # Round the size up to a power of two, so that few sizes are compiled.
    draw = _compiled(op_type, dtype, 1 << max(0, count - 1).bit_length())
    return np.array(np.asarray(draw(np.array(key, np.uint32)))[:count].reshape(sizes))


@functools.cache
def _compiled(op_type: str, dtype: DType, size: int) -> Callable[[HostArray], object]:
    lower = lookup(op_type).lower

    def draw(words: HostArray) -> object:
        return lower(_jax.random.wrap_key_data(words), np.array([size]), dtype=dtype)

    return _jax.jit(draw)
