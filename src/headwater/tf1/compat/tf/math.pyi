# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.functional.grids import invert_permutation as invert_permutation
from headwater.tf1.functional.losses import confusion_matrix as confusion_matrix
from headwater.tf1.functional.math import abs as abs
from headwater.tf1.functional.math import accumulate_n as accumulate_n
from headwater.tf1.functional.math import acos as acos
from headwater.tf1.functional.math import acosh as acosh
from headwater.tf1.functional.math import add as add
from headwater.tf1.functional.math import add_n as add_n
from headwater.tf1.functional.math import angle as angle
from headwater.tf1.functional.math import asin as asin
from headwater.tf1.functional.math import asinh as asinh
from headwater.tf1.functional.math import atan as atan
from headwater.tf1.functional.math import atan2 as atan2
from headwater.tf1.functional.math import atanh as atanh
from headwater.tf1.functional.math import ceil as ceil
from headwater.tf1.functional.math import conj as conj
from headwater.tf1.functional.math import cos as cos
from headwater.tf1.functional.math import cosh as cosh
from headwater.tf1.functional.math import div_no_nan as divide_no_nan
from headwater.tf1.functional.math import divide as divide
from headwater.tf1.functional.math import equal as equal
from headwater.tf1.functional.math import exp as exp
from headwater.tf1.functional.math import expm1 as expm1
from headwater.tf1.functional.math import floor as floor
from headwater.tf1.functional.math import floordiv as floordiv
from headwater.tf1.functional.math import floormod as floormod
from headwater.tf1.functional.math import floormod as mod
from headwater.tf1.functional.math import greater as greater
from headwater.tf1.functional.math import greater_equal as greater_equal
from headwater.tf1.functional.math import imag as imag
from headwater.tf1.functional.math import is_finite as is_finite
from headwater.tf1.functional.math import is_inf as is_inf
from headwater.tf1.functional.math import is_nan as is_nan
from headwater.tf1.functional.math import is_non_decreasing as is_non_decreasing
from headwater.tf1.functional.math import is_strictly_increasing as is_strictly_increasing
from headwater.tf1.functional.math import less as less
from headwater.tf1.functional.math import less_equal as less_equal
from headwater.tf1.functional.math import log as log
from headwater.tf1.functional.math import log1p as log1p
from headwater.tf1.functional.math import log_sigmoid as log_sigmoid
from headwater.tf1.functional.math import logical_and as logical_and
from headwater.tf1.functional.math import logical_not as logical_not
from headwater.tf1.functional.math import logical_or as logical_or
from headwater.tf1.functional.math import logical_xor as logical_xor
from headwater.tf1.functional.math import maximum as maximum
from headwater.tf1.functional.math import minimum as minimum
from headwater.tf1.functional.math import multiply as multiply
from headwater.tf1.functional.math import multiply_no_nan as multiply_no_nan
from headwater.tf1.functional.math import negative as negative
from headwater.tf1.functional.math import not_equal as not_equal
from headwater.tf1.functional.math import pow as pow
from headwater.tf1.functional.math import real as real
from headwater.tf1.functional.math import reciprocal as reciprocal
from headwater.tf1.functional.math import reciprocal_no_nan as reciprocal_no_nan
from headwater.tf1.functional.math import rint as rint
from headwater.tf1.functional.math import round as round
from headwater.tf1.functional.math import rsqrt as rsqrt
from headwater.tf1.functional.math import scalar_mul as scalar_mul
from headwater.tf1.functional.math import sigmoid as sigmoid
from headwater.tf1.functional.math import sign as sign
from headwater.tf1.functional.math import sin as sin
from headwater.tf1.functional.math import sinh as sinh
from headwater.tf1.functional.math import sqrt as sqrt
from headwater.tf1.functional.math import square as square
from headwater.tf1.functional.math import squared_difference as squared_difference
from headwater.tf1.functional.math import subtract as subtract
from headwater.tf1.functional.math import tan as tan
from headwater.tf1.functional.math import tanh as tanh
from headwater.tf1.functional.math import truediv as truediv
from headwater.tf1.functional.math import xdivy as xdivy
from headwater.tf1.functional.math import xlogy as xlogy
from headwater.tf1.functional.nn import in_top_k as in_top_k
from headwater.tf1.functional.nn import l2_normalize as l2_normalize
from headwater.tf1.functional.nn import log_softmax as log_softmax
from headwater.tf1.functional.nn import softmax as softmax
from headwater.tf1.functional.nn import softplus as softplus
from headwater.tf1.functional.nn import softsign as softsign
from headwater.tf1.functional.nn import top_k as top_k
from headwater.tf1.functional.nn import zero_fraction as zero_fraction
from headwater.tf1.functional.reductions import argmax as argmax
from headwater.tf1.functional.reductions import argmin as argmin
from headwater.tf1.functional.reductions import bincount as bincount
from headwater.tf1.functional.reductions import count_nonzero as count_nonzero
from headwater.tf1.functional.reductions import cumprod as cumprod
from headwater.tf1.functional.reductions import cumsum as cumsum
from headwater.tf1.functional.reductions import reduce_all as reduce_all
from headwater.tf1.functional.reductions import reduce_any as reduce_any
from headwater.tf1.functional.reductions import reduce_euclidean_norm as reduce_euclidean_norm
from headwater.tf1.functional.reductions import reduce_logsumexp as reduce_logsumexp
from headwater.tf1.functional.reductions import reduce_max as reduce_max
from headwater.tf1.functional.reductions import reduce_mean as reduce_mean
from headwater.tf1.functional.reductions import reduce_min as reduce_min
from headwater.tf1.functional.reductions import reduce_prod as reduce_prod
from headwater.tf1.functional.reductions import reduce_std as reduce_std
from headwater.tf1.functional.reductions import reduce_sum as reduce_sum
from headwater.tf1.functional.reductions import reduce_variance as reduce_variance
from headwater.tf1.functional.reductions import segment_max as segment_max
from headwater.tf1.functional.reductions import segment_mean as segment_mean
from headwater.tf1.functional.reductions import segment_min as segment_min
from headwater.tf1.functional.reductions import segment_prod as segment_prod
from headwater.tf1.functional.reductions import segment_sum as segment_sum
from headwater.tf1.functional.reductions import unsorted_segment_max as unsorted_segment_max
from headwater.tf1.functional.reductions import unsorted_segment_mean as unsorted_segment_mean
from headwater.tf1.functional.reductions import unsorted_segment_min as unsorted_segment_min
from headwater.tf1.functional.reductions import unsorted_segment_prod as unsorted_segment_prod
from headwater.tf1.functional.reductions import unsorted_segment_sqrt_n as unsorted_segment_sqrt_n
from headwater.tf1.functional.reductions import unsorted_segment_sum as unsorted_segment_sum
from headwater.tf1.functional.special import bessel_i0 as bessel_i0
from headwater.tf1.functional.special import bessel_i0e as bessel_i0e
from headwater.tf1.functional.special import bessel_i1 as bessel_i1
from headwater.tf1.functional.special import bessel_i1e as bessel_i1e
from headwater.tf1.functional.special import betainc as betainc
from headwater.tf1.functional.special import cumulative_logsumexp as cumulative_logsumexp
from headwater.tf1.functional.special import digamma as digamma
from headwater.tf1.functional.special import erf as erf
from headwater.tf1.functional.special import erfc as erfc
from headwater.tf1.functional.special import igamma as igamma
from headwater.tf1.functional.special import igammac as igammac
from headwater.tf1.functional.special import lbeta as lbeta
from headwater.tf1.functional.special import lgamma as lgamma
from headwater.tf1.functional.special import nextafter as nextafter
from headwater.tf1.functional.special import polygamma as polygamma
from headwater.tf1.functional.special import polyval as polyval
from headwater.tf1.functional.special import zeta as zeta

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
