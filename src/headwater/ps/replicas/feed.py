"""What a primary of a shard of parameters sends to the other copy; see `headwater.state.feed`::

    STATE   (number, count, memory)         values of ``count`` blocks, then the optimizer's state; ``memory`` is None
                                            where rows of tables follow
    ROWS    (number, table)                 numbers of rows of a table, their values, and what the optimizer keeps of
                                            them
    MEMORY  (number, memory)                what the primary knows besides its values: the end of what it begins with,
                                            or where only that has changed

and changes of that (`headwater.ps.replicas.recorded`)::

    UPDATE_SECOND  (number, changes, knobs, scale, memory)   gradients, the changes that ``changes`` numbers, then of
                                            each table the numbers of rows and their gradients
    FILL    (number, count, memory)         values of ``count`` blocks, then the optimizer's state
    ASSIGN  (number, memory)                values of all blocks
    WRITE_ROWS  (number, table, start, memory)   as a worker sends it

``memory`` is what `headwater.ps.host_memory.HostMemory.words` says; None where changes are sent together, and a
later frame brings it. The other copy makes a change when it has its memory, before it reads another frame.
"""

from __future__ import annotations

from typing import Any

from headwater.cluster.task import kinds
from headwater.ps.replicas.recorded import Change
from headwater.state.feed import Feed


class ParameterFeed(Feed):
    """Feeds the other copy of a shard of parameters; see `Feed`."""

    # Under the lock of what is fed ------------------------------------------------------------------------------------

    def change(self, change: Change, memory: Any) -> None:
        """Sends a change."""
        self.send(change.kind, (*change.header, memory), change.tensors)

    def remember(self, memory: Any) -> None:
        """Sends what else has changed."""
        self.send(kinds.MEMORY, (memory,), ())
