"""Two towers predict clicks of users on items, on parameter servers with two replicas of each shard.

Runs a task of a cluster (``TF_CONFIG``); `demo_survive.py` starts the tasks and disturbs them. Users and items are
rows of dynamic tables. A worker trains until a file ``end`` is in the folder, and writes a byte into a file of its
own for each update that the parameter servers have acknowledged. Three arrays and three rows, on all ``ps``, count
the updates that they have applied.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from headwater import ParameterServer
from headwater.tables import SGD, Initializer

USERS, ITEMS, DIM, COUNTERS, COUNTER_SIZE, SHARDS = 400, 400, 16, 3, 10_000, 4
RATE = 0.5
#: The loss is a mean over 256 examples, and a row is in few of them.
ROWS = 64.0

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=Path)
parser.add_argument("--examples", type=int, default=100_000)
args = parser.parse_args()


def clicks(count: int) -> dict[str, np.ndarray[Any, Any]]:
    """Returns users, items and clicks: random, with a higher probability the better user and item match."""
    random = np.random.default_rng(0)
    tastes, kinds = random.normal(size=(USERS, 4)), random.normal(size=(ITEMS, 4))
    user, item = random.integers(0, USERS, count), random.integers(0, ITEMS, count)
    fit = (tastes[user] * kinds[item]).sum(1)
    clicked = random.random(count) < 1 / (1 + np.exp(-2 * fit))
    return {"user": user, "item": item, "clicked": clicked.astype(np.float32)}


def layer(key: jax.Array, rows: int, columns: int) -> jax.Array:
    return jax.random.normal(key, (rows, columns)) / np.sqrt(rows)


keys = jax.random.split(jax.random.key(0), 2)
params: dict[str, Any] = {
    "user tower": layer(keys[0], DIM, DIM),
    "item tower": layer(keys[1], DIM, DIM),
    "updates": [jnp.zeros(COUNTER_SIZE) for _ in range(COUNTERS)],
}


def loss_of(model: dict[str, Any], user: jax.Array, item: jax.Array, clicked: jax.Array) -> jax.Array:
    """Returns the mean cross entropy of the clicks, predicted by towers over the rows of users and items."""
    fit = (jnp.tanh(user @ model["user tower"]) * jnp.tanh(item @ model["item tower"])).sum(1)
    return jnp.mean(optax.sigmoid_binary_cross_entropy(fit, clicked))


@jax.jit
def step(model: dict[str, Any], *batch: jax.Array) -> tuple[jax.Array, tuple[dict[str, Any], jax.Array, jax.Array]]:
    """Returns the loss, and gradients of parameters and rows, which also increase each counter by one."""
    loss, (gradients, user, item) = jax.value_and_grad(loss_of, (0, 1, 2))(model, *batch)
    gradients["updates"] = [jnp.full(COUNTER_SIZE, -1 / RATE) for _ in range(COUNTERS)]
    user = jnp.concatenate([ROWS * user, jnp.full((COUNTERS, DIM), -1 / RATE)])
    return loss, (gradients, user, ROWS * item)


ps = ParameterServer(params, optax.sgd(RATE), replicas=2, shards=SHARDS, log_dir=str(args.folder / "journals"))
# Rows start with small values, counters with 0.
users = ps.table("users", dim=DIM, optimizer=SGD(RATE), initializer=Initializer(kind="constant", a=0))
items = ps.table("items", dim=DIM, optimizer=SGD(RATE), seed=1)
counting = np.arange(USERS, USERS + COUNTERS)
acknowledged = os.open(args.folder / f"acknowledged-{ps.worker}-{os.getpid()}", os.O_CREAT | os.O_WRONLY)
for done, batch in enumerate(ps.batches(clicks(args.examples), batch_size=256, epochs=1_000_000), 1):
    rows = users.lookup(batch["user"]), items.lookup(batch["item"])
    loss, (gradients, of_users, of_items) = step(ps.params, *rows, batch["clicked"])
    if ps.push(gradients):
        users.push(np.concatenate([batch["user"], counting]), of_users)
        items.push(batch["item"], of_items)
        os.write(acknowledged, b".")
    if done % 20 == 0:
        print(f"loss {time.time():.3f} {float(loss):.5f}", flush=True)
    if (args.folder / "end").exists():
        break
final = ps.finish()
rows = users.lookup(counting, training=False)
print("applied", *(int(counter[0]) for counter in [*final["updates"], *rows]), flush=True)
