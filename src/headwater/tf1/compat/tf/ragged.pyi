# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.graph.ragged_value import RaggedTensorValue as RaggedTensorValue
from headwater.tf1.functional.ragged import boolean_mask as boolean_mask
from headwater.tf1.functional.ragged import constant as constant
from headwater.tf1.functional.ragged import constant_value as constant_value
from headwater.tf1.functional.ragged import placeholder as placeholder
from headwater.tf1.functional.ragged import ragged_range as range
from headwater.tf1.functional.ragged import row_splits_to_segment_ids as row_splits_to_segment_ids
from headwater.tf1.functional.ragged import segment_ids_to_row_splits as segment_ids_to_row_splits
from headwater.tf1.functional.ragged import stack as stack
from headwater.tf1.functional.ragged import stack_dynamic_partitions as stack_dynamic_partitions
from headwater.tf1.functional.ragged_tensor import map_flat_values as map_flat_values

__all__ = [
    "RaggedTensorValue",
    "boolean_mask",
    "constant",
    "constant_value",
    "map_flat_values",
    "placeholder",
    "range",
    "row_splits_to_segment_ids",
    "segment_ids_to_row_splits",
    "stack",
    "stack_dynamic_partitions",
]
