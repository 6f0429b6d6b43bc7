"""Draws how asynchronous training fares with momentum: accuracy by updates, for several staleness and remedies.

Workers take turns at one ``ps`` of this process, so that each gradient is as old as there are other workers::

    python benchmarks/momentum.py FOLDER_OF_MNIST docs/momentum.png
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
from matplotlib.figure import Figure

from headwater.ps.consistency import Asynchronous
from headwater.ps.layout import make_layout
from headwater.ps.local_servers import LocalServers
from headwater.ps.optax_updates import OptaxUpdater, leaf_specs

DATA = Path(sys.argv[1])
UPDATES, BATCH, EVERY = 600, 64, 50


def load(name: str, offset: int) -> Any:
    return np.frombuffer(gzip.decompress((DATA / name).read_bytes()), np.uint8, offset=offset)


X = load("train-images-idx3-ubyte.gz", 16).reshape(-1, 784).astype(np.float32) / 255
Y = load("train-labels-idx1-ubyte.gz", 8)
XT = load("t10k-images-idx3-ubyte.gz", 16).reshape(-1, 784).astype(np.float32)[:2000] / 255
YT = load("t10k-labels-idx1-ubyte.gz", 8)[:2000]


def initial() -> list[Any]:
    rng = np.random.default_rng(0)
    return [
        rng.normal(size=(784, 64)).astype(np.float32) / 28,
        np.zeros(64, np.float32),
        rng.normal(size=(64, 10)).astype(np.float32) / 8,
        np.zeros(10, np.float32),
    ]


def logits(params: Any, x: Any) -> Any:
    return jax.nn.relu(x @ params[0] + params[1]) @ params[2] + params[3]


@jax.jit
def gradient(params: Any, x: Any, y: Any) -> Any:
    return jax.grad(lambda p: optax.softmax_cross_entropy_with_integer_labels(logits(p, x), y).mean())(params)


@jax.jit
def accuracy(params: Any) -> Any:
    return (logits(params, XT).argmax(1) == YT).mean()


def train(workers: int, momentum: float, aware: bool, own: bool, rate: float = 0.1) -> list[float]:
    """Accuracy at regular numbers of updates; ``own``: each worker keeps the momentum of its own gradients."""
    params = initial()
    layout = make_layout(leaf_specs(params), 1)
    optimizer = optax.sgd(rate, momentum=None if own else momentum or None)
    trace = optax.trace(momentum, nesterov=True)
    states = [trace.init(params) for _ in range(workers)]
    structure = jax.tree.structure(params)
    local = LocalServers(
        "params",
        layout,
        lambda at: OptaxUpdater(layout, at, structure, optimizer),
        Asynchronous(),
        staleness_aware=aware,
    )
    clients = [local.client(params, worker) for worker in range(workers)]
    for client in clients:
        client.connect()
        client.pull()
    rng = np.random.default_rng(1)
    seen: list[float] = []
    for update in range(1, UPDATES + 1):
        client = clients[update % workers]
        rows = rng.integers(0, len(X), BATCH)
        found = gradient(client.values(), X[rows], Y[rows])
        if own:
            found, states[update % workers] = trace.update(found, states[update % workers])
        client.push([np.asarray(leaf) for leaf in jax.tree.leaves(found)])
        if update % EVERY == 0:
            seen.append(float(accuracy(client.values())))
    for client in clients:
        client.close()
    local.stop()
    return seen


def main() -> None:
    figure = Figure(figsize=(8.5, 5))
    axes = figure.subplots()
    updates = np.arange(EVERY, UPDATES + 1, EVERY)
    for workers, momentum, aware, own, style in (
        (1, 0.9, False, False, "k-"),
        (4, 0.9, False, False, "C0-"),
        (4, 0.9, True, False, "C0--"),
        (4, 0.9, True, True, "C0:"),
        (8, 0.9, False, False, "C3-"),
        (8, 0.9, True, False, "C3--"),
        (8, 0.9, True, True, "C3:"),
        (8, 0.0, False, False, "C2-"),
    ):
        found = train(workers, momentum, aware, own)
        label = f"{workers} worker{'s' * (workers > 1)}, momentum {momentum:g}{' of their own' * own}"
        label += ", staleness-aware" * aware
        print(
            f"{label}: accuracy {found[-1]:.3f} after {UPDATES} updates, lowest after 200 {min(found[3:]):.3f}",
            flush=True,
        )
        axes.plot(updates, found, style, label=label)
    axes.set(xlabel="updates", ylabel="accuracy on test digits", ylim=(0, 1))
    axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.15), ncols=2, fontsize=8)
    figure.tight_layout()
    figure.savefig(sys.argv[2], dpi=110)


if __name__ == "__main__":
    main()
