"""Trains two towers with dynamic embeddings on the ps, until a file named ``stop`` exists in the given folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from headwater.keras import ParameterServerStrategy
from headwater.keras.layers import DynamicEmbedding

import keras  # isort: skip - the package before it chooses the backend

folder = Path(sys.argv[-1])
optimizer: Any = keras.optimizers.Nadam(0.02) if "--general" in sys.argv else keras.optimizers.Adam(0.02)
strategy = ParameterServerStrategy(consistency="sync" if "--sync" in sys.argv else "async")
rng = np.random.default_rng(0)
users, items = rng.integers(0, 60, 512), rng.integers(0, 30, 512)
x = {"user": users[:, None] << 40, "item": np.array([f"item {n}" for n in items])[:, None]}
y = (np.linspace(-2, 2, 60)[users] + np.linspace(1, -1, 30)[items] > 0).astype(np.float32)[:, None]
if "--load" in sys.argv:
    loaded: Any = keras.saving.load_model(folder / "towers.keras")
    # The other worker may have made a few more steps between the two.
    np.testing.assert_allclose(loaded.predict(x, verbose=0), np.load(folder / "predicted.npy"), rtol=0.1, atol=0.02)
    print("predicts the same")
    raise SystemExit

with strategy.scope():
    user, item = keras.Input((1,), dtype="int64", name="user"), keras.Input((1,), dtype="string", name="item")
    saves = str(folder / "saves")
    found = [
        DynamicEmbedding(4, saves=saves, name="users")(user),
        DynamicEmbedding(4, saves=saves, strings=True, name="items")(item),
    ]
    hidden = keras.layers.Dense(8, activation="tanh")(keras.layers.Flatten()(keras.layers.Concatenate()(found)))
    model = keras.Model(
        {"user": user, "item": item}, keras.layers.Dense(1, activation="sigmoid")(hidden), name="towers"
    )
    model.compile(optimizer, "binary_crossentropy", metrics=["accuracy"])


class Watch(keras.callbacks.Callback):
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        told = logs or {}
        table: Any = model.get_layer("users")
        rows = [one.rows for one in table.client.statistics(table.table_name).values()]
        print(f"epoch {epoch} loss {told['loss']:.4f} rows {rows}", flush=True)
        model.stop_training = (folder / "stop").exists()


model.fit(x, y, batch_size=64, epochs=100_000, verbose=0, callbacks=[Watch()])
predicted = model.predict(x, verbose=0)
if strategy.is_chief:
    model.save(folder / "towers.keras")
    np.save(folder / "predicted.npy", predicted)
print(f"accuracy {np.mean((predicted > 0.5) == y):.3f}", flush=True)
