"""Heartbeats: the processes of a group hear of each other that they are there, whatever they compute meanwhile.

A process that is killed closes its channels; one that is stopped, or whose machine or network is gone, does not. So
each has a lifeline to every other one (`headwater.cluster.transport.lifeline`). Who is stopped, or not heard, for long
is lost. Who computes, saves or waits for data is heard.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from headwater.cluster.addresses import Address
from headwater.cluster.transport.handshake import Identity
from headwater.cluster.transport.lifeline import Lifeline
from headwater.cluster.transport.security import Security
from headwater.cluster.transport.waiting import positive_seconds_from

VARIABLE = "HEADWATER_HEARTBEAT_S"
_DEFAULT_S = 10.0
#: Less silence than this says nothing: signs of life come once a second.
_LEAST_S = 4.0


def heartbeat_s(environ: Mapping[str, str]) -> float:
    """After how long without a sign of life a process is lost, in seconds.

    Raises:
      InvalidArgumentError: ``HEADWATER_HEARTBEAT_S`` is no positive number of seconds.
    """
    return positive_seconds_from(environ, VARIABLE, _DEFAULT_S)


class Pulse:
    """This process's ear for the others'.

    Args:
      silence_s: who is stopped or not heard for so long is lost, in seconds.
      on_silent: called with the rank of a process that is lost, and words that say why; once for each.
      me: this process.
      security: what it shows and asks for.
    """

    def __init__(
        self, silence_s: float, on_silent: Callable[[int, str], None], *, me: Identity, security: Security
    ) -> None:
        self._lost_after_s = silence_s
        self._on_silent = on_silent
        self._me = me
        self._security = security
        self._lock = threading.Lock()
        self._lifelines: dict[int, Lifeline] = {}

    def listen(self, rank: int, task: str, address: Address) -> None:
        """From now on the process of that rank is listened for."""

        def changed(reason: str) -> None:
            with self._lock:
                lifeline = self._lifelines.pop(rank, None)
            if reason and lifeline is not None:
                lifeline.close()
                self._on_silent(rank, reason)

        wanted = Identity(task=task, generation=0)
        lifeline = self._lifelines[rank] = Lifeline(
            address,
            me=self._me,
            wanted=wanted,
            security=self._security,
            on_change=changed,
            silence_s=max(_LEAST_S, self._lost_after_s),
            stopped_s=self._lost_after_s,
        )
        lifeline.start()

    def close(self) -> None:
        """Ends it."""
        with self._lock:
            lifelines = list(self._lifelines.values())
            self._lifelines.clear()
        for lifeline in lifelines:
            lifeline.close()
