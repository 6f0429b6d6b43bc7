# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.cluster.resolvers import ClusterResolver as ClusterResolver
from headwater.cluster.resolvers import GCEClusterResolver as GCEClusterResolver
from headwater.cluster.resolvers import KubernetesClusterResolver as KubernetesClusterResolver
from headwater.cluster.resolvers import SimpleClusterResolver as SimpleClusterResolver
from headwater.cluster.resolvers import SlurmClusterResolver as SlurmClusterResolver
from headwater.cluster.resolvers import TFConfigClusterResolver as TFConfigClusterResolver
from headwater.cluster.resolvers import UnionClusterResolver as UnionClusterResolver

__all__ = [
    "ClusterResolver",
    "GCEClusterResolver",
    "KubernetesClusterResolver",
    "SimpleClusterResolver",
    "SlurmClusterResolver",
    "TFConfigClusterResolver",
    "UnionClusterResolver",
]
