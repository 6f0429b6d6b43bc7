"""Resized images have the values that TensorFlow 1.15 computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headwater import tf

ROW = np.array([0, 10, 40, 20], np.float32)
IMAGE = (ROW + np.array([[0], [100]], np.float32))[None, :, :, None]


def run(tensor: Any) -> Any:
    with tf.Session(graph=tensor.graph) as session:
        return session.run(tensor)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [[0.0, 3.522, 21.6545, 40.0, 27.9535, 17.7778], [100.0, 103.5221, 121.6545, 140.0, 127.9535, 117.7778]]),
        (
            {"align_corners": True},
            [[0.0, 2.8767, 16.7271, 36.8755, 35.4703, 20.0], [100.0, 102.8767, 116.7271, 136.8755, 135.4703, 120.0]],
        ),
        (
            {"half_pixel_centers": True},
            [
                [-0.6589, 2.9412, 14.4317, 37.6548, 31.1765, 18.6822],
                [99.3411, 102.9412, 114.4317, 137.6548, 131.1765, 118.6822],
            ],
        ),
    ],
)
def test_bicubic(options: Any, expected: Any) -> None:
    with tf.Graph().as_default():
        found = run(tf.image.resize_bicubic(IMAGE, [2, 6], **options))
    np.testing.assert_allclose(found[0, :, :, 0], expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("align_corners", "expected"), [(False, [[52.5, 75.0, 75.0]]), (True, [[53.3333, 80.0, 70.0]])]
)
def test_area(align_corners: bool, expected: Any) -> None:
    with tf.Graph().as_default():
        found = run(tf.image.resize_area(IMAGE, [1, 3], align_corners))
    np.testing.assert_allclose(found[0, :, :, 0], expected, rtol=1e-6)


def test_bicubic_has_a_gradient_and_area_none() -> None:
    with tf.Graph().as_default():
        images = tf.constant(IMAGE)
        (gradient,) = tf.gradients(tf.image.resize_bicubic(images, [4, 8]), images)
        # Each of 32 pixels is a weighted mean: the weights add up to one.
        assert float(run(gradient).sum()) == pytest.approx(32, rel=1e-5)
        assert tf.gradients(tf.image.resize_area(images, [1, 2]), images) == [None]


def test_resize_images() -> None:
    with tf.Graph().as_default():
        image = tf.constant(IMAGE[0].astype(np.uint8))
        for method in ("bilinear", tf.image.ResizeMethod.BICUBIC, tf.image.ResizeMethod.AREA):
            assert run(tf.image.resize_images(image, [4, 4], method)).shape == (4, 4, 1)
            # An image of the requested size keeps its type.
            assert tf.image.resize_images(image, [2, 4], method).dtype == tf.uint8
        kept = tf.image.resize_images(image, [6, 6], preserve_aspect_ratio=True)
        assert kept.shape.as_list() == [3, 6, 1]
        given = tf.placeholder(tf.float32, [None, None, 1])
        resized = tf.image.resize_images(given, [6, 6], preserve_aspect_ratio=True)
        with tf.Session() as session:
            assert session.run(resized, {given: IMAGE[0]}).shape == (3, 6, 1)
        with pytest.raises(ValueError, match="not implemented"):
            tf.image.resize_images(image, [3, 3], 9)
        with pytest.raises(ValueError, match="2 elements"):
            tf.image.resize_images(image, [3])
