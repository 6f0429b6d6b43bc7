"""What a primary of a shard of parameters sends to the other copy; see `headwater.replicas.feed`::

    STATE   (number, names, memory)         values of all blocks, then the optimizer's state
    UPDATE_SECOND  (number, changes, knobs, scale, memory)   gradients, then the changes that ``changes`` numbers
    MEMORY  (number, memory)                what the primary knows besides its values, where only that has changed

``memory`` is what `headwater.parameters.host_memory.HostMemory.words` says; None where updates are sent together, and a
later frame brings it. The other copy makes an update when it has its memory, before it reads another frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from headwater.parameters.replicas.recorded import Update
from headwater.parameters.updater import Array
from headwater.replicas.feed import Feed
from headwater.replicas.views import Copy
from headwater.task import kinds
from headwater.transport.channel import Channel


class State(NamedTuple):
    """Values of all blocks, and the optimizer's state with its names."""

    values: Sequence[Array]
    names: Sequence[str]
    state: Sequence[Array]


class ParameterFeed(Feed):
    """Feeds the other copy of a shard of parameters.

    Args:
      channel, target: see `Feed`.
      state, memory: what it begins with.
    """

    def __init__(self, channel: Channel, target: Copy, state: State, memory: Any) -> None:
        super().__init__(channel, target, [_state(state, memory)])

    # Under the lock of what is fed ------------------------------------------------------------------------------------

    def update(self, update: Update, memory: Any) -> None:
        """Sends an update."""
        header = (list(update.changes), list(update.knobs), update.scale, memory)
        self.send(kinds.UPDATE_SECOND, header, [*update.gradients, *update.changes.values()])

    def replace(self, state: State, memory: Any) -> None:
        """Sends everything once more."""
        self.send(*_state(state, memory))

    def remember(self, memory: Any) -> None:
        """Sends what else has changed."""
        self.send(kinds.MEMORY, (memory,), ())


def _state(state: State, memory: Any) -> tuple[int, Sequence[Any], Sequence[Array]]:
    return kinds.STATE, (list(state.names), memory), [*state.values, *state.state]
