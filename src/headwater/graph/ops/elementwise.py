"""Element-wise functions: arithmetic, comparison, logic, rounding, casts."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.dtypes import DType, bool_, float32, string
from headwater.graph.ops.common import AnyArray, array_module
from headwater.graph.ops.define import binary, comparison, pure, unary, unary_predicate
from headwater.graph.ops.slopes import masked_product, reciprocal_slope, rsqrt_slope, sqrt_slope
from headwater.graph.registry import Inference, Spec
from headwater.lazy_jax import custom_jvp, custom_vjp, deferred, jax, jnp, lax, special
from headwater.shapes import Dims, broadcast_dims, merge_dims, require_shape

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray
    from headwater.shapes import TensorShape

Function = Callable[..., Any]

# One argument -----------------------------------------------------------------------------------------------------


def _named(name: str) -> Function:
    """The function called ``name`` in NumPy and in `jax.numpy`."""
    return lambda x: getattr(array_module(x), name)(x)


def _unary(op_type: str, function: Function | str, allowed: str, argument: str = "x", **options: object) -> None:
    compute = _named(function) if isinstance(function, str) else function
    chosen: dict[str, Any] = {"infer": unary, "inputs": f"{argument}:T|{allowed}"} | options
    pure(op_type, **chosen)(lambda x: compute(x))


def _round(x: AnyArray) -> AnyArray:
    """Rounds to the nearest integer; halves are rounded to the nearest even integer."""
    return x if x.dtype.kind in "iub" else array_module(x).round(x)


def _sign(x: AnyArray) -> AnyArray:
    """Returns the sign, -1, 0 or 1; 0 for NaN; x / |x| for a complex number."""
    xp = array_module(x)
    return xp.sign(x) if x.dtype.kind in "iubc" else xp.where(xp.isnan(x), x.dtype.type(0), xp.sign(x))


@custom_jvp
def _float_abs(x: jax.Array) -> jax.Array:
    return jnp.abs(x)


@_float_abs.defjvp
def _float_abs_jvp(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    # The slope at 0 and NaN is 0.
    return jnp.abs(primals[0]), tangents[0] * _sign(primals[0])


def _abs(x: AnyArray) -> AnyArray:
    """|x|."""
    return array_module(x).abs(x) if x.dtype.kind in "iu" else _float_abs(x)


def _given_result(function: Function, slope: Function) -> Function:
    """Returns ``function`` with the gradient ``slope(y)`` of its result y, which is 0 where the incoming gradient is 0.

    TensorFlow's kernels of these gradients do the same, even if the slope is infinite, such as for a masked
    ``sqrt(0)``.
    """

    @custom_vjp
    def compute(x: jax.Array) -> jax.Array:
        return function(x)

    def forward(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        y = function(x)
        return y, y

    def backward(y: jax.Array, dy: jax.Array) -> tuple[jax.Array]:
        # JAX's complex gradients are the conjugates of TensorFlow's, so inputs and outputs are conjugated here.
        return (jnp.conj(masked_product(jnp.conj(dy), slope(y))),)

    compute.defvjp(forward, backward)
    return compute


_unary("Abs", _abs, "numeric")
_unary("Neg", "negative", "numeric")
_unary("Square", "square", "numeric")
_unary("Sign", _sign, "numeric")
_unary("Conj", "conj", "complex", "input")
for _type, _function in {
    "Exp": deferred(jnp, "exp"),
    "Expm1": deferred(jnp, "expm1"),
    "Log": deferred(jnp, "log"),
    "Log1p": deferred(jnp, "log1p"),
    "Sqrt": _given_result(deferred(jnp, "sqrt"), sqrt_slope),
    "Rsqrt": _given_result(deferred(lax, "rsqrt"), rsqrt_slope),
    "Reciprocal": _given_result(deferred(jnp, "reciprocal"), reciprocal_slope),
    "Inv": _given_result(deferred(jnp, "reciprocal"), reciprocal_slope),
    "Sin": deferred(jnp, "sin"),
    "Cos": deferred(jnp, "cos"),
    "Tan": deferred(jnp, "tan"),
    "Asin": deferred(jnp, "arcsin"),
    "Acos": deferred(jnp, "arccos"),
    "Atan": deferred(jnp, "arctan"),
    "Sinh": deferred(jnp, "sinh"),
    "Cosh": deferred(jnp, "cosh"),
    "Tanh": deferred(jnp, "tanh"),
    "Asinh": deferred(jnp, "arcsinh"),
    "Acosh": deferred(jnp, "arccosh"),
    "Atanh": deferred(jnp, "arctanh"),
    "Sigmoid": deferred(jax, "nn.sigmoid"),
}.items():
    _unary(_type, _function, "inexact")


def _lgamma(x: jax.Array) -> jax.Array:
    """The logarithm of the absolute value of the gamma function; infinite at both infinities."""
    return special.gammaln(jnp.where(x == -jnp.inf, jnp.inf, x)).astype(x.dtype)


def _digamma(x: jax.Array) -> jax.Array:
    """The derivative of `lgamma`; infinite at 0, -1, -2, …, as in TensorFlow."""
    return jnp.where((x <= 0) & (x == jnp.floor(x)), jnp.inf, special.digamma(x)).astype(x.dtype)


for _type, _function in {
    "Lgamma": _lgamma,
    "Digamma": _digamma,
    "Erf": deferred(special, "erf"),
    "Erfc": deferred(special, "erfc"),
    "Erfinv": deferred(special, "erfinv"),
    "LogNdtr": deferred(special, "log_ndtr"),
    "BesselI0e": deferred(special, "i0e"),
    "BesselI1e": deferred(special, "i1e"),
    "Ndtri": deferred(special, "ndtri"),
}.items():
    _unary(_type, _function, "floating")
for _type, _name in {"Floor": "floor", "Ceil": "ceil", "Rint": "rint"}.items():
    _unary(_type, _name, "floating", differentiable=False)
_unary("Round", _round, "numeric", differentiable=False)
for _type, _name in {"IsNan": "isnan", "IsInf": "isinf", "IsFinite": "isfinite"}.items():
    _unary(_type, _name, "floating", infer=unary_predicate, differentiable=False)
_unary("LogicalNot", "logical_not", "any", inputs="x:bool", differentiable=False)
_unary("Invert", "invert", "integer", differentiable=False)
_unary("Snapshot", lambda x: x, "any", "input")


# Two arguments, which broadcast -----------------------------------------------------------------------------------


def _binary(op_type: str, function: Function | str, allowed: str, **options: object) -> None:
    compute: Function = (
        function if not isinstance(function, str) else lambda x, y: getattr(array_module(x, y), function)(x, y)
    )
    chosen: dict[str, Any] = {"infer": binary, "inputs": f"x:T|{allowed}, y:T"} | options
    pure(op_type, **chosen)(lambda x, y: compute(x, y))


def _floor_div(x: AnyArray, y: AnyArray) -> AnyArray:
    """floor(x / y)."""
    xp = array_module(x, y)
    return xp.floor_divide(x, y) if x.dtype.kind in "iu" else xp.floor(x / y)


def _div(x: jax.Array, y: jax.Array) -> jax.Array | HostArray:
    """x / y; integer quotients are rounded towards zero."""
    return _truncate_div(x, y) if x.dtype.kind in "iu" else x / y


def _truncate_div(x: AnyArray, y: AnyArray) -> AnyArray:
    """x / y without its fraction."""
    xp = array_module(x, y)
    if x.dtype.kind not in "iu":
        return xp.trunc(x / y)
    quotient = xp.floor_divide(x, y)
    return quotient + ((quotient < 0) & (quotient * y != x)).astype(x.dtype)


def _chosen(first: Callable[[Any, Any], Any], other: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Returns a function of x and y. Its value is y where ``other(x, y)`` is true, otherwise x, so that NaN in x is
    kept. Where ``first(x, y)`` is true, x gets the whole gradient, otherwise y."""

    @custom_jvp
    def traced(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.where(other(x, y), y, x)

    @traced.defjvp
    def slope(  # pyright: ignore[reportUnusedFunction]
        primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        x, y = primals
        return traced(x, y), jnp.where(first(x, y), *tangents)

    def choose(x: Any, y: Any) -> Any:
        return np.where(other(x, y), y, x) if array_module(x, y) is np else traced(x, y)

    return choose


_maximum = _chosen(operator.ge, operator.lt)
_minimum = _chosen(operator.le, operator.gt)


def _squared_difference(x: AnyArray, y: AnyArray) -> AnyArray:
    """(x - y)², with the conjugate for complex numbers."""
    difference = x - y
    return difference * array_module(x, y).conj(difference) if difference.dtype.kind == "c" else difference * difference


@custom_jvp
def _float_power(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.power(x, y)


@_float_power.defjvp
def _float_power_jvp(
    primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    # d(xʸ) = y xʸ⁻¹ dx + xʸ log(x) dy, where log(x) counts as 0 for x ≤ 0, as in TensorFlow.
    x, y = primals
    dx, dy = tangents
    result = jnp.power(x, y)
    log_x = jnp.log(jnp.where(x > 0, x, 1)) if result.dtype.kind != "c" else jnp.log(jnp.where(x != 0, x, 1))
    slope = y * jnp.power(x, jnp.where(y == 0, 1, y - 1))
    return result, slope * dx + result * log_x * dy


def _power(x: AnyArray, y: AnyArray) -> AnyArray:
    """xʸ."""
    if x.dtype.kind in "iu":
        return array_module(x, y).power(x, y)
    return _float_power(*jnp.broadcast_arrays(x, y))


def _where_nonzero(condition: jax.Array | bool, numerator: jax.Array, compute: Function) -> jax.Array:
    """``compute()``, and 0 with zero gradients where ``condition`` fails."""
    return jnp.where(condition, compute(), jnp.zeros_like(numerator))


def _div_no_nan(x: jax.Array, y: jax.Array) -> jax.Array:
    """x / y, and 0 where y is 0."""
    return _where_nonzero(y != 0, x, lambda: x / jnp.where(y == 0, 1, y))


@custom_jvp
def _mul_no_nan(x: jax.Array, y: jax.Array) -> jax.Array:
    """x y; where y is 0, the result is 0 even if x is not finite."""
    return _where_nonzero(y != 0, x, lambda: jnp.where(y == 0, 0, x) * y)


@_mul_no_nan.defjvp
def _mul_no_nan_jvp(
    primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    # Unlike the result, the slope for y is x everywhere, also where y is 0.
    x, y = primals
    return _mul_no_nan(x, y), y * tangents[0] + x * tangents[1]


def _xdivy(x: jax.Array, y: jax.Array) -> jax.Array:
    """x / y, and 0 where x is 0."""
    return _where_nonzero(x != 0, x, lambda: x / jnp.where(x == 0, 1, y))


def _xlogy(x: jax.Array, y: jax.Array) -> jax.Array:
    """x log(y), and 0 where x is 0."""
    return _where_nonzero(x != 0, x, lambda: x * jnp.log(jnp.where(x == 0, 1, y)))


_binary("Add", "add", "additive", string_lower=lambda x, y: x + y)
_binary("AddV2", "add", "numeric")
_binary("Sub", "subtract", "numeric")
_binary("Mul", "multiply", "numeric")
_binary("RealDiv", "divide", "numeric")
_binary("Div", _div, "numeric")
_binary("FloorDiv", _floor_div, "numeric", differentiable=False)
_binary("FloorMod", "mod", "real")
_binary("TruncateDiv", _truncate_div, "numeric", differentiable=False)
_binary("TruncateMod", "fmod", "real", differentiable=False)
_binary("Mod", "fmod", "real")
_binary("Pow", _power, "numeric")
_binary("Maximum", _maximum, "real")
_binary("Minimum", _minimum, "real")
_binary("SquaredDifference", _squared_difference, "numeric")
_binary("DivNoNan", _div_no_nan, "inexact")
_binary("MulNoNan", _mul_no_nan, "inexact")
_binary("Xdivy", _xdivy, "inexact")
_binary("Xlogy", _xlogy, "inexact")
_binary("Atan2", deferred(jnp, "arctan2"), "floating", inputs="y:T|floating, x:T")
_binary("NextAfter", deferred(jnp, "nextafter"), "floating", inputs="x1:T|floating, x2:T", differentiable=False)
_binary("Igamma", deferred(special, "gammainc"), "floating", inputs="a:T|floating, x:T")
_binary("Igammac", deferred(special, "gammaincc"), "floating", inputs="a:T|floating, x:T")
_binary(
    "RandomGammaGrad",
    # JAX's decorator, which has no types, adds the argument ``dtype``.
    lambda alpha, sample: lax.random_gamma_grad(*jnp.broadcast_arrays(alpha, sample)),  # pyright: ignore[reportCallIssue]
    "floating",
    inputs="alpha:T|floating, sample:T",
)
_binary("Zeta", deferred(special, "zeta"), "floating", inputs="x:T|floating, q:T", constants=(0,))
_binary("Polygamma", deferred(lax, "polygamma"), "floating", inputs="a:T|floating, x:T", constants=(0,))
for _type, _name in {
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
    "LeftShift": "left_shift",
    "RightShift": "right_shift",
}.items():
    _binary(_type, _name, "integer", differentiable=False)
for _type, _name in {
    "Less": "less",
    "LessEqual": "less_equal",
    "Greater": "greater",
    "GreaterEqual": "greater_equal",
}.items():
    _binary(_type, _name, "real", infer=comparison, differentiable=False)
for _type, _name in {"LogicalAnd": "logical_and", "LogicalOr": "logical_or"}.items():
    _binary(_type, _name, "any", inputs="x:bool, y:bool", infer=comparison, differentiable=False)


def _equality(inference: Inference) -> Sequence[Spec]:
    try:
        return comparison(inference)
    except ValueError:
        if inference.attrs.get("incompatible_shape_error", True):
            raise
        return [Spec(bool_, None)]


def _compare(name: str) -> Function:
    def compute(x: jax.Array, y: jax.Array, *, incompatible_shape_error: bool = True) -> object:
        xp = array_module(x, y)
        if not incompatible_shape_error:
            try:
                np.broadcast_shapes(x.shape, y.shape)
            except ValueError:
                return np.array(name == "not_equal")
        return xp.asarray(getattr(xp, name)(x, y), dtype=bool)

    return compute


for _type, _name in {"Equal": "equal", "NotEqual": "not_equal"}.items():
    pure(_type, inputs="x:T, y:T", infer=_equality, differentiable=False, strings=True)(_compare(_name))


def _approximate_spec(inference: Inference) -> Sequence[Spec]:
    return [Spec(bool_, merge_dims(inference.inputs[0].dims, inference.inputs[1].dims))]


@pure("ApproximateEqual", inputs="x:T|numeric, y:T", infer=_approximate_spec, differentiable=False)
def approximate_equal(x: jax.Array, y: jax.Array, *, tolerance: float = 1e-5) -> jax.Array:
    """|x - y| < tolerance."""
    return abs(x - y) < tolerance


# Three and more ---------------------------------------------------------------------------------------------------


def _betainc_spec(inference: Inference) -> Sequence[Spec]:
    dims: Dims = ()
    for spec in inference.inputs:
        dims = (merge_dims if dims and spec.dims else broadcast_dims)(dims, spec.dims)
    return [Spec(inference.inputs[0].dtype.base_dtype, dims)]


@pure("Betainc", inputs="a:T|floating, b:T, x:T", infer=_betainc_spec, constants=(0, 1))
def betainc(a: jax.Array, b: jax.Array, x: jax.Array) -> jax.Array:
    """The regularised incomplete beta function I_x(a, b)."""
    return special.betainc(a, b, x)


@pure("ClipByValue", inputs="t:T|numeric, clip_value_min:T, clip_value_max:T", infer=unary)
def clip_by_value(t: jax.Array, clip_value_min: jax.Array, clip_value_max: jax.Array) -> jax.Array | HostArray:
    """min(max(t, low), high)."""
    return _minimum(_maximum(t, clip_value_min), clip_value_max)


def _same_shapes(inference: Inference) -> Sequence[Spec]:
    dims: Dims = None
    for spec in inference.inputs:
        dims = merge_dims(dims, spec.dims)
        if spec.dtype.base_dtype != inference.inputs[0].dtype.base_dtype:
            raise TypeError(f"inputs of '{inference.op_type}' Op have types that don't all match")
    return [Spec(inference.inputs[0].dtype.base_dtype, dims)]


@pure("AddN", inputs="inputs:T|numeric*", infer=_same_shapes)
@pure("AccumulateNV2", inputs="inputs:T|numeric*", infer=_same_shapes)
def add_n(*inputs: jax.Array) -> jax.Array:
    """The sum of all inputs, which have one shape."""
    return functools.reduce(lambda a, b: a + b, inputs)


# Types ------------------------------------------------------------------------------------------------------------


def _cast_spec(inference: Inference) -> Sequence[Spec]:
    source = inference.inputs[0]
    wanted: DType = inference.attrs["DstT"]
    if string in (source.dtype.base_dtype, wanted.base_dtype) and source.dtype.base_dtype != wanted.base_dtype:
        raise TypeError(f"Cast {source.dtype.base_dtype.name} to {wanted.name} is not supported")
    return [Spec(wanted.base_dtype, source.dims)]


@pure("Cast", inputs="x:SrcT", infer=_cast_spec, string_lower=lambda x, **_: x)
def cast(x: AnyArray, *, DstT: DType) -> AnyArray:
    """``x`` as another type: floats lose their fraction, complex numbers their imaginary part."""
    xp = array_module(x)
    target = DstT.numpy_dtype
    if x.dtype.kind == "c" and target.kind == "b":
        return x != 0
    if x.dtype.kind == "c" and target.kind != "c":
        x = xp.real(x)
    if target.kind in "iu" and x.dtype.kind not in "iub":
        return _integers(xp.asarray(x), target)
    return xp.asarray(x).astype(target)


def _integers(x: AnyArray, target: np.dtype[Any]) -> AnyArray:
    """Converts floats to integers as x86-64 processors do, and therefore TensorFlow on CPUs.

    A number is first converted to int32 (to int64 if the target type does not fit into 32 bits). NaN, and numbers that
    do not fit, become the lowest integer. The result is the low bits: 300 becomes 44 as uint8, and -1 becomes 255.
    """
    xp = array_module(x)
    wide = np.dtype(np.int32 if target.itemsize < 4 or target == np.int32 else np.int64)
    lowest = np.iinfo(wide).min
    x = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    limit = x.dtype.type(-float(lowest))
    if target == np.uint64:  # processors convert numbers from 2⁶³ on by subtracting 2⁶³ first
        high = x >= limit
        within = xp.where(high, x - limit, x)
        low = xp.where((within >= -limit) & (within < limit), within, -limit).astype(wide).astype(target)
        return xp.where(high, low ^ target.type(1 << 63), low)
    return xp.where((x >= -limit) & (x < limit), x, -limit).astype(wide).astype(target)


def _bitcast_spec(inference: Inference) -> Sequence[Spec]:
    source, dims = inference.inputs[0].dtype.base_dtype, inference.inputs[0].dims
    target: DType = inference.attrs["type"].base_dtype
    if dims is None or source.size == target.size:
        return [Spec(target, dims)]
    if source.size > target.size:
        return [Spec(target, (*dims, source.size // target.size))]
    ratio = target.size // source.size
    if not dims or dims[-1] not in (None, ratio):
        raise ValueError(f"Cannot bitcast from {source.name} to {target.name}: the last dimension must be {ratio}")
    return [Spec(target, dims[:-1])]


@pure("Bitcast", inputs="input:T", infer=_bitcast_spec, differentiable=False)
def bitcast(input: jax.Array, *, type: DType) -> jax.Array:
    """Reinterprets the bits as elements of another type; if its size differs, a last dimension is added or removed."""
    return lax.bitcast_convert_type(input, type.numpy_dtype)


def _complex_spec(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.attrs["Tout"], binary(inference)[0].dims)]


@pure("Complex", inputs="real:T|floating=float32, imag:T", infer=_complex_spec)
def complex_(real: jax.Array, imag: jax.Array, *, Tout: DType) -> jax.Array:
    """real + i imag."""
    return lax.complex(*jnp.broadcast_arrays(real, imag)).astype(Tout.numpy_dtype)


def _real_spec(inference: Inference) -> Sequence[Spec]:
    source = inference.inputs[0]
    return [Spec(inference.attrs.get("Tout", float32), source.dims)]


def _register_part(op_type: str, compute: Function) -> None:
    def part(x: jax.Array, *, Tout: DType = float32) -> object:
        return compute(x).astype(Tout.numpy_dtype)

    pure(op_type, inputs=f"{'x' if op_type == 'ComplexAbs' else 'input'}:T|complex", infer=_real_spec)(part)


for _type, _name in {"Real": "real", "Imag": "imag", "Angle": "angle", "ComplexAbs": "abs"}.items():
    _register_part(_type, deferred(jnp, _name))


def _ensured_spec(inference: Inference) -> Sequence[Spec]:
    source = inference.inputs[0]
    return [Spec(source.dtype.base_dtype, merge_dims(source.dims, inference.attrs["shape"].as_dims))]


@pure("EnsureShape", inputs="input:T", infer=_ensured_spec, strings=True)
def ensure_shape(input: jax.Array, *, shape: TensorShape) -> jax.Array:
    """``input`` itself; its shape must agree with ``shape``."""
    require_shape(input.shape, shape)
    return input
