"""The one public port of a task, for channels and for the control plane.

The first bytes of a connection show its kind. If they are a channel's preamble, a new thread makes the handshake and
then serves the channel. Any other connection is forwarded, byte for byte, to the task's gRPC server, which listens on a
Unix socket that no other user can reach. A single thread does all work before the handshake, so a connection that sends
nothing costs only a descriptor. A handshake or a call to the control plane authenticates a connection. Until then, the
connection is one of the `UnauthenticatedConnections`. Their number is limited: new connections displace old ones.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import os
import resource
import secrets
import selectors
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from headwater.cluster.addresses import Address
from headwater.cluster.transport import heartbeats
from headwater.cluster.transport.accepting import Refusal, receive_greeting
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.daemon_threads import DaemonThreads
from headwater.cluster.transport.handshake import FULL, PREAMBLE, HandshakeResult, Offer, PeerIdentity, TimedMessages
from headwater.cluster.transport.options import TransportOptions
from headwater.cluster.transport.ports import listen
from headwater.cluster.transport.problems import NO_DESCRIPTORS
from headwater.cluster.transport.security import Security
from headwater.cluster.transport.shared import SharedMemoryChannel
from headwater.cluster.transport.sockets import SocketChannel, TlsChannel
from headwater.cluster.transport.splice import Splice
from headwater.cluster.transport.unauthenticated import UnauthenticatedConnections
from headwater.cluster.transport.workplace import Workplace
from headwater.errors import CancelledError, OpError, UnavailableError

_log = logging.getLogger("headwater")

#: How long to pause when a connection could not be accepted for lack of descriptors, in seconds.
_PAUSE_S = 0.5
#: Number of descriptors reserved for the task's other work. A connection that would need one of them is refused.
_KEPT_DESCRIPTORS = 32
#: How long to wait for the first bytes of a connection that is turned away, in seconds.
_REFUSAL_WAIT_S = 0.05
#: Maximum number of unused tickets; beyond it the oldest is invalidated.
_MAX_TICKETS = 1024
#: Minimum interval at which the accepting thread checks for overdue connections, in seconds.
_SHORTEST_S = 0.02
#: If the accepting thread did not run for longer than this, in seconds, authentication deadlines are extended by the
#: time during which it did not run.
_MIN_PAUSE_S = 1.0
#: Minimum interval of messages about dropped connections, in seconds.
_REPORT_DROPPED_S = 1.0
#: Format of the credentials of the process at the other end of a Unix socket: pid, user, group.
_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True, kw_only=True, slots=True)
class ListenerStatistics:
    """Numbers of connections of a listener.

    Attributes:
      unauthenticated: unauthenticated connections.
      channels: open channels.
      control: connections forwarded to the control plane, authenticated or not.
      refused: connections refused so far.
    """

    unauthenticated: int
    channels: int
    control: int
    refused: int


#: The addresses of this process's listeners.
_listening_here: set[Address] = set()


def listens_here(address: Address) -> bool:
    """Returns whether a listener of this process has the address."""
    return address in _listening_here


def machine_id() -> str:
    """Returns the boot id, which all processes under this machine's running kernel share; empty if there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


