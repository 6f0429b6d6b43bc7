"""Layers, losses and metrics have the results of TensorFlow 1.15. See ``tests/conformance``."""

from __future__ import annotations

import pytest

from headwater.tf1.compat import tf
from tests.conformance.compare import same
from tests.conformance.run import outcome
from tests.conformance.stored import Case, stored_cases


@pytest.mark.parametrize(
    "case",
    stored_cases(
        "layer_details", "layers", "losses", "metrics", "slim", "tables", "feature_columns", "sequence_columns"
    ),
    ids=str,
)
def test_as_tensorflow(case: Case) -> None:
    # The gradients of batch normalisation in training are differences of large sums, which TensorFlow adds in float32.
    rough = case.name.startswith("slim") or "batch_normalization" in case.name
    same(outcome(case.run, tf), case.expected, tolerance=1e-3 if rough else 2e-5)
