"""One worker that pushes a gradient of a large array on each of two ps in every step.

Prints ``at SECONDS counts A B`` after each step that was taken: how often the part of each ps was updated.
"""

from __future__ import annotations

import argparse
import time

import jax
import numpy as np
import optax

from headwater import ParameterServer

parser = argparse.ArgumentParser()
parser.add_argument("--mb", type=int, default=100)
parser.add_argument("--replicas", type=int, default=1)
parser.add_argument("--shards", type=int)
args = parser.parse_args()
mb = args.mb
# In order of size, one after the other on the first and on the second ps.
params = {
    "count0": np.zeros(1, np.float32),
    "count1": np.zeros(1, np.float32),
    "values0": np.zeros((mb * 1024, 256), np.float32),
    "values1": np.zeros((mb * 1024, 256), np.float32),
}
ps = ParameterServer(params, optax.sgd(1.0), replicas=args.replicas, shards=args.shards)
gradients = jax.tree.map(lambda value: np.full(value.shape, -1.0, np.float32), params)
while True:
    ps.push(gradients)
    found = ps.params
    print(f"at {time.time():.3f} counts {int(found['count0'][0])} {int(found['count1'][0])}", flush=True)
