"""Pushes gradients of --bytes, or rows of a table, for as long as it is told to, with a pause in each step.

See `precautions.py`.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time

import numpy as np
import optax

from headwater import ParameterServer
from headwater.tables import Adagrad

parser = argparse.ArgumentParser()
parser.add_argument("--bytes", type=int, required=True, help="of all parameters")
parser.add_argument("--rows", type=int, default=0, help="of a table, of which each step changes 2,048")
parser.add_argument("--replicas", type=int, default=1)
parser.add_argument("--saves", help="folder for own states")
args = parser.parse_args()
gradients = {name: np.full(args.bytes // 8, 1e-6, np.float32) for name in ("first", "second")}
ps = ParameterServer(gradients, optax.sgd(1.0), replicas=args.replicas, saves=args.saves)
table = ps.table("rows", dim=16, optimizer=Adagrad(0.01)) if args.rows else None
source = np.random.default_rng(0)
if table is not None:
    for start in range(0, args.rows, 8192):
        table.lookup(np.arange(start, min(start + 8192, args.rows)))
ids = source.integers(0, max(args.rows, 1), (64, 2048))
changes = np.full((2048, 16), 1e-3, np.float32)
ps.push(gradients)
paused = threading.Event()
print("ready", flush=True)
for line in sys.stdin:
    pause_s, until = float(line.split()[0]), time.perf_counter() + float(line.split()[1])
    began, steps = time.perf_counter(), 0
    while time.perf_counter() < until:
        values = ps.params
        if table is not None:
            table.lookup(ids[steps % len(ids)])
        paused.wait(pause_s)
        if table is not None:
            table.push(ids[steps % len(ids)], changes)
        ps.push(gradients)
        steps += 1
    print("rate", steps, time.perf_counter() - began, flush=True)
