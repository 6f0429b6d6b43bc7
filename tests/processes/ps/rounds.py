"""Two workers push different gradients in each of 100 synchronous rounds; the chief prints the resulting parameters.

Before some rounds, the second worker waits, after the first one has pushed its gradient of that round, until the pipe
``hold-ROUND`` in the folder is opened.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import optax

from headwater import ParameterServer

ROUNDS = 100

parser = argparse.ArgumentParser()
parser.add_argument("--hold", type=int, nargs="*", default=[])
parser.add_argument("folder", type=Path)
arguments, _ = parser.parse_known_args()

params = {name: np.zeros(64, np.float32) for name in ("first", "second")}
ps = ParameterServer(params, optax.sgd(1.0), consistency="sync", replicas=2)
dropped = 0
for number in range(1, ROUNDS + 1):
    if number in arguments.hold:
        print(f"holding at {number}", flush=True)
        if ps.worker == 1:
            (arguments.folder / f"hold-{number}").read_bytes()
    gradient = {name: np.full(64, -number * (ps.worker + 1), np.float32) for name in params}
    while not ps.push(gradient):
        dropped += 1
print(f"worker {ps.worker}: {dropped} gradients were dropped", flush=True)
found = ps.finish()
print("values", sorted({float(one) for leaf in found.values() for one in np.asarray(leaf)}), flush=True)
