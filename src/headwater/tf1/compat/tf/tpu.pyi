# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.training.tpu import bfloat16_scope as bfloat16_scope
from headwater.tf1.training.tpu import core as core

__all__ = [
    "bfloat16_scope",
    "core",
]
