"""A worker that pushes gradients for a given time, and checks that accepted pushes are in the values exactly once.

The parameters have two copies each, and examples are accounted for. Each worker counts its updates in rows of its own
of one array on each ps.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import optax
from acknowledged import Acknowledged, Counted
from arguments import parsed

from headwater import ParameterServer

EXAMPLES, BATCH, WIDTH = 10_000, 64, 10_000

args = parsed()
servers, workers, me = len(args.ps_hosts.split(",")), len(args.worker_hosts.split(",")), args.task_index


def applied(params: dict[str, Any], worker: int) -> list[int]:
    """The number of a worker's steps that each ps has applied; all values of the worker's row are equal."""
    rows = [np.unique(np.asarray(values[worker])) for values in params["counts"]]
    assert all(len(row) == 1 for row in rows), f"rows of worker {worker} have {rows}"
    return [int(row[0]) for row in rows]


rows = [np.zeros((workers, WIDTH), np.float32) for _ in range(servers)]
ps = ParameterServer(
    {"counts": rows, "examples": np.zeros(EXAMPLES, np.float32)},
    optax.sgd(1.0),
    replicas=2,
    log_dir=str(args.folder / "journals"),
)
mine = np.zeros((workers, WIDTH), np.float32)
mine[me] = -1
log = Acknowledged(args.folder, me)
Counted(args.folder, me).check(applied(ps.params, me), me)
for done, batch in enumerate(ps.batches(np.arange(EXAMPLES), batch_size=BATCH, epochs=1_000_000), 1):
    if time.time() >= args.until:
        break
    examples = np.zeros(EXAMPLES, np.float32)
    examples[batch] = -1
    log.add(ps.push({"counts": [mine] * servers, "examples": examples}))
    if done % 200 == 0:
        Counted(args.folder, me).check(applied(ps.params, me), me)
        print("steps", done, flush=True)
final = ps.finish()
for worker in range(workers):
    Counted(args.folder, worker).check(applied(final, worker), worker)
seen = np.asarray(final["examples"])
assert seen.max() - seen.min() <= 2, f"examples were applied {seen.min():.0f} to {seen.max():.0f} times"
counted = [Counted(args.folder, worker) for worker in range(workers)]
print("counted", sum(one.applied for one in counted), "dropped", sum(one.dropped for one in counted), flush=True)
