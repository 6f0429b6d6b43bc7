# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.functional.autograph.public import Feature as Feature
from headwater.tf1.functional.autograph.public import do_not_convert as do_not_convert
from headwater.tf1.functional.autograph.public import set_loop_options as set_loop_options

__all__ = [
    "Feature",
    "do_not_convert",
    "set_loop_options",
]
