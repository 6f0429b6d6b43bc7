# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.compat.switches import function_executor_type as function_executor_type
from headwater.tf1.compat.switches import output_all_intermediates as output_all_intermediates

__all__ = [
    "function_executor_type",
    "output_all_intermediates",
]
