"""Pushes a few gradients to a parameter server, and raises an error at the end if requested."""

from __future__ import annotations

import sys

import numpy as np
import optax

from headwater import ParameterServer

server = ParameterServer({"weights": np.zeros(3, np.float32)}, optax.sgd(0.5))
for _ in range(4):
    server.push({"weights": np.ones(3, np.float32)})
print("weights", server.finish()["weights"].tolist(), flush=True)
if sys.argv[-1] == "raise":
    raise ValueError("as it was told")
