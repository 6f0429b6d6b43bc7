"""Heartbeats between the processes of a group.

When a process is killed, its channels are closed. When it is stopped (SIGSTOP), or its machine or network fails, its
channels stay open. To detect these cases, each process has a lifeline to every other process
(`headwater.cluster.transport.lifeline`). A process that is stopped, or sends no heartbeats, for too long counts as
lost. A process that computes, saves or waits for data still sends heartbeats.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from headwater.cluster.addresses import Address
from headwater.cluster.transport.handshake import PeerIdentity
from headwater.cluster.transport.lifeline import Lifeline
from headwater.cluster.transport.security import Security
from headwater.cluster.transport.waiting import positive_seconds_from

VARIABLE = "HEADWATER_HEARTBEAT_S"
_DEFAULT_S = 10.0
#: Smallest permitted time without heartbeats, in seconds: heartbeats are sent once a second, so a shorter silence is no
#: evidence of a failure.
_MIN_SILENCE_S = 4.0


def heartbeat_s(environ: Mapping[str, str]) -> float:
    """Returns the time without heartbeats after which a process is lost, in seconds.

    Raises:
      InvalidArgumentError: ``HEADWATER_HEARTBEAT_S`` is not a positive number of seconds.
    """
    return positive_seconds_from(environ, VARIABLE, _DEFAULT_S)


class HeartbeatReceiver:
    """Receives the heartbeats of the other processes.

    Args:
      silence_s: time in seconds after which a process that is stopped or sends no heartbeats is lost.
      on_silent: called once for each lost process, with its rank and the reason.
      me: this process.
      security: authenticates the connections.
    """

    def __init__(
        self, silence_s: float, on_silent: Callable[[int, str], None], *, me: PeerIdentity, security: Security
    ) -> None:
        self._lost_after_s = silence_s
        self._on_silent = on_silent
        self._me = me
        self._security = security
        self._lock = threading.Lock()
        self._lifelines: dict[int, Lifeline] = {}

    def listen(self, rank: int, task: str, address: Address) -> None:
        """Starts to monitor the process of that rank."""

        def changed(reason: str) -> None:
            with self._lock:
                lifeline = self._lifelines.pop(rank, None)
            if reason and lifeline is not None:
                lifeline.close()
                self._on_silent(rank, reason)

        wanted = PeerIdentity(task=task, generation=0)
        lifeline = self._lifelines[rank] = Lifeline(
            address,
            me=self._me,
            wanted=wanted,
            security=self._security,
            on_change=changed,
            silence_s=max(_MIN_SILENCE_S, self._lost_after_s),
            stopped_s=self._lost_after_s,
        )
        lifeline.start()

    def close(self) -> None:
        """Closes all lifelines."""
        with self._lock:
            lifelines = list(self._lifelines.values())
            self._lifelines.clear()
        for lifeline in lifelines:
            lifeline.close()
