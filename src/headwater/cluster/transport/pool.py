"""Channels to other tasks, kept open between conversations."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from headwater.cluster.names import TaskName
from headwater.cluster.transport.channel import Channel
from headwater.errors import CancelledError

#: Idle channels to one task that are kept; as many steps at once find one each.
_MAX_IDLE = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolStatistics:
    """How many channels a pool has.

    Attributes:
      idle: open and not in use.
      taken: in use.
      opened: ever opened.
    """

    idle: int
    taken: int
    opened: int


class ChannelPool:
    """Opens channels where needed and keeps them for later. Any thread may use it.

    Args:
      open_channel: opens a channel to a task; what it raises, `take` raises.
    """

    def __init__(self, open_channel: Callable[[TaskName], Channel]) -> None:
        self._open_channel = open_channel
        self._lock = threading.Lock()
        self._idle: dict[TaskName, list[Channel]] = {}
        self._taken: dict[Channel, TaskName] = {}
        self._opened = 0
        self._closed = False

    def take(self, peer: TaskName) -> Channel:
        """A channel to ``peer`` for one conversation alone. End it with `give_back` or `discard`.

        Raises:
          CancelledError: the pool is closed.
          Whatever opening a channel raises.
        """
        while True:
            with self._lock:
                if self._closed:
                    raise self._is_closed(peer)
                idle = self._idle.get(peer)
                if not idle:
                    break
                channel = idle.pop()
                self._taken[channel] = peer
            if not channel.peer_gone():
                return channel
            self.discard(channel)
        channel = self._open_channel(peer)
        with self._lock:
            if not self._closed:
                self._taken[channel] = peer
                self._opened += 1
                return channel
        channel.close()
        raise self._is_closed(peer)

    def adopt(self, channel: Channel, peer: TaskName) -> None:
        """Counts a channel to ``peer`` that was opened elsewhere among those that are taken; `discard` ends it.

        Raises:
          CancelledError: the pool is closed; so is the channel then.
        """
        with self._lock:
            if not self._closed:
                self._taken[channel] = peer
                self._opened += 1
                return
        channel.close()
        raise self._is_closed(peer)

    def give_back(self, channel: Channel) -> None:
        """Ends a conversation that is complete: both ends expect a new one to begin."""
        with self._lock:
            peer = self._taken.pop(channel, None)
            if peer is not None and not self._closed and not channel.closed:
                idle = self._idle.setdefault(peer, [])
                if len(idle) < _MAX_IDLE:
                    idle.append(channel)
                    return
        channel.close()

    def discard(self, channel: Channel) -> None:
        """Ends a conversation that broke off: closes the channel."""
        with self._lock:
            self._taken.pop(channel, None)
        channel.close()

    def break_off(self, peer: TaskName, reason: str) -> None:
        """Ends all channels to ``peer``, which is gone: a user of one gets UnavailableError with ``reason``.

        A channel in use that the other end has closed is left to its user, which finds that out behind what came
        before: a task may have ended right after an answer.
        """
        with self._lock:
            channels = self._idle.pop(peer, [])
            taken = [channel for channel, its_peer in self._taken.items() if its_peer == peer]
        channels += [channel for channel in taken if not channel.peer_gone()]
        for channel in channels:
            channel.break_off(reason)

    def close(self) -> None:
        """Closes all channels, those in use too; threads that wait for a frame are woken."""
        with self._lock:
            self._closed = True
            channels = [*self._taken, *(channel for idle in self._idle.values() for channel in idle)]
            self._idle.clear()
        for channel in channels:
            channel.close()

    def channels(self) -> list[Channel]:
        """All open channels."""
        with self._lock:
            return [*self._taken, *(channel for idle in self._idle.values() for channel in idle)]

    def statistics(self) -> PoolStatistics:
        """How many channels there are now."""
        with self._lock:
            idle = sum(len(channels) for channels in self._idle.values())
            return PoolStatistics(idle=idle, taken=len(self._taken), opened=self._opened)

    @staticmethod
    def _is_closed(peer: TaskName) -> CancelledError:
        return CancelledError(None, None, f"no channel to {peer}: this task is stopping")
