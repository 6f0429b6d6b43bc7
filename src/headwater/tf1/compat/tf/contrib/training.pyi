# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.training.buckets import bucket as bucket
from headwater.tf1.training.buckets import bucket_by_sequence_length as bucket_by_sequence_length
from headwater.tf1.training.device_setter import GreedyLoadBalancingStrategy as GreedyLoadBalancingStrategy
from headwater.tf1.training.device_setter import RandomStrategy as RandomStrategy
from headwater.tf1.training.device_setter import byte_size_load_fn as byte_size_load_fn
from headwater.tf1.training.training_util import get_or_create_global_step as get_or_create_global_step

__all__ = [
    "GreedyLoadBalancingStrategy",
    "RandomStrategy",
    "bucket",
    "bucket_by_sequence_length",
    "byte_size_load_fn",
    "get_or_create_global_step",
]
