# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.functional.sets import set_difference as difference
from headwater.tf1.functional.sets import set_difference as set_difference
from headwater.tf1.functional.sets import set_intersection as intersection
from headwater.tf1.functional.sets import set_intersection as set_intersection
from headwater.tf1.functional.sets import set_size as set_size
from headwater.tf1.functional.sets import set_size as size
from headwater.tf1.functional.sets import set_union as set_union
from headwater.tf1.functional.sets import set_union as union

__all__ = [
    "difference",
    "intersection",
    "set_difference",
    "set_intersection",
    "set_size",
    "set_union",
    "size",
    "union",
]
