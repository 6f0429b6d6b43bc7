# Written by tools/stubs.py from headwater.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.functional.sets import set_difference as difference
from headwater.functional.sets import set_difference as set_difference
from headwater.functional.sets import set_intersection as intersection
from headwater.functional.sets import set_intersection as set_intersection
from headwater.functional.sets import set_size as set_size
from headwater.functional.sets import set_size as size
from headwater.functional.sets import set_union as set_union
from headwater.functional.sets import set_union as union

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
