"""Counts updates on parameter servers that save their own states, until a file named ``stop`` is in the folder.

Each push adds 1 to every number of two variables, of which each is on a ``ps`` of its own. A worker prints what it
reads: how often each ``ps`` was updated.
"""

from __future__ import annotations

import argparse
import threading
from pathlib import Path

import numpy as np
import optax

from headwater import ParameterServer

parser = argparse.ArgumentParser()
parser.add_argument("--save_every_s", type=float, default=0.2)
parser.add_argument("folder", type=Path)
arguments, _ = parser.parse_known_args()

params = {"first": np.zeros(1000, np.float32), "second": np.zeros(1000, np.float32)}
ps = ParameterServer(
    params,
    optax.sgd(1.0),
    recovery="own",
    saves=arguments.folder / "states",
    save_every_s=arguments.save_every_s,
    snapshot_steps=None,
)
gradient = {name: np.full(1000, -1, np.float32) for name in params}
pause = threading.Event()
while not (arguments.folder / "stop").exists():
    ps.push(gradient)
    counts = [{int(one) for one in np.asarray(ps.params[name])} for name in params]
    assert all(len(each) == 1 for each in counts), counts
    first, second = (each.pop() for each in counts)
    print(f"read {first} and {second}", flush=True)
    pause.wait(0.005)  # less output
ps.finish()
print("ended", flush=True)
