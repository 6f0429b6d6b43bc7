"""Packages of ``tf.contrib``: the same calls give the same results as TensorFlow 1.15. See ``tests/conformance``."""

from __future__ import annotations

import pytest

from headwater.tf1.compat import modules, tf
from tests.conformance.compare import same
from tests.conformance.run import outcome
from tests.conformance.stored import Case, stored_cases

modules.install()


@pytest.mark.parametrize("case", stored_cases("contrib_opt"), ids=str)
def test_as_tensorflow(case: Case) -> None:
    same(outcome(case.run, tf), case.expected)
