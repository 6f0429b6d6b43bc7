"""The one public port of a task, for channels and for the control plane.

The first bytes of a connection tell which it is: a channel's preamble leads to a handshake and then to a thread of its
own; everything else goes on, byte for byte, to the task's gRPC server, which listens on a Unix socket that nobody else
can reach. One thread does all that until the handshake, so that a stranger who says nothing costs a descriptor and no
more. A bound on strangers and on their time sees to it that they do not add up.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from headwater.cluster.addresses import Address
from headwater.errors import CancelledError, OpError, UnavailableError
from headwater.transport.accepting import Refusal, receive_greeting
from headwater.transport.channel import Channel
from headwater.transport.handshake import PREAMBLE, Identity, Met, Offer
from headwater.transport.options import TransportOptions
from headwater.transport.ports import listen
from headwater.transport.security import Security
from headwater.transport.shared import SharedMemoryChannel
from headwater.transport.sockets import SocketChannel, TlsChannel
from headwater.transport.splice import Splice
from headwater.transport.workplace import Workplace

_log = logging.getLogger("headwater")

#: How long to pause after the system refused a connection for lack of descriptors, in seconds.
_PAUSE_S = 0.5
#: Tickets that were given and not shown yet; the oldest is forgotten beyond that.
_MAX_TICKETS = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class ListenerStatistics:
    """What a listener has to do with at the moment, and what it has refused.

    Attributes:
      strangers: connections that have not said who they are yet.
      channels: open channels.
      control: connections passed on to the control plane.
      refused: connections sent away so far.
    """

    strangers: int
    channels: int
    control: int
    refused: int


def machine_id() -> str:
    """What only processes under this machine's present kernel know alike; empty where the kernel has no such thing."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


