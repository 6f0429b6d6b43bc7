"""A model of Keras goes through an array three times, on parameter servers.

With ``--hold_at=3`` a worker waits, with its third batch in hand, until a pipe named ``hold-WORKER`` in the folder is
opened.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from headwater import tf

SIZE, BATCH, EPOCHS = 400, 8, 3

parser = argparse.ArgumentParser()
parser.add_argument("--consistency", default="async")
parser.add_argument("--hold_at", type=int, default=-1)
parser.add_argument("folder", type=Path)
arguments, _ = parser.parse_known_args()
keras: Any = tf.keras
task = json.loads(os.environ["TF_CONFIG"])["task"]


class Hold(keras.callbacks.Callback):
    """Waits with a batch in hand."""

    batches = 0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        del batch, logs
        self.batches += 1
        if self.batches == arguments.hold_at:
            print(f"holding as {task['index']}", flush=True)
            (arguments.folder / f"hold-{task['index']}").read_bytes()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        del logs
        print(f"batch {self.batches} was number {batch}", flush=True)


strategy = tf.distribute.experimental.ParameterServerStrategy(consistency=arguments.consistency)
with strategy.scope():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.01), "mse")
x = np.random.default_rng(0).normal(size=(SIZE, 2)).astype(np.float32)
history = model.fit(x, x.sum(1), batch_size=BATCH, epochs=EPOCHS, callbacks=[Hold()], verbose=0)
print("trained", len(history.history["loss"]), flush=True)
