# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.compat.tf.examples import tutorials as tutorials

__all__ = [
    "tutorials",
]
