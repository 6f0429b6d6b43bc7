"""Stateful random number generators, which TensorFlow 1.15 does not provide in graphs."""

from __future__ import annotations

import numpy as np

from headwater import tf


def test_a_state_is_skipped_and_reset_when_that_runs() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        generator = tf.random.experimental.Generator.from_seed(1234)
        draw, skipped = generator.uniform([3]), generator.skip(3)
        reset, anew = generator.reset_from_seed(1234), generator.reset_from_key_counter(0, [3 * 256, 0])
        session.run(tf.global_variables_initializer())
        first = session.run(draw)
        second = session.run(draw)
        session.run(reset)
        session.run(skipped)
        np.testing.assert_array_equal(session.run(draw), second)
        session.run(reset)
        np.testing.assert_array_equal(session.run(draw), first)
        session.run(anew)
        np.testing.assert_array_equal(session.run(generator.state), [768, 0, 0])


def test_two_draws_of_one_run_differ() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        generator = tf.random.experimental.Generator.from_seed(7)
        draws = [generator.uniform([4]) for _ in range(3)]
        session.run(tf.global_variables_initializer())
        assert len({number for numbers in session.run(draws) for number in numbers.tolist()}) == 12
        assert session.run(generator.state).tolist() == [7 + 12 * 256, 0, 0]


def test_a_generator_from_a_non_deterministic_state() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        made = [tf.random.experimental.Generator.from_non_deterministic_state() for _ in range(2)]
        session.run(tf.global_variables_initializer())
        assert session.run(made[0].state).tolist() != session.run(made[1].state).tolist()
