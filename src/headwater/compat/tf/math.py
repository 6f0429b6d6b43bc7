"""``tf.math``: functions of numbers."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.functional.special": """
        bessel_i0e bessel_i1e betainc digamma erf erfc igamma igammac lbeta lgamma polygamma polyval zeta""",
    "headwater.functional.math": """
        abs accumulate_n acos acosh add add_n angle asin asinh atan atan2 atanh ceil conj cos cosh divide
        divide_no_nan=div_no_nan equal exp expm1 floor floordiv floormod greater greater_equal imag is_finite is_inf
        is_nan is_non_decreasing is_strictly_increasing less less_equal log log1p log_sigmoid logical_and logical_not
        logical_or logical_xor maximum minimum mod=floormod multiply multiply_no_nan negative not_equal pow real
        reciprocal reciprocal_no_nan rint round rsqrt scalar_mul sigmoid sign sin sinh sqrt square squared_difference
        subtract tan tanh truediv xdivy xlogy""",
    "headwater.functional.reductions": """
        argmax argmin bincount count_nonzero cumprod cumsum reduce_all reduce_any reduce_euclidean_norm
        reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_std reduce_sum reduce_variance
        segment_max segment_mean segment_min segment_prod segment_sum unsorted_segment_max unsorted_segment_mean
        unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n unsorted_segment_sum""",
    "headwater.functional.losses": "confusion_matrix",
    "headwater.functional.grids": "invert_permutation",
    "headwater.functional.nn": "in_top_k l2_normalize log_softmax softmax softplus softsign top_k zero_fraction",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
