# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.ps.layout import FixedShardsPartitioner as FixedShardsPartitioner
from headwater.ps.layout import MaxSizePartitioner as MaxSizePartitioner
from headwater.ps.layout import MinSizePartitioner as MinSizePartitioner
from headwater.ps.layout import Partitioner as Partitioner

__all__ = [
    "FixedShardsPartitioner",
    "MaxSizePartitioner",
    "MinSizePartitioner",
    "Partitioner",
]
