"""Helpers shared by several families of operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from headwater.graph.registry import HostArray, Inference, Spec
from headwater.lazy_jax import jax, jnp
from headwater.shapes import Dims

AnyArray: TypeAlias = "jax.Array | HostArray"
"""An array in a lowering that accepts traced values and known NumPy arrays."""


def array_module(*values: object) -> Any:
    """Returns NumPy if every value is a NumPy array, else `jax.numpy`.

    If a lowering uses this module, shapes and values computed from shapes stay known while a step is compiled, and the
    lowering supports tensors of strings.
    """
    return np if all(isinstance(value, np.ndarray | np.generic) for value in values) else jnp


def as_ints(value: object) -> tuple[int, ...]:
    """A static integer input, of any rank, as Python integers."""
    return tuple(int(item) for item in np.asarray(value).ravel())


def normal_axis(axis: int, rank: int, demand: str = "") -> int:
    """Returns ``axis`` counted from the front; ValueError if it is out of range, with ``demand`` in the message."""
    if not -rank <= axis < rank:
        limits = f"[-{rank}, {rank})"
        raise ValueError(f"{demand} {limits}, but got {axis}" if demand else f"axis = {axis} is not in {limits}")
    return axis % rank


def constant_int(inference: Inference, index: int) -> int | None:
    """The value of the integer scalar input ``index`` if the graph determines it."""
    value = inference.constant(index)
    return None if value is None else int(value.ravel()[0])


def constant_ints(inference: Inference, index: int) -> tuple[int, ...] | None:
    """The values of the integer input ``index``, flattened, if the graph determines them."""
    value = inference.constant(index)
    return None if value is None else as_ints(value)


def output(inference: Inference, dims: Dims, index: int = 0) -> Sequence[Spec]:
    """Returns the spec of one output with the type of input ``index`` and static shape ``dims``."""
    return [Spec(inference.inputs[index].dtype.base_dtype, dims)]


def product(sizes: Sequence[int | None]) -> int | None:
    """Returns the product of sizes; None if one is unknown."""
    result = 1
    for size in sizes:
        if size is None:
            return None
        result *= size
    return result
