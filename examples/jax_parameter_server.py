"""Trains a Flax network with optax on parameter servers, asynchronously. Every task runs this program.

    headwater run --ps 1 --workers 2 examples/jax_parameter_server.py

The parameters and Adam's moments are stored on the ``ps``; workers compute gradients. Without ``headwater run`` one
process does everything.
"""

from __future__ import annotations

import argparse
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

import headwater


class Network(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(nn.relu(nn.Dense(64)(nn.relu(nn.Dense(64)(x)))))


def spirals(rng, count):
    """Returns points on two spirals, and the spiral of each point, 0 or 1."""
    which, angle = rng.integers(0, 2, count), rng.uniform(0.5, 3.0 * np.pi, count)
    turned = angle + np.pi * which
    points = np.stack([np.cos(turned), np.sin(turned)], 1) * angle[:, None] / 5 + rng.normal(0, 0.05, (count, 2))
    return points.astype(np.float32), which


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--steps", type=int, default=1500, help="steps of each worker")
parser.add_argument("--consistency", default="async", help="async, sync, k=1 or staleness=4")
arguments = parser.parse_args()

network = Network()


def logits(params: Any, x: np.ndarray) -> Any:
    return network.apply(params, x)


params = network.init(jax.random.key(0), jnp.zeros((1, 2)))
ps = headwater.ParameterServer(params, optax.adam(2e-3), consistency=arguments.consistency)  # does not return on a ps


@jax.jit
def gradients(params, x, y):
    def loss(params):
        return optax.softmax_cross_entropy_with_integer_labels(logits(params, x), y).mean()

    return jax.grad(loss)(params)


rng = np.random.default_rng(ps.worker)
for _ in range(arguments.steps):
    ps.push(gradients(ps.params, *spirals(rng, 64)))
params = ps.finish()

x, y = spirals(np.random.default_rng(1000), 2000)
print(f"worker {ps.worker}: accuracy {np.mean(logits(params, x).argmax(1) == y):.3f} after {ps.version} updates")
