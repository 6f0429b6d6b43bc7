# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.parameters.layout import FixedShardsPartitioner as FixedShardsPartitioner
from headwater.parameters.layout import MaxSizePartitioner as MaxSizePartitioner
from headwater.parameters.layout import MinSizePartitioner as MinSizePartitioner
from headwater.parameters.layout import Partitioner as Partitioner

__all__ = [
    "FixedShardsPartitioner",
    "MaxSizePartitioner",
    "MinSizePartitioner",
    "Partitioner",
]
