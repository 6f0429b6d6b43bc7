# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from typing import Any
from headwater.graph.operation import Operation
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.graph.session.default_config import get_log_device_placement as get_log_device_placement
from headwater.graph.session.default_config import set_log_device_placement as set_log_device_placement
from headwater.tf1.functional.checks import Assert as Assert
from headwater.tf1.functional.checks import assert_integer as assert_integer
from headwater.tf1.functional.checks import assert_near as assert_near
from headwater.tf1.functional.checks import assert_proper_iterable as assert_proper_iterable
from headwater.tf1.functional.checks import assert_rank as assert_rank
from headwater.tf1.functional.checks import assert_rank_at_least as assert_rank_at_least
from headwater.tf1.functional.checks import assert_rank_in as assert_rank_in
from headwater.tf1.functional.checks import assert_same_float_dtype as assert_same_float_dtype
from headwater.tf1.functional.checks import assert_scalar as assert_scalar
from headwater.tf1.functional.checks import assert_type as assert_type
from headwater.tf1.functional.checks import check_numerics as check_numerics
from headwater.tf1.functional.checks import verify_tensor_all_finite as assert_all_finite
from headwater.tf1.functional.math import is_non_decreasing as is_non_decreasing
from headwater.tf1.functional.math import is_numeric_tensor as is_numeric_tensor
from headwater.tf1.functional.math import is_strictly_increasing as is_strictly_increasing
from headwater.tf1.functional.shape_checks import assert_shapes as assert_shapes

def assert_equal(x: Any, y: Any, data: Any = ..., summarize: int | None = ..., message: str | None = ..., name: str | None = ...) -> Operation:
    """An operation that fails unless x == y, element by element; fails immediately if the values are known."""
def assert_greater(x: Any, y: Any, data: Any = ..., summarize: int | None = ..., message: str | None = ..., name: str | None = ...) -> Operation:
    """An operation that fails unless x > y, element by element; fails immediately if the values are known."""
def assert_greater_equal(x: Any, y: Any, data: Any = ..., summarize: int | None = ..., message: str | None = ..., name: str | None = ...) -> Operation:
    """An operation that fails unless x >= y, element by element; fails immediately if the values are known."""
def assert_less(x: Any, y: Any, data: Any = ..., summarize: int | None = ..., message: str | None = ..., name: str | None = ...) -> Operation:
    """An operation that fails unless x < y, element by element; fails immediately if the values are known."""
def assert_less_equal(x: Any, y: Any, data: Any = ..., summarize: int | None = ..., message: str | None = ..., name: str | None = ...) -> Operation:
    """An operation that fails unless x <= y, element by element; fails immediately if the values are known."""
def assert_negative(x: TensorLike, data: object = ..., summarize: int | None = ..., message: str | None = ..., name: str | None = ...) -> Operation:
    """An operation that fails unless all elements are below 0."""
def assert_non_negative(x: TensorLike, data: object = ..., summarize: int | None = ..., message: str | None = ..., name: str | None = ...) -> Operation:
    """An operation that fails unless all elements are at least 0."""
def assert_non_positive(x: TensorLike, data: object = ..., summarize: int | None = ..., message: str | None = ..., name: str | None = ...) -> Operation:
    """An operation that fails unless all elements are at most 0."""
def assert_none_equal(x: Any, y: Any, data: Any = ..., summarize: int | None = ..., message: str | None = ..., name: str | None = ...) -> Operation:
    """An operation that fails unless x != y, element by element; fails immediately if the values are known."""
def assert_positive(x: TensorLike, data: object = ..., summarize: int | None = ..., message: str | None = ..., name: str | None = ...) -> Operation:
    """An operation that fails unless all elements are above 0."""
def is_finite(x: TensorLike, name: str | None = ...) -> Tensor:
    """Whether it is neither infinite nor NaN, of every element."""
def is_inf(x: TensorLike, name: str | None = ...) -> Tensor:
    """Whether it is infinite, of every element."""
def is_nan(x: TensorLike, name: str | None = ...) -> Tensor:
    """Whether it is not a number, of every element."""
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
