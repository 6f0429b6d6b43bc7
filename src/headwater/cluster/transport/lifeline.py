"""Detection of the failure of another task, by its heartbeats.

A `Lifeline` is a connection on which the helper process of the other task sends a heartbeat once a second; the
heartbeat contains whether the task is stopped. A long computation that holds the GIL, or a wait for a core, does not
delay heartbeats. So a task counts as lost in two cases only: heartbeats have reported it as *stopped* for a few
seconds, or it is *silent*: no heartbeat arrives. The exit of a task is detected without a lifeline, as the kernel
closes its channels.

This process, too, may have been stopped, or its GIL held. Therefore this process first reads all heartbeats that have
arrived, and then the clock, and does not count time during which it did not run.
"""

from __future__ import annotations

import logging
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable

from headwater.cluster.addresses import Address
from headwater.cluster.transport.connect import connect_lifeline
from headwater.cluster.transport.handshake import PeerIdentity
from headwater.cluster.transport.heartbeat_process import ALIVE, BEAT_S, STOPPED
from headwater.cluster.transport.problems import ConnectFailure, Problem
from headwater.cluster.transport.security import Security
from headwater.errors import OpError

_log = logging.getLogger("headwater")

#: A task is lost this long after its last heartbeat, in seconds.
SILENCE_S = 15.0
#: A task is lost when it is stopped for this long, in seconds. A shorter stop only delays the job.
STOPPED_S = 2.5
#: A task that has never sent a heartbeat is lost after this long, in seconds: it may be too busy to accept a lifeline.
NO_HEARTBEAT_S = 60.0
_DIAL_TIMEOUT_S = 2.0
_REDIAL_INTERVAL_S = 1.0
_MAX_BEATS = 4096


class FailureDetector:
    """Failure detector for a task, based on its heartbeats. Times are in seconds of a monotonic clock.

    Args:
      silence_s: see `SILENCE_S`.
      stopped_s: see `STOPPED_S`.
      now: the time.
      unknown_s: see `NO_HEARTBEAT_S`.
    """

    def __init__(self, silence_s: float, stopped_s: float, now: float, unknown_s: float = NO_HEARTBEAT_S) -> None:
        self._silence_s = silence_s
        self._stopped_s = stopped_s
        self._unknown_s = unknown_s
        # In this order: whether any heartbeat has arrived; the time of the last one; the time of the last sign that the
        # task was not stopped; whether the last heartbeat reports it as stopped; the time of the last judgement.
        self._any_heard = False
        self._heard = now
        self._running = now
        self._stopped = False
        self._looked = now

    def record(self, beats: bytes, now: float) -> None:
        """Records heartbeats, the latest last."""
        self._any_heard = True
        self._heard = now
        self._stopped = beats.endswith(STOPPED)
        if not self._stopped:
            self._running = now

    def answer(self, now: float) -> None:
        """Records that the task has answered a call: it was not stopped at that moment, whatever its heartbeats say."""
        self._heard = self._running = now
        self._stopped = False

    def loss_reason(self, now: float, waited_s: float = BEAT_S) -> str:
        """Returns why the task is lost, in words; empty while it is not.

        Args:
          now: the time. Heartbeats that have arrived by then must have been passed to `record` before.
          waited_s: the intended time since the last call, in seconds. If the actual time is more than a second longer,
              this process did not run meanwhile, and the excess does not count as silence of the task.
        """
        stood_still = now - self._looked - waited_s - BEAT_S
        self._looked = now
        if stood_still > 0:
            self._heard = min(now, self._heard + stood_still)
            self._running = min(now, self._running + stood_still)
        if self._stopped and now - self._running >= self._stopped_s:
            return "it is stopped (SIGSTOP, Ctrl-Z or a debugger)"
        allowed = self._silence_s if self._any_heard else self._unknown_s
        if now - self._heard >= allowed:
            return (
                f"no heartbeat or other message for {allowed:g} s: its machine is stopped, or its "
                "machine or network has failed"
            )
        return ""

    def is_alive(self) -> bool:
        """Returns whether the last heartbeat is recent, and did not report that the task is stopped."""
        # Use the time of the last judgement, not the current time: this process may have been stopped since.
        return self._any_heard and not self._stopped and self._looked - self._heard < self._silence_s


