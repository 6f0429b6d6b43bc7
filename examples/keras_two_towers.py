"""Two towers with embedding tables of a million rows on the ``ps``: only the rows of a batch are sent.

    headwater run --ps 2 --workers 2 examples/keras_two_towers.py

Every user likes the items of one of 50 groups, and the model learns to find, among the items of a batch, the one that
each user took. Each worker prints the rows that it read per second, and the bytes sent and received per step.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from headwater.keras import ParameterServerStrategy  # before keras: it chooses the backend

import keras  # isort: skip

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--users", type=int, default=800_000)
parser.add_argument("--items", type=int, default=200_000)
parser.add_argument("--width", type=int, default=32, help="length of an embedding")
parser.add_argument("--examples", type=int, default=200_000)
parser.add_argument("--batch", type=int, default=512)
parser.add_argument("--epochs", type=int, default=2)
arguments = parser.parse_args()

strategy = ParameterServerStrategy()


def tower(rows: int, name: str) -> keras.Model:
    numbers = keras.Input((), dtype="int32")
    found = keras.layers.Embedding(rows, arguments.width, name=f"{name}_table")(numbers)
    return keras.Model(numbers, keras.layers.Dense(arguments.width, name=f"{name}_dense")(found), name=name)


with strategy.scope():
    user, item = keras.Input((), dtype="int32"), keras.Input((), dtype="int32")
    users, items = tower(arguments.users, "user"), tower(arguments.items, "item")
    scores = keras.layers.Dot(axes=1)([users(user), items(item)])
    model = keras.Model([user, item], scores)
    model.compile(keras.optimizers.Adam(0.01), keras.losses.BinaryCrossentropy(from_logits=True), metrics=["accuracy"])

rng = np.random.default_rng(0)
# A few users and items are very frequent, as in real traffic.
user_of = (arguments.users * rng.power(0.1, arguments.examples)).astype(np.int32)
group = user_of % 50
likes = rng.random(arguments.examples) < 0.5
item_group = np.where(likes, group, (group + rng.integers(1, 50, arguments.examples)) % 50)
item_of = (arguments.items // 50 * rng.power(0.1, arguments.examples)).astype(np.int32) * 50 + item_group


class Measured(keras.callbacks.Callback):
    """Measures the last epoch, in which everything is compiled."""

    def on_epoch_begin(self, epoch, logs=None):
        self.began, self.before, self.steps = time.perf_counter(), strategy.traffic(model), 0

    def on_train_batch_end(self, batch, logs=None):
        self.seconds, self.after = time.perf_counter() - self.began, strategy.traffic(model)
        self.steps += 1


measured = Measured()
history = model.fit(
    [user_of, item_of.astype(np.int32)],
    likes.astype(np.float32),
    batch_size=arguments.batch,
    epochs=arguments.epochs,
    verbose=2,
    callbacks=[measured],
)
before, after = measured.before, measured.after
rows, sent = after.rows - before.rows, after.sent_bytes - before.sent_bytes
received = after.received_bytes - before.received_bytes
print(
    f"worker {strategy.worker}: accuracy {history.history['accuracy'][-1]:.3f}; "
    f"{rows / measured.seconds:,.0f} rows/s; {measured.steps / measured.seconds:,.0f} steps/s; "
    f"{(sent + received) / measured.steps / 1024:,.0f} KiB in a step, "
    f"of tables of {4 * arguments.width * (arguments.users + arguments.items) / 2**20:,.0f} MiB"
)
