"""Parsing specifications of examples for canned estimators: features, label and weight."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from headwater import dtypes
from headwater.tf1.feature_columns.dense import NumericColumn, make_parse_example_spec, numeric_column
from headwater.tf1.input.parsing import FixedLenFeature

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.tf1.feature_columns.base import Column, DenseColumn


def classifier_parse_example_spec(
    feature_columns: Iterable[Column],
    label_key: str,
    label_dtype: DTypeLike = dtypes.int64,
    label_default: str | int | None = None,
    weight_column: str | DenseColumn | None = None,
) -> dict[str, object]:
    """Returns the specification with which `parse_example` reads a classifier's examples.

    Args:
      feature_columns: columns of the features.
      label_key: name of the label in the examples.
      label_dtype, label_default: its type, and its value if an example lacks it; None: it is required.
      weight_column: name of the examples' weight, or its `numeric_column`.

    Raises:
      ValueError: the label or the weight is a feature, too, or the weight is not a numeric column.
    """
    label = FixedLenFeature((1,), label_dtype, label_default)
    return _with_label_and_weight(make_parse_example_spec(feature_columns), label_key, label, weight_column)


def regressor_parse_example_spec(
    feature_columns: Iterable[Column],
    label_key: str,
    label_dtype: DTypeLike = dtypes.float32,
    label_default: str | int | None = None,
    label_dimension: int = 1,
    weight_column: str | DenseColumn | None = None,
) -> dict[str, object]:
    """Returns the specification with which `parse_example` reads a regressor's examples.

    The label has ``label_dimension`` numbers. See `classifier_parse_example_spec`.
    """
    label = FixedLenFeature((label_dimension,), label_dtype, label_default)
    return _with_label_and_weight(make_parse_example_spec(feature_columns), label_key, label, weight_column)


def _with_label_and_weight(
    spec: dict[str, object], label_key: str, label: object, weight_column: object
) -> dict[str, object]:
    if label_key in spec:
        raise ValueError(f"label should not be used as feature. label_key: {label_key}, features: {sorted(spec)}")
    spec[label_key] = label
    if weight_column is None:
        return spec
    column = numeric_column(weight_column) if isinstance(weight_column, str) else weight_column
    if not isinstance(column, NumericColumn):
        raise ValueError(f"weight_column should be an instance of tf.feature_column.numeric_column, not {column!r}")
    if column.key in spec:
        raise ValueError(f"Weight should not be used as feature or label. weight_column: {column.key}")
    spec.update(column.parse_example_spec)
    return spec
