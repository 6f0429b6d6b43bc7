"""Datasets in graphs have the results of TensorFlow 1.15. See ``tests/conformance``."""

from __future__ import annotations

from pathlib import Path
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


@pytest.mark.parametrize("scalar", [True, False])
def test_names_that_are_tensors_with_parallel_reads(scalar: bool, tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.txt" for name in "ab"]
    for path in paths:
        path.write_text(f"{path.stem}1\n{path.stem}2\n")

    def lines(name: Any) -> Any:
        return tf.data.TextLineDataset(name if scalar else tf.reshape(name, [1]), num_parallel_reads=2)

    with tf.Graph().as_default(), tf.Session() as session:
        names = tf.data.Dataset.from_tensor_slices([str(path) for path in paths])
        following = tf.data.make_one_shot_iterator(names.interleave(lines, cycle_length=2)).get_next()
        assert [session.run(following) for _ in range(4)] == [b"a1", b"b1", b"a2", b"b2"]


def test_results_of_a_map_of_changing_shapes_share_no_memory_with_the_source() -> None:
    rows = [np.arange(size, dtype=np.float32) for size in range(1, 21)]
    with tf.Graph().as_default(), tf.Session() as session:
        dataset = tf.data.Dataset.from_generator(lambda: iter(rows), tf.float32, [None])
        column = dataset.map(lambda row: tf.reshape(row, [-1, 1]))
        following = tf.data.make_one_shot_iterator(column).get_next()
        for row in rows:
            found = session.run(following)
            np.testing.assert_array_equal(found, row[:, np.newaxis])
            assert not np.shares_memory(found, row)
