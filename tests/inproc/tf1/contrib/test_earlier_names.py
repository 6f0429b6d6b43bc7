"""Packages of ``tf.contrib`` with earlier names of functions of ``tf``."""

from __future__ import annotations

from headwater import tf


def test_they_are_the_same_functions() -> None:
    assert tf.contrib.signal.stft is tf.signal.stft
    assert tf.contrib.stateless.stateless_random_normal is tf.random.stateless_normal
    assert tf.contrib.stateless.stateless_multinomial is tf.random.stateless_multinomial
    assert tf.contrib.metrics.set_union is tf.sets.set_union
    assert tf.contrib.training.checkpoints_iterator is tf.train.checkpoints_iterator
    assert tf.contrib.util.make_tensor_proto is tf.make_tensor_proto
    assert tf.contrib.util.constant_value(tf.constant(3)) == 3
