"""Input pipelines have the results of TensorFlow 1.15. See ``tests/conformance``."""

from __future__ import annotations

import pytest

from headwater.tf1.compat import tf
from tests.conformance.compare import same
from tests.conformance.run import outcome
from tests.conformance.stored import Case, stored_cases


@pytest.mark.parametrize("case", stored_cases("autograph", "ignored_errors", "input", "pipelines"), ids=str)
def test_as_tensorflow(case: Case) -> None:
    same(outcome(case.run, tf), case.expected)
