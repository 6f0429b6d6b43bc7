"""Tables that grow: trains on the rows of ids, and tells rates. Run by ``headwater run`` (see ``dynamic_tables.py``).

``rate``: 8 tables, few ids of which are frequent: rows looked up a second; looked up and trained; bytes of an example.
``grow``: one table, of which half of the ids of each step are new, until ``--keys`` of them have been seen.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import headwater
from headwater.tables import Adagrad, LeastRecent

TABLES, DIM = 8, 16

parser = argparse.ArgumentParser()
parser.add_argument("mode", choices=["rate", "grow"])
parser.add_argument("--batch", type=int, default=2048)
parser.add_argument("--seconds", type=float, default=4)
parser.add_argument("--keys", type=int, default=10_000_000)
parser.add_argument("--max_rows", type=int, default=3_000_000)
args = parser.parse_args()
ps = headwater.ParameterServer({"bias": jnp.zeros(())}, optax.sgd(0.05))


@jax.jit
@jax.grad
def gradients(rows: list[jax.Array], labels: jax.Array) -> jax.Array:
    """Of the loss by the rows: logistic regression on their sums."""
    return jnp.mean(optax.sigmoid_binary_cross_entropy(sum(rows[1:], rows[0]).sum(1), labels))


def repeated(act: Callable[[int], Any], seconds: float) -> float:
    """How often ``act`` can be done in a second."""
    for number in range(20):
        act(number)
    done, began = 0, time.perf_counter()
    while time.perf_counter() < began + seconds:
        act(done)
        done += 1
    return done / (time.perf_counter() - began)


def rates() -> None:
    random = np.random.default_rng(0)
    names = [f"table{index}" for index in range(TABLES)]
    for name in names:
        ps.table(name, dim=DIM, optimizer=Adagrad(0.05))
    ids = [dict(zip(names, random.zipf(1.2, [TABLES, args.batch]) * 7919 % 200_000, strict=True)) for _ in range(50)]
    labels = [random.integers(0, 2, args.batch).astype(np.float32) for _ in range(50)]

    def look_up(number: int) -> Any:
        return ps.lookup(ids[number % 50])

    def train(number: int) -> None:
        rows = look_up(number)
        found = gradients([rows[name] for name in names], labels[number % 50])
        ps.push_rows(ids[number % 50], dict(zip(names, found, strict=True)))

    lookups = repeated(look_up, args.seconds)
    before, steps = ps.traffic(), repeated(train, args.seconds)
    after = ps.traffic()
    sent = after.sent_bytes + after.received_bytes - before.sent_bytes - before.received_bytes
    each = sent / ((after.round_trips - before.round_trips) / 2) / args.batch
    rows = TABLES * args.batch
    print(json.dumps({"lookup": lookups * rows, "train": steps * rows, "bytes_per_example": each}), flush=True)


def grow() -> None:
    table = ps.table("keys", dim=DIM, optimizer=Adagrad(0.05), max_rows=args.max_rows, eviction=LeastRecent())
    random = np.random.default_rng(0)
    half, seen, trained, told, began = args.batch // 2, 0, 0, 0, time.perf_counter()
    while seen < args.keys:
        # Of the ids that were seen before, those of late are the most frequent.
        late = seen - np.minimum(random.zipf(1.3, half) * 64, max(seen, 1))
        ids = np.concatenate([np.arange(seen, seen + half), np.maximum(late, 0)]) * 7919
        rows = table.lookup(ids)
        table.push(ids, rows - 1.0)
        seen += half
        trained += len(ids)
        if seen - told >= args.keys / 100:
            told, now = seen, time.perf_counter()
            tables = {task: dataclasses.asdict(one) for task, one in table.statistics().items()}
            print(json.dumps({"seen": seen, "rows_per_s": trained / (now - began), "tables": tables}), flush=True)
            trained, began = 0, time.perf_counter()


rates() if args.mode == "rate" else grow()
ps.finish()
