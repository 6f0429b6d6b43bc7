"""Eager results, tapes and compiled functions equal TensorFlow 2's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.tf2.namespace import tf
from tests.inproc.tf2.cases import CASES, answer

_RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "data" / "tf2" / "at_once.json").read_text(encoding="utf-8")
)


def same(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            same(one, other)
    elif isinstance(theirs, dict):
        assert ours["type"] == theirs["type"]
        np.testing.assert_allclose(np.asarray(ours["values"]), np.asarray(theirs["values"]), rtol=1e-6, atol=1e-6)
    else:
        assert ours == theirs


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_as_tensorflow_2(case: Callable[[Any], Any]) -> None:
    same(answer(case(tf)), _RECORDED[case.__name__])


def test_extremes_of_nan_are_nan_as_in_tensorflow_2() -> None:
    x = tf.constant([[1.0, np.nan], [3.0, 2.0]])
    np.testing.assert_array_equal(tf.reduce_max(x, 1), [np.nan, 3.0])
    np.testing.assert_array_equal(tf.math.reduce_min(x, axis=0, keepdims=True), [[1.0, np.nan]])
    assert (int(tf.reduce_max([3, 1])), float(tf.function(tf.reduce_min)(x[1]))) == (3, 2.0)
