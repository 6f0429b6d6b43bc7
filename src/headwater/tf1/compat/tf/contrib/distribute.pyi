# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.graph.server.standard_server import run_standard_tensorflow_server as run_standard_tensorflow_server
from headwater.keras.mirrored.settings import CrossDeviceOps as CrossDeviceOps
from headwater.keras.old_strategies import CollectiveAllReduceStrategy as CollectiveAllReduceStrategy
from headwater.keras.old_strategies import MirroredStrategy as MirroredStrategy
from headwater.keras.strategy import OneDeviceStrategy as OneDeviceStrategy
from headwater.keras.strategy import ReplicaContext as ReplicaContext
from headwater.keras.strategy import Strategy as DistributionStrategy
from headwater.keras.strategy import get_replica_context as get_replica_context
from headwater.keras.strategy import get_strategy as get_distribution_strategy
from headwater.keras.strategy import get_strategy as get_strategy
from headwater.keras.strategy import has_strategy as has_distribution_strategy
from headwater.keras.strategy import has_strategy as has_strategy
from headwater.keras.strategy import in_cross_replica_context as in_cross_replica_context
from headwater.tf1.training.estimator.run_config import DistributeConfig as DistributeConfig

__all__ = [
    "CollectiveAllReduceStrategy",
    "CrossDeviceOps",
    "DistributeConfig",
    "DistributionStrategy",
    "MirroredStrategy",
    "OneDeviceStrategy",
    "ReplicaContext",
    "get_distribution_strategy",
    "get_replica_context",
    "get_strategy",
    "has_distribution_strategy",
    "has_strategy",
    "in_cross_replica_context",
    "run_standard_tensorflow_server",
]
