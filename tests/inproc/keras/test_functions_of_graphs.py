"""Layers of a program of TensorFlow 1, whose ``call`` uses functions of ``tf``, in models trained by ``fit``."""

from __future__ import annotations

from typing import Any

import numpy as np

from headwater import tf


class Crossed(tf.keras.layers.Layer):
    """x (x · k) + mean(x), through a layer of Keras."""

    def build(self, shape: Any) -> None:
        self.k = self.add_weight(name="k", shape=(int(shape[-1]), 1), initializer=tf.zeros_initializer())
        self.inner = tf.keras.layers.Dense(2)
        super().build(shape)

    def call(self, inputs: Any) -> Any:
        crossed = tf.tensordot(inputs, self.k, axes=(-1, 0)) * inputs + tf.keras.backend.mean(inputs)
        return self.inner(tf.nn.relu(crossed))


def test_a_layer_with_functions_of_tf_trains_in_a_functional_model() -> None:
    inputs = tf.keras.Input((4,))
    model = tf.keras.Model(inputs, Crossed()(inputs))
    model.compile("adam", "mse")
    values = np.random.RandomState(0).rand(64, 4).astype(np.float32)
    before, after = model.predict(values, verbose=0), model.fit(values, values[:, :2], epochs=20, verbose=0)
    losses = after.history["loss"]
    assert losses[-1] < losses[0]
    assert np.abs(model.predict(values, verbose=0) - before).max() > 0
    assert len(model.trainable_weights) == 3