class Listener:
    """Accepts channels at a task's address.

    Args:
      address: the address; with port 0 the system chooses the port.
      me: this task.
      security: the security settings.
      on_channel: called with each channel in a new thread. The channel is closed when the call returns.
      options: limits.
      workplace: the directory of the listener's Unix socket.
      control_path: the Unix socket of the gRPC server; None if there is none.
      environ: see `headwater.cluster.transport.ports.listen`.

    Raises:
      PermissionDeniedError: other machines could reach the task, and no authentication is configured.
      AlreadyExistsError, UnavailableError: see `headwater.cluster.transport.ports.listen`.
    """

    def __init__(
        self,
        address: Address,
        *,
        me: PeerIdentity,
        security: Security,
        on_channel: Callable[[Channel], None],
        options: TransportOptions,
        workplace: Workplace,
        control_path: str | None = None,
        environ: MutableMapping[str, str] | None = None,
    ) -> None:
        self._me = me
        self._tls = security.server_context() if security.certificate_file is not None else None
        self._on_channel = on_channel
        self._options = options
        self._control_path = control_path
        self._listening = listen(address, environ=environ)
        try:
            bound = self._listening.getsockname()
            security.check_may_listen(bound[0])
            #: The security settings of this address.
            self.security: Security = security.for_host(bound[0])
            self.security.tokens()  # if the secret is unavailable, fail here, not at the first connection
        except OpError:
            self._listening.close()
            raise
        self.address: Address = Address(address.host, bound[1])
        _listening_here.add(self.address)
        self._machine = machine_id() if options.local_sockets else ""
        self._local_path = str(workplace.path / "channels")
        self._local: socket.socket | None = None
        if self._machine:
            self._local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._local.bind(self._local_path)
            os.chmod(self._local_path, 0o600)  # before `listen`, so that no other user can connect
            self._local.listen(_MAX_TICKETS)
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        self._spare: int | None = _new_spare()
        self._waker.setblocking(False)
        self._stopping = False
        self._unauthenticated: UnauthenticatedConnections[_Unauthenticated] = UnauthenticatedConnections(
            options.max_unauthenticated, options.handshake_s, time.monotonic
        )
        self._splices: set[Splice] = set()
        # Connections by the names of their sockets to the control plane.
        self._callers: dict[str, _Unauthenticated] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._refused = 0
        self._dropped = 0
        self._reported_dropped_at = -math.inf
        self._channels: set[Channel] = set()
        self._tickets: dict[bytes, PeerIdentity] = {}
        self._channel_threads = DaemonThreads(f"{me.task} channel")
        self._thread = threading.Thread(target=self._run, name=f"{me.task} accepts", daemon=True)

    def start(self) -> None:
        """Starts to accept connections."""
        self._thread.start()

    def stop(self) -> None:
        """Stops accepting, and closes all accepted connections. Idempotent."""
        self._stopping = True
        _listening_here.discard(self.address)
        self._wake()
        if self._thread.ident is not None:
            self._thread.join()
        else:
            self._close_all()
        with self._lock:
            channels = list(self._channels)
        for channel in channels:
            channel.close()
        self._channel_threads.shutdown()

    def channels(self) -> list[Channel]:
        """Returns the open channels."""
        with self._lock:
            return list(self._channels)

    def statistics(self) -> ListenerStatistics:
        """Returns the current numbers of connections."""
        with self._lock:
            return ListenerStatistics(
                unauthenticated=len(self._unauthenticated),
                channels=len(self._channels),
                control=len(self._splices),
                refused=self._refused,
            )

    def trust(self, caller: str) -> None:
        """Marks a connection to the control plane as authenticated, as a call on it was accepted.

        Args:
          caller: gRPC's name of the connection's other end.
        """
        with self._lock:
            candidate = self._callers.pop(caller, None)
        if candidate is not None:
            self._unauthenticated.remove(candidate)
            self._wake()

    # --- in the accepting thread

    def _run(self) -> None:
        accepting = [sock for sock in (self._listening, self._local) if sock is not None]
        for sock in accepting:
            sock.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ, lambda: self._woken.recv(4096))
        open_again_at = 0.0
        watching = False
        while not self._stopping:
            full = self._unauthenticated.connection_to_drop()
            now = time.monotonic()
            # Do not accept connections while descriptors are exhausted, or while all unauthenticated connections are
            # too new to be dropped.
            wanted = now >= open_again_at and (full is None or full[1] == 0)
            if wanted != watching:
                for sock in accepting:
                    if wanted:
                        self._selector.register(sock, selectors.EVENT_READ, sock)
                    else:
                        self._selector.unregister(sock)
                watching = wanted
            pause = self._pause(open_again_at, full[1] if full is not None else 0.0)
            for key, _ in self._selector.select(pause):
                if isinstance(key.data, socket.socket):
                    if not self._accept(key.data):
                        open_again_at = time.monotonic() + _PAUSE_S
                elif self._selector.get_map().get(key.fd) == key:  # no earlier event has closed it
                    key.data()
            # The time during which this thread did not run, for example because of SIGSTOP, and so could not read from
            # clients.
            stood_still = time.monotonic() - now - (pause or 0.0)
            if stood_still > _MIN_PAUSE_S and pause is not None:
                self._unauthenticated.extend_deadlines(stood_still)
            for candidate in self._unauthenticated.overdue():
                self._close_overdue(candidate)
        self._close_all()

    def _pause(self, open_again_at: float, room_in_s: float) -> float | None:
        """Returns how long the thread may sleep, in seconds; None for no limit."""
        retry_in_s = open_again_at - time.monotonic()
        deadline = self._unauthenticated.next_deadline_s()
        times = [seconds for seconds in (retry_in_s, room_in_s) if seconds > 0]
        return min(times if deadline is None else [*times, max(_SHORTEST_S, deadline)], default=None)

    def _accept(self, listening: socket.socket) -> bool:
        try:
            sock, _ = listening.accept()
        except (BlockingIOError, ConnectionError):
            return True
        except OSError as error:
            _log.error("%s cannot accept a connection: %s", self._me.task, error.strerror)
            if error.errno in NO_DESCRIPTORS:
                self._refuse_without_descriptors(listening)
            return False
        if sock.fileno() >= _descriptors():  # the system assigns the lowest free number
            self._refuse_as_full(sock)
            return False
        sock.setblocking(False)
        candidate = _Unauthenticated(sock)
        if listening is self._local and (user := _user_of(sock)) not in (0, os.geteuid()):
            self._refuse(candidate, f"it is a process of user {user}")
            return True
        full = self._unauthenticated.connection_to_drop()
        if full is not None:
            self._drop(full[0])
        self._unauthenticated.add(candidate)
        self._selector.register(sock, selectors.EVENT_READ, lambda: self._read(candidate))
        return True

    def _refuse_without_descriptors(self, listening: socket.socket) -> None:
        """Refuses a connection when no descriptor is left. It uses the spare descriptor to accept the connection.

        Otherwise the connection would stay in the queue, and the other end would wait without knowing the reason.
        """
        if self._spare is not None:
            os.close(self._spare)
            with contextlib.suppress(OSError):  # another thread took the descriptor, or the other end disconnected
                self._refuse_as_full(listening.accept()[0])
        self._spare = _new_spare()

    def _refuse_as_full(self, sock: socket.socket) -> None:
        """Tells the other end that there are no descriptors left, and closes the connection."""
        with contextlib.suppress(OSError):
            sock.settimeout(_REFUSAL_WAIT_S)
            with contextlib.suppress(TimeoutError):  # closing with unread data would lose the answer
                sock.recv(len(PREAMBLE) + 1)
            sock.sendall(PREAMBLE + bytes([FULL]))
        self._refuse(_Unauthenticated(sock), "it has reached its limit of open files. Raise the limit (ulimit -n)")

    def _read(self, candidate: _Unauthenticated) -> None:
        try:
            more = candidate.sock.recv(len(PREAMBLE) - len(candidate.seen))
        except BlockingIOError:
            return
        except OSError:
            more = b""
        candidate.seen += more
        if not more:
            self._selector.unregister(candidate.sock)
            self._unauthenticated.remove(candidate)
            candidate.sock.close()
        elif candidate.seen == PREAMBLE:
            self._selector.unregister(candidate.sock)
            self._start_handshake(candidate)
        elif not PREAMBLE.startswith(candidate.seen):
            self._selector.unregister(candidate.sock)
            self._pass_on(candidate)

    def _close_overdue(self, candidate: _Unauthenticated) -> None:
        """Closes an overdue connection. A running handshake has its own timeout."""
        if candidate.messages is None and self._unauthenticated.remove(candidate):
            self._end(candidate)
            if candidate.splice is None:
                self._refuse(candidate, "it sent no greeting in time")
            else:
                # This is normal: after a restart of this task, other tasks may reconnect only to watch its health.
                self._refuse(candidate, "it made no call with a valid proof", logging.INFO)

    def _drop(self, candidate: _Unauthenticated) -> None:
        """Closes a connection to make room for another one."""
        if self._unauthenticated.remove(candidate):
            self._end(candidate)
            with self._lock:
                self._refused += 1
                self._dropped += 1
            now = time.monotonic()
            if now - self._reported_dropped_at >= _REPORT_DROPPED_S:
                self._reported_dropped_at = now
                _log.warning(
                    "%s dropped a connection from %s for others (%d so far): too many unauthenticated connections",
                    self._me.task,
                    candidate.place,
                    self._dropped,
                )

    def _end(self, candidate: _Unauthenticated) -> None:
        if candidate.messages is not None:
            candidate.messages.break_off()
        elif candidate.splice is not None:
            candidate.splice.close()
        else:
            self._selector.unregister(candidate.sock)
            candidate.sock.close()

    def _pass_on(self, candidate: _Unauthenticated) -> None:
        if (
            self._control_path is None
            or len(self._splices) >= self._options.max_control + self._options.max_unauthenticated
        ):
            self._unauthenticated.remove(candidate)
            self._refuse(candidate, "there is no control plane here" if self._control_path is None else "too many")
            return
        name = f"{self._control_path}-{next(self._numbers)}"
        try:
            server = _connect_from_named_socket(self._control_path, name)
        except OSError as error:
            self._unauthenticated.remove(candidate)
            self._refuse(candidate, f"the control plane does not answer: {error}")
            return
        # gRPC sends small messages, and Nagle's algorithm would delay them.
        if candidate.sock.family != socket.AF_UNIX:
            candidate.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        caller = f"unix:{name}"
        with self._lock:
            self._callers[caller] = candidate

        def ended(splice: Splice) -> None:
            self._splices.discard(splice)
            self._unauthenticated.remove(candidate)
            with self._lock:
                self._callers.pop(caller, None)

        candidate.splice = Splice(self._selector, candidate.sock, server, candidate.seen, ended)
        if not candidate.splice.closed:
            self._splices.add(candidate.splice)

    def _start_handshake(self, candidate: _Unauthenticated) -> None:
        candidate.messages = TimedMessages(candidate.sock, max(0.001, self._unauthenticated.remaining_s(candidate)))
        self._channel_threads.start(self._serve_candidate, candidate, candidate.messages)

    def _refuse(self, candidate: _Unauthenticated, reason: str, level: int = logging.WARNING) -> None:
        with self._lock:
            self._refused += 1
        _log.log(level, "%s refused a connection from %s: %s", self._me.task, candidate.place, reason)
        candidate.sock.close()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # it is awake already, or has stopped
            self._waker.send(b"\0")

    def _close_all(self) -> None:
        self._listening.close()
        if self._local is not None:
            self._local.close()
        for candidate in self._unauthenticated.all():
            if candidate.splice is None and self._unauthenticated.remove(candidate):
                self._end(candidate)
        for splice in list(self._splices):
            splice.close()
        self._selector.close()
        self._woken.close()
        self._waker.close()
        if self._spare is not None:
            os.close(self._spare)

    # --- in a channel's thread

    def _serve_candidate(self, candidate: _Unauthenticated, messages: TimedMessages) -> None:
        channel: Channel | None = None
        try:
            channel = self._handshake(candidate, messages)
        finally:
            self._unauthenticated.remove(candidate)
            if channel is not None:
                with self._lock:
                    self._channels.add(channel)
            self._wake()
        if channel is None:
            return
        if self._stopping:  # `stop` may have closed all channels just before this one was added
            channel.close()
        try:
            self._on_channel(channel)
        except (UnavailableError, CancelledError) as error:  # the usual end of a channel
            _log.debug("%s: %s", self._me.task, error.message)
        except Exception:  # noqa: BLE001 - the error concerns this channel only; other channels continue
            _log.exception("%s gave up the channel to %s", self._me.task, channel.peer)
        finally:
            channel.close()
            with self._lock:
                self._channels.discard(channel)

    def _handshake(self, candidate: _Unauthenticated, messages: TimedMessages) -> Channel | None:
        try:
            handshake = receive_greeting(
                messages,
                me=self._me,
                security=self.security,
                tls=self._tls,
                make_offer=lambda peer, lifeline: self._offer_to(candidate, peer, lifeline),
                redeem=self._redeem,
            )
        except (Refusal, OpError) as refusal:
            self._refuse(candidate, refusal.detail if isinstance(refusal, Refusal) else refusal.message)
            return None
        except TimeoutError:
            self._refuse(candidate, "it did not authenticate in time")
            return None
        except (OSError, EOFError) as error:
            _log.debug("%s lost a connection before it authenticated: %s", self._me.task, error)
            candidate.sock.close()
            return None
        if handshake is None or not handshake.lifeline:
            return make_channel(handshake, options=self._options) if handshake is not None else None
        try:
            heartbeats.add_connection(handshake.sock)
        except OSError as error:
            self._refuse(candidate, f"no helper process can be started to send heartbeats: {error}")
        return None

    def _offer_to(self, candidate: _Unauthenticated, peer: PeerIdentity, lifeline: bool) -> Offer | None:
        """Returns the offer to an authenticated ``peer``."""
        # Remove the connection now, before the handshake ends: an authenticated connection does not count towards the
        # maximum.
        self._unauthenticated.remove(candidate)
        if not lifeline:
            return self._make_offer(peer)
        # Start the helper before the answer: once the other end has its lifeline, it relies on heartbeats to detect
        # that this task is stopped.
        with contextlib.suppress(OSError):  # `heartbeats.add_connection` will report it
            heartbeats.ensure_running()
        return None

    def _make_offer(self, peer: PeerIdentity) -> Offer | None:
        if not self._machine:
            return None
        ticket = secrets.token_bytes(32)
        with self._lock:
            self._tickets[ticket] = peer
            if len(self._tickets) > _MAX_TICKETS:
                del self._tickets[next(iter(self._tickets))]
        return Offer(self._machine, self._local_path, ticket)

    def _redeem(self, ticket: bytes) -> PeerIdentity | None:
        with self._lock:
            return self._tickets.pop(ticket, None)  # a ticket is valid once


