"""Packages of ``tf.contrib``: the same calls have the results of TensorFlow 1.15. See ``tests/conformance``."""

from __future__ import annotations

import pytest

from headwater.tf1.compat import modules, tf
from tests.conformance.compare import same
from tests.conformance.run import outcome
from tests.conformance.stored import Case, stored_cases

modules.install()

PACKAGES = (
    "contrib_distributions",
    "contrib_factorization",
    "contrib_functions",
    "contrib_opt",
    "contrib_rnn",
    "cudnn_rnn",
    "hparams",
    "slim_nets",
)


def _is_long(case: Case) -> bool:
    return "three_dimensions" in case.name


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=str(case), marks=[pytest.mark.long] if _is_long(case) else [])
        for case in stored_cases(*PACKAGES)
    ],
)
def test_as_tensorflow(case: Case) -> None:
    same(outcome(case.run, tf), case.expected)
