"""Keras on a GPU."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from headwater import tf


def _fitted(strategy: Any) -> list[Any]:
    import keras

    keras.utils.set_random_seed(1)
    source = np.random.default_rng(0)
    inputs = source.standard_normal((64, 5)).astype(np.float32)
    with strategy.scope():
        model = keras.Sequential([keras.Input([5]), keras.layers.Dense(8, "tanh"), keras.layers.Dense(1)])
        model.compile("adam", "mse")
    model.fit(inputs, inputs[:, :1], batch_size=16, epochs=2, shuffle=False, verbose=0)
    return [np.asarray(value.value) for value in model.trainable_variables]


def test_fit_on_the_gpu_agrees_with_the_cpu() -> None:
    with jax.default_matmul_precision("float32"):
        on_gpu = _fitted(tf.distribute.MirroredStrategy(["/gpu:0"]))
        on_cpu = _fitted(tf.distribute.OneDeviceStrategy("/cpu:0"))
    for found, expected in zip(on_gpu, on_cpu, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
