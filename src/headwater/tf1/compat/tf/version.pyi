# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.compat.tf import COMPILER_VERSION as COMPILER_VERSION
from headwater.tf1.compat.tf import GIT_VERSION as GIT_VERSION
from headwater.tf1.compat.tf import GRAPH_DEF_VERSION as GRAPH_DEF_VERSION
from headwater.tf1.compat.tf import GRAPH_DEF_VERSION_MIN_CONSUMER as GRAPH_DEF_VERSION_MIN_CONSUMER
from headwater.tf1.compat.tf import GRAPH_DEF_VERSION_MIN_PRODUCER as GRAPH_DEF_VERSION_MIN_PRODUCER
from headwater.tf1.compat.tf import VERSION as VERSION

__all__ = [
    "COMPILER_VERSION",
    "GIT_VERSION",
    "GRAPH_DEF_VERSION",
    "GRAPH_DEF_VERSION_MIN_CONSUMER",
    "GRAPH_DEF_VERSION_MIN_PRODUCER",
    "VERSION",
]
