# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.training.queue_runner import QueueRunner as QueueRunner
from headwater.tf1.training.queue_runner import add_queue_runner as add_queue_runner
from headwater.tf1.training.queue_runner import start_queue_runners as start_queue_runners

__all__ = [
    "QueueRunner",
    "add_queue_runner",
    "start_queue_runners",
]
