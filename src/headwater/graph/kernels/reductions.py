"""Kernels and gradients of reductions: sums and other reductions over dimensions, positions of extremes, cumulative
sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import ml_dtypes
import numpy as np

from headwater.graph.kernels.common import Arrays, Needed, axis_in, is_floating, kept_shape, spread, sum_over, where
from headwater.graph.kernels.registry import NoKernel, gradient_kernel, kernel

if TYPE_CHECKING:
    from headwater.dtypes import DType
    from headwater.graph.registry import Attrs, HostArray

Pull = Callable[[Any, Any, tuple[int, ...]], Any]

# Over some dimensions ---------------------------------------------------------------------------------------------


def _axes(indices: HostArray, rank: int) -> tuple[int, ...]:
    return _axes_in(indices.tobytes(), indices.dtype.char, rank)


@lru_cache(maxsize=1024)
def _axes_in(indices: bytes, char: str, rank: int) -> tuple[int, ...]:
    return tuple(dict.fromkeys(axis_in(axis, rank) for axis in np.frombuffer(indices, char)))


def _reduction(op_type: str, compute: Callable[..., Any], pull: Pull | None = None) -> None:
    """Registers a kernel and its gradient: ``pull(gradient, x, axes)`` returns the gradient of x, given the result's
    gradient with size 1 along ``axes``."""

    @kernel(op_type)
    def reduced(input: HostArray, reduction_indices: HostArray, *, keep_dims: bool = False) -> Any:  # pyright: ignore[reportUnusedFunction]
        return compute(input, _axes(reduction_indices, input.ndim), keep_dims)

    if pull is None:
        return

    @gradient_kernel(op_type)
    def gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:  # pyright: ignore[reportUnusedFunction]
        x, axes = inputs[0], _axes(inputs[1], inputs[0].ndim)
        return pull(grads[0].reshape(kept_shape(x.shape, axes)), x, axes), None


def _sum(x: HostArray, axes: tuple[int, ...], keep: bool) -> Any:
    if axes and max(axes) - min(axes) < len(axes):
        total = sum_over(x, min(axes), max(axes) + 1)
        return total.reshape(kept_shape(x.shape, axes)) if keep else total
    return np.add.reduce(x, axis=axes, keepdims=keep, dtype=x.dtype)


def _count(x: HostArray, axes: tuple[int, ...]) -> int:
    return math.prod([x.shape[axis] for axis in axes])


def _mean(x: HostArray, axes: tuple[int, ...], keep: bool) -> Any:
    total = _sum(x, axes, keep)
    if x.dtype.kind not in "iu":
        return total / x.dtype.type(_count(x, axes))
    return (np.sign(total) * (np.abs(total) // max(_count(x, axes), 1))).astype(x.dtype)


_MIN_ROWS: Final = 256
_MAX_WIDTH: Final = 16
"""For `_MIN_ROWS` rows or more of at most `_MAX_WIDTH` elements, combining columns is faster than NumPy's reduction."""


def _extreme(combine: Any, bound: str, infinite: float) -> Callable[..., Any]:
    """Returns a kernel that computes the maximum or minimum by the ufunc ``combine``. For an empty input, the result is
    the identity element, such as -∞ for the maximum; NaN counts as the identity element."""

    def extreme(x: HostArray, axes: tuple[int, ...], keep: bool) -> Any:
        if all(x.shape[axis] == 1 for axis in axes):  # a single element is not compared, so NaN is kept
            return np.array(x if keep else x.squeeze(axes))
        if x.dtype.kind in "iub":
            if x.size:
                return combine.reduce(x, axis=axes, keepdims=keep)
            return combine.reduce(x, axis=axes, keepdims=keep, initial=getattr(np.iinfo(x.dtype), bound))
        # `fmax` and `fmin` ignore NaN.
        start = x.dtype.type(infinite)
        width = x.shape[-1]
        if axes == (x.ndim - 1,) and 0 < width <= _MAX_WIDTH and x.size >= _MIN_ROWS * width:
            found = combine(x[..., 0], start)
            for index in range(1, width):
                combine(found, x[..., index], out=found)
            return found[..., np.newaxis] if keep else found
        return combine.reduce(x, axis=axes, keepdims=keep, initial=start)

    return extreme


def _to_extremes(compute: Callable[..., Any]) -> Pull:
    """Returns the gradient of a maximum or minimum: it is divided equally among the elements with the extreme value."""

    def pull(g: HostArray, x: HostArray, axes: tuple[int, ...]) -> HostArray:
        if not x.size:
            return np.zeros(x.shape, x.dtype)
        if all(x.shape[axis] == 1 for axis in axes):
            return np.broadcast_to(g, x.shape).astype(x.dtype)
        hit = x == compute(x, axis=axes, keepdims=True)
        return hit * (g / hit.sum(axis=axes, keepdims=True, dtype=x.dtype))

    return pull


def _to_factors(g: HostArray, x: HostArray, axes: tuple[int, ...]) -> HostArray:
    """Returns the gradient of a product: the slope of each element is the product of all other elements."""
    zero = x == 0
    if not zero.any():
        return g * np.conj(np.multiply.reduce(x, axis=axes, keepdims=True, dtype=x.dtype) / x)
    zeros = zero.sum(axis=axes, keepdims=True)
    filled = np.where(zero, 1, x).astype(x.dtype)
    rest = np.multiply.reduce(filled, axis=axes, keepdims=True, dtype=x.dtype)
    others = np.where(zeros == 0, rest / filled, np.where(zero & (zeros == 1), rest, 0))
    return (g * np.conj(others)).astype(x.dtype)


