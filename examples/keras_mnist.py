"""Classifies digits with Keras on several workers: mirrored, or with parameter servers if the cluster has any.

    headwater run --workers 2 examples/keras_mnist.py
    headwater run --ps 1 --workers 2 examples/keras_mnist.py

Mirrored workers save their state every few steps: after the loss of a worker, all restart and resume from it.
"""

from __future__ import annotations

import argparse
import json
import os

import numpy as np

from headwater import tf

keras = tf.keras

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--folder", default="build/keras-mnist", help="folder for saved state and for TensorBoard")
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--batch", type=int, default=64, help="examples per step, of all workers together")
parser.add_argument("--report", type=int, default=100, help="steps between two lines of progress")


def digits():
    """Returns images (count, pixels) in [0, 1] and labels, for training and tests: MNIST or scikit-learn's digits."""
    if os.environ.get("HEADWATER_DATA_DIR"):
        train, test = keras.datasets.mnist.load_data()
        parts = [(images.reshape(len(images), -1) / np.float32(255), labels) for images, labels in (train, test)]
    else:
        from sklearn.datasets import load_digits  # noqa: PLC0415  needed only without MNIST

        images, labels = load_digits(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(labels))
        images, labels = images[order].astype(np.float32) / 16, labels[order]
        parts = [(images[:-300], labels[:-300]), (images[-300:], labels[-300:])]
    return parts


def make_model(pixels):
    """Returns a compiled network of two hidden layers."""
    model = keras.Sequential(
        [
            keras.Input((pixels,)),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(10),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
    )
    return model


def main():
    flags = parser.parse_args()
    cluster = json.loads(os.environ.get("TF_CONFIG", "{}")).get("cluster", {})
    with_ps = bool(cluster.get("ps"))
    distribute = tf.distribute
    strategy = (
        distribute.experimental.ParameterServerStrategy() if with_ps else distribute.MultiWorkerMirroredStrategy()
    )
    print(f"process {os.getpid()}", flush=True)
    (train_x, train_y), test = digits()
    data = tf.data.Dataset.from_tensor_slices((train_x, train_y)).shuffle(10_000, seed=1).batch(flags.batch)
    with strategy.scope():
        model = make_model(train_x.shape[1])

    def report(batch, logs):
        # After a restart there are no logs of earlier steps.
        if (batch + 1) % flags.report == 0 and logs:
            print(f"step {batch + 1}, loss {float(logs['loss']):.3f}", flush=True)

    callbacks = [keras.callbacks.LambdaCallback(on_train_batch_end=report)]
    if not with_ps:
        callbacks += [
            keras.callbacks.BackupAndRestore(os.path.join(flags.folder, "backup"), save_freq=100),
            keras.callbacks.TensorBoard(os.path.join(flags.folder, "log")),
        ]
    model.fit(data, epochs=flags.epochs, callbacks=callbacks, verbose=0)
    accuracy = model.evaluate(*test, verbose=0, return_dict=True)["accuracy"]
    print(f"accuracy {accuracy:.4f}", flush=True)


if __name__ == "__main__":
    main()
