"""What a session gives: the same calls give what TensorFlow 1.15 gives. See ``tests/conformance``."""

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
        "last_names",
        "loops",
        "meanings",
        "parts",
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
    """``value`` with its numbers to five digits, as far as float32 goes in both."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.5g}")  # a NaN is no other's equal
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return value
