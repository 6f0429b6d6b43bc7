# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.input.queues import FIFOQueue as FIFOQueue
from headwater.tf1.input.queues import PaddingFIFOQueue as PaddingFIFOQueue
from headwater.tf1.input.queues import PriorityQueue as PriorityQueue
from headwater.tf1.input.queues import QueueBase as QueueBase
from headwater.tf1.input.queues import RandomShuffleQueue as RandomShuffleQueue

__all__ = [
    "FIFOQueue",
    "PaddingFIFOQueue",
    "PriorityQueue",
    "QueueBase",
    "RandomShuffleQueue",
]
