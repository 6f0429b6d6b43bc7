"""Trains on parameter servers until a file named ``stop`` exists in the given folder.

Training is asynchronous, or with ``--sync`` synchronous. With ``--backup`` the program saves its progress in the folder
when the process is asked to end, and resumes from the saved progress. While a named pipe ``hold`` exists, an evaluator
stops after each epoch until something is written to the pipe.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from headwater.keras import FixedShardsPartitioner, ParameterServerStrategy
from headwater.keras.callbacks import BackupAndRestore

import keras  # isort: skip - the package before it chooses the backend

folder = Path(sys.argv[-1])
consistency = "sync" if "--sync" in sys.argv else "async"
strategy = ParameterServerStrategy(variable_partitioner=FixedShardsPartitioner(2), consistency=consistency)
rng = np.random.default_rng(0)
x = rng.normal(size=(256, 4)).astype(np.float32)
y = x @ np.arange(4, dtype=np.float32)[:, None] + 1
with strategy.scope():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)], name="line")
    model.compile(keras.optimizers.Adam(0.05), "mse")


class Watch(keras.callbacks.Callback):
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        found = sorted(logs or {})
        print(f"epoch {epoch} updates {int(model.optimizer.iterations.value)} with {found}", flush=True)
        model.stop_training = (folder / "stop").exists()
        if found == ["val_loss"] and (folder / "hold").exists():
            (folder / "hold").read_bytes()


callbacks: list[Any] = [Watch()]
if "--backup" in sys.argv:
    callbacks.insert(0, BackupAndRestore(folder / "backup", save_freq=10**9))
model.fit(x, y, batch_size=32, epochs=1_000_000, verbose=0, callbacks=callbacks, validation_data=(x, y))
kernel, bias = model.get_weights()
print("trained", np.round(kernel[:, 0], 2).tolist(), np.round(bias, 2).tolist(), flush=True)
