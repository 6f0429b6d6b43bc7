"""Frames by which the primary of a shard of parameters replicates it to the backup; see `headwater.state.feed`::

    STATE   (number, count, hyperparameters, memory)   values of ``count`` blocks, then the optimizer's state;
                                            the hyperparameters of the latest update; ``memory`` is None if rows of
                                            tables follow
    ROWS    (number, table)                 numbers of rows of a table, their values, and their optimizer state
    MEMORY  (number, memory)                the primary's record of workers and requests: at the end of the initial
                                            state, or if only the record has changed

and the changes of that state (`headwater.ps.replicas.recorded`)::

    UPDATE_BACKUP  (number, changes, hyperparameters, scale, memory)
                                            gradients, the changes with the numbers ``changes``, then
                                            of each table the numbers of rows and their gradients
    FILL    (number, count, memory)         values of ``count`` blocks, then the optimizer's state
    ASSIGN  (number, memory)                values of all blocks except tables
    WRITE_ROWS  (number, table, start, memory)   as a worker sends it

``memory`` is the result of `headwater.ps.host_memory.HostMemory.words`. Of several changes that are sent together, only
the last frame has a memory, and the others have None. The backup collects changes, and applies them when it receives a
frame with a memory.
"""

from __future__ import annotations

from headwater.cluster.task import kinds
from headwater.ps.replicas.recorded import Change
from headwater.state.feed import Feed


class ParameterFeed(Feed):
    """Feeds the backup of a shard of parameters; see `Feed`."""

    # Under the lock of the fed host -----------------------------------------------------------------------------------

    def change(self, change: Change, memory: object) -> None:
        """Sends a change."""
        self.send(change.kind, (*change.header, memory), change.tensors)

    def remember(self, memory: object) -> None:
        """Sends a changed record of workers and requests."""
        self.send(kinds.MEMORY, (memory,), ())
