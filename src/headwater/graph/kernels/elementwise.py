"""Elementwise functions: arithmetic, comparison, logic, rounding, casts; and their gradients.

The gradient of y = f(x), given the gradient g of y, is g · conj(f'(x)). Each function is next to its slope f'.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.graph.kernels.common import Arrays, Needed, conjugate, sum_to, where
from headwater.graph.kernels.pieces import by_rows
from headwater.graph.kernels.registry import NoKernel, gradient_kernel, kernel
from headwater.shapes import require_shape

if TYPE_CHECKING:
    from headwater.dtypes import DType
    from headwater.graph.registry import Attrs, HostArray
    from headwater.shapes import TensorShape

Function = Callable[..., Any]

# One argument -----------------------------------------------------------------------------------------------------


def _unary(
    op_type: str, compute: Function, slope: Function | None = None, slope_by_result: Function | None = None
) -> None:
    """Registers a kernel and its gradient. The derivative is given as ``slope``, a function of x, or as
    ``slope_by_result``, a function of the result."""
    kernel(op_type)(lambda x: by_rows(compute, x))
    if slope is not None:

        @gradient_kernel(op_type)
        def gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:  # pyright: ignore[reportUnusedFunction]
            return (by_rows(lambda g, x: g * conjugate(slope(x)), grads[0], inputs[0]),)

    elif slope_by_result is not None:

        @gradient_kernel(op_type, outputs=True)
        def pulled(_inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs, outputs: Arrays) -> Arrays:  # pyright: ignore[reportUnusedFunction]
            return (by_rows(lambda g, y: g * conjugate(slope_by_result(y)), grads[0], outputs[0]),)


def _abs(x: HostArray) -> HostArray:
    if x.dtype.kind == "c":
        raise NoKernel
    return np.abs(x)


def sigmoid(x: HostArray) -> HostArray:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def _rsqrt(x: HostArray) -> HostArray:
    return 1 / np.sqrt(x)


def _sign(x: HostArray) -> HostArray:
    """-1, 0 or 1; 0 for NaN, as in TensorFlow."""
    return np.where(np.isnan(x), x.dtype.type(0), np.sign(x)) if x.dtype.kind in "fV" else np.sign(x)


_unary("Abs", _abs, _sign)
_unary("Neg", np.negative)
_unary("Square", np.square, lambda x: 2 * x)
_unary("Sign", _sign, np.zeros_like)
_unary("Exp", np.exp, slope_by_result=lambda y: y)
_unary("Expm1", np.expm1, slope_by_result=lambda y: y + 1)
_unary("Log", np.log, lambda x: 1 / x)
_unary("Log1p", np.log1p, lambda x: 1 / (1 + x))
_unary("Sqrt", np.sqrt)
_unary("Rsqrt", _rsqrt)
_unary("Reciprocal", lambda x: 1 / x)
_unary("Inv", lambda x: 1 / x)
_unary("Sin", np.sin, np.cos)
_unary("Cos", np.cos, lambda x: -np.sin(x))
_unary("Tan", np.tan, slope_by_result=lambda y: 1 + y * y)
_unary("Asin", np.arcsin, lambda x: 1 / np.sqrt(1 - x * x))
_unary("Acos", np.arccos, lambda x: -1 / np.sqrt(1 - x * x))
_unary("Atan", np.arctan, lambda x: 1 / (1 + x * x))
_unary("Sinh", np.sinh, np.cosh)
_unary("Cosh", np.cosh, np.sinh)
_unary("Tanh", np.tanh, slope_by_result=lambda y: 1 - y * y)
_unary("Asinh", np.arcsinh, lambda x: 1 / np.sqrt(x * x + 1))
_unary("Acosh", np.arccosh, lambda x: 1 / (np.sqrt(x - 1) * np.sqrt(x + 1)))
_unary("Atanh", np.arctanh, lambda x: 1 / (1 - x * x))
_unary("Sigmoid", sigmoid, slope_by_result=lambda y: y * (1 - y))
for _type, _function in {"Floor": np.floor, "Ceil": np.ceil, "Rint": np.rint}.items():
    _unary(_type, _function)
for _type, _function in {"IsNan": np.isnan, "IsInf": np.isinf, "IsFinite": np.isfinite}.items():
    _unary(_type, _function)
_unary("Round", lambda x: x if x.dtype.kind in "iub" else np.rint(x))
_unary("LogicalNot", np.logical_not)
_unary("Invert", np.invert)
_unary("Snapshot", lambda x: x)


def _masked_slope(compute: Function, *names: str) -> None:
    """Registers a kernel that computes ``gradient · slope``; where the gradient is 0, the result is 0 even if the slope
    is infinite.

    Args:
      compute: the slope as a function of the result's conjugate.
      names: the function itself, and the kernel of its gradient, which takes the result and the gradient.
    """

    def product(y: HostArray, dy: HostArray) -> HostArray:
        slope = compute(conjugate(y))
        result = dy * slope
        if not np.isfinite(slope).all():
            result = np.where((dy == 0) & ~np.isfinite(slope), result.dtype.type(0), result)
        return result

    @gradient_kernel(names[0], outputs=True)
    def gradient(_inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs, outputs: Arrays) -> Arrays:  # pyright: ignore[reportUnusedFunction]
        return (product(outputs[0], np.asarray(grads[0])),)

    kernel(names[1])(lambda y, dy: product(y, np.asarray(dy)))


_masked_slope(lambda y: 0.5 / y, "Sqrt", "SqrtGrad")
_masked_slope(lambda y: -0.5 * (y * y * y), "Rsqrt", "RsqrtGrad")
_masked_slope(lambda y: -(y * y), "Reciprocal", "ReciprocalGrad")
_masked_slope(lambda y: -(y * y), "Inv", "InvGrad")


@gradient_kernel("Neg")
def negative_gradient(_inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient's negative."""
    return (-grads[0],)


