"""``tf.distribute.cluster_resolver``: what tells a program which cluster it is part of."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.cluster.resolvers": """
        ClusterResolver KubernetesClusterResolver SimpleClusterResolver SlurmClusterResolver TFConfigClusterResolver""",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
