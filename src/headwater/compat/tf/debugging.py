"""``tf.debugging``: checks that a run makes."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.functional.checks": """
        Assert assert_all_finite=verify_tensor_all_finite assert_equal assert_greater assert_greater_equal
        assert_integer assert_less assert_less_equal assert_near assert_negative assert_non_negative
        assert_non_positive assert_none_equal assert_positive assert_proper_iterable assert_rank assert_rank_at_least
        assert_rank_in assert_same_float_dtype assert_scalar assert_type check_numerics""",
    "headwater.functional.math": "is_finite is_inf is_nan is_non_decreasing is_numeric_tensor is_strictly_increasing",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
