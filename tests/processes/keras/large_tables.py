"""Trains a model with tables, and prints the peak memory of each process."""

from __future__ import annotations

import argparse
import atexit
import re
from pathlib import Path
from typing import Any

import numpy as np

from headwater.keras import ParameterServerStrategy

import keras  # isort: skip - the package before it chooses the backend


def tell() -> None:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    print(f"at most {int(found[1]) << 10} bytes", flush=True)


atexit.register(tell)
parser = argparse.ArgumentParser()
parser.add_argument("--rows", type=int, default=1000)
parser.add_argument("--tables", type=int, default=1)
parser.add_argument("--steps", type=int, default=4)
given, _ = parser.parse_known_args()

strategy = ParameterServerStrategy(table_bytes=0)
rng = np.random.default_rng(0)
ids = rng.integers(0, given.rows, (64 * given.steps, given.tables))
y = (ids.sum(1) % 2).astype(np.float32)
with strategy.scope():
    keras.utils.set_random_seed(1)
    inputs = keras.Input((given.tables,), dtype="int64")
    found = [keras.layers.Embedding(given.rows, 16)(inputs[:, at]) for at in range(given.tables)]
    hidden: Any = keras.layers.Concatenate()(found) if len(found) > 1 else found[0]
    model = keras.Model(inputs, keras.layers.Dense(1, activation="sigmoid")(hidden))
    model.compile(keras.optimizers.Adagrad(0.1), "binary_crossentropy")
history = model.fit(ids, y, batch_size=64, epochs=1, verbose=0)
print(f"loss {history.history['loss'][0]:.4f}", flush=True)
