"""Trains the wide-and-deep model of ``click_model.py`` with Keras and dynamic embeddings, and tells the same figures.

    python click_model_keras.py train --folder=RECORDS --steps=300

In one process, or as each task of the cluster in ``TF_CONFIG``. One table has the rows of all features' ids, another
their linear weights; both pool bags of any number of ids. Prints lines of JSON as ``click_model.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from pathlib import Path
from typing import Any

from headwater.keras import ParameterServerStrategy  # before keras: it chooses the backend

import keras  # isort: skip

from headwater import tf
from headwater.keras.layers import DynamicEmbedding

NUMBERS = [f"number_{index}" for index in range(13)]
IDS = [f"category_{index}" for index in range(20)] + [f"bag_{index}" for index in range(6)]
WARM = 100
"""Steps before the rate is measured."""


def tell(**figures: float) -> None:
    print(json.dumps(figures), flush=True)


def batches(args: argparse.Namespace, name: str, epochs: int | None, shuffle: bool) -> Any:
    """Returns batches of numbers, bags of ids that differ between features, and clicks."""
    features = {name: tf.io.FixedLenFeature([1], tf.float32) for name in NUMBERS}
    features |= {name: tf.io.VarLenFeature(tf.int64) for name in IDS}
    features |= {"clicked": tf.io.FixedLenFeature([], tf.int64)}

    def inputs(found: Any, clicked: Any) -> Any:
        bags = {
            name: tf.SparseTensor(found[name].indices, found[name].values + (at << 40), found[name].dense_shape)
            for at, name in enumerate(IDS)
        }
        return {"numbers": tf.concat([found[name] for name in NUMBERS], 1), **bags}, clicked[:, None]

    return tf.data.experimental.make_batched_features_dataset(
        str(args.folder / name),
        args.batch,
        features,
        label_key="clicked",
        num_epochs=epochs,
        shuffle=shuffle,
        shuffle_seed=args.seed,
    ).map(inputs)


def wide_deep(width: int) -> Any:
    """Returns a linear and a deep model with common ids."""
    numbers = keras.Input((len(NUMBERS),), name="numbers")
    ids = {name: keras.Input((None,), dtype="int64", name=name) for name in IDS}
    bags = keras.ops.stack(list(ids.values()), 1)
    deep = DynamicEmbedding(width, combiner="mean", initializer="normal", name="deep")(bags)
    wide = DynamicEmbedding(1, combiner="sum", initializer="zeros", name="wide")(bags)
    hidden = keras.layers.Concatenate()([numbers, keras.layers.Flatten()(deep)])
    for units in (64, 32):
        hidden = keras.layers.Dense(units, "relu")(hidden)
    score = keras.layers.Dense(1)(hidden) + keras.ops.sum(wide, 1)
    model = keras.Model({"numbers": numbers, **ids}, keras.layers.Activation("sigmoid")(score))
    model.compile(keras.optimizers.Adagrad(0.05), "binary_crossentropy", metrics=[keras.metrics.AUC(name="auc")])
    return model


class Clock(keras.callbacks.Callback):
    """Tells when the chief's first epoch, of ``WARM`` steps, is done; then waits for the other workers' first steps."""

    def __init__(self, launched: float, pipes: Path | None) -> None:
        super().__init__()
        self._launched = launched
        self._pipes = sorted(pipes.iterdir()) if pipes else []

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        del epoch, logs
        tell(launch_s=time.time() - self._launched)
        for pipe in self._pipes:
            pipe.open().close()


class Arrival(keras.callbacks.Callback):
    """Tells the chief that this worker has begun."""

    def __init__(self, pipe: Path) -> None:
        super().__init__()
        self._pipe = pipe

    def on_train_begin(self, logs: object = None) -> None:
        del logs
        self._pipe.open("w").close()


def train(args: argparse.Namespace) -> None:
    """Trains in all tasks; the chief also evaluates, saves and predicts."""
    strategy = ParameterServerStrategy()
    with strategy.scope():
        keras.utils.set_random_seed(args.seed)
        model = wide_deep(args.width)
    chief = strategy.is_chief
    data = batches(args, "train.tfrecord", None, shuffle=True)
    index = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {}).get("index", 0)
    waits = Clock(args.launched, args.pipes) if chief else Arrival(args.pipes / f"worker{index}")
    model.fit(data, steps_per_epoch=WARM, verbose=0, callbacks=[waits])
    began = time.time()
    model.fit(data, steps_per_epoch=args.steps - WARM, verbose=0)
    if chief:
        tell(examples_per_s=args.batch * (args.steps - WARM) / (time.time() - began))
        began = time.time()
        loss, auc = model.evaluate(batches(args, "test.tfrecord", 1, shuffle=False), verbose=0)
        evaluated = time.time()
        path = args.folder / "clicks.keras"
        model.save(path)
        tell(evaluate_s=evaluated - began, export_s=time.time() - evaluated)
        tell(loss=loss, auc=auc)
    status = Path("/proc/self/status").read_text()
    tell(peak_memory=1024 * int(re.findall(r"VmHWM:\s+(\d+)", status)[0]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("phase", choices=["train"])
    parser.add_argument("--folder", type=Path, required=True, help="with the records")
    parser.add_argument("--steps", type=int, default=300, help="of all workers together")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--width", type=int, default=8, help="of embeddings")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pipes", type=Path, help="folder of named pipes by which the chief waits for workers")
    parser.add_argument("--launched", type=float, default=time.time(), help="time of the start, in seconds since 1970")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
