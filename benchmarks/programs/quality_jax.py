"""One worker trains digits on two ps with JAX; see quality.py beside this folder."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from digits import RATE, Digits, Pace, parse, say

from headwater import ParameterServer

SAY = 25

args = parse("JAX")
digits = Digits(args.data, args.seed)
names = ("weights", "bias", "top", "top bias")
settings: dict[str, Any] = {
    "copy": {"snapshot_steps": args.every},
    "own": {"saves": args.folder, "save_every_s": args.every / args.rate},
    "replicas": {"replicas": 2},
    "": {},
}[args.keep]


@jax.jit
def gradients_of(model: dict[str, jax.Array], images: jax.Array, labels: jax.Array) -> dict[str, jax.Array]:
    def loss_of(model: dict[str, jax.Array]) -> jax.Array:
        hidden = jax.nn.relu(images @ model["weights"] + model["bias"])
        logits = hidden @ model["top"] + model["top bias"]
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    return jax.grad(loss_of)(model)


ps = ParameterServer(
    {name: jnp.asarray(value) for name, value in zip(names, digits.first_values())}, optax.adam(RATE), **settings
)
say(0, digits.loss([np.asarray(ps.params[name]) for name in names]))
for done in Pace(args).steps():
    ps.push(gradients_of(ps.params, *digits.batch()))
    if done % SAY == 0:
        say(done, digits.loss([np.asarray(ps.params[name]) for name in names]))
print("over", flush=True)
ps.finish()
