"""Sizes of windows and strides given as parts of shapes, as in public networks of slim."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headwater import tf

slim = tf.contrib.slim


def test_shapes_and_dimensions_as_sizes() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        images = tf.constant(np.arange(32, dtype=np.float32).reshape(2, 4, 4, 1))
        shape: Any = images.get_shape()
        pooled = [
            slim.avg_pool2d(images, shape[1:3]),
            slim.max_pool2d(images, [shape[1], shape[2]], stride=shape[1]),
            tf.layers.average_pooling2d(images, shape[1:3], strides=shape[1:3]),
            tf.layers.conv2d(images, 1, shape[1:3], kernel_initializer=tf.ones_initializer()),
        ]
        session.run(tf.global_variables_initializer())
        found = [value.ravel().tolist() for value in session.run(pooled)]
    assert found == [[7.5, 23.5], [15, 31], [7.5, 23.5], [120, 376]]


def test_unknown_sizes() -> None:
    with tf.Graph().as_default():
        images = tf.placeholder(tf.float32, [None, None, 4, 1])
        with pytest.raises(ValueError, match="pool_size"):
            slim.avg_pool2d(images, images.get_shape()[1:3])
