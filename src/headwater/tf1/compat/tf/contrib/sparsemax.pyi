# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.contrib.sparsemax.projection import sparsemax as sparsemax
from headwater.tf1.contrib.sparsemax.projection import sparsemax_loss as sparsemax_loss

__all__ = [
    "sparsemax",
    "sparsemax_loss",
]
