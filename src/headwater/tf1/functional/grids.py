"""Coordinates: evenly spaced numbers, grids, repetitions, permutations."""

from __future__ import annotations

from typing import Any

import numpy as np

from headwater.graph.constants import constant_value
from headwater.graph.convert import convert_to_tensor, make_const, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays
from headwater.tf1.functional.apply import one


def repeat(input: TensorLike, repeats: TensorLike, axis: int | None = None, name: str | None = None) -> Tensor:
    """Repeats each slice along ``axis`` (each element, if None) ``repeats`` times.

    Args:
      repeats: one number for all, or one for each, known when the graph is built.

    Raises:
      ValueError: ``repeats`` is not known, or the number of slices is not.
    """
    with name_scope(name, "Repeat", [input]):
        input = convert_to_tensor(input)
        if axis is None:
            input, axis = arrays.reshape(input, [-1]), 0
        times = constant_value(convert_to_tensor(repeats, name="repeats"))
        count = None if input.dims is None else input.dims[axis]
        if times is None or count is None:
            raise ValueError("tf.repeat needs repeats and the repeated dimension to be known when the graph is built")
        places = np.repeat(np.arange(count, dtype=np.int32), np.broadcast_to(times, (count,)))
        return one("GatherV2", input, places, axis)


def lin_space(start: TensorLike, stop: TensorLike, num: TensorLike, name: str | None = None) -> Tensor:
    """``num`` numbers from start to stop, both included."""
    return one("LinSpace", start, stop, num, name=name)


def invert_permutation(x: TensorLike, name: str | None = None) -> Tensor:
    """y with y[x[i]] = i."""
    return one("InvertPermutation", x, name=name)


def meshgrid(*args: Any, indexing: str = "xy", name: str = "meshgrid") -> list[Tensor]:
    """Coordinates of a grid: for vectors x₁ … xₙ, n tensors of rank n.

    Args:
      indexing: ``xy`` has the first two dimensions exchanged, as for pictures; ``ij`` has them in order.

    Raises:
      ValueError: ``indexing`` is unknown.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError("indexing parameter must be either 'xy' or 'ij'")
    with name_scope(name, "meshgrid", args):
        count = len(args)
        parts = [arrays.reshape(arrays.stack(x), (*[1] * i, -1, *[1] * (count - i - 1))) for i, x in enumerate(args)]
        sizes = [arrays.size(x) for x in args]
        if indexing == "xy" and count > 1:
            parts[0] = arrays.reshape(parts[0], (1, -1, *[1] * (count - 2)))
            parts[1] = arrays.reshape(parts[1], (-1, 1, *[1] * (count - 2)))
            sizes[0], sizes[1] = sizes[1], sizes[0]
        if not args:
            return []
        grid = arrays.fill(sizes, make_const(np.ones((), convert_to_tensor(args[0]).dtype.numpy_dtype)))
        return [part * grid for part in parts]
