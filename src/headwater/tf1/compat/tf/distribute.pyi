# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.graph.server.server import Server as Server
from headwater.keras.mirrored.inputs import DistributedDataset as DistributedDataset
from headwater.keras.mirrored.settings import CrossDeviceOps as CrossDeviceOps
from headwater.keras.mirrored.settings import HierarchicalCopyAllReduce as HierarchicalCopyAllReduce
from headwater.keras.mirrored.settings import InputOptions as InputOptions
from headwater.keras.mirrored.settings import InputReplicationMode as InputReplicationMode
from headwater.keras.mirrored.settings import NcclAllReduce as NcclAllReduce
from headwater.keras.mirrored.settings import ReductionToOneDevice as ReductionToOneDevice
from headwater.keras.mirrored.settings import RunOptions as RunOptions
from headwater.keras.mirrored.strategy import MirroredStrategy as MirroredStrategy
from headwater.keras.mirrored.strategy import MultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy
from headwater.keras.parameter_server.strategy import ParameterServerStrategy as ParameterServerStrategy
from headwater.keras.strategy import InputContext as InputContext
from headwater.keras.strategy import OneDeviceStrategy as OneDeviceStrategy
from headwater.keras.strategy import ReplicaContext as ReplicaContext
from headwater.keras.strategy import Strategy as Strategy
from headwater.keras.strategy import StrategyExtended as StrategyExtended
from headwater.keras.strategy import get_loss_reduction as get_loss_reduction
from headwater.keras.strategy import get_replica_context as get_replica_context
from headwater.keras.strategy import get_strategy as get_strategy
from headwater.keras.strategy import has_strategy as has_strategy
from headwater.keras.strategy import in_cross_replica_context as in_cross_replica_context
from headwater.keras.strategy import set_strategy as experimental_set_strategy
from headwater.keras.values import PerReplica as DistributedValues
from headwater.keras.values import ReduceOp as ReduceOp
from headwater.tf1.compat.tf import cluster_resolver as cluster_resolver
from headwater.tf1.compat.tf import distribute_coordinator as coordinator
from headwater.tf1.compat.tf import distribute_experimental as experimental

__all__ = [
    "CrossDeviceOps",
    "DistributedDataset",
    "DistributedValues",
    "HierarchicalCopyAllReduce",
    "InputContext",
    "InputOptions",
    "InputReplicationMode",
    "MirroredStrategy",
    "MultiWorkerMirroredStrategy",
    "NcclAllReduce",
    "OneDeviceStrategy",
    "ParameterServerStrategy",
    "ReduceOp",
    "ReductionToOneDevice",
    "ReplicaContext",
    "RunOptions",
    "Server",
    "Strategy",
    "StrategyExtended",
    "cluster_resolver",
    "coordinator",
    "experimental",
    "experimental_set_strategy",
    "get_loss_reduction",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
]
