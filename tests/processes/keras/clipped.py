"""Pushes gradients to two ``ps`` that clip by the norm of all; the last worker may have another optimizer."""

from __future__ import annotations

import json
import os
import sys

import numpy as np
import optax

from headwater import ParameterServer

task = json.loads(os.environ["TF_CONFIG"])["task"]
rate = 0.2 if sys.argv[-1] == "other" and task == {"type": "worker", "index": 0} else 0.1
params = {"first": np.zeros(3, np.float32), "second": np.zeros(2, np.float32)}
server = ParameterServer(params, optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(rate)))
server.push({"first": np.full(3, 2, np.float32), "second": np.full(2, 6, np.float32)})
found = server.finish()
print("clipped", *(round(float(number), 6) for leaf in found.values() for number in leaf), flush=True)
