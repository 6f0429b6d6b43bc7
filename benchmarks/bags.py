"""Compares bags of any number of ids with rows of equally many ids, in Keras with `DynamicEmbedding`.

    python benchmarks/bags.py

Trains two models alternately in one process: one with 10 ids in each row, one with bags of 0 to 20 ids, which have the
same mean. The rows come from arrays, a `tf.data.Dataset`, a file of records, and a Parquet file; ids are pooled by
mean, sum, or sqrtn, also with weights. Prints medians of examples per second, and the ratio of bags to fixed rows.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headwater.keras import ParameterServerStrategy  # before keras: it chooses the backend

import keras  # isort: skip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headwater import tf
from headwater.graph.ragged_value import ragged_value
from headwater.keras.layers import DynamicEmbedding

ROWS, BATCH, MEAN = 30_720, 512, 10
CASES = (
    ("arrays", "mean", False),
    ("dataset", "mean", False),
    ("records", "mean", False),
    ("Parquet", "mean", False),
    ("arrays", "sum", False),
    ("arrays", "sqrtn", False),
    ("arrays", "mean", True),
    ("dataset", "sqrtn", True),
    ("records", "sum", True),
)
"""Source, pooling, and whether ids have weights."""

Fit = Callable[[Any], None]


def model_of(combiner: str, weighted: bool) -> Any:
    with ParameterServerStrategy().scope():
        inputs = {"ids": keras.Input((None,), dtype="int64", name="ids")}
        if weighted:
            inputs["weights"] = keras.Input((None,), name="weights")
        table = DynamicEmbedding(16, combiner=combiner)
        pooled = table(inputs["ids"], weights=inputs["weights"]) if weighted else table(inputs["ids"])
        hidden = keras.layers.Dense(64, "relu")(pooled)
        model = keras.Model(inputs, keras.layers.Dense(1, "sigmoid")(hidden))
        model.compile(keras.optimizers.Adagrad(0.1), "binary_crossentropy")
    return model


class Rows:
    """The same number of ids, in rows of equal lengths or of lengths from 0 to twice the mean.

    Args:
      folder: of the files.
      varying: whether the lengths vary.
      weighted: whether ids have weights.
    """

    def __init__(self, folder: Path, varying: bool, weighted: bool) -> None:
        rng = np.random.default_rng(0)
        lengths = rng.integers(0, 2 * MEAN + 1, ROWS) if varying else np.full(ROWS, MEAN)
        self._splits = np.concatenate([[0], np.cumsum(lengths)])
        total = int(self._splits[-1])
        self._flat: dict[str, np.ndarray] = {"ids": (100_000 ** rng.random(total)).astype(np.int64)}
        if weighted:
            self._flat["weights"] = rng.random(total).astype(np.float32)
        self._targets = rng.integers(0, 2, (ROWS, 1)).astype(np.float32)
        self._folder, self._varying = folder, varying

    def _lists(self, name: str) -> list[Any]:
        return np.split(self._flat[name], self._splits[1:-1])

    def _arrays(self, name: str) -> Any:
        if not self._varying:
            return self._flat[name].reshape(ROWS, MEAN)
        found = np.empty(ROWS, object)
        found[:] = self._lists(name)
        return found

    def arrays(self) -> Fit:
        x = {name: self._arrays(name) for name in self._flat}
        return lambda model: model.fit(x, self._targets, batch_size=BATCH, verbose=0, shuffle=False)

    def dataset(self) -> Fit:
        x = {
            name: ragged_value([values, self._splits]) if self._varying else values.reshape(ROWS, MEAN)
            for name, values in self._flat.items()
        }
        data = tf.data.Dataset.from_tensor_slices((x, self._targets)).batch(BATCH)
        return lambda model: model.fit(data, verbose=0)

    def records(self) -> Fit:
        path = self._folder / f"{self._varying}{len(self._flat)}.tfrecord"
        kinds = {"ids": ("int64_list", tf.int64), "weights": ("float_list", tf.float32)}
        lists = {name: self._lists(name) for name in self._flat}
        with tf.io.TFRecordWriter(str(path)) as writer:
            for row in range(ROWS):
                example = tf.train.Example()
                feature = example.features.feature
                for name, values in lists.items():
                    getattr(feature[name], kinds[name][0]).value.extend(values[row].tolist())
                feature["clicked"].float_list.value.append(self._targets[row, 0])
                writer.write(example.SerializeToString())
        features: dict[str, Any] = {"clicked": tf.io.FixedLenFeature([1], tf.float32)}
        for name in self._flat:
            kind = kinds[name][1]
            features[name] = tf.io.VarLenFeature(kind) if self._varying else tf.io.FixedLenFeature([MEAN], kind)
        data = tf.data.experimental.make_batched_features_dataset(
            str(path), BATCH, features, label_key="clicked", num_epochs=1, shuffle=False
        )
        return lambda model: model.fit(data, verbose=0)

    def parquet(self) -> Fit:
        path = self._folder / f"{self._varying}.parquet"
        columns = {name: pa.array(self._lists(name)) for name in self._flat}
        pq.write_table(pa.table(columns), path)

        def fit(model: Any) -> None:
            table = pq.read_table(path)
            x = {name: table[name].to_numpy() for name in self._flat}
            if not self._varying:
                x = {name: np.stack(rows) for name, rows in x.items()}
            model.fit(x, self._targets, batch_size=BATCH, verbose=0, shuffle=False)

        return fit


def measure(case: tuple[str, str, bool], folder: Path, rounds: int) -> tuple[float, float]:
    """Returns the median examples per second of fixed rows and of bags, from alternating epochs."""
    source, combiner, weighted = case
    contenders: list[tuple[Fit, Any]] = []
    for varying in (False, True):
        fit: Fit = getattr(Rows(folder, varying, weighted), source.lower())()
        contenders.append((fit, model_of(combiner, weighted)))
    rates: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 2):  # the first two epochs compile and create the rows
        for (fit, model), found in zip(contenders, rates, strict=True):
            began = time.perf_counter()
            fit(model)
            if number > 1:
                found.append(ROWS / (time.perf_counter() - began))
    return statistics.median(rates[0]), statistics.median(rates[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="epochs of each model")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            fixed, bags = measure(case, Path(folder), rounds)
            text = f"{case[0]}, {case[1]}{', weights' if case[2] else ''}"
            print(
                f"{text:24s} fixed {fixed:9,.0f} examples/s  bags {bags:9,.0f} examples/s  {bags / fixed:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
