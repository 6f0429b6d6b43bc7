"""Adds 1 to every parameter with each push, until a file named ``end`` exists in the folder; prints the number of
pushes.

Each worker prints how many of its pushes were applied. At the end the chief waits for a file ``pushed-WORKER`` of every
worker, and prints the parameters.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import optax

from headwater import ParameterServer

parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int, default=64)
parser.add_argument("folder", type=Path)
arguments, _ = parser.parse_known_args()

params = {name: np.zeros(arguments.size, np.float32) for name in ("first", "second")}
ps = ParameterServer(params, optax.sgd(1.0), replicas=2)
gradient = {name: np.full(arguments.size, -1, np.float32) for name in params}
taken = pushed = 0
while not (arguments.folder / "end").exists():
    taken += ps.push(gradient)
    pushed += 1
    if pushed % 20 == 0:
        print(f"pushed {pushed}", flush=True)
print(f"worker {ps.worker}: {taken} of {pushed} pushes were taken", flush=True)
found = ps.finish()
print("values", sorted({float(one) for leaf in found.values() for one in np.asarray(leaf)}), flush=True)
