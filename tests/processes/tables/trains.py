"""Trains a table of weights, one number per key, on 2 ps: the sum of an example's weights should become the planted
value.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import numpy as np
import optax

from headwater import ParameterServer
from headwater.tables import Adagrad, Initializer

folder = Path(sys.argv[-1])
server = ParameterServer({"bias": np.zeros((), np.float32)}, optax.sgd(0.05))
table = server.table(
    "weights",
    dim=1,
    optimizer=Adagrad(0.5),
    initializer=Initializer(kind="constant", a=0.0),
    saves=str(folder / "saves"),
)


@jax.jit
def gradients(rows: jax.Array, bias: jax.Array, wanted: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    def loss(rows: jax.Array, bias: jax.Array) -> jax.Array:
        return ((rows.sum((1, 2)) + bias - wanted) ** 2).mean()

    return jax.value_and_grad(loss, argnums=(0, 1))(rows, bias)


planted = np.random.default_rng(0).normal(size=200).astype(np.float32)
rng = np.random.default_rng(server.worker)
step, loss = 0, 9.0
stop = folder / "stop"
while not stop.exists():
    keys = rng.integers(0, 200, (64, 3))
    value, (for_rows, for_bias) = gradients(table.lookup(keys * 10**15), server.params["bias"], planted[keys].sum(1))
    table.push(keys * 10**15, for_rows)
    server.push({"bias": for_bias})
    step, loss = step + 1, 0.95 * loss + 0.05 * float(value)
    if server.is_chief and step % 50 == 0:
        table.save(folder / "saves")
        print(f"saved at step {step} loss {loss:.4f} rows {len(table)}", flush=True)
    elif step % 50 == 0:
        print(f"step {step} loss {loss:.4f}", flush=True)
server.finish()
print("done", flush=True)
