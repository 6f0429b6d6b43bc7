"""Checks of parameters and values of distributions, for ``validate_args``."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.dtypes import DType, bool_
from headwater.graph.operation import Operation, Tensor
from headwater.tf1.functional import arrays, math, reductions
from headwater.tf1.functional.checks import (
    assert_equal,
    assert_less,
    assert_less_equal,
    assert_near,
    assert_non_negative,
    assert_positive,
    assert_rank_at_least,
)
from headwater.tf1.functional.control_flow import with_dependencies


def class_weights(values: Tensor) -> Tensor:
    """Returns weights of classes, [..., classes], with a check that there are at least two classes.

    Raises:
      ValueError: the static shape shows that there are fewer.
    """
    shape = values.shape
    if shape.ndims == 0:
        raise ValueError("A categorical-distribution parameter must have at least 1 dimension.")
    count = None if shape.ndims is None else shape.as_list()[-1]
    if count is not None and count < 2:
        raise ValueError("A categorical-distribution parameter must have at least 2 events.")
    if count is not None:
        return values
    message = "A categorical-distribution parameter must have at least 2 events."
    rank = assert_rank_at_least(values, 1, message="A categorical-distribution parameter must have >= 1 dimension.")
    return with_dependencies([rank, assert_less(1, arrays.shape(values)[-1:], message=message)], values)


def probabilities(values: Tensor, several: bool) -> Tensor:
    """Returns probabilities, of classes if ``several``, with checks of their range and their sum."""
    checks = [assert_non_negative(values)]
    if several:
        values = class_weights(values)
        checks.append(assert_near(reductions.reduce_sum(values, -1), 1.0, message="probs does not sum to 1."))
    else:
        checks.append(assert_less_equal(values, 1.0, message="probs has components greater than 1."))
    return with_dependencies(checks, values)


def concentrations(values: Tensor) -> Tensor:
    """Returns the concentrations of classes, [..., classes], with checks of their range and number."""
    checks = [
        assert_positive(values, message="Concentration parameter must be positive."),
        assert_rank_at_least(values, 1, message="Concentration parameter must have >=1 dimensions."),
        assert_less(1, arrays.shape(values)[-1], message="Concentration parameter must have event_size >= 2."),
    ]
    return with_dependencies(checks, values)


def counts(values: Tensor) -> Tensor:
    """Returns counts, with checks that they are whole and not negative."""
    whole = math.cast(math.round(values), values.dtype)
    checks = [
        assert_non_negative(values, message=f"{values.name!r} must be non-negative."),
        assert_equal(values, whole, message=f"{values.name!r} cannot contain fractional components."),
    ]
    return with_dependencies(checks, values)


def counts_with_sum(values: Tensor, total: Tensor, message: str) -> Tensor:
    """Returns counts of classes, with checks that they are counts and have the sum ``total``."""
    values = counts(values)
    return with_dependencies([assert_equal(total, reductions.reduce_sum(values, -1), message=message)], values)


def of_type(values: Tensor, dtype: DType) -> Tensor:
    """Returns values with checks that ``dtype`` can represent them, which is bool or an integer type."""
    checks: list[Operation] = [assert_non_negative(values, message="Elements must be non-negative.")]
    if values.dtype.is_floating:
        cast = math.cast(math.cast(values, dtype), values.dtype)
        checks.append(assert_equal(values, cast, message=f"Elements must be {dtype.name}-equivalent."))
    elif dtype == bool_:
        checks.append(assert_less_equal(values, 1, message="Elements cannot exceed 1."))
    return with_dependencies(checks, values)


def all_positive(values: Sequence[Tensor], message: str | None = None) -> list[Tensor]:
    """Returns values with checks that they are above 0."""
    return [with_dependencies([assert_positive(each, message=message)], each) for each in values]
