"""Random operations: values that seeds determine, and values that differ from step to step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headwater import tf

MAKERS = [
    lambda seed: tf.random_uniform([4], seed=seed),
    lambda seed: tf.random_normal([4], seed=seed),
    lambda seed: tf.truncated_normal([4], seed=seed),
    lambda seed: tf.random_uniform([4], maxval=1000, dtype=tf.int32, seed=seed),
    lambda seed: tf.random_shuffle(tf.range(100), seed=seed),
]


def _sequence(make: Any, seed: int | None, graph_seed: int | None, steps: int = 3) -> list[Any]:
    with tf.Graph().as_default():
        if graph_seed is not None:
            tf.set_random_seed(graph_seed)
        random = make(seed)
        with tf.Session() as session:
            return [session.run(random).tolist() for _ in range(steps)]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("seed", "graph_seed"), [(1, None), (None, 1), (1, 2)])
def test_seeds_give_the_same_sequence_in_every_session(make: Any, seed: int | None, graph_seed: int | None) -> None:
    sequence = _sequence(make, seed, graph_seed)
    assert _sequence(make, seed, graph_seed) == sequence
    assert sequence[0] != sequence[1] != sequence[2]


@pytest.mark.parametrize("make", MAKERS)
def test_without_a_seed_every_session_differs(make: Any) -> None:
    assert _sequence(make, None, None) != _sequence(make, None, None)


def test_each_seed_has_a_sequence_of_its_own() -> None:
    make = MAKERS[0]
    sequences = [_sequence(make, *seeds) for seeds in [(1, None), (2, None), (None, 1), (None, 2), (1, 1), (1, 2)]]
    assert len({str(sequence) for sequence in sequences}) == len(sequences)


@pytest.mark.parametrize("seeded", [False, True])
def test_operations_differ_from_each_other(seeded: bool) -> None:
    with tf.Graph().as_default():
        if seeded:
            tf.set_random_seed(1)
        first, second = tf.random_uniform([4]), tf.random_uniform([4])
        with tf.Session() as session:
            values = session.run([first, second, first])
    np.testing.assert_array_equal(values[0], values[2])
    assert values[0].tolist() != values[1].tolist()


def test_a_random_operation_has_one_value_in_a_step() -> None:
    with tf.Graph().as_default():
        random = tf.random_normal([3])
        v = tf.Variable([0.0, 0.0, 0.0])
        with tf.Session() as session:
            value, doubled, assigned = session.run([random, random * 2.0, v.assign(random)])
    np.testing.assert_array_equal(value * 2, doubled)
    np.testing.assert_array_equal(value, assigned)


def test_random_numbers_have_their_documented_values() -> None:
    with tf.Graph().as_default():
        tf.set_random_seed(7)
        fetches = [
            tf.random_uniform([2000], -2.0, 4.0),
            tf.random_normal([2000], 1.0, 3.0),
            tf.truncated_normal([2000]),
            tf.random_uniform([2000], 5, 9, tf.int64),
        ]
        with tf.Session() as session:
            uniform, normal, truncated, integers = session.run(fetches)
    assert uniform.min() >= -2
    assert uniform.max() < 4
    assert abs(uniform.mean() - 1) < 0.2
    assert abs(normal.mean() - 1) < 0.3
    assert abs(normal.std() - 3) < 0.3
    assert abs(truncated).max() <= 2
    assert set(integers.tolist()) == {5, 6, 7, 8}
    assert integers.dtype == np.int64


def test_a_shape_that_is_fed() -> None:
    with tf.Graph().as_default():
        shape = tf.placeholder(tf.int32, [None])
        random = tf.random_uniform(shape, seed=1)
        with tf.Session() as session:
            assert [session.run(random, {shape: dims}).shape for dims in ([2], [3, 1], [])] == [(2,), (3, 1), ()]
