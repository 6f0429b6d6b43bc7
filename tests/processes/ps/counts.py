"""Counts examples on parameter servers for three epochs: each batch adds 1 at the positions of its examples.

With ``--hold_at=3 --hold_at=6`` a worker stops at its third batch and again at its sixth, until a pipe named
``hold-WORKER`` in the folder is opened.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import optax

from headwater import ParameterServer
from headwater.data.dataset import Dataset

SIZE, BATCH, EPOCHS = 400, 8, 3

parser = argparse.ArgumentParser()
parser.add_argument("--consistency", default="async")
parser.add_argument("--hold_at", type=int, action="append", default=[])
parser.add_argument("--replicas", type=int, default=1)
parser.add_argument("--shards", type=int)
parser.add_argument("--data", choices=("arrays", "dataset"), default="arrays")
parser.add_argument("folder", type=Path)
arguments, _ = parser.parse_known_args()

params = {"first": np.zeros(SIZE, np.float32), "second": np.zeros(SIZE, np.float32)}
ps = ParameterServer(
    params,
    optax.sgd(1.0),
    consistency=arguments.consistency,
    replicas=arguments.replicas,
    shards=arguments.shards,
)
source = np.arange(SIZE) if arguments.data == "arrays" else Dataset.range(SIZE).map(lambda number: number)
for number, batch in enumerate(ps.batches(source, batch_size=BATCH, epochs=EPOCHS), 1):
    if number in arguments.hold_at:
        print(f"holding as {ps.worker}", flush=True)
        (arguments.folder / f"hold-{ps.worker}").read_bytes()
    gradient = np.zeros(SIZE, np.float32)
    gradient[batch] = -1
    taken = ps.push({"first": gradient, "second": gradient})
    print(f"batch {number} of epoch {ps.epoch} {'taken' if taken else 'dropped'}", flush=True)
found = ps.finish()
print("counts", sorted({float(one) for leaf in found.values() for one in np.asarray(leaf)}), flush=True)
