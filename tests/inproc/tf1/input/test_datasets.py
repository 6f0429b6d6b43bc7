"""Datasets in graphs have the results of TensorFlow 1.15. See ``tests/conformance``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headwater.tf1.compat import tf
from tests.conformance.run import outcome
from tests.conformance.stored import Case, stored_cases
from tests.support.compilations import compilations


@pytest.mark.parametrize("case", stored_cases("datasets"), ids=str)
def test_as_tensorflow(case: Case) -> None:
    assert outcome(case.run, tf) == case.expected


def test_a_map_of_changing_shapes_is_not_compiled_for_each() -> None:
    def scaled(row: Any) -> Any:
        return tf.reduce_sum(tf.concat([row / 2, row[:1]], 0))

    with tf.Graph().as_default(), tf.Session() as session, compilations() as compiled:
        dataset = tf.data.Dataset.from_generator(
            lambda: ([count] * count for count in range(1, 41)), tf.float32, [None]
        )
        following = tf.data.make_one_shot_iterator(dataset.map(scaled)).get_next()
        found = [session.run(following) for _ in range(40)]
        # A shape may be compiled several times, but not each of the 40 is.
        assert 0 < len(compiled) < 30
    np.testing.assert_allclose(found, [count * count / 2 + count for count in range(1, 41)], rtol=1e-6)
