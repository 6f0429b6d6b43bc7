"""Heartbeats: the processes of a group tell each other that they are there, whatever they compute meanwhile.

A process that is killed closes its channels; one that is stopped, or whose machine or network is gone, does not. So
every two processes have a second channel, on which each sends a frame every so often from a thread of its own. Who is
not heard for long is lost. Who computes, saves or waits for data goes on sending.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headwater.errors import DeadlineExceededError, OpError
from headwater.task.kinds import HEARTBEAT
from headwater.transport.channel import Channel
from headwater.transport.frames import Frame
from headwater.transport.waiting import positive_seconds_from

VARIABLE = "HEADWATER_HEARTBEAT_S"
_DEFAULT_S = 10.0
#: A process that is there is heard this often before it would be given up.
_BEATS = 8


def heartbeat_s(environ: Mapping[str, str]) -> float:
    """After how long without a sign of life a process is lost, in seconds.

    Raises:
      InvalidArgumentError: ``HEADWATER_HEARTBEAT_S`` is no positive number of seconds.
    """
    return positive_seconds_from(environ, VARIABLE, _DEFAULT_S)


@dataclass(kw_only=True, slots=True)
class _Peer:
    channel: Channel
    heard: float


class Pulse:
    """This process's heart, and its ear for the others'.

    Args:
      silence_s: who is not heard for so long is lost, in seconds.
      on_silent: called with the rank of a process that is lost, and words that say so.
      clock: seconds that only grow.
    """

    def __init__(
        self, silence_s: float, on_silent: Callable[[int, str], None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._silence_s = silence_s
        self._on_silent = on_silent
        self._clock = clock
        self._lock = threading.Lock()
        self._peers: dict[int, _Peer] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headwater heartbeat", daemon=True)

    def start(self) -> None:
        """Begins to beat."""
        self._thread.start()

    def add(self, rank: int, channel: Channel) -> None:
        """From now on the process of that rank hears this one over ``channel``, and is listened for."""
        with self._lock:
            earlier = self._peers.get(rank)
            self._peers[rank] = _Peer(channel=channel, heard=self._clock())
        if earlier is not None:
            earlier.channel.close()

    def beat(self) -> None:
        """Tells all others that this process is there, and hears who else is."""
        with self._lock:
            peers = dict(self._peers)
        for rank, peer in peers.items():
            try:
                peer.channel.send(Frame(HEARTBEAT))
                if self._hears(peer):
                    continue
                peer.channel.close()
            except OpError:
                # It has ended. The channel of its steps shows that, after what it had still to say there.
                silent = False
            else:
                silent = True
            with self._lock:
                if self._peers.get(rank) is peer:
                    del self._peers[rank]
            if silent:
                self._on_silent(
                    rank,
                    f"nothing was heard of it for {self._silence_s:g} s, not even a heartbeat: it was stopped, or its "
                    "machine or network is gone",
                )

    def _hears(self, peer: _Peer) -> bool:
        """Whether there was a sign of life lately; raises what the channel does where the other end is closed."""
        # What has come is looked at before the clock is: this process may have been the one that stood still.
        try:
            while True:
                peer.channel.recv(0)
                peer.heard = self._clock()
        except DeadlineExceededError:
            return self._clock() - peer.heard < self._silence_s

    def _run(self) -> None:
        while not self._ended.wait(self._silence_s / _BEATS):
            self.beat()

    def close(self) -> None:
        """Ends it; the others hear of that."""
        self._ended.set()
        with self._lock:
            peers = list(self._peers.values())
            self._peers.clear()
        for peer in peers:
            peer.channel.close()
