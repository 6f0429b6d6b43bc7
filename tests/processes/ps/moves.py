"""Adds a constant to every parameter with each push until a file named ``end`` exists in the folder; prints the number
of pushes.

When a file ``scale-N`` exists, the chief moves the shards to the first N ``ps``; for a file ``rebalance``, the chief
balances the traffic. The chief prints the moves, and at the end the parameters. With ``--table``, each push also adds 1
to each row of a dynamic table. A task whose log message matches ``--stop-at`` stops there until a file ``go`` exists in
the folder.
"""

from __future__ import annotations

import argparse
import logging
import re
import threading
from pathlib import Path

import numpy as np
import optax

from headwater import ParameterServer
from headwater.tables import SGD, Initializer

parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int, default=64)
parser.add_argument("--shards", type=int, default=6, help="0: as the environment says")
parser.add_argument("--hot", type=int, default=1, help="how many times as large the second leaf is")
parser.add_argument("--consistency", default="async")
parser.add_argument("--momentum", type=float, default=0.5)
parser.add_argument("--replicas", type=int, default=1)
parser.add_argument("--table", action="store_true", help="there is a table that grows, too")
parser.add_argument("--stop-at", default="")
parser.add_argument("folder", type=Path)
arguments, _ = parser.parse_known_args()


def stop(record: logging.LogRecord) -> bool:
    """Blocks the thread that logs a matching message."""
    if re.search(arguments.stop_at, record.getMessage()):
        print("stops", flush=True)
        while not (arguments.folder / "go").exists():
            threading.Event().wait(0.01)
    return True


if arguments.stop_at:
    logging.getLogger("headwater").addFilter(stop)

sizes = [arguments.size * (arguments.hot if number == 1 else 1) for number in range(arguments.shards or 6)]
params = {f"leaf{number}": np.zeros(size, np.float32) for number, size in enumerate(sizes)}
ps = ParameterServer(
    params,
    optax.sgd(1.0, momentum=arguments.momentum or None),
    consistency=arguments.consistency,
    shards=arguments.shards or None,
    replicas=arguments.replicas,
    snapshot_steps=None,
)
table = (
    ps.table("table", dim=1, optimizer=SGD(1.0), initializer=Initializer(kind="constant", a=0.0))
    if arguments.table
    else None
)
keys, of_keys = np.arange(64), np.full((64, 1), -1, np.float32)
gradient = {name: np.full(leaf.shape, -1, np.float32) for name, leaf in params.items()}
taken = pushed = 0
while not (arguments.folder / "end").exists():
    if table is not None:
        table.push(keys, of_keys)
    taken += ps.push(gradient)
    pushed += 1
    if pushed % (20 if arguments.size < 100000 else 2) == 0:
        print(f"pushed {pushed}", flush=True)
    if ps.is_chief:
        for path in sorted(arguments.folder.glob("scale-*")):
            path.unlink()
            moved = ps.scale(int(path.name.split("-")[1]))
            print(
                f"scaled: {len(moved)} moves, longest {max([0.0, *(one.seconds for one in moved)]):.3f} s", flush=True
            )
        for path in arguments.folder.glob("rebalance"):
            path.unlink()
            print(f"rebalanced: {len(ps.rebalance())} moves", flush=True)
print(f"worker {ps.worker}: {taken} of {pushed} pushes were taken", flush=True)
found = ps.finish()
print("values", sorted({float(one) for leaf in found.values() for one in np.asarray(leaf)}), flush=True)
if table is not None and ps.is_chief:
    print("rows", sorted({float(one) for one in table.lookup(keys, training=False).ravel()}), flush=True)
