"""Steps/s of ``fit``: document 004's network, batches of 32, mirrored or on parameter servers."""

import sys
import time

import numpy as np

from headwater import tf

keras = tf.keras
mode, steps = sys.argv[1], int(sys.argv[2])
distribute = tf.distribute
if mode == "mirrored":
    strategy = distribute.MultiWorkerMirroredStrategy()
else:
    strategy = distribute.experimental.ParameterServerStrategy(consistency=mode)
rng = np.random.default_rng(0)
x = rng.random((3200, 784), np.float32)
y = rng.integers(0, 10, 3200)

with strategy.scope():
    model = keras.Sequential(
        [
            keras.Input((784,)),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(10),
        ]
    )
    model.compile(keras.optimizers.Adam(), keras.losses.SparseCategoricalCrossentropy(from_logits=True))


class Clock(keras.callbacks.Callback):
    """From the end of the first epoch, when everything is compiled, to that of the last."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            self.began = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.ended = time.perf_counter()


clock = Clock()
epochs = 1 + max(1, steps // 100)
model.fit(x, y, batch_size=32, epochs=epochs, verbose=0, callbacks=[clock])
print(f"steps/s {(epochs - 1) * 100 / (clock.ended - clock.began):.1f}", flush=True)
