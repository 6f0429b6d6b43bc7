"""Two towers learn who clicks on what, on parameter servers whose parts all have two copies.

A task of a cluster (``TF_CONFIG``); `demo_survive.py` starts and disturbs one. A worker trains until a file ``end`` is
in the folder, and writes a byte into a file of its own for each update that the parameter servers have acknowledged.
Three arrays on different ``ps`` count the updates that they have applied.
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

USERS, ITEMS, DIM, COUNTERS, COUNTER_SIZE = 400, 400, 16, 3, 10_000
RATE = 0.5

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=Path)
parser.add_argument("--examples", type=int, default=100_000)
args = parser.parse_args()


def clicks(count: int) -> dict[str, np.ndarray[Any, Any]]:
    """Users, items, and whether they clicked: by chance, more often the better the two fit."""
    random = np.random.default_rng(0)
    tastes, kinds = random.normal(size=(USERS, 4)), random.normal(size=(ITEMS, 4))
    user, item = random.integers(0, USERS, count), random.integers(0, ITEMS, count)
    fit = (tastes[user] * kinds[item]).sum(1)
    clicked = random.random(count) < 1 / (1 + np.exp(-2 * fit))
    return {"user": user, "item": item, "clicked": clicked.astype(np.float32)}


def layer(key: jax.Array, rows: int, columns: int) -> jax.Array:
    return jax.random.normal(key, (rows, columns)) / np.sqrt(rows)


keys = jax.random.split(jax.random.key(0), 4)
params: dict[str, Any] = {
    "users": layer(keys[0], USERS, DIM),
    "items": layer(keys[1], ITEMS, DIM),
    "user tower": layer(keys[2], DIM, DIM),
    "item tower": layer(keys[3], DIM, DIM),
    "updates": [jnp.zeros(COUNTER_SIZE) for _ in range(COUNTERS)],
}


def loss_of(model: dict[str, Any], batch: dict[str, jax.Array]) -> jax.Array:
    """Mean cross entropy of the clicks, where towers say how well user and item fit."""
    users = jnp.tanh(model["users"][batch["user"]] @ model["user tower"])
    items = jnp.tanh(model["items"][batch["item"]] @ model["item tower"])
    return jnp.mean(optax.sigmoid_binary_cross_entropy((users * items).sum(1), batch["clicked"]))


@jax.jit
def step(model: dict[str, Any], batch: dict[str, jax.Array]) -> tuple[jax.Array, dict[str, Any]]:
    """The loss, and gradients by which each counter becomes greater by one."""
    loss, gradients = jax.value_and_grad(loss_of)(model, batch)
    gradients["updates"] = [jnp.full(COUNTER_SIZE, -1 / RATE) for _ in range(COUNTERS)]
    return loss, gradients


ps = ParameterServer(params, optax.sgd(RATE), replicas=2, log_dir=str(args.folder / "journals"))
acknowledged = os.open(args.folder / f"acknowledged-{ps.worker}-{os.getpid()}", os.O_CREAT | os.O_WRONLY)
for done, batch in enumerate(ps.batches(clicks(args.examples), batch_size=256, epochs=1_000_000), 1):
    loss, gradients = step(ps.params, batch)
    if ps.push(gradients):
        os.write(acknowledged, b".")
    if done % 20 == 0:
        print(f"loss {time.time():.3f} {float(loss):.5f}", flush=True)
    if (args.folder / "end").exists():
        break
final = ps.finish()
print("applied", *(int(counter[0]) for counter in final["updates"]), flush=True)
