"""Comparisons with TensorFlow 1.15 that need no cluster. See ``tests/conformance``."""

from __future__ import annotations

import pytest

from headwater import tf
from tests.conformance.run import outcome
from tests.conformance.stored import Case, stored_cases


@pytest.mark.parametrize(
    "case", stored_cases("shapes", "dtypes", "names", "elements", "constants", "scopes", "graph_defs"), ids=str
)
def test_as_tensorflow(case: Case) -> None:
    assert outcome(case.run, tf) == case.expected