class Lifeline:
    """Receives heartbeats of one task, in its own thread.

    Args:
      address: the address where the task listens.
      me: this end.
      wanted: the task, ``""`` for any; its generation is ignored, because a new incarnation of the task is alive, too.
      security: the security settings of this end.
      on_change: called in any thread: with the reason in words when the task is lost, and with ``""`` when heartbeats
        arrive again. Not called after `close`.
      silence_s: see `SILENCE_S`.
      stopped_s: see `STOPPED_S`.
      unknown_s: see `NO_HEARTBEAT_S`.
    """

    def __init__(
        self,
        address: Address,
        *,
        me: PeerIdentity,
        wanted: PeerIdentity,
        security: Security,
        on_change: Callable[[str], None],
        silence_s: float = SILENCE_S,
        stopped_s: float = STOPPED_S,
        unknown_s: float = NO_HEARTBEAT_S,
    ) -> None:
        self._address = address
        self._me = me
        self._wanted = wanted
        self._security = security
        self._on_change = on_change
        self._reason = ""
        self._gone = False
        self._answered = False
        self._detector = FailureDetector(silence_s, stopped_s, time.monotonic(), unknown_s)
        self._tried = threading.Event()
        self._closing = threading.Event()
        self._woken, self._waker = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name=f"hears {wanted.task or address}", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def wait_tried(self) -> None:
        """Waits until the first attempt to connect has ended. After it, heartbeats of a reachable task arrive."""
        self._tried.wait()

    def close(self) -> None:
        """Closes the lifeline. Thread-safe and idempotent. A running attempt to connect may continue for a moment."""
        if not self._closing.is_set():
            self._closing.set()
            self._tried.set()
            self._waker.close()
            if self._thread.ident is None:
                self._woken.close()

    def is_alive(self) -> bool:
        """Returns whether the last heartbeat is recent, and did not report that the task is stopped."""
        return self._detector.is_alive()

    def record_answer(self) -> None:
        """Records that a task that was reported lost has answered a call, so it ran at that moment.

        If the task is stopped again before its next heartbeat, no heartbeat shows that it ran in between. Without this
        call the task would still count as lost.
        """
        self._answered = True

    def _run(self) -> None:
        with self._woken:
            while not self._closing.is_set():
                connection = self._dial()
                self._tried.set()
                if not self._gone:
                    # An attempt to connect and the pause after it may take this long. Only more time than that counts
                    # as time in which this process did not run.
                    self._judge(2 * _DIAL_TIMEOUT_S + _REDIAL_INTERVAL_S)
                if connection is not None:
                    with connection:
                        self._listen(connection)
                self._closing.wait(_REDIAL_INTERVAL_S)

    def _dial(self) -> socket.socket | None:
        try:
            connection = connect_lifeline(
                self._address, me=self._me, wanted=self._wanted, security=self._security, timeout_s=_DIAL_TIMEOUT_S
            )
        except (ConnectFailure, OpError) as error:
            # If nothing listens, the task has exited. Do not report that here: its channels report it, after the frames
            # that the task sent before its exit.
            self._gone = isinstance(error, ConnectFailure) and error.problem is Problem.REFUSED
            _log.debug("%s has no lifeline to %s: %s", self._me.task, self._wanted.task or self._address, error)
            return None
        self._gone = False
        self._detector.record(ALIVE, time.monotonic())
        return socket.socket(fileno=connection.detach()) if isinstance(connection, ssl.SSLSocket) else connection

    def _listen(self, connection: socket.socket) -> None:
        """Receives heartbeats until the connection ends or breaks."""
        connection.setblocking(False)
        poll = select.poll()
        poll.register(connection, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        while not self._closing.is_set():
            poll.poll(BEAT_S * 1000)
            try:
                while beats := connection.recv(_MAX_BEATS):
                    self._detector.record(beats, time.monotonic())
                return  # the task, or its helper process, has ended
            except BlockingIOError:
                self._judge()
            except OSError:
                return

    def _judge(self, waited_s: float = BEAT_S) -> None:
        now = time.monotonic()
        if self._answered:
            self._answered = False
            self._detector.answer(now)
            self._reason = ""
        reason = self._detector.loss_reason(now, waited_s)
        if bool(reason) != bool(self._reason) and not self._closing.is_set():
            self._reason = reason
            self._on_change(reason)
