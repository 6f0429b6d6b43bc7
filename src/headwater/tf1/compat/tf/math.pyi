# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from typing import Any
from headwater.dtypes import DTypeLike
from headwater.graph.types import Ints
from headwater.graph.types import SparseLike
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional.grids import invert_permutation as invert_permutation
from headwater.tf1.functional.losses import confusion_matrix as confusion_matrix
from headwater.tf1.functional.math import abs as abs
from headwater.tf1.functional.math import accumulate_n as accumulate_n
from headwater.tf1.functional.math import add_n as add_n
from headwater.tf1.functional.math import angle as angle
from headwater.tf1.functional.math import atan2 as atan2
from headwater.tf1.functional.math import conj as conj
from headwater.tf1.functional.math import div_no_nan as divide_no_nan
from headwater.tf1.functional.math import divide as divide
from headwater.tf1.functional.math import floordiv as floordiv
from headwater.tf1.functional.math import imag as imag
from headwater.tf1.functional.math import is_non_decreasing as is_non_decreasing
from headwater.tf1.functional.math import is_strictly_increasing as is_strictly_increasing
from headwater.tf1.functional.math import log_sigmoid as log_sigmoid
from headwater.tf1.functional.math import logical_xor as logical_xor
from headwater.tf1.functional.math import multiply_no_nan as multiply_no_nan
from headwater.tf1.functional.math import pow as pow
from headwater.tf1.functional.math import real as real
from headwater.tf1.functional.math import reciprocal_no_nan as reciprocal_no_nan
from headwater.tf1.functional.math import round as round
from headwater.tf1.functional.math import scalar_mul as scalar_mul
from headwater.tf1.functional.math import truediv as truediv
from headwater.tf1.functional.nn import in_top_k as in_top_k
from headwater.tf1.functional.nn import l2_normalize as l2_normalize
from headwater.tf1.functional.nn import log_softmax as log_softmax
from headwater.tf1.functional.nn import softmax as softmax
from headwater.tf1.functional.nn import top_k as top_k
from headwater.tf1.functional.nn import zero_fraction as zero_fraction
from headwater.tf1.functional.reductions import bincount as bincount
from headwater.tf1.functional.reductions import count_nonzero as count_nonzero
from headwater.tf1.functional.reductions import cumprod as cumprod
from headwater.tf1.functional.reductions import cumsum as cumsum
from headwater.tf1.functional.reductions import reduce_euclidean_norm as reduce_euclidean_norm
from headwater.tf1.functional.reductions import reduce_logsumexp as reduce_logsumexp
from headwater.tf1.functional.reductions import unsorted_segment_mean as unsorted_segment_mean
from headwater.tf1.functional.reductions import unsorted_segment_sqrt_n as unsorted_segment_sqrt_n
from headwater.tf1.functional.special import bessel_i0 as bessel_i0
from headwater.tf1.functional.special import bessel_i1 as bessel_i1
from headwater.tf1.functional.special import betainc as betainc
from headwater.tf1.functional.special import cumulative_logsumexp as cumulative_logsumexp
from headwater.tf1.functional.special import igamma as igamma
from headwater.tf1.functional.special import igammac as igammac
from headwater.tf1.functional.special import lbeta as lbeta
from headwater.tf1.functional.special import nextafter as nextafter
from headwater.tf1.functional.special import polygamma as polygamma
from headwater.tf1.functional.special import polyval as polyval
from headwater.tf1.functional.special import zeta as zeta

def acos(x: TensorLike, name: str | None = ...) -> Tensor:
    """The inverse cosine of every element."""
def acosh(x: TensorLike, name: str | None = ...) -> Tensor:
    """The inverse hyperbolic cosine of every element."""
