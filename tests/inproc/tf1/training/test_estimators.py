"""Estimators have the results of TensorFlow 1.15. See ``tests/conformance``."""

from __future__ import annotations

import pytest

from headwater.tf1.compat import tf
from tests.conformance.compare import same
from tests.conformance.run import outcome
from tests.conformance.stored import Case, stored_cases


@pytest.mark.parametrize("case", stored_cases("estimators", "canned"), ids=str)
def test_as_tensorflow(case: Case) -> None:
    same(outcome(case.run, tf), case.expected, tolerance=1e-4)
