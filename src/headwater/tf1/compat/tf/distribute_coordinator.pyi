# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.keras.coordinator.coordinator import ClusterCoordinator as ClusterCoordinator
from headwater.keras.coordinator.coordinator import PerWorkerDataset as PerWorkerValues
from headwater.keras.coordinator.coordinator import RemoteValue as RemoteValue

__all__ = [
    "ClusterCoordinator",
    "PerWorkerValues",
    "RemoteValue",
]
