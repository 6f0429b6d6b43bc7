"""``tf.distribute``: strategies for Keras models and for training loops of one's own."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.keras.mirrored.strategy": "MirroredStrategy MultiWorkerMirroredStrategy",
    "headwater.keras.mirrored.settings": """
        CrossDeviceOps HierarchicalCopyAllReduce InputOptions InputReplicationMode NcclAllReduce ReductionToOneDevice
        RunOptions""",
    "headwater.keras.strategy": """
        InputContext OneDeviceStrategy ReplicaContext Strategy StrategyExtended get_replica_context get_strategy
        has_strategy in_cross_replica_context""",
    "headwater.keras.parameter_server.strategy": "ParameterServerStrategy",
    "headwater.keras.mirrored.inputs": "DistributedDataset",
    "headwater.server.server": "Server",
    "headwater.keras.values": "DistributedValues=PerReplica ReduceOp",
}

_MODULES = {
    "cluster_resolver": "headwater.compat.tf.cluster_resolver",
    "coordinator": "headwater.compat.tf.distribute_coordinator",
    "experimental": "headwater.compat.tf.distribute_experimental",
}

__getattr__, __dir__ = namespace(__name__, _NAMES, _MODULES)
