"""Random changes of images."""

from __future__ import annotations

import numpy as np
import pytest

from headwater import tf
from tests.conformance.compare import same
from tests.conformance.run import outcome
from tests.conformance.stored import Case, stored_cases


@pytest.mark.parametrize("case", stored_cases("images"), ids=str)
def test_as_tensorflow(case: Case) -> None:
    same(outcome(case.run, tf), case.expected, tolerance=1e-4)


def test_flips_are_as_likely_as_not() -> None:
    image = np.arange(12, dtype=np.float32).reshape(1, 4, 3)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        flipped = tf.image.random_flip_left_right(image)
        batch = tf.image.random_flip_up_down(np.tile(image.reshape(1, 4, 1, 3), [64, 1, 1, 1]))
        seen = [session.run(flipped) for _ in range(40)]
        rows = session.run(batch)[:, 0, 0, 0]
    mirrored = sum(bool((value == image[:, ::-1]).all()) for value in seen)
    assert sum(bool((value == image).all()) for value in seen) == 40 - mirrored
    assert 8 < mirrored < 32
    assert 12 < (rows == 9).sum() < 52


def test_random_brightness_and_contrast_stay_in_their_bounds() -> None:
    image = np.linspace(0, 1, 24, dtype=np.float32).reshape(2, 4, 3)
    with tf.Graph().as_default(), tf.Session() as session:
        brighter = tf.image.random_brightness(image, 0.25) - image
        contrast = tf.image.random_contrast(image, 0.5, 2.0)
        deltas = np.array([session.run(brighter) for _ in range(20)])
        factors = [np.ptp(session.run(contrast)[..., 0]) / np.ptp(image[..., 0]) for _ in range(20)]
    assert np.ptp(deltas[:, 0, 0, 0]) > 0.1
    assert (np.abs(deltas) <= 0.2501).all()
    assert np.ptp(deltas[3]) < 1e-6
    assert min(factors) >= 0.499
    assert max(factors) <= 2.001
