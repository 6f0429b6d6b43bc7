"""Initial values of convolutions that preserve norms."""

from __future__ import annotations

import numpy as np
import pytest

from headwater import tf

framework = tf.contrib.framework


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (framework.convolutional_delta_orthogonal, [3, 2, 2, 4]),
        (framework.convolutional_orthogonal_1d, [3, 2, 4]),
        (framework.convolutional_orthogonal_2d, [2, 2, 2, 4]),
        (framework.convolutional_orthogonal_3d, [2, 2, 2, 2, 2]),
    ],
)
def test_circular_convolution_multiplies_norms_by_the_gain(make: type, shape: list[int]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        kernel = session.run(make(gain=3.0, seed=1)(shape))
    assert kernel.shape == tuple(shape)
    axes = tuple(range(len(shape) - 2))
    sizes = (5,) * len(axes)
    values = np.random.default_rng(0).standard_normal((*sizes, shape[-2]))
    # A circular convolution is a product of the transforms at each frequency.
    found = np.einsum("...i,...io->...o", np.fft.fftn(values, axes=axes), np.fft.fftn(kernel, sizes, axes))
    np.testing.assert_allclose(np.linalg.norm(found), 3.0 * np.linalg.norm(np.fft.fftn(values, axes=axes)), rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "shape", "message"),
    [
        (framework.convolutional_delta_orthogonal, [4, 4], "at least three-dimensional and at most five-dimensional"),
        (framework.convolutional_orthogonal_1d, [3, 3, 2, 4], "must be three-dimensional"),
        (framework.convolutional_orthogonal_2d, [3, 3, 4, 2], "In_filters cannot be greater than out_filters"),
        (framework.convolutional_orthogonal_2d, [3, 2, 2, 4], "Kernel sizes must be equal"),
    ],
)
def test_impossible_shapes_are_rejected(make: type, shape: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()(shape)
