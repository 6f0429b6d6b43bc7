# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.compat.tf import autograph_experimental as experimental
from headwater.tf1.functional.autograph.public import set_verbosity as set_verbosity
from headwater.tf1.functional.autograph.public import to_code as to_code
from headwater.tf1.functional.autograph.public import to_graph as to_graph
from headwater.tf1.functional.autograph.public import trace as trace

__all__ = [
    "experimental",
    "set_verbosity",
    "to_code",
    "to_graph",
    "trace",
]
