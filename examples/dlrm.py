"""DLRM, a recommender with dynamic embedding tables for 26 categories, on two parameter servers.

    headwater run --ps 2 --workers 2 examples/dlrm.py --folder build/dlrm

Clicks are synthetic, in the format of Criteo's log: 13 numbers and 26 categories each, with a few values that are very
frequent. Clicks depend on a known score, so the best AUC that any model can reach is known. After each epoch the chief
prints the AUC on held-out examples, and the samples/s of all workers. At the end it plots both, and compares the
samples/s per core with TensorFlow's. The rows are saved after every epoch; a restarted ps restores them.

The model is from Naumov et al., *Deep Learning Recommendation Model for Personalization and Recommendation Systems*,
arXiv 1906.00091, 2019.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path

import numpy as np

from headwater.keras import ParameterServerStrategy  # before keras: it chooses the backend

import keras  # isort: skip

from headwater.keras.layers import DynamicEmbedding

#: How many values each category has in Criteo's week of clicks.
SIZES = np.array(
    [
        *(1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194),
        *(27, 14992, 5461306, 10, 5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572),
    ]
)
NUMBERS = 13
#: Samples a second of DLRM by TensorFlow on 4 cores, as DeepRec's model zoo says.
DEEPREC = 34_618


def noise(keys, salt):
    """Returns a pseudorandom number between -1 and 1 for each key: the finalizer of SplitMix64."""
    with np.errstate(over="ignore"):
        mixed = keys.astype(np.uint64) + np.uint64(salt) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))) / 2.0**63 - 1


def clicks(count, scale, seed):
    """Returns numbers [count, 13], ids [count, 26], clicks [count, 1], and their log-odds [count] plus a constant.

    One table contains the rows of all categories: the upper bits of an id are its category.
    """
    rng = np.random.default_rng(seed)
    sizes = np.maximum(3, SIZES * scale)
    values = sizes ** rng.random((count, len(sizes)))  # Zipf's law: value n is about 1/n as frequent as value 1
    ids = values.astype(np.int64) | (np.arange(1, len(sizes) + 1) << 48)
    numbers = rng.normal(size=(count, NUMBERS)).astype(np.float32)
    score = numbers @ np.linspace(-0.3, 0.3, NUMBERS) + 0.7 * noise(ids, 1).sum(1)
    for one, other in ((0, 1), (4, 7), (12, 18)):  # interactions of two categories
        score += 2 * noise(ids[:, one], 2) * noise(ids[:, other], 2)
    clicked = rng.random(count) < 1 / (1 + np.exp(1 - score))
    return numbers, ids, clicked.astype(np.float32)[:, None], score


def auc(score, clicked):
    """Returns the AUC: how often a click has a higher score than an example without a click."""
    _, rank, count = np.unique(score, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[rank]
    positive = clicked.ravel() > 0
    ones = positive.sum()
    return (ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * (len(ranks) - ones))


def dlrm(dim, saves):
    """Builds the model: a vector for the numbers, like the vectors of the categories, and the products of all pairs."""
    numbers = keras.Input((NUMBERS,), name="numbers")
    ids = keras.Input((len(SIZES),), dtype="int64", name="ids")
    rows = DynamicEmbedding(dim, saves=saves, name="categories")(ids)
    bottom = keras.layers.Dense(dim, "relu")(keras.layers.Dense(64, "relu")(numbers))
    vectors = keras.layers.Concatenate(axis=1)([keras.layers.Reshape((1, dim))(bottom), rows])
    products = keras.layers.Dot(axes=2)([vectors, vectors])
    every = keras.layers.Concatenate()([bottom, keras.layers.Flatten()(rows), keras.layers.Flatten()(products)])
    top = keras.layers.Dense(1, "sigmoid")(keras.layers.Dense(64, "relu")(every))
    return keras.Model({"numbers": numbers, "ids": ids}, top, name="dlrm")


class Measured(keras.callbacks.Callback):
    """Prints AUC and speed after each epoch."""

    def __init__(self, strategy, examples, batch, held_out):
        super().__init__()
        self.strategy, self.examples, self.batch, self.held_out = strategy, examples, batch, held_out
        self.points = []

    def on_epoch_begin(self, epoch, logs=None):
        self.began = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        if not self.strategy.is_chief:
            return
        seconds = time.perf_counter() - self.began
        numbers, ids, clicked, _ = self.held_out
        assert self.model is not None, "Keras sets a callback's model before the first epoch"
        predicted = self.model.predict({"numbers": numbers, "ids": ids}, batch_size=4096, verbose=0)
        table = self.model.get_layer("categories")
        rows = [told.rows for told in table.client.statistics(table.table_name).values()]
        self.points.append((epoch + 1, auc(predicted.ravel(), clicked), self.examples / seconds))
        number, reached, speed = self.points[-1]
        print(f"epoch {number}: AUC {reached:.4f}, {speed:,.0f} samples/s, rows {rows}", flush=True)


def draw(points, bound, picture):
    """Saves a plot of AUC and speed by epoch."""
    import matplotlib  # noqa: PLC0415  only the chief draws

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    epochs, reached, speeds = zip(*points, strict=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.plot(epochs, reached, marker="o", label="DLRM")
    left.axhline(bound, color="gray", linestyle="--", label="the best there can be")
    left.set(xlabel="epoch", ylabel="AUC on held-out examples")
    left.legend()
    right.plot(epochs, speeds, marker="o")
    right.set(xlabel="epoch", ylabel="samples/s of all workers", ylim=(0, None))
    figure.savefig(picture, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("build/dlrm"), help="folder for saved rows and the plot")
    parser.add_argument("--examples", type=int, default=200_000)
    parser.add_argument(
        "--scale", type=float, default=0.01, help="scale of the number of values per category; 1: as in Criteo's log"
    )
    parser.add_argument("--dim", type=int, default=16, help="numbers in a row")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=5)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    strategy = ParameterServerStrategy()
    with strategy.scope():
        keras.utils.set_random_seed(1)
        model = dlrm(given.dim, str((given.folder / "rows").resolve()))
        model.compile(keras.optimizers.Adagrad(0.05), "binary_crossentropy")
    numbers, ids, clicked, _ = clicks(given.examples, given.scale, seed=1)
    held_out = clicks(20_000, given.scale, seed=2)
    bound = auc(held_out[3], held_out[2])
    if strategy.is_chief:
        print(f"no model can reach more than AUC {bound:.4f}", flush=True)
    measured = Measured(strategy, given.examples, given.batch, held_out)
    x = {"numbers": numbers, "ids": ids}
    model.fit(x, clicked, batch_size=given.batch, epochs=given.epochs, verbose=0, callbacks=[measured])
    if strategy.is_chief:
        draw(measured.points, bound, given.folder / "dlrm.png")
        model.save(given.folder / "dlrm.keras")
        speed = statistics.median(speed for _, _, speed in measured.points[1:] or measured.points)
        cores = os.cpu_count() or 1
        fraction, theirs = 4 * speed / cores / DEEPREC, DEEPREC / 4
        print(
            f"{speed:,.0f} samples/s on {cores} cores are {speed / cores:,.0f} a core: {fraction:.2f} of "
            f"the {theirs:,.0f} of TensorFlow's DLRM ({DEEPREC:,} on 4 cores by DeepRec's model zoo)",
            flush=True,
        )
        print(f"see {given.folder / 'dlrm.png'} and dlrm.keras beside it", flush=True)


if __name__ == "__main__":
    main()
