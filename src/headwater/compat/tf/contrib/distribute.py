"""``tf.contrib.distribute``: strategies by the names and arguments that they began with."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.keras.old_strategies": "CollectiveAllReduceStrategy MirroredStrategy",
    "headwater.server.standard_server": "run_standard_tensorflow_server",
    "headwater.training.estimator.run_config": "DistributeConfig",
    "headwater.keras.strategy": """
        DistributionStrategy=Strategy OneDeviceStrategy ReplicaContext get_distribution_strategy=get_strategy
        get_replica_context get_strategy has_distribution_strategy=has_strategy has_strategy
        in_cross_replica_context""",
    "headwater.keras.mirrored.settings": "CrossDeviceOps",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
