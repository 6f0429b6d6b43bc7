# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.keras.mirrored.settings import CommunicationImplementation as CollectiveCommunication
from headwater.keras.mirrored.settings import CommunicationImplementation as CommunicationImplementation
from headwater.keras.mirrored.settings import CommunicationOptions as CollectiveHints
from headwater.keras.mirrored.settings import CommunicationOptions as CommunicationOptions
from headwater.keras.mirrored.strategy import ExperimentalMultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy
from headwater.keras.old_strategies import CentralStorageStrategy as CentralStorageStrategy
from headwater.keras.parameter_server.strategy import ParameterServerStrategy as ParameterServerStrategy
from headwater.tf1.compat.tf import distribute_coordinator as coordinator
from headwater.tf1.compat.tf import distribute_partitioners as partitioners

__all__ = [
    "CentralStorageStrategy",
    "CollectiveCommunication",
    "CollectiveHints",
    "CommunicationImplementation",
    "CommunicationOptions",
    "MultiWorkerMirroredStrategy",
    "ParameterServerStrategy",
    "coordinator",
    "partitioners",
]
