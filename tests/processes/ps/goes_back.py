"""Counts updates on parameter servers that save their own states, until a file named ``stop`` exists in the folder.

With ``--recovery copy``, the parameter servers do not save their states. Each push adds 1 to every element of two
variables, which are on two ``ps``. A worker prints the values that it reads, which are the numbers of updates of each
``ps``. With ``--table`` it also adds 1 to rows of a dynamic table, which are divided between the ``ps``, and prints
their values at the end.
"""

from __future__ import annotations

import argparse
import threading
from pathlib import Path

import numpy as np
import optax

from headwater import ParameterServer
from headwater.tables import SGD, Initializer

parser = argparse.ArgumentParser()
parser.add_argument("--save_every_s", type=float, default=0.2)
parser.add_argument("--table", action="store_true")
parser.add_argument("--recovery", default="own")
parser.add_argument("--consistency", default="async")
parser.add_argument("folder", type=Path)
arguments, _ = parser.parse_known_args()

params = {"first": np.zeros(1000, np.float32), "second": np.zeros(1000, np.float32)}
ps = ParameterServer(
    params,
    optax.sgd(1.0),
    consistency=arguments.consistency,
    recovery=arguments.recovery,
    saves=arguments.folder / "states" if arguments.recovery == "own" else None,
    save_every_s=arguments.save_every_s,
    snapshot_steps=None,
)
gradient = {name: np.full(1000, -1, np.float32) for name in params}
pause = threading.Event()
zeros = Initializer(kind="constant", a=0.0)
table = ps.table("rows", dim=1, optimizer=SGD(1.0), initializer=zeros) if arguments.table else None
ids, ones = np.arange(20), np.full((20, 1), -1, np.float32)
while not (arguments.folder / "stop").exists():
    ps.push(gradient)
    if table is not None:
        table.push(ids, ones)
    counts = [{int(one) for one in np.asarray(ps.params[name])} for name in params]
    assert all(len(each) == 1 for each in counts), counts
    first, second = (each.pop() for each in counts)
    print(f"read {first} and {second}", flush=True)
    pause.wait(0.005)  # less output
if table is not None:
    print("rows", sorted({int(one) for one in table.lookup(ids).ravel()}), flush=True)
ps.finish()
print("ended", flush=True)
