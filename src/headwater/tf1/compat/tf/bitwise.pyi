# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.functional.math import bitwise_and as bitwise_and
from headwater.tf1.functional.math import bitwise_or as bitwise_or
from headwater.tf1.functional.math import bitwise_xor as bitwise_xor
from headwater.tf1.functional.math import invert as invert
from headwater.tf1.functional.math import left_shift as left_shift
from headwater.tf1.functional.math import right_shift as right_shift

__all__ = [
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "invert",
    "left_shift",
    "right_shift",
]
