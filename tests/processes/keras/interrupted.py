"""Trains a small model on the workers of a cluster; the last worker may send itself a signal during training, once.

    interrupted.py FOLDER STEP SIGNAL

The program saves into FOLDER every four steps. After STEP steps (0 for never) the last worker sends itself SIGNAL.
"""

import json
import os
import sys

import numpy as np
import tensorflow as tf
from tensorflow import keras

folder, step, signum = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
config = json.loads(os.environ["TF_CONFIG"])
last = config["task"]["index"] == len(config["cluster"]["worker"]) - 1
strategy = tf.distribute.MultiWorkerMirroredStrategy()
random = np.random.default_rng(0)
x, y = random.normal(size=(160, 5)).astype("float32"), random.integers(0, 3, 160)
keras.utils.set_random_seed(7)
with strategy.scope():
    model = keras.Sequential(
        [keras.Input((5,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dropout(0.2), keras.layers.Dense(3)]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])


class Interrupt(keras.callbacks.Callback):
    """Sends the signal."""

    steps = 0

    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1
        told = os.path.join(folder, "told")
        if last and self.steps == step and not os.path.exists(told):
            open(told, "w").close()
            os.kill(os.getpid(), signum)


backup = keras.callbacks.BackupAndRestore(os.path.join(folder, "backup"), save_freq=4)
logs = model.fit(x, y, batch_size=32, epochs=3, verbose=0, callbacks=[backup, Interrupt()]).history
weights = float(sum(np.abs(weight).sum() for weight in model.get_weights()))
print(f"result {logs['loss'][-1]:.9f} {logs['accuracy'][-1]:.9f} {weights:.9f}", flush=True)
