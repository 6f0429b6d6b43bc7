"""Whole families of functions have the results of TensorFlow 1.15. See ``tests/conformance``."""

from __future__ import annotations

import pytest

from headwater import tf
from tests.conformance.compare import same
from tests.conformance.run import outcome
from tests.conformance.stored import Case, stored_cases


def _is_long(case: Case) -> bool:
    """Returns whether a case takes a second or more, because it compiles many programs."""
    return (
        ": all of " in case.name
        or case.name in ("heads: metrics_that_are_added", "heads: without_features")
        or case.name in ("distributions: means_of_samples", "each_name: baselines", "each_name: metrics_of_old")
    )


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=str(case), marks=[pytest.mark.long] if _is_long(case) else [])
        for case in stored_cases(
            "crf",
            "distributions",
            "each_name",
            "final_names",
            "heads",
            "keras_names",
            "kept",
            "legacy_seq2seq",
            "linear_operators",
            "more_names",
            "ragged",
            "refusals",
            "rest_names",
            "seq2seq",
            "settings",
            "signals",
            "small_functions",
            "stopping",
            "tapes",
        )
    ],
)
def test_as_tensorflow(case: Case) -> None:
    same(outcome(case.run, tf), case.expected)
