"""Pushes gradients to two ``ps`` that clip by the norm of all gradients.

Usage: ``CONSISTENCY same``, or ``CONSISTENCY other`` to give worker 0 another optimizer.
"""

from __future__ import annotations

import json
import os
import sys

import numpy as np
import optax

from headwater import ParameterServer

config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
rate = 0.2 if sys.argv[-1] == "other" and task == {"type": "worker", "index": 0} else 0.1
params = {"first": np.zeros(3, np.float32), "second": np.zeros(2, np.float32)}
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(rate))
server = ParameterServer(params, optimizer, consistency=sys.argv[-2])
# The mean over all workers has elements 2 and 6.
share = (2 * task["index"] + 1) / len(config["cluster"]["worker"])
server.push({"first": np.full(3, 2 * share, np.float32), "second": np.full(2, 6 * share, np.float32)})
found = server.finish()
print("clipped", *(round(float(number), 6) for leaf in found.values() for number in leaf), flush=True)
