# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.graph.session.default_config import get_log_device_placement as get_log_device_placement
from headwater.graph.session.default_config import set_log_device_placement as set_log_device_placement
from headwater.tf1.functional.checks import Assert as Assert
from headwater.tf1.functional.checks import assert_equal as assert_equal
from headwater.tf1.functional.checks import assert_greater as assert_greater
from headwater.tf1.functional.checks import assert_greater_equal as assert_greater_equal
from headwater.tf1.functional.checks import assert_integer as assert_integer
from headwater.tf1.functional.checks import assert_less as assert_less
from headwater.tf1.functional.checks import assert_less_equal as assert_less_equal
from headwater.tf1.functional.checks import assert_near as assert_near
from headwater.tf1.functional.checks import assert_negative as assert_negative
from headwater.tf1.functional.checks import assert_non_negative as assert_non_negative
from headwater.tf1.functional.checks import assert_non_positive as assert_non_positive
from headwater.tf1.functional.checks import assert_none_equal as assert_none_equal
from headwater.tf1.functional.checks import assert_positive as assert_positive
from headwater.tf1.functional.checks import assert_proper_iterable as assert_proper_iterable
from headwater.tf1.functional.checks import assert_rank as assert_rank
from headwater.tf1.functional.checks import assert_rank_at_least as assert_rank_at_least
from headwater.tf1.functional.checks import assert_rank_in as assert_rank_in
from headwater.tf1.functional.checks import assert_same_float_dtype as assert_same_float_dtype
from headwater.tf1.functional.checks import assert_scalar as assert_scalar
from headwater.tf1.functional.checks import assert_type as assert_type
from headwater.tf1.functional.checks import check_numerics as check_numerics
from headwater.tf1.functional.checks import verify_tensor_all_finite as assert_all_finite
from headwater.tf1.functional.math import is_finite as is_finite
from headwater.tf1.functional.math import is_inf as is_inf
from headwater.tf1.functional.math import is_nan as is_nan
from headwater.tf1.functional.math import is_non_decreasing as is_non_decreasing
from headwater.tf1.functional.math import is_numeric_tensor as is_numeric_tensor
from headwater.tf1.functional.math import is_strictly_increasing as is_strictly_increasing
from headwater.tf1.functional.shape_checks import assert_shapes as assert_shapes

__all__ = [
    "Assert",
    "assert_all_finite",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_proper_iterable",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_shapes",
    "assert_type",
    "check_numerics",
    "get_log_device_placement",
    "is_finite",
    "is_inf",
    "is_nan",
    "is_non_decreasing",
    "is_numeric_tensor",
    "is_strictly_increasing",
    "set_log_device_placement",
]