def add(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x + y, element by element."""
def argmax(input: TensorLike, axis: TensorLike | None = ..., name: str | None = ..., dimension: object = ..., output_type: DTypeLike = ...) -> Tensor:
    """Index of the largest element along a dimension (default: the first); of equal elements, the first."""
def argmin(input: TensorLike, axis: TensorLike | None = ..., name: str | None = ..., dimension: object = ..., output_type: DTypeLike = ...) -> Tensor:
    """Index of the smallest element along a dimension (default: the first); of equal elements, the first."""
def asin(x: TensorLike, name: str | None = ...) -> Tensor:
    """The inverse sine of every element."""
def asinh(x: TensorLike, name: str | None = ...) -> Tensor:
    """The inverse hyperbolic sine of every element."""
def atan(x: TensorLike, name: str | None = ...) -> Tensor:
    """The inverse tangent of every element."""
def atanh(x: TensorLike, name: str | None = ...) -> Tensor:
    """The inverse hyperbolic tangent of every element."""
def bessel_i0e(x: TensorLike, name: str | None = ...) -> Tensor:
    """e^-|x| times the modified Bessel function of order 0 of every element."""
def bessel_i1e(x: TensorLike, name: str | None = ...) -> Tensor:
    """e^-|x| times the modified Bessel function of order 1 of every element."""
def ceil(x: TensorLike, name: str | None = ...) -> Tensor:
    """The smallest integer not below of every element."""
def cos(x: TensorLike, name: str | None = ...) -> Tensor:
    """The cosine of every element."""
def cosh(x: TensorLike, name: str | None = ...) -> Tensor:
    """The hyperbolic cosine of every element."""
def digamma(x: TensorLike, name: str | None = ...) -> Tensor:
    """The derivative of log Γ(x) of every element."""
def equal(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x = y, element by element."""
def erf(x: SparseLike, name: str | None = ...) -> Any:
    """The error function of every element."""
def erfc(x: TensorLike, name: str | None = ...) -> Tensor:
    """1 - erf(x) of every element."""
def exp(x: TensorLike, name: str | None = ...) -> Tensor:
    """eˣ of every element."""
def expm1(x: TensorLike, name: str | None = ...) -> Tensor:
    """eˣ - 1 of every element."""
def floor(x: TensorLike, name: str | None = ...) -> Tensor:
    """The largest integer not above of every element."""
def floormod(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x - y floor(x / y), element by element."""
def greater(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x > y, element by element."""
def greater_equal(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x ≥ y, element by element."""
def is_finite(x: TensorLike, name: str | None = ...) -> Tensor:
    """Whether it is neither infinite nor NaN, of every element."""
def is_inf(x: TensorLike, name: str | None = ...) -> Tensor:
    """Whether it is infinite, of every element."""
def is_nan(x: TensorLike, name: str | None = ...) -> Tensor:
    """Whether it is not a number, of every element."""
def less(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x < y, element by element."""
def less_equal(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x ≤ y, element by element."""
def lgamma(x: TensorLike, name: str | None = ...) -> Tensor:
    """log |Γ(x)| of every element."""
def log(x: TensorLike, name: str | None = ...) -> Tensor:
    """The natural logarithm of every element."""
def log1p(x: TensorLike, name: str | None = ...) -> Tensor:
    """log(1 + x) of every element."""
def logical_and(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x and y, element by element."""
def logical_not(x: TensorLike, name: str | None = ...) -> Tensor:
    """The negation of every element."""
def logical_or(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x or y, element by element."""
def maximum(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """The larger of x and y, element by element."""
def minimum(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """The smaller of x and y, element by element."""
def mod(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x - y floor(x / y), element by element."""
def multiply(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x y, element by element."""
def negative(x: SparseLike, name: str | None = ...) -> Any:
    """The negative of every element."""
def not_equal(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x ≠ y, element by element."""
def reciprocal(x: TensorLike, name: str | None = ...) -> Tensor:
    """1 / x of every element."""
def reduce_all(input_tensor: TensorLike, axis: TensorLike | None = ..., keepdims: bool | None = ..., name: str | None = ..., reduction_indices: Ints | None = ..., keep_dims: bool | None = ...) -> Tensor:
    """Whether all are true."""
def reduce_any(input_tensor: TensorLike, axis: TensorLike | None = ..., keepdims: bool | None = ..., name: str | None = ..., reduction_indices: Ints | None = ..., keep_dims: bool | None = ...) -> Tensor:
    """Whether any is true."""
def reduce_max(input_tensor: TensorLike, axis: TensorLike | None = ..., keepdims: bool | None = ..., name: str | None = ..., reduction_indices: Ints | None = ..., keep_dims: bool | None = ...) -> Tensor:
    """The largest."""
def reduce_mean(input_tensor: TensorLike, axis: TensorLike | None = ..., keepdims: bool | None = ..., name: str | None = ..., reduction_indices: Ints | None = ..., keep_dims: bool | None = ...) -> Tensor:
    """The mean; of integers without its fraction."""
def reduce_min(input_tensor: TensorLike, axis: TensorLike | None = ..., keepdims: bool | None = ..., name: str | None = ..., reduction_indices: Ints | None = ..., keep_dims: bool | None = ...) -> Tensor:
    """The smallest."""
def reduce_prod(input_tensor: TensorLike, axis: TensorLike | None = ..., keepdims: bool | None = ..., name: str | None = ..., reduction_indices: Ints | None = ..., keep_dims: bool | None = ...) -> Tensor:
    """The product."""
def reduce_std(input_tensor: TensorLike, axis: TensorLike | None = ..., keepdims: bool = ..., name: str | None = ...) -> Tensor:
    """The square root of the variance."""
def reduce_sum(input_tensor: TensorLike, axis: TensorLike | None = ..., keepdims: bool | None = ..., name: str | None = ..., reduction_indices: Ints | None = ..., keep_dims: bool | None = ...) -> Tensor:
    """The sum."""
def reduce_variance(input_tensor: TensorLike, axis: TensorLike | None = ..., keepdims: bool = ..., name: str | None = ...) -> Tensor:
    """The mean square of the distance from the mean."""
def rint(x: TensorLike, name: str | None = ...) -> Tensor:
    """The nearest integer (the even one if two are equally near) of every element."""
def rsqrt(x: TensorLike, name: str | None = ...) -> Tensor:
    """1 / √x of every element."""
def segment_max(data: TensorLike, segment_ids: TensorLike, name: str | None = ...) -> Tensor:
    """The largest of the rows with equal ids, which must ascend; 0 for an id without rows."""
def segment_mean(data: TensorLike, segment_ids: TensorLike, name: str | None = ...) -> Tensor:
    """The mean of the rows with equal ids, which must ascend; 0 for an id without rows."""
def segment_min(data: TensorLike, segment_ids: TensorLike, name: str | None = ...) -> Tensor:
    """The smallest of the rows with equal ids, which must ascend; 0 for an id without rows."""
def segment_prod(data: TensorLike, segment_ids: TensorLike, name: str | None = ...) -> Tensor:
    """The product of the rows with equal ids, which must ascend; 0 for an id without rows."""
def segment_sum(data: TensorLike, segment_ids: TensorLike, name: str | None = ...) -> Tensor:
    """The sum of the rows with equal ids, which must ascend; 0 for an id without rows."""
def sigmoid(x: TensorLike, name: str | None = ...) -> Tensor:
    """1 / (1 + e⁻ˣ) of every element."""
def sign(x: SparseLike, name: str | None = ...) -> Any:
    """-1, 0 or 1, the sign of every element."""
def sin(x: TensorLike, name: str | None = ...) -> Tensor:
    """The sine of every element."""
def sinh(x: TensorLike, name: str | None = ...) -> Tensor:
    """The hyperbolic sine of every element."""
def softplus(features: TensorLike, name: str | None = ...) -> Tensor:
    """log(1 + eˣ)."""
def softsign(features: TensorLike, name: str | None = ...) -> Tensor:
    """x / (1 + |x|)."""
def sqrt(x: SparseLike, name: str | None = ...) -> Any:
    """The square root of every element."""
def square(x: SparseLike, name: str | None = ...) -> Any:
    """The square of every element."""
def squared_difference(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """(x - y)², element by element."""
def subtract(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x - y, element by element."""
def tan(x: TensorLike, name: str | None = ...) -> Tensor:
    """The tangent of every element."""
def tanh(x: SparseLike, name: str | None = ...) -> Any:
    """The hyperbolic tangent of every element."""
def unsorted_segment_max(data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = ...) -> Tensor:
    """The largest of the rows with equal ids; negative ids are omitted."""
def unsorted_segment_min(data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = ...) -> Tensor:
    """The smallest of the rows with equal ids; negative ids are omitted."""
def unsorted_segment_prod(data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = ...) -> Tensor:
    """The product of the rows with equal ids; negative ids are omitted."""
def unsorted_segment_sum(data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = ...) -> Tensor:
    """The sum of the rows with equal ids; negative ids are omitted."""
def xdivy(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x / y, and 0 where x is 0, element by element."""
def xlogy(x: TensorLike, y: TensorLike, name: str | None = ...) -> Tensor:
    """x log(y), and 0 where x is 0, element by element."""
__all__ = [
    "abs",
    "accumulate_n",
    "acos",
    "acosh",
    "add",
    "add_n",
    "angle",
    "argmax",
    "argmin",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bessel_i0",
    "bessel_i0e",
    "bessel_i1",
    "bessel_i1e",
    "betainc",
    "bincount",
    "ceil",
    "confusion_matrix",
    "conj",
    "cos",
    "cosh",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "cumulative_logsumexp",
    "digamma",
    "divide",
    "divide_no_nan",
    "equal",
    "erf",
    "erfc",
    "exp",
    "expm1",
    "floor",
    "floordiv",
    "floormod",
    "greater",
    "greater_equal",
    "igamma",
    "igammac",
    "imag",
    "in_top_k",
    "invert_permutation",
    "is_finite",
    "is_inf",
    "is_nan",
    "is_non_decreasing",
    "is_strictly_increasing",
    "l2_normalize",
    "lbeta",
    "less",
    "less_equal",
    "lgamma",
    "log",
    "log1p",
    "log_sigmoid",
    "log_softmax",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "multiply_no_nan",
    "negative",
    "nextafter",
    "not_equal",
    "polygamma",
    "polyval",
    "pow",
    "real",
    "reciprocal",
    "reciprocal_no_nan",
    "reduce_all",
    "reduce_any",
    "reduce_euclidean_norm",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_std",
    "reduce_sum",
    "reduce_variance",
    "rint",
    "round",
    "rsqrt",
    "scalar_mul",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_prod",
    "segment_sum",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "softmax",
    "softplus",
    "softsign",
    "sqrt",
    "square",
    "squared_difference",
    "subtract",
    "tan",
    "tanh",
    "top_k",
    "truediv",
    "unsorted_segment_max",
    "unsorted_segment_mean",
    "unsorted_segment_min",
    "unsorted_segment_prod",
    "unsorted_segment_sqrt_n",
    "unsorted_segment_sum",
    "xdivy",
    "xlogy",
    "zero_fraction",
    "zeta",
]
