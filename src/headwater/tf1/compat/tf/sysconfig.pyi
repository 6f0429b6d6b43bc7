# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.compat.tf import CXX11_ABI_FLAG as CXX11_ABI_FLAG
from headwater.tf1.compat.tf import MONOLITHIC_BUILD as MONOLITHIC_BUILD

__all__ = [
    "CXX11_ABI_FLAG",
    "MONOLITHIC_BUILD",
]
