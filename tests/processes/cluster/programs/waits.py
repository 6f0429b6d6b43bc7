"""A task of a Keras job that has connected to the others, and waits."""

from __future__ import annotations

import json
import os
import signal
import sys

kind = sys.argv[-1]
if kind == "mirrored":
    from headwater.keras import MultiWorkerMirroredStrategy

    strategy = MultiWorkerMirroredStrategy()
else:
    from headwater.keras import ParameterServerStrategy
    from headwater.keras.coordinator.coordinator import ClusterCoordinator

    coordinator = ClusterCoordinator(ParameterServerStrategy())
    print("result", coordinator.fetch(coordinator.schedule(os.getpid)), flush=True)
print("ready", json.loads(os.environ["TF_CONFIG"])["task"], flush=True)
signal.pause()
