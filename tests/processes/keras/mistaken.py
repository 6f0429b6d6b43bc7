"""Trains with a mistake, which ``--mistake`` names, on all tasks or only on the last worker."""

from __future__ import annotations

import json
import os
import sys

import numpy as np

from headwater.keras import MultiWorkerMirroredStrategy, ParameterServerStrategy

import keras  # isort: skip - the package before it chooses the backend

mistake = sys.argv[-1]
config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
wrong = task["type"] == "worker" and task["index"] == len(config["cluster"]["worker"]) - 1
served = "ps" in config["cluster"]
strategy = ParameterServerStrategy(consistency="sync") if served else MultiWorkerMirroredStrategy()
rows = 48 if mistake == "length" and wrong else 64
rng = np.random.default_rng(1 if mistake == "examples" and wrong else 0)
x, y = rng.normal(size=(rows, 4)).astype("float32"), np.zeros((rows, 1), "float32")
units = 5 if mistake == "model" and wrong else 3


def make() -> keras.Model:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(units), keras.layers.Dense(1)], name="mistaken")
    model.compile(keras.optimizers.Adam(0.2 if mistake == "optimizer" and wrong else 0.1), "mse")
    return model


if mistake == "scope":
    model = make()
else:
    with strategy.scope():
        model = make()
if mistake == "train_on_batch":
    for at in range(4):
        model.train_on_batch(x[16 * at : 16 * at + 16], y[16 * at : 16 * at + 16])
elif mistake == "ends":  # the size of a generator is known only at its end
    model.fit(((x[:16], y[:16]) for _ in range(2 if wrong else 4)), epochs=1, verbose=0)
else:
    model.fit(x, y, batch_size=16, epochs=2, verbose=0)
print("trained", flush=True)
