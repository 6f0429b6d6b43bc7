"""Every update of a Keras model subtracts 1 from each weight, with a backup of each part.

With ``--table rows`` there is also a table in rows; an update subtracts 1/8 from each of its rows. With ``--table
grows`` there is a dynamic table, and each worker prints how much its acknowledged pushes have subtracted from each row.
A worker may push twice for a batch if the first ``ps`` was lost with the record of the batch's assignment.

Every worker stops before its 20th and before its 30th batch, until the pipes ``hold-WORKER-20`` and ``hold-WORKER-30``
in the folder are opened.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from headwater import tf
from headwater.keras.layers import DynamicEmbedding
from headwater.ps.tables.client import TableClient
from headwater.tables import Initializer

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=Path)
parser.add_argument("--consistency", default="async")
parser.add_argument("--table", choices=("none", "rows", "grows"), default="none")
parser.add_argument("--shards", type=int, help="in how many shards, which move between ps, everything is")
arguments, _ = parser.parse_known_args()
keras: Any = tf.keras
task = json.loads(os.environ["TF_CONFIG"])["task"]


ROWS = 8
pushed = np.zeros(ROWS)
client_class: Any = TableClient
push = client_class.push


def counted(client: TableClient, divided: Any, sums: Any, number: int | None = None) -> None:
    """Pushes gradients of rows, and counts them when the push is acknowledged."""
    push(client, divided, sums, number)
    for name, keys in divided.items():
        np.add.at(pushed, keys.words, sums[name][:, 0])


client_class.push = counted


class Hold(keras.callbacks.Callback):
    """Waits before certain batches."""

    batches = 0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        del batch, logs
        self.batches += 1
        if self.batches in (20, 30):
            print(f"holding at {self.batches}", flush=True)
            (arguments.folder / f"hold-{task['index']}-{self.batches}").read_bytes()


strategy = tf.distribute.experimental.ParameterServerStrategy(
    consistency=arguments.consistency, replicas=2, shards=arguments.shards, table_bytes=0
)
x = np.ones((640, 2), np.float32)
data: list[np.ndarray] = [x, x]
table: DynamicEmbedding | None = None
with strategy.scope():
    inputs = [keras.Input((2,)), keras.Input((2,))]
    made = [keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")(one) for one in inputs]
    if arguments.table == "rows":
        inputs.append(keras.Input((), dtype="int64"))
        made.append(keras.layers.Embedding(ROWS, 1, embeddings_initializer="zeros")(inputs[-1]))
    if arguments.table == "grows":
        inputs.append(keras.Input((), dtype="int64"))
        table = DynamicEmbedding(1, initializer=Initializer(kind="constant", a=0.0), name="table")
        made.append(table(inputs[-1]))
    if len(inputs) > 2:
        data.append(np.arange(len(x)) % ROWS)
    model = keras.Model(inputs, keras.layers.Add()(made))
    model.compile(keras.optimizers.SGD(1.0), lambda _, found: found)
model.fit(data, x[:, :1], batch_size=8, epochs=3, shuffle=False, callbacks=[Hold()], verbose=0)
if table is not None:
    print(f"pushed {pushed.tolist()}", flush=True)
    print(f"rows {np.asarray(table(np.arange(ROWS))).ravel().tolist()}", flush=True)
weights = {float(one) for weight in model.get_weights() for one in weight.flat}
print(f"weights {sorted(weights)} after {3 * 640 // 8} updates", flush=True)
