"""Results of a session: the same calls have the same results as in TensorFlow 1.15. See ``tests/conformance``."""

from __future__ import annotations

import math
from typing import Any

import pytest

from headwater import tf
from tests.conformance.run import outcome
from tests.conformance.stored import Case, stored_cases


@pytest.mark.parametrize(
    "case",
    stored_cases(
        "arguments",
        "bad_input",
        "computed",
        "drawn",
        "edges",
        "gradients",
        "keras_graphs",
        "keras_layers",
        "last_names",
        "loops",
        "meanings",
        "parts",
        "ragged_arguments",
        "ragged_dispatch",
        "refused",
        "sequences",
        "sessions",
        "sparse_datasets",
        "told",
    ),
    ids=str,
)
def test_as_tensorflow(case: Case) -> None:
    assert _rounded(outcome(case.run, tf)) == _rounded(case.expected)


def _rounded(value: Any) -> Any:
    """Returns ``value`` with its numbers rounded to five digits, the precision that float32 has in both libraries."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.5g}")  # a NaN equals nothing
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return value
