"""Reads a tree of --megabytes from JAX parameter servers in every step and pushes its gradients, as `large.py` does."""

import json
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from common import begin, report, task_arguments

from headwater import ParameterServer

args = task_arguments(megabytes=200)
os.environ["TF_CONFIG"] = json.dumps(
    {
        "cluster": {"ps": args.ps_hosts.split(","), "worker": args.worker_hosts.split(",")},
        "task": {"type": args.job_name, "index": args.task_index},
    }
)
source = np.random.default_rng(0)
params = {f"w{i}": source.standard_normal((args.megabytes * 32768, 2), np.float32) for i in range(4)}
ps = ParameterServer(params, optax.adagrad(0.01))
gradient = jax.jit(jax.grad(lambda tree: sum(0.5 * jnp.sum(jnp.square(leaf)) for leaf in tree.values())))
for _ in range(6):
    ps.push(gradient(ps.params))
times = []
begin()
deadline = time.perf_counter() + args.seconds
while time.perf_counter() < deadline:
    start = time.perf_counter()
    ps.push(gradient(ps.params))
    times.append(time.perf_counter() - start)
report(times)
ps.finish()
