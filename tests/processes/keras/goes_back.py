"""Trains a Keras model on parameter servers that save their own states, until a file ``stop`` exists in the folder.

With ``--recovery copy``, the parameter servers do not save their states. The model's embedding is a table, of which
each ``ps`` has half of the rows. After each step a worker prints how many updates each ``ps`` has seen.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from headwater import tf

parser = argparse.ArgumentParser()
parser.add_argument("--recovery", default="own")
parser.add_argument("folder", type=Path)
arguments, _ = parser.parse_known_args()
keras: Any = tf.keras


class Stop(keras.callbacks.Callback):
    """Prints the number of updates of each ``ps``, and stops training on request."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        del batch, logs
        client: Any = strategy._models_to_serve()[0]._client
        first, second = (session.version for session in client._sessions)
        print(f"read {first} and {second}", flush=True)
        if (arguments.folder / "stop").exists():
            self.model.stop_training = True


saves = arguments.folder / "states" if arguments.recovery == "own" else None
strategy = tf.distribute.experimental.ParameterServerStrategy(saves=saves, save_every_s=0.2)
with strategy.scope():
    ids = keras.Input((1,), dtype="int32")
    rows = keras.layers.Embedding(1000, 300, name="rows")(ids)  # a table on the ps: it has more than 1 MiB
    found = keras.layers.Dense(1, name="kernel")(keras.layers.Flatten()(rows))
    model = keras.Model(ids, found)
    model.compile(keras.optimizers.Adam(0.001), "mse")
x = np.arange(800, dtype=np.int32)[:, None] % 1000
model.fit(x, np.ones(800, np.float32), batch_size=8, epochs=10_000, callbacks=[Stop()], verbose=0)
print("ended", flush=True)
