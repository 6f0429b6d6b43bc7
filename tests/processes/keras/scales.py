"""Every update of a Keras model subtracts 1 from each weight, while the chief moves its variables between ``ps``."""

from __future__ import annotations

from typing import Any

import numpy as np

from headwater import tf

keras: Any = tf.keras
strategy = tf.distribute.experimental.ParameterServerStrategy(shards=4)


class Scale(keras.callbacks.Callback):
    """Moves the variables at intervals."""

    batches = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        del batch, logs
        self.batches += 1
        if strategy.is_chief and self.batches % 10 == 0:
            moved = strategy.scale(1 + self.batches % 20 // 10)
            print(f"moved {len(moved)}", flush=True)


with strategy.scope():
    inputs = [keras.Input((2,)) for _ in range(4)]
    made = [keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")(one) for one in inputs]
    model = keras.Model(inputs, keras.layers.Add()(made))
    model.compile(keras.optimizers.SGD(1.0), lambda _, found: found)
x = np.ones((640, 2), np.float32)
model.fit([x] * 4, x[:, :1], batch_size=8, epochs=3, callbacks=[Scale()], verbose=0)
weights = {float(one) for weight in model.get_weights() for one in weight.flat}
print(f"weights {sorted(weights)} after {3 * 640 // 8} updates", flush=True)