def _norm(x: HostArray, axes: tuple[int, ...], keep: bool) -> Any:
    return np.sqrt(_sum(x * np.conj(x), axes, keep)).astype(x.dtype)


def _to_norm(g: HostArray, x: HostArray, axes: tuple[int, ...]) -> HostArray:
    if x.dtype.kind == "c":
        raise NoKernel
    return g * x / _norm(x, axes, keep=True)


_reduction("Sum", _sum, lambda g, x, axes: spread(g, x.shape))
_reduction("Mean", _mean, lambda g, x, axes: spread(g / x.dtype.type(_count(x, axes)), x.shape))
_reduction("Prod", lambda x, axes, keep: np.multiply.reduce(x, axis=axes, keepdims=keep, dtype=x.dtype), _to_factors)
_reduction("Max", _extreme(np.fmax, "min", -np.inf), _to_extremes(np.fmax.reduce))
_reduction("Min", _extreme(np.fmin, "max", np.inf), _to_extremes(np.fmin.reduce))
_reduction("EuclideanNorm", _norm, _to_norm)
_reduction("All", lambda x, axes, keep: np.logical_and.reduce(x, axis=axes, keepdims=keep))
_reduction("Any", lambda x, axes, keep: np.logical_or.reduce(x, axis=axes, keepdims=keep))

# Positions --------------------------------------------------------------------------------------------------------


def _limit(dtype: np.dtype[Any], bound: str) -> Any:
    limits: Any = ml_dtypes.finfo(dtype)  # supports NumPy's types and bfloat16
    return dtype.type(getattr(limits, bound))


@kernel("ArgMax")
def arg_max(input: HostArray, dimension: HostArray, *, output_type: DType | None = None) -> HostArray:
    """The position of the first of the highest elements along a dimension. NaN and -∞ count as the lowest number."""
    if input.dtype.kind not in "iub":
        lowest = _limit(input.dtype, "min")
        input = where(input > lowest, input, lowest)
    return input.argmax(int(dimension)).astype(np.int64 if output_type is None else output_type.numpy_dtype)


@kernel("ArgMin")
def arg_min(input: HostArray, dimension: HostArray, *, output_type: DType | None = None) -> HostArray:
    """The position of the first of the lowest elements along a dimension. NaN and ∞ count as the highest number."""
    if input.dtype.kind not in "iub":
        highest = _limit(input.dtype, "max")
        input = where(input < highest, input, highest)
    return input.argmin(int(dimension)).astype(np.int64 if output_type is None else output_type.numpy_dtype)


# Cumulative -------------------------------------------------------------------------------------------------------


def _accumulated(compute: Any, x: HostArray, axis: int, exclusive: bool, reverse: bool) -> HostArray:
    axis = axis_in(axis, x.ndim, "Expected scan axis in the range")
    rows = np.moveaxis(x, axis, 0)
    rows = rows[::-1] if reverse else rows
    if exclusive:
        result = np.full(rows.shape, compute.identity, x.dtype)
        if len(rows) > 1:
            compute.accumulate(rows[:-1], axis=0, dtype=x.dtype, out=result[1:])
    else:
        result = compute.accumulate(rows, axis=0, dtype=x.dtype)
    return np.moveaxis(result[::-1] if reverse else result, 0, axis)


@kernel("Cumsum")
def cumsum(x: HostArray, axis: HostArray, *, exclusive: bool = False, reverse: bool = False) -> HostArray:
    """Returns, for each element, the sum of all elements up to it; ``exclusive``: without the element itself;
    ``reverse``: from the end."""
    return _accumulated(np.add, x, int(axis), exclusive, reverse)


@kernel("Cumprod")
def cumprod(x: HostArray, axis: HostArray, *, exclusive: bool = False, reverse: bool = False) -> HostArray:
    """Like `cumsum`, products."""
    return _accumulated(np.multiply, x, int(axis), exclusive, reverse)


@kernel("CumulativeLogsumexp")
def cumulative_logsumexp(x: HostArray, axis: HostArray, *, exclusive: bool = False, reverse: bool = False) -> HostArray:
    """Like `cumsum`, logarithms of sums of exponentials."""
    return _accumulated(np.logaddexp, x, int(axis), exclusive, reverse)


def _order(attrs: Attrs) -> tuple[bool, bool]:
    return bool(attrs.get("exclusive", False)), bool(attrs.get("reverse", False))


@gradient_kernel("Cumsum")
def cumsum_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs) -> Arrays:
    """Returns cumulative sums of the gradient, computed from the other end."""
    x, axis = inputs
    exclusive, reverse = _order(attrs)
    return _accumulated(np.add, grads[0], axis_in(axis, x.ndim), exclusive, not reverse), None


@gradient_kernel("Cumprod")
def cumprod_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, attrs: Attrs) -> Arrays:
    """Returns the cumulative sums, from the other end, of gradient times product, divided by the elements."""
    x, axis = inputs
    if not is_floating(x.dtype) or (x == 0).any():
        raise NoKernel
    exclusive, reverse = _order(attrs)
    where = axis_in(axis, x.ndim)
    products = grads[0] * _accumulated(np.multiply, x, where, exclusive, reverse)
    return _accumulated(np.add, products, where, exclusive, not reverse) / x, None