class Listener:
    """Accepts channels at a task's address.

    Args:
      address: where; port 0 lets the system choose.
      me: this task.
      security: who is let in.
      on_channel: called with each channel in a thread of its own. The channel is closed when it returns.
      options: limits.
      workplace: where its Unix socket goes.
      control_path: the Unix socket of the gRPC server; None where there is none.
      environ: see `headwater.transport.ports.listen`.

    Raises:
      PermissionDeniedError: others could reach it and nothing guards it.
      AlreadyExistsError, UnavailableError: see `headwater.transport.ports.listen`.
    """

    def __init__(
        self,
        address: Address,
        *,
        me: Identity,
        security: Security,
        on_channel: Callable[[Channel], None],
        options: TransportOptions,
        workplace: Workplace,
        control_path: str | None = None,
        environ: MutableMapping[str, str] | None = None,
    ) -> None:
        self._me = me
        self._security = security
        self._tls = security.server_context() if security.certificate_file is not None else None
        self._on_channel = on_channel
        self._options = options
        self._control_path = control_path
        self._listening = listen(address, environ=environ)
        try:
            security.check_may_listen(self._listening.getsockname()[0])
        except OpError:
            self._listening.close()
            raise
        self.address = Address(address.host, self._listening.getsockname()[1])
        self._machine = machine_id() if options.local_sockets else ""
        self._local_path = str(workplace.path / "channels")
        self._local: socket.socket | None = None
        if self._machine:
            self._local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._local.bind(self._local_path)
            self._local.listen(_MAX_TICKETS)
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        self._stopping = False
        self._unread: dict[socket.socket, _Stranger] = {}
        self._splices: set[Splice] = set()
        self._lock = threading.Lock()
        self._greeting = 0
        self._refused = 0
        self._channels: set[Channel] = set()
        self._tickets: dict[bytes, Identity] = {}
        self._thread = threading.Thread(target=self._run, name=f"{me.task} accepts", daemon=True)

    def start(self) -> None:
        """Begins to accept."""
        self._thread.start()

    def stop(self) -> None:
        """Accepts no more and closes everything that was accepted. May be called again."""
        self._stopping = True
        self._wake()
        if self._thread.ident is not None:
            self._thread.join()
        else:
            self._close_all()
        with self._lock:
            channels = list(self._channels)
        for channel in channels:
            channel.close()

    def channels(self) -> list[Channel]:
        """The open channels."""
        with self._lock:
            return list(self._channels)

    def statistics(self) -> ListenerStatistics:
        """What is going on now."""
        with self._lock:
            return ListenerStatistics(
                strangers=len(self._unread) + self._greeting,
                channels=len(self._channels),
                control=len(self._splices),
                refused=self._refused,
            )

    # --- in the accepting thread

    def _run(self) -> None:
        accepting = [sock for sock in (self._listening, self._local) if sock is not None]
        for sock in accepting:
            sock.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ, lambda: self._woken.recv(4096))
        open_again_at = 0.0
        watching = False
        while not self._stopping:
            room = len(self._unread) + self._greeting < self._options.max_strangers
            wanted = room and time.monotonic() >= open_again_at
            if wanted != watching:
                for sock in accepting:
                    if wanted:
                        self._selector.register(sock, selectors.EVENT_READ, sock)
                    else:
                        self._selector.unregister(sock)
                watching = wanted
            for key, _ in self._selector.select(self._pause(open_again_at)):
                if isinstance(key.data, socket.socket):
                    if not self._accept(key.data):
                        open_again_at = time.monotonic() + _PAUSE_S
                elif self._selector.get_map().get(key.fd) == key:  # nothing before it in the row has closed it
                    key.data()
            self._drop_the_silent()
        self._close_all()

    def _pause(self, open_again_at: float) -> float | None:
        """How long the thread may sleep, in seconds; None for ever."""
        now = time.monotonic()
        times = [stranger.deadline for stranger in self._unread.values()]
        if open_again_at > now:
            times.append(open_again_at)
        return max(0.0, min(times) - now) if times else None

    def _accept(self, listening: socket.socket) -> bool:
        try:
            sock, _ = listening.accept()
        except (BlockingIOError, ConnectionError):
            return True
        except OSError as error:
            _log.error("%s cannot accept a connection: %s", self._me.task, error)
            return False
        sock.setblocking(False)
        stranger = _Stranger(sock, _from(sock), time.monotonic() + self._options.handshake_s)
        self._unread[sock] = stranger
        self._selector.register(sock, selectors.EVENT_READ, lambda: self._read(stranger))
        return True

    def _read(self, stranger: _Stranger) -> None:
        try:
            more = stranger.sock.recv(len(PREAMBLE) - len(stranger.seen))
        except BlockingIOError:
            return
        except OSError:
            more = b""
        stranger.seen += more
        if not more:
            self._forget(stranger)
            stranger.sock.close()
        elif stranger.seen == PREAMBLE:
            self._forget(stranger)
            self._meet(stranger)
        elif not PREAMBLE.startswith(stranger.seen):
            self._forget(stranger)
            self._pass_on(stranger)

    def _forget(self, stranger: _Stranger) -> None:
        self._selector.unregister(stranger.sock)
        del self._unread[stranger.sock]

    def _drop_the_silent(self) -> None:
        now = time.monotonic()
        for stranger in [stranger for stranger in self._unread.values() if stranger.deadline <= now]:
            self._forget(stranger)
            self._refuse(stranger, "it did not say what it wants in time")

    def _pass_on(self, stranger: _Stranger) -> None:
        if self._control_path is None or len(self._splices) >= self._options.max_control:
            self._refuse(stranger, "there is no control plane here" if self._control_path is None else "too many")
            return
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.setblocking(False)
        try:
            server.connect(self._control_path)
        except OSError as error:
            server.close()
            self._refuse(stranger, f"the control plane does not answer: {error}")
            return
        if stranger.sock.family != socket.AF_UNIX:
            stranger.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._splices.add(Splice(self._selector, stranger.sock, server, stranger.seen, self._splices.discard))

    def _meet(self, stranger: _Stranger) -> None:
        with self._lock:
            self._greeting += 1
        threading.Thread(target=self._greet, args=(stranger,), name=f"{self._me.task} channel", daemon=True).start()

    def _refuse(self, stranger: _Stranger, reason: str) -> None:
        with self._lock:
            self._refused += 1
        _log.warning("%s refused a connection from %s: %s", self._me.task, stranger.place, reason)
        stranger.sock.close()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # it is awake already, or stopped
            self._waker.send(b"\0")

    def _close_all(self) -> None:
        self._listening.close()
        if self._local is not None:
            self._local.close()
        for stranger in list(self._unread.values()):
            self._forget(stranger)
            stranger.sock.close()
        for splice in list(self._splices):
            splice.close()
        self._selector.close()
        self._woken.close()
        self._waker.close()

    # --- in a channel's thread

    def _greet(self, stranger: _Stranger) -> None:
        channel: Channel | None = None
        try:
            channel = self._handshake(stranger)
        finally:
            with self._lock:
                self._greeting -= 1
                if channel is not None:
                    self._channels.add(channel)
            self._wake()
        if channel is None:
            return
        if self._stopping:
            channel.close()
        try:
            self._on_channel(channel)
        except (UnavailableError, CancelledError) as error:  # how conversations end
            _log.debug("%s: %s", self._me.task, error.message)
        except Exception:  # noqa: BLE001 - whatever it is, it is this conversation's; the others go on
            _log.exception("%s gave up the channel to %s", self._me.task, channel.peer)
        finally:
            channel.close()
            with self._lock:
                self._channels.discard(channel)

    def _handshake(self, stranger: _Stranger) -> Channel | None:
        try:
            met = receive_greeting(
                stranger.sock,
                me=self._me,
                security=self._security,
                tls=self._tls,
                make_offer=self._make_offer,
                redeem=self._redeem,
                timeout_s=max(0.001, stranger.deadline - time.monotonic()),
            )
        except Refusal as refusal:
            self._refuse(stranger, refusal.detail)
            return None
        except TimeoutError:
            self._refuse(stranger, "it did not say who it is in time")
            return None
        except (OSError, EOFError) as error:
            _log.debug("%s lost a connection before it said who it is: %s", self._me.task, error)
            stranger.sock.close()
            return None
        return make_channel(met, options=self._options) if met is not None else None

    def _make_offer(self, peer: Identity) -> Offer | None:
        if not self._machine:
            return None
        ticket = secrets.token_bytes(32)
        with self._lock:
            self._tickets[ticket] = peer
            if len(self._tickets) > _MAX_TICKETS:
                del self._tickets[next(iter(self._tickets))]
        return Offer(self._machine, self._local_path, ticket)

    def _redeem(self, ticket: bytes) -> Identity | None:
        with self._lock:
            return self._tickets.pop(ticket, None)


class _Stranger:
    """A connection that has not said what it is."""

    def __init__(self, sock: socket.socket, place: str, deadline: float) -> None:
        self.sock = sock
        self.place = place
        self.deadline = deadline
        self.seen = b""


def make_channel(met: Met, *, options: TransportOptions) -> Channel:
    """The channel over what a handshake gave, at either end."""
    peer, generation = f"{met.peer.task} ({_from(met.sock)})", met.peer.generation
    limit = options.max_payload_bytes
    if met.lane is not None:
        return SharedMemoryChannel(met.sock, met.lane, peer=peer, peer_generation=generation, max_payload_bytes=limit)
    if isinstance(met.sock, ssl.SSLSocket):
        return TlsChannel(met.sock, peer=peer, peer_generation=generation, max_payload_bytes=limit)
    return SocketChannel(met.sock, peer=peer, peer_generation=generation, max_payload_bytes=limit)


def _from(sock: socket.socket) -> str:
    """The other end's address, for people."""
    try:
        place = sock.getpeername()
    except OSError:
        return "a closed connection"
    return str(Address(place[0], place[1])) if isinstance(place, tuple) else "this machine"
