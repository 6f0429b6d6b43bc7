"""Losses of embeddings. The expected values and gradients are those of TensorFlow 1.15."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headwater import tf

metric_learning = tf.contrib.losses.metric_learning


@pytest.mark.parametrize(
    ("make", "loss", "slopes"),
    [
        (
            lambda pairs, classes, first, second: metric_learning.contrastive_loss(pairs, first, second),
            4.737236499786377,
            [0.562991738319397, 0.1021495908498764, 0.31236743927001953],
        ),
        (
            lambda pairs, classes, first, second: metric_learning.contrastive_loss(pairs, first, second, 3.0),
            5.0340094566345215,
            [0.562991738319397, 0.1021495908498764, 0.31236743927001953],
        ),
        (
            lambda pairs, classes, first, second: metric_learning.npairs_loss(classes, first, second),
            4.021671295166016,
            [0.13924747705459595, 0.09065013378858566, 0.06838877499103546],
        ),
        (
            lambda pairs, classes, first, second: metric_learning.npairs_loss(classes, first, second, 0.1),
            4.222925186157227,
            [0.1464506983757019, 0.09228410571813583, 0.0723852887749672],
        ),
        (
            lambda pairs, classes, first, second: metric_learning.triplet_semihard_loss(classes, first),
            0.7475963830947876,
            [0.02520890161395073, 0.10284814983606339, -0.06032554805278778],
        ),
        (
            lambda pairs, classes, first, second: metric_learning.triplet_semihard_loss(classes, first * 0.3, 0.5),
            0.35190093517303467,
            [0.011901898309588432, -0.027779174968600273, 0.0068828035145998],
        ),
    ],
)
def test_losses_and_their_gradients(make: Callable[..., Any], loss: float, slopes: list[float]) -> None:
    draw = np.random.RandomState(0)
    first, second = draw.randn(12, 4).astype(np.float32), draw.randn(12, 4).astype(np.float32)
    classes, pairs = draw.randint(0, 4, 12), draw.randint(0, 2, 12)
    with tf.Graph().as_default(), tf.Session() as session:
        embeddings = tf.constant(first)
        found = make(tf.constant(pairs), tf.constant(classes), embeddings, tf.constant(second))
        assert session.run(found) == pytest.approx(loss, rel=1e-6)
        gradient = session.run(tf.gradients(found, embeddings)[0])
    np.testing.assert_allclose(gradient.ravel()[:3], slopes, rtol=1e-5, atol=1e-7)
