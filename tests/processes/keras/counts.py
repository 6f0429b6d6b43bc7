"""Trains a Keras model on parameter servers for three epochs of an array, or of the data named by ``--data``.

With ``--hold_at=3`` a worker stops at its third batch until a pipe named ``hold-WORKER`` in the folder is opened.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from headwater import tf
from headwater.data.dataset import Dataset
from headwater.data.readers import TextLineDataset

SIZE, BATCH, EPOCHS = 400, 8, 3

parser = argparse.ArgumentParser()
parser.add_argument("--consistency", default="async")
parser.add_argument("--hold_at", type=int, default=-1)
parser.add_argument("--data", choices=("arrays", "PyDataset", "dataset", "file"), default="arrays")
parser.add_argument("folder", type=Path)
arguments, _ = parser.parse_known_args()
keras: Any = tf.keras
task = json.loads(os.environ["TF_CONFIG"])["task"]


class Hold(keras.callbacks.Callback):
    """Waits while a batch is assigned to this worker."""

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
y = x.sum(1)


class Batches(keras.utils.PyDataset):
    """The batches of the array, in order."""

    def __len__(self) -> int:
        return SIZE // BATCH

    def __getitem__(self, index: int) -> Any:
        rows = slice(index * BATCH, (index + 1) * BATCH)
        return x[rows], y[rows]


def of_line(line: Any) -> Any:
    """Returns the example with a number."""
    return x[int(line.item())], y[int(line.item())]


settings: dict[str, Any] = {"epochs": EPOCHS, "callbacks": [Hold()], "verbose": 0}
if arguments.data == "arrays":
    history = model.fit(x, y, batch_size=BATCH, **settings)
else:
    data: Any = Batches()
    if arguments.data == "dataset":
        data = Dataset.from_tensor_slices((x, y)).shuffle(SIZE).batch(BATCH)
    if arguments.data == "file":
        data = TextLineDataset(str(arguments.folder / "numbers")).map(of_line).batch(BATCH)
    history = model.fit(data, **settings)
print("trained", len(history.history["loss"]), flush=True)
