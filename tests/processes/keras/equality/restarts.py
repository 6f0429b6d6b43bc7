"""Trains a model on workers, some of which may kill themselves once, and prints the result.

    restarts.py STRATEGY FOLDER KILLED STEP

STRATEGY is ``mirrored``, ``sync`` or ``async``; KILLED is ``none``, ``worker`` (the last one), ``chief``, ``ps``, or
``all``: all tasks at once, as in a power failure. STEP is counted over all epochs.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

from headwater.keras import MultiWorkerMirroredStrategy, ParameterServerStrategy

import keras  # isort: skip - the package before it chooses the backend

chosen, folder, killed, step = sys.argv[-4], Path(sys.argv[-3]), sys.argv[-2], int(sys.argv[-1])
task = json.loads(os.environ["TF_CONFIG"])
me, last = task["task"], len(task["cluster"]["worker"]) - 1
is_chief = me["type"] == "worker" and me["index"] == 0
STEPS = 5
callbacks: Any = keras.callbacks
strategy: Any = MultiWorkerMirroredStrategy() if chosen == "mirrored" else ParameterServerStrategy(consistency=chosen)
(folder / f"{me['type']} {me['index']}.pid").write_text(str(os.getpid()))
random = np.random.default_rng(0)
x = random.normal(size=(STEPS * 8, 4)).astype("float32")
y = (np.tanh(x @ random.normal(size=(4, 1))) + 0.3 * random.normal(size=(len(x), 1))).astype("float32")
weights = random.uniform(0.5, 2, len(x)).astype("float32")


def make() -> Any:
    """Makes a network with a decreasing learning rate, whose training stops early."""
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(6, activation="tanh"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.2), "mse", metrics=["mae"])
    return model


class Killed(callbacks.Callback):
    """Kills this process, or all processes of the job, once."""

    steps = 0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.steps = epoch * STEPS

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.steps += 1
        mark = folder / "killed"
        mine = me["index"] == {"worker": last, "chief": 0, "ps": 0, "all": last}.get(killed)
        if mine and self.steps == step and not mark.exists():
            mark.touch()
            names = {"ps": "ps *.pid", "all": "*.pid"}.get(killed, f"worker {me['index']}.pid")
            pids = {int(path.read_text()) for path in folder.glob(names)}
            for pid in sorted(pids, key=os.getpid().__eq__):  # this process last
                os.kill(pid, signal.SIGKILL)


with strategy.scope():
    keras.utils.set_random_seed(5)
    model = make()
calls = [
    callbacks.ReduceLROnPlateau(factor=0.5, patience=1),
    callbacks.ModelCheckpoint(str(folder / "best.weights.h5"), save_best_only=True, save_weights_only=True),
    callbacks.EarlyStopping(patience=2),
    Killed(),
    callbacks.BackupAndRestore(str(folder / "backup")),
]
history = model.fit(
    x,
    y,
    batch_size=8,
    epochs=7,
    shuffle=False,
    verbose=0,
    sample_weight=weights,
    validation_data=(x[::3], y[::3]),
    callbacks=calls,
).history
if is_chief:
    final = [np.abs(weight).sum().item() for weight in model.get_weights()]
    rate = float(np.asarray(model.optimizer.learning_rate))
    updates = int(np.asarray(model.optimizer.iterations))
    model.load_weights(str(folder / "best.weights.h5"))
    best = [np.abs(weight).sum().item() for weight in model.get_weights()]
    told = {"history": history, "final": final, "best": best, "rate": [rate], "updates": updates}
    print("result", json.dumps(told, default=float), flush=True)
