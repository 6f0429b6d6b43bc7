# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.data.io.tensor_proto import make_ndarray as make_ndarray
from headwater.data.io.tensor_proto import make_tensor_proto as make_tensor_proto
from headwater.graph.constants import get_static_value as constant_value

__all__ = [
    "constant_value",
    "make_ndarray",
    "make_tensor_proto",
]