@gradient_kernel("EnsureShape", "Snapshot")
def same_gradient(_inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient itself."""
    return (grads[0],)


@kernel("Conj")
def conj(input: HostArray) -> HostArray:
    """The complex conjugate."""
    return np.conj(input)


@gradient_kernel("Conj")
def conj_gradient(_inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The conjugate of the gradient."""
    return (np.conj(grads[0]),)


# Two arguments, which broadcast -----------------------------------------------------------------------------------


def _binary(op_type: str, compute: Function, slopes: tuple[Function, Function] | None = None) -> None:
    """Registers a kernel and its gradient. ``slopes`` are functions of the result's gradient, x and y; they return the
    gradient of x and the gradient of y."""
    kernel(op_type)(lambda x, y: compute(x, y))
    if slopes is None:
        return
    for_x, for_y = slopes

    @gradient_kernel(op_type)
    def gradient(inputs: Arrays, grads: Arrays, needed: Needed, _attrs: Attrs) -> Arrays:  # pyright: ignore[reportUnusedFunction]
        (x, y), g = inputs, grads[0]
        return (
            sum_to(for_x(g, x, y), x.shape) if needed[0] else None,
            sum_to(for_y(g, x, y), y.shape) if needed[1] else None,
        )


def _truncate_div(x: HostArray, y: HostArray) -> HostArray:
    if x.dtype.kind not in "iu":
        return np.trunc(x / y)
    quotient = np.floor_divide(x, y)
    return quotient + ((quotient < 0) & (quotient * y != x)).astype(x.dtype)


def _floor_div(x: HostArray, y: HostArray) -> HostArray:
    return np.floor_divide(x, y) if x.dtype.kind in "iu" else np.floor(x / y)


def _div(x: HostArray, y: HostArray) -> HostArray:
    return _truncate_div(x, y) if x.dtype.kind in "iu" else x / y


def _real_div(x: HostArray, y: HostArray) -> HostArray:
    if x.dtype.kind in "iu":
        raise NoKernel
    return x / y


def _divided_by(g: HostArray, x: HostArray, y: HostArray) -> HostArray:
    """-g x / y²."""
    quotient = x / y
    return -g * conjugate(quotient / y)


def _squared_difference(x: HostArray, y: HostArray) -> HostArray:
    difference = x - y
    return difference * conjugate(difference)


def _power(x: HostArray, y: HostArray) -> HostArray:
    if x.dtype.kind in "iu" and (y < 0).any():
        raise NoKernel
    return np.power(x, y)


def _power_by_x(g: HostArray, x: HostArray, y: HostArray) -> HostArray:
    return g * conjugate(y * np.power(x, np.where(y == 0, 1, y - 1)))


def _power_by_y(g: HostArray, x: HostArray, y: HostArray) -> HostArray:
    # log(x) counts as 0 for x ≤ 0, as in TensorFlow.
    defined = x != 0 if x.dtype.kind == "c" else x > 0
    return g * conjugate(np.power(x, y) * np.log(np.where(defined, x, 1).astype(x.dtype)))


def _over_or_zero(condition: HostArray, x: HostArray, y: HostArray) -> HostArray:
    """x / y, and 0 where the condition fails."""
    return np.where(condition, x / y, 0).astype(x.dtype, copy=False)


def _xlogy(x: HostArray, y: HostArray) -> HostArray:
    return np.where(x != 0, x * np.log(y), 0).astype(x.dtype, copy=False)


def _where_chosen(g: HostArray, chosen: HostArray) -> HostArray:
    """``g`` where chosen, else 0."""
    return where(chosen, g, g.dtype.type(0))


_SUM = (lambda g, x, y: g), (lambda g, x, y: g)
_QUOTIENT = (lambda g, x, y: g / conjugate(y)), _divided_by
_binary("Add", np.add, _SUM)
_binary("AddV2", np.add, _SUM)
_binary("Sub", np.subtract, (lambda g, x, y: g, lambda g, x, y: -g))
_binary("Mul", np.multiply, (lambda g, x, y: g * conjugate(y), lambda g, x, y: g * conjugate(x)))
_binary("RealDiv", _real_div, _QUOTIENT)
_binary("Div", _div, _QUOTIENT)
_binary("FloorDiv", _floor_div)
_binary("FloorMod", np.mod, (lambda g, x, y: g + np.zeros_like(y), lambda g, x, y: -g * np.floor(x / y)))
_binary("Mod", np.fmod, (lambda g, x, y: g + np.zeros_like(y), lambda g, x, y: -g * np.trunc(x / y)))
_binary("TruncateDiv", _truncate_div)
_binary("TruncateMod", np.fmod)
_binary("Pow", _power, (_power_by_x, _power_by_y))
# Where x and y are equal, x gets the whole gradient. Where one of them is NaN, y gets it. A NaN in x is kept in the
# result.
_binary(
    "Maximum",
    lambda x, y: where(x < y, y, x),
    (lambda g, x, y: _where_chosen(g, x >= y), lambda g, x, y: _where_chosen(g, ~(x >= y))),
)
_binary(
    "Minimum",
    lambda x, y: where(x > y, y, x),
    (lambda g, x, y: _where_chosen(g, x <= y), lambda g, x, y: _where_chosen(g, ~(x <= y))),
)
_binary(
    "SquaredDifference",
    _squared_difference,
    (lambda g, x, y: 2 * g * _real_only(x - y), lambda g, x, y: -2 * g * _real_only(x - y)),
)
_binary(
    "DivNoNan",
    lambda x, y: _over_or_zero(y != 0, x, y),
    (
        lambda g, x, y: _over_or_zero(y != 0, g, conjugate(y)),
        lambda g, x, y: np.where(y != 0, _divided_by(g, x, y), 0).astype(x.dtype, copy=False),
    ),
)
_binary(
    "MulNoNan",
    lambda x, y: np.where(y != 0, x * y, 0).astype(x.dtype, copy=False),
    (lambda g, x, y: g * conjugate(y), lambda g, x, y: g * conjugate(x)),
)
_binary(
    "Xdivy",
    lambda x, y: _over_or_zero(x != 0, x, y),
    (
        lambda g, x, y: _over_or_zero(x != 0, g, conjugate(y)),
        lambda g, x, y: np.where(x != 0, _divided_by(g, x, y), 0).astype(x.dtype, copy=False),
    ),
)
_binary(
    "Xlogy",
    _xlogy,
    (
        lambda g, x, y: np.where(x != 0, g * conjugate(np.log(y)), 0).astype(x.dtype, copy=False),
        lambda g, x, y: np.where(x != 0, g * conjugate(x / y), 0).astype(x.dtype, copy=False),
    ),
)
_binary("Atan2", np.arctan2, (lambda g, y, x: g * x / (x * x + y * y), lambda g, y, x: -g * y / (x * x + y * y)))
_binary("NextAfter", np.nextafter)
for _type, _function in {
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "LeftShift": np.left_shift,
    "RightShift": np.right_shift,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
}.items():
    _binary(_type, _function)


def _real_only(x: HostArray) -> HostArray:
    if x.dtype.kind == "c":
        raise NoKernel
    return x


def _compare(op_type: str, compute: Function, otherwise: bool) -> None:
    @kernel(op_type)
    def compared(x: HostArray, y: HostArray, *, incompatible_shape_error: bool = True) -> Any:  # pyright: ignore[reportUnusedFunction]
        if not incompatible_shape_error:
            try:
                np.broadcast_shapes(x.shape, y.shape)
            except ValueError:
                return np.array(otherwise)
        return compute(x, y)


_compare("Equal", np.equal, otherwise=False)
_compare("NotEqual", np.not_equal, otherwise=True)


@kernel("ApproximateEqual")
def approximate_equal(x: HostArray, y: HostArray, *, tolerance: float = 1e-5) -> Any:
    """|x - y| < tolerance."""
    return np.abs(x - y) < tolerance


# Three and more ---------------------------------------------------------------------------------------------------


@kernel("ClipByValue")
def clip_by_value(t: HostArray, clip_value_min: HostArray, clip_value_max: HostArray) -> HostArray:
    """min(max(t, low), high)."""
    higher = where(t < clip_value_min, clip_value_min, t)
    return where(higher > clip_value_max, clip_value_max, higher)


@gradient_kernel("ClipByValue")
def clip_gradient(inputs: Arrays, grads: Arrays, needed: Needed, _attrs: Attrs) -> Arrays:
    """Passes the gradient of each element to the input from which the element was copied."""
    t, low, high = inputs
    raised = t < low
    lowered = where(raised, low, t) > high
    masks = (~(raised | lowered), raised & ~lowered, lowered)
    return [
        sum_to(_where_chosen(grads[0], mask), value.shape) if wanted else None
        for mask, value, wanted in zip(masks, inputs, needed, strict=True)
    ]


@kernel("AddN", "AccumulateNV2")
def add_n(*inputs: HostArray) -> HostArray:
    """The sum of all inputs, which have one shape."""
    return reduce(np.add, inputs)


@gradient_kernel("AddN", "AccumulateNV2")
def add_n_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient, for each input."""
    return [grads[0]] * len(inputs)


def _rows_of(condition: HostArray, rank: int) -> HostArray:
    return condition.reshape((-1,) + (1,) * (rank - 1)) if condition.ndim == 1 and rank > 1 else condition


@kernel("Select")
def select(condition: HostArray, t: HostArray, e: HostArray) -> HostArray:
    """``t`` where the condition holds, else ``e``; a vector of conditions chooses whole rows."""
    if condition.ndim == 1 and not condition.any():  # a safe lookup of an embedding selects no row if none is empty
        return e
    return where(_rows_of(condition, t.ndim), t, e)


@kernel("SelectV2")
def select_v2(condition: HostArray, t: HostArray, e: HostArray) -> HostArray:
    """``t`` where the condition holds, else ``e``; all three broadcast."""
    return where(condition, t, e)


def _chosen(condition: HostArray, inputs: Arrays, g: HostArray, needed: Needed) -> Arrays:
    zero = g.dtype.type(0)
    if condition.size < g.size and not condition.any():
        nothing = np.zeros(inputs[1].shape, g.dtype) if needed[1] else None
        return None, nothing, sum_to(g, inputs[2].shape) if needed[2] else None
    return (
        None,
        sum_to(where(condition, g, zero), inputs[1].shape) if needed[1] else None,
        sum_to(where(condition, zero, g), inputs[2].shape) if needed[2] else None,
    )


@gradient_kernel("Select")
def select_gradient(inputs: Arrays, grads: Arrays, needed: Needed, _attrs: Attrs) -> Arrays:
    """Passes the gradient of each element to the input from which the element was copied."""
    return _chosen(_rows_of(inputs[0], inputs[1].ndim), inputs, grads[0], needed)


@gradient_kernel("SelectV2")
def select_v2_gradient(inputs: Arrays, grads: Arrays, needed: Needed, _attrs: Attrs) -> Arrays:
    """Like `select_gradient`."""
    return _chosen(inputs[0], inputs, grads[0], needed)


# Types ------------------------------------------------------------------------------------------------------------


@kernel("Cast")
def cast(x: HostArray, *, DstT: DType) -> HostArray:
    """Converts ``x`` to another type: floats lose their fraction, complex numbers their imaginary part.

    Floats that do not fit an integer type are converted as in `headwater.graph.ops.elementwise.cast`.
    """
    target = DstT.numpy_dtype
    if x.dtype.kind == "c" and target.kind == "b":
        return x != 0
    if x.dtype.kind == "c" and target.kind != "c":
        x = x.real
    if target.kind in "iu" and x.dtype.kind not in "iub":
        return _integers(x, target)
    return x.astype(target)


def _integers(x: HostArray, target: np.dtype[Any]) -> HostArray:
    """Converts floats to integers as x86-64 processors do: first to int32 or int64, where values that do not fit become
    the lowest integer; see `headwater.graph.ops.elementwise`."""
    wide = np.dtype(np.int32 if target.itemsize < 4 or target == np.int32 else np.int64)
    if x.dtype.kind != "f" or x.dtype.itemsize < 4:
        x = x.astype(np.float32)
    limit = x.dtype.type(-float(np.iinfo(wide).min))
    if target == np.uint64:  # processors convert numbers from 2⁶³ on by subtracting 2⁶³ first
        high = x >= limit
        within = np.where(high, x - limit, x)
        low = np.where((within >= -limit) & (within < limit), within, -limit).astype(wide).astype(target)
        return np.where(high, low ^ target.type(1 << 63), low)
    fits = (x >= -limit) & (x < limit)
    if not fits.all():
        x = np.where(fits, x, -limit)
    return x.astype(wide).astype(target, copy=False)


@gradient_kernel("Cast")
def cast_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The gradient as the input's type."""
    (x,), g = inputs, grads[0]
    return (g.real.astype(x.dtype) if g.dtype.kind == "c" and x.dtype.kind != "c" else g.astype(x.dtype),)


@kernel("Bitcast")
def bitcast(input: HostArray, *, type: DType) -> HostArray:
    """Reinterprets the bits as elements of another type; if its size differs, a last dimension is added or removed."""
    target = type.numpy_dtype
    if "b" in (input.dtype.kind, target.kind) or "c" in (input.dtype.kind, target.kind):
        raise NoKernel
    source = np.ascontiguousarray(input)
    if source.dtype.itemsize < target.itemsize:
        return source.view(target)[..., 0]
    if source.dtype.itemsize > target.itemsize:
        return source[..., np.newaxis].view(target)
    return source.reshape(input.shape).view(target)


@kernel("Complex")
def complex_(real: HostArray, imag: HostArray, *, Tout: DType) -> HostArray:
    """real + i imag."""
    result = np.empty(np.broadcast_shapes(real.shape, imag.shape), Tout.numpy_dtype)
    result.real, result.imag = real, imag
    return result


@gradient_kernel("Complex")
def complex_gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:
    """The parts of the gradient."""
    (real, imag), g = inputs, grads[0]
    return sum_to(g.real, real.shape).astype(real.dtype), sum_to(g.imag, imag.shape).astype(imag.dtype)


def _part(op_type: str, compute: Function, slope: Function) -> None:
    """Registers a function from complex to real numbers; ``slope`` returns the complex gradient for a real gradient."""

    @kernel(op_type)
    def part(x: HostArray, *, Tout: DType | None = None) -> Any:  # pyright: ignore[reportUnusedFunction]
        return compute(x).astype(np.float32 if Tout is None else Tout.numpy_dtype)

    @gradient_kernel(op_type)
    def gradient(inputs: Arrays, grads: Arrays, _needed: Needed, _attrs: Attrs) -> Arrays:  # pyright: ignore[reportUnusedFunction]
        x = inputs[0]
        if x.dtype.kind != "c":
            raise NoKernel
        return (slope(grads[0], x).astype(x.dtype),)


_part("Real", np.real, lambda g, x: g)
_part("Imag", np.imag, lambda g, x: 1j * g)
_part("Angle", np.angle, lambda g, x: g * 1j * x / np.square(np.abs(x)))
_part("ComplexAbs", np.abs, lambda g, x: np.where(x == 0, 0, g * x / np.abs(x)))


@kernel("EnsureShape")
def ensure_shape(input: HostArray, *, shape: TensorShape) -> HostArray:
    """``input`` itself; its shape must agree with ``shape``."""
    require_shape(input.shape, shape)
    return input
