"""A pool of channels to other tasks, which stay open between conversations."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from headwater.cluster.names import TaskName
from headwater.cluster.transport.channel import Channel
from headwater.errors import CancelledError

#: Maximum number of idle channels to one task, and so of concurrent steps that find an open channel.
_MAX_IDLE = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolStatistics:
    """Numbers of channels of a pool.

    Attributes:
      idle: channels that are open and not in use.
      taken: channels in use.
      opened: channels ever opened.
    """

    idle: int
    taken: int
    opened: int


class ChannelPool:
    """Opens channels when needed and keeps them for reuse. Thread-safe.

    Args:
      open_channel: opens a channel to a task; `acquire` passes its exceptions on.
    """

    def __init__(self, open_channel: Callable[[TaskName], Channel]) -> None:
        self._open_channel = open_channel
        self._lock = threading.Lock()
        self._idle: dict[TaskName, list[Channel]] = {}
        self._taken: dict[Channel, TaskName] = {}
        self._opened = 0
        self._closed = False

    def acquire(self, peer: TaskName) -> Channel:
        """Returns a channel to ``peer`` for exclusive use. End the use with `release` or `discard`.

        Raises:
          CancelledError: the pool is closed.
          Exception: what ``open_channel`` raises.
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
            self.discard(channel)  # the other end has closed this channel while it was idle: try the next channel
        # Open the channel without holding the lock, as opening may take minutes. The pool may be closed meanwhile.
        channel = self._open_channel(peer)
        with self._lock:
            if not self._closed:
                self._taken[channel] = peer
                self._opened += 1
                return channel
        channel.close()
        raise self._is_closed(peer)

    def adopt(self, channel: Channel, peer: TaskName) -> None:
        """Adds a channel to ``peer`` that was opened elsewhere. It counts as in use until `discard`.

        Raises:
          CancelledError: the pool is closed; the channel was closed, too.
        """
        with self._lock:
            if not self._closed:
                self._taken[channel] = peer
                self._opened += 1
                return
        channel.close()
        raise self._is_closed(peer)

    def release(self, channel: Channel) -> None:
        """Returns a channel after a complete conversation: both ends are ready for another conversation."""
        with self._lock:
            peer = self._taken.pop(channel, None)
            if peer is not None and not self._closed and not channel.closed:
                idle = self._idle.setdefault(peer, [])
                if len(idle) < _MAX_IDLE:
                    idle.append(channel)
                    return
        channel.close()

    def discard(self, channel: Channel) -> None:
        """Closes a channel after an incomplete conversation."""
        with self._lock:
            self._taken.pop(channel, None)
        channel.close()

    def break_off(self, peer: TaskName, reason: str) -> None:
        """Breaks all channels to ``peer``, which is lost: their users get UnavailableError with ``reason``.

        A channel in use that the other end has closed is not broken: a task may have exited right after an answer, and
        the user of the channel can still read that answer.
        """
        with self._lock:
            channels = self._idle.pop(peer, [])
            taken = [channel for channel, its_peer in self._taken.items() if its_peer == peer]
        channels += [channel for channel in taken if not channel.peer_gone()]
        for channel in channels:
            channel.break_off(reason)

    def close(self) -> None:
        """Closes all channels, also those in use; threads that wait for a frame are woken."""
        with self._lock:
            self._closed = True
            channels = [*self._taken, *(channel for idle in self._idle.values() for channel in idle)]
            self._idle.clear()
        for channel in channels:
            channel.close()

    def channels(self) -> list[Channel]:
        """Returns all open channels."""
        with self._lock:
            return [*self._taken, *(channel for idle in self._idle.values() for channel in idle)]

    def statistics(self) -> PoolStatistics:
        """Returns the current numbers of channels."""
        with self._lock:
            idle = sum(len(channels) for channels in self._idle.values())
            return PoolStatistics(idle=idle, taken=len(self._taken), opened=self._opened)

    @staticmethod
    def _is_closed(peer: TaskName) -> CancelledError:
        return CancelledError(f"no channel to {peer}: this task is stopping")
