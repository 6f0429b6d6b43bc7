# Written by tools/stubs.py from headwater.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.input.staging import StagingArea as StagingArea

__all__ = [
    "StagingArea",
]
