"""Trains a line on parameter servers, without Keras, until a file named ``stop`` exists in the given folder.

With ``--still_at=20`` it stops making steps after this number of steps.
"""

from __future__ import annotations

import argparse
import sys
import threading
from pathlib import Path

import jax
import numpy as np
import optax

from headwater import ParameterServer

parser = argparse.ArgumentParser()
parser.add_argument("--consistency", default="async")
parser.add_argument("--still_at", type=int, default=-1)
parser.add_argument("folder", type=Path)
arguments, _ = parser.parse_known_args()

rng = np.random.default_rng(0)
x = rng.normal(size=(64, 4)).astype(np.float32)
y = x @ np.arange(4, dtype=np.float32) + 1


def loss(params: dict[str, jax.Array], x: jax.Array, y: jax.Array) -> jax.Array:
    return ((x @ params["weights"] + params["bias"] - y) ** 2).mean()


params = {"bias": np.zeros((), np.float32), "weights": np.zeros(4, np.float32)}
ps = ParameterServer(params, optax.adam(0.05), consistency=arguments.consistency)
gradient = jax.jit(jax.value_and_grad(loss))
step = 0
while not (arguments.folder / "stop").exists():
    value, grads = gradient(ps.params, x, y)
    ps.push(grads, weight=len(x))
    step += 1
    if step % 50 == 0 or step < 5:
        print(f"step {step} loss {float(value):.4f} version {ps.version}", flush=True)
    if step == arguments.still_at:
        print("standing still", flush=True)
        threading.Event().wait()
found = ps.finish()
assert "keras" not in sys.modules
assert jax.numpy.asarray(1.0).dtype == np.float32
print("learned", np.round(found["weights"], 2).tolist(), flush=True)
