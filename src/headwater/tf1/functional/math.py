"""Functions of each element: arithmetic, comparison, logic, rounding, casts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headwater import dtypes
from headwater.dtypes import DType, DTypeLike, as_dtype
from headwater.graph.convert import constant, convert_to_tensor, name_scope
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.operation import Tensor
from headwater.graph.sparse_tensor import SparseTensor
from headwater.graph.types import SparseLike, TensorLike
from headwater.shapes import ShapeLike, as_shape
from headwater.tf1.functional.apply import one

Function = Callable[..., Tensor]

# Of one tensor ----------------------------------------------------------------------------------------------------


def of_x(op_type: str, meaning: str, sparse: bool = False) -> Function:
    """A function of each element; with ``sparse`` it is 0 for 0, and so keeps a sparse tensor sparse."""

    def of_tensor(x: TensorLike, name: str | None = None) -> Tensor:
        return one(op_type, x, name=name)

    def of_either(x: SparseLike, name: str | None = None) -> Any:
        return x.with_values(of_tensor(x.values, name)) if isinstance(x, SparseTensor) else of_tensor(x, name)

    function = of_either if sparse else of_tensor
    function.__doc__ = f"{meaning} of every element."
    function.__name__ = op_type.lower()
    return function


negative: Function = of_x("Neg", "The negative", sparse=True)
square: Function = of_x("Square", "The square", sparse=True)
sqrt: Function = of_x("Sqrt", "The square root", sparse=True)
rsqrt: Function = of_x("Rsqrt", "1 / √x")
reciprocal: Function = of_x("Reciprocal", "1 / x")
exp: Function = of_x("Exp", "eˣ")
expm1: Function = of_x("Expm1", "eˣ - 1")
log: Function = of_x("Log", "The natural logarithm")
log1p: Function = of_x("Log1p", "log(1 + x)")
sin: Function = of_x("Sin", "The sine")
cos: Function = of_x("Cos", "The cosine")
tan: Function = of_x("Tan", "The tangent")
asin: Function = of_x("Asin", "The inverse sine")
acos: Function = of_x("Acos", "The inverse cosine")
atan: Function = of_x("Atan", "The inverse tangent")
sinh: Function = of_x("Sinh", "The hyperbolic sine")
cosh: Function = of_x("Cosh", "The hyperbolic cosine")
tanh: Function = of_x("Tanh", "The hyperbolic tangent", sparse=True)
asinh: Function = of_x("Asinh", "The inverse hyperbolic sine")
acosh: Function = of_x("Acosh", "The inverse hyperbolic cosine")
atanh: Function = of_x("Atanh", "The inverse hyperbolic tangent")
sigmoid: Function = of_x("Sigmoid", "1 / (1 + e⁻ˣ)")
sign: Function = of_x("Sign", "-1, 0 or 1, the sign", sparse=True)
floor: Function = of_x("Floor", "The largest integer not above")
ceil: Function = of_x("Ceil", "The smallest integer not below")
rint: Function = of_x("Rint", "The nearest integer (the even one if two are equally near)")
is_nan: Function = of_x("IsNan", "Whether it is not a number,")
is_inf: Function = of_x("IsInf", "Whether it is infinite,")
is_finite: Function = of_x("IsFinite", "Whether it is neither infinite nor NaN,")
logical_not: Function = of_x("LogicalNot", "The negation")
invert: Function = of_x("Invert", "All bits flipped")


def abs(x: TensorLike, name: str | None = None) -> Any:
    """|x| of every element; real for complex numbers."""
    if isinstance(x, SparseTensor):
        return x.with_values(abs(x.values, name))
    with name_scope(name, "Abs", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex:
            return one("ComplexAbs", x, Tout=x.dtype.real_dtype, name=scope)
        return one("Abs", x, name=scope)


def round(x: TensorLike, name: str | None = None) -> Tensor:
    """The nearest integer; the even one if two are equally near."""
    x = convert_to_tensor(x, name="x")
    return x if x.dtype.is_integer else one("Round", x, name=name)


def log_sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    """log(1 / (1 + e⁻ˣ)), as -softplus(-x)."""
    with name_scope(name, "LogSigmoid", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return negative(one("Softplus", negative(x)), name=scope)


# Of two tensors, which broadcast ----------------------------------------------------------------------------------


def _of_x_y(op_type: str, meaning: str, default: str | None = None) -> Function:
    def function(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
        return one(op_type, x, y, name=name or default)

    function.__doc__ = f"{meaning}, element by element."
    return function


add: Function = _of_x_y("Add", "x + y")
add_v2: Function = _of_x_y("AddV2", "x + y")
subtract: Function = _of_x_y("Sub", "x - y")
multiply: Function = _of_x_y("Mul", "x y")
realdiv: Function = _of_x_y("RealDiv", "x / y")
floormod: Function = _of_x_y("FloorMod", "x - y floor(x / y)")
truncatediv: Function = _of_x_y("TruncateDiv", "x / y without its fraction")
truncatemod: Function = _of_x_y("TruncateMod", "The remainder of x / y rounded towards zero")
maximum: Function = _of_x_y("Maximum", "The larger of x and y")
minimum: Function = _of_x_y("Minimum", "The smaller of x and y")
squared_difference: Function = _of_x_y("SquaredDifference", "(x - y)²")
less: Function = _of_x_y("Less", "x < y")
less_equal: Function = _of_x_y("LessEqual", "x ≤ y")
greater: Function = _of_x_y("Greater", "x > y")
greater_equal: Function = _of_x_y("GreaterEqual", "x ≥ y")
equal: Function = _of_x_y("Equal", "x = y")
not_equal: Function = _of_x_y("NotEqual", "x ≠ y")
logical_and: Function = _of_x_y("LogicalAnd", "x and y")
logical_or: Function = _of_x_y("LogicalOr", "x or y")
xdivy: Function = _of_x_y("Xdivy", "x / y, and 0 where x is 0")
xlogy: Function = _of_x_y("Xlogy", "x log(y), and 0 where x is 0")
bitwise_and: Function = _of_x_y("BitwiseAnd", "The bits set in both x and y")
bitwise_or: Function = _of_x_y("BitwiseOr", "The bits set in x or y")
bitwise_xor: Function = _of_x_y("BitwiseXor", "The bits set in one of x and y")
left_shift: Function = _of_x_y("LeftShift", "x with its bits shifted left by y")
right_shift: Function = _of_x_y("RightShift", "x with its bits shifted right by y")


def atan2(y: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The angle of the point (x, y)."""
    return one("Atan2", y, x, name=name)