class _Unauthenticated:
    """An unauthenticated connection.

    Attributes:
      sock: the connection.
      place: the other end's address, for messages.
      host: the other end's host.
      seen: the bytes read so far.
      messages: the handshake, once it has begun.
      splice: the forwarding to the control plane, once it has begun.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.place = _from(sock)
        self.host = self.place.rpartition(":")[0]
        self.seen = b""
        self.messages: TimedMessages | None = None
        self.splice: Splice | None = None


def _descriptors() -> int:
    """Returns the limit of descriptor numbers for connections: the process's limit less the reserved ones."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if allowed == resource.RLIM_INFINITY else allowed - min(_KEPT_DESCRIPTORS, allowed // 4)


def _new_spare() -> int | None:
    """Opens a spare descriptor, to be freed when no other is left; returns None if none is available."""
    try:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def _connect_from_named_socket(path: str, name: str) -> socket.socket:
    """Connects to a Unix socket from a named socket. `Listener.trust` finds the caller's connection by that name."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.bind(name)
        os.unlink(name)  # the socket keeps its name without the file
        sock.connect(path)
    except OSError:
        sock.close()
        raise
    return sock


def _user_of(sock: socket.socket) -> int:
    """Returns the id of the user at the other end of a Unix socket.

    If the system does not report it, returns the id of this process's own user: no other user can enter the folder of
    the socket.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return os.geteuid()
    return _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[1]


def make_channel(handshake: HandshakeResult, *, options: TransportOptions) -> Channel:
    """Returns the channel over the connection of a handshake, at either end."""
    peer, generation = f"{handshake.peer.task} ({_from(handshake.sock)})", handshake.peer.generation
    limit = options.max_payload_bytes
    if handshake.lane is not None:
        return SharedMemoryChannel(
            handshake.sock, handshake.lane, peer=peer, peer_generation=generation, max_payload_bytes=limit
        )
    if isinstance(handshake.sock, ssl.SSLSocket):
        return TlsChannel(handshake.sock, peer=peer, peer_generation=generation, max_payload_bytes=limit)
    return SocketChannel(handshake.sock, peer=peer, peer_generation=generation, max_payload_bytes=limit)


def _from(sock: socket.socket) -> str:
    """Returns the other end's address, for messages."""
    try:
        place = sock.getpeername()
    except OSError:
        return "a closed connection"
    return str(Address(place[0], place[1])) if isinstance(place, tuple) else "this machine"
