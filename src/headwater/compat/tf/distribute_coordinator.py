"""``tf.distribute.coordinator``: one task says what all workers do."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {"headwater.coordinator.coordinator": "ClusterCoordinator PerWorkerValues=PerWorkerDataset RemoteValue"}

__getattr__, __dir__ = namespace(__name__, _NAMES)