def pow(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """xʸ, element by element."""
    return one("Pow", x, y, name=name)


def logical_xor(x: TensorLike, y: TensorLike, name: str = "LogicalXor") -> Tensor:
    """Either x or y, element by element."""
    with name_scope(name, None, [x, y]) as scope:
        return logical_and(logical_or(x, y), logical_not(logical_and(x, y)), name=scope)


def approximate_equal(x: TensorLike, y: TensorLike, tolerance: float = 1e-5, name: str | None = None) -> Tensor:
    """|x - y| < tolerance, element by element."""
    return one("ApproximateEqual", x, y, tolerance=tolerance, name=name)


# Division ---------------------------------------------------------------------------------------------------------

_TRUEDIV_TYPES: dict[DType, DType | None] = {
    dtypes.uint8: dtypes.float32,
    dtypes.int8: dtypes.float32,
    dtypes.uint16: dtypes.float32,
    dtypes.int16: dtypes.float32,
    dtypes.int32: dtypes.float64,
    dtypes.int64: dtypes.float64,
    dtypes.bfloat16: None,
    dtypes.float16: None,
    dtypes.float32: None,
    dtypes.float64: None,
    dtypes.complex64: None,
    dtypes.complex128: None,
}


def truediv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Returns x / y with Python 3's true division: integers become float32 (8 and 16 bits) or float64 first.

    Raises:
      TypeError: x and y have different types, or a type without division.
    """
    with name_scope(name, "truediv", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, name="y")
        found, other = x.dtype.base_dtype, y.dtype.base_dtype
        if found != other:
            raise TypeError(f"x and y must have the same dtype, got {found!r} != {other!r}")
        if found not in _TRUEDIV_TYPES:
            raise TypeError(f"Invalid dtype {found!r} in __truediv__.")
        wanted = _TRUEDIV_TYPES[found]
        if wanted is not None:
            x, y = cast(x, wanted), cast(y, wanted)
        return realdiv(x, y, name=scope)


def divide(x: Any, y: TensorLike, name: str | None = None) -> Tensor:
    """``x / y``: as `truediv`, with a Python number taken for the other's type."""
    if name is None:
        return x / y if isinstance(x, Tensor) or isinstance(y, Tensor) else convert_to_tensor(x) / y
    x = convert_to_tensor(x)
    return truediv(x, convert_to_tensor(y, preferred_dtype=x.dtype.base_dtype), name=name)


def div(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x / y as Python 2 divides: `floordiv` of integers, a fraction of floats."""
    with name_scope(name, "div", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        y = convert_to_tensor(y, x.dtype.base_dtype, name="y")
        if x.dtype.is_floating or x.dtype.is_complex:
            return realdiv(x, y, name=scope)
        return one("FloorDiv", x, y, name=scope)


def div_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x / y, and 0 where y is 0."""
    with name_scope(name, "div_no_nan", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        return one("DivNoNan", x, convert_to_tensor(y, x.dtype.base_dtype, name="y"), name=scope)


def multiply_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x y, and 0 where y is 0 even if x is not finite."""
    with name_scope(name, "multiply_no_nan", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        return one("MulNoNan", x, convert_to_tensor(y, x.dtype.base_dtype, name="y"), name=scope)


def floordiv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """floor(x / y), element by element."""
    return one("FloorDiv", x, y, name=name or "floordiv")


floor_div: Function = _of_x_y("FloorDiv", "floor(x / y)")

# Types ------------------------------------------------------------------------------------------------------------


def cast(x: Any, dtype: DTypeLike, name: str | None = None) -> Any:
    """``x`` as elements of ``dtype``: floats lose their fraction, truth values become 0 and 1."""
    wanted = as_dtype(dtype).base_dtype
    if isinstance(x, IndexedSlices):
        return IndexedSlices(cast(x.values, wanted, name), x.indices, x.dense_shape)
    if isinstance(x, SparseTensor):
        return x.with_values(cast(x.values, wanted, name))
    if isinstance(x, Tensor) and x.dtype == wanted:
        return x
    with name_scope(name, "Cast", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return x if x.dtype.base_dtype == wanted else one("Cast", x, DstT=wanted, Truncate=False, name=scope)


def _to(dtype: DType, default: str) -> Function:
    def function(x: TensorLike, name: str = default) -> Tensor:
        return cast(x, dtype, name=name)

    function.__doc__ = f"``x`` as {dtype.name}."
    return function


to_float: Function = _to(dtypes.float32, "ToFloat")
to_double: Function = _to(dtypes.float64, "ToDouble")
to_int32: Function = _to(dtypes.int32, "ToInt32")
to_int64: Function = _to(dtypes.int64, "ToInt64")
to_bfloat16: Function = _to(dtypes.bfloat16, "ToBFloat16")
to_complex64: Function = _to(dtypes.complex64, "ToComplex64")
to_complex128: Function = _to(dtypes.complex128, "ToComplex128")


def saturate_cast(value: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """Casts as `cast`, but clips values to the range of ``dtype``."""
    with name_scope(name, "saturate_cast", [value]) as scope:
        value = convert_to_tensor(value, name="value")
        wanted, source = as_dtype(dtype).base_dtype, value.dtype.base_dtype
        if source.min < wanted.min:
            value = maximum(value, constant(wanted.min, source, name="min"))
        if source.max > wanted.max:
            value = minimum(value, constant(wanted.max, source, name="max"))
        return cast(value, wanted, name=scope)


def bitcast(input: TensorLike, type: DTypeLike, name: str | None = None) -> Tensor:
    """The same bits read as elements of another type."""
    return one("Bitcast", input, type=as_dtype(type), name=name)


def complex(real: TensorLike, imag: TensorLike, name: str | None = None) -> Tensor:
    """Returns the complex numbers real + i imag."""
    with name_scope(name, "Complex", [real, imag]) as scope:
        real = convert_to_tensor(real, name="real")
        imag = convert_to_tensor(imag, name="imag")
        kinds = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}
        found = real.dtype.base_dtype
        if found not in kinds or imag.dtype.base_dtype != found:
            raise TypeError(f"real and imag have incorrect types: {found.name} {imag.dtype.base_dtype.name}")
        return one("Complex", real, imag, Tout=kinds[found], name=scope)


def _part(op_type: str, input: TensorLike, name: str | None) -> Tensor:
    with name_scope(name, op_type, [input]) as scope:
        input = convert_to_tensor(input, name="input")
        return one(op_type, input, Tout=input.dtype.real_dtype, name=scope) if input.dtype.is_complex else input


def real(input: TensorLike, name: str | None = None) -> Tensor:
    """Returns the real part."""
    return _part("Real", input, name)


def imag(input: TensorLike, name: str | None = None) -> Tensor:
    """The imaginary part."""
    with name_scope(name, "Imag", [input]) as scope:
        input = convert_to_tensor(input, name="input")
        if input.dtype.is_complex:
            return one("Imag", input, Tout=input.dtype.real_dtype, name=scope)
        return one("ZerosLike", input)


def angle(input: TensorLike, name: str | None = None) -> Tensor:
    """The argument of a complex number; zeros for real ones."""
    with name_scope(name, "Angle", [input]) as scope:
        input = convert_to_tensor(input, name="input")
        if input.dtype.is_complex:
            return one("Angle", input, Tout=input.dtype.real_dtype, name=scope)
        return one("ZerosLike", input)


def conj(x: TensorLike, name: str | None = None) -> Tensor:
    """The complex conjugate."""
    with name_scope(name, "Conj", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if not (x.dtype.base_dtype.is_floating or x.dtype.is_integer or x.dtype.is_complex):
            raise TypeError(f"Expected numeric or variant tensor, got dtype {x.dtype!r}")
        return one("Conj", x, name=scope) if x.dtype.is_complex else x


# Sums of several --------------------------------------------------------------------------------------------------


def add_n(inputs: Sequence[TensorLike], name: str | None = None) -> Tensor:
    """The sum of tensors of one shape and type.

    Raises:
      ValueError: there are no inputs, or their shapes differ.
      TypeError: the types of the inputs differ.
    """
    if not inputs or not isinstance(inputs, list | tuple):
        raise ValueError("inputs must be a list of at least one Tensor/IndexedSlices with the same dtype and shape")
    tensors = [convert_to_tensor(item) for item in inputs]
    if len(tensors) == 1:
        if name:
            return one("Identity", tensors[0], name=name)
        return tensors[0]
    return one("AddN", tensors, name=name)


def accumulate_n(
    inputs: Sequence[TensorLike],
    shape: ShapeLike | None = None,
    tensor_dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Adds tensors as `add_n`, with a static shape and type.

    Raises:
      ValueError: there are no inputs, or they have different shapes.
      TypeError: inputs have a different type than ``tensor_dtype``.
    """
    tensors = [convert_to_tensor(item) for item in inputs or ()]
    if not tensors:
        raise ValueError("inputs must be a list of at least one Tensor with the same dtype and shape")
    found = tensors[0].dtype.base_dtype
    if tensor_dtype is not None and found != as_dtype(tensor_dtype):
        raise TypeError(f"tensor_dtype is {as_dtype(tensor_dtype).name}, but input is of type {found.name}")
    merged = as_shape(shape)
    for tensor in tensors:
        merged = merged.merge_with(tensor.shape)
    if len(tensors) == 1 and name is None:
        return tensors[0]
    return one("AccumulateNV2", tensors, shape=merged, name=name)


def scalar_mul(scalar: TensorLike, x: TensorLike, name: str | None = None) -> IndexedSlices | Tensor:
    """A scalar times a tensor or `IndexedSlices`.

    Raises:
      ValueError: ``scalar`` is not a scalar.
    """
    slices = x if isinstance(x, IndexedSlices) else None
    values = slices.values if slices else convert_to_tensor(x)
    scalar = convert_to_tensor(scalar, values.dtype.base_dtype, name="scalar")
    if scalar.shape.ndims != 0:
        raise ValueError(f"Only scalar multiply works, got shape {scalar.shape}")
    if slices:
        return slices.scaled(lambda rows: one("Mul", scalar, rows, name=name if rows is values else None))
    return one("Mul", scalar, values, name=name)


def reciprocal_no_nan(x: TensorLike, name: str | None = None) -> Tensor:
    """1 / x, and 0 where x is 0."""
    with name_scope(name, "reciprocal_no_nan", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return div_no_nan(constant(1, x.dtype.base_dtype, name="one"), x, name=scope)


def is_numeric_tensor(tensor: TensorLike) -> bool:
    """Returns whether it is a tensor of numbers."""
    dtype = tensor.dtype if isinstance(tensor, Tensor) else None
    return dtype is not None and (dtype.is_floating or dtype.is_complex or dtype.is_integer)


def is_non_decreasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Returns whether no element, in row-major order, is below the one before."""
    return _ordered(x, less_equal, name, "is_non_decreasing")


def is_strictly_increasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Returns whether every element, in row-major order, is above the one before."""
    return _ordered(x, less, name, "is_strictly_increasing")


def _ordered(x: TensorLike, compare: Function, name: str | None, default: str) -> Tensor:
    with name_scope(name, default, [x]) as scope:
        flat = one("Reshape", convert_to_tensor(x, name="x"), [-1])
        return one("All", compare(flat[:-1], flat[1:]), [0], name=scope)
