"""Losses for the size of weights."""

from __future__ import annotations

import pytest

from headwater.tf1.compat import tf


def test_penalties() -> None:
    layers = tf.contrib.layers
    with tf.Graph().as_default(), tf.Session() as session:
        weights = tf.constant([1.0, -2.0])
        l2 = layers.l2_regularizer(0.5)
        penalty = l2(weights)
        assert penalty is not None
        assert penalty.name == "l2_regularizer:0"
        both = layers.l1_l2_regularizer(1.0, 0.5)(weights)
        total = layers.apply_regularization(l2, [weights, weights])
        assert tf.get_collection("regularization_losses") == [total]
        assert session.run([layers.l1_regularizer(2.0)(weights), l2(weights), both, total]) == [6, 1.25, 4.25, 2.5]
        assert layers.l2_regularizer(0.0)(weights) is None


@pytest.mark.parametrize("scale", [-1.0, 1])
def test_an_invalid_scale_is_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="scale"):
        tf.contrib.layers.l1_regularizer(scale)
