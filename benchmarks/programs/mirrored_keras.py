"""A network of two hidden layers, mirrored on the workers of ``TF_CONFIG`` through Keras's ``fit``; prints steps/s.

Runs under Headwater, and under TensorFlow 2 with Keras 2 (tf-keras).
"""

import os
import sys
import time

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf
from tensorflow import keras

BATCH = 32
STEPS = int(sys.argv[1])

strategy = tf.distribute.MultiWorkerMirroredStrategy()
rows = np.random.default_rng(0)
x = rows.random((BATCH * 2 * 50, 784), np.float32)
y = rows.integers(0, 10, len(x)).astype(np.float32)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH * strategy.num_replicas_in_sync).repeat()

with strategy.scope():
    inputs = keras.Input(shape=(784,))
    hidden = keras.layers.Dense(256, activation="relu")(inputs)
    hidden = keras.layers.Dense(256, activation="relu")(hidden)
    model = keras.Model(inputs, keras.layers.Dense(10)(hidden))
    model.compile(
        optimizer=keras.optimizers.Adam(),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[keras.metrics.SparseCategoricalAccuracy()],
    )


class Clock(keras.callbacks.Callback):
    """Times the epochs."""

    def on_epoch_begin(self, epoch, logs=None):
        self.began = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.seconds = time.perf_counter() - self.began


clock = Clock()
# The first epoch compiles.
model.fit(data, epochs=2, steps_per_epoch=STEPS, verbose=0, callbacks=[clock])
print(f"steps/s {STEPS / clock.seconds:.1f}", flush=True)
