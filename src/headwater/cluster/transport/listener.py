"""The one public port of a task, for channels and for the control plane.

The first bytes of a connection tell which it is: a channel's preamble leads to a handshake and then to a thread of its
own; everything else goes on, byte for byte, to the task's gRPC server, which listens on a Unix socket that no other
user can reach. One thread does all that until the handshake, so that a stranger who says nothing costs a descriptor and
no more. Until it has proved who it is, by a handshake or by a call to the control plane, a connection is one of a
bounded number of `Strangers`, which sees to it that they do not add up.
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
from headwater.cluster.transport import heart
from headwater.cluster.transport.accepting import Refusal, receive_greeting
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.daemon_threads import DaemonThreads
from headwater.cluster.transport.handshake import FULL, PREAMBLE, Identity, Met, Offer, TimedMessages
from headwater.cluster.transport.options import TransportOptions
from headwater.cluster.transport.ports import listen
from headwater.cluster.transport.problems import NO_DESCRIPTORS
from headwater.cluster.transport.security import Security
from headwater.cluster.transport.shared import SharedMemoryChannel
from headwater.cluster.transport.sockets import SocketChannel, TlsChannel
from headwater.cluster.transport.splice import Splice
from headwater.cluster.transport.strangers import Strangers
from headwater.cluster.transport.workplace import Workplace
from headwater.errors import CancelledError, OpError, UnavailableError

_log = logging.getLogger("headwater")

#: How long to pause after the system refused a connection for lack of descriptors, in seconds.
_PAUSE_S = 0.5
#: Descriptors that are kept for what the task does besides: a connection that would take one of them is turned away.
_KEPT_DESCRIPTORS = 32
#: How long a connection that is turned away for that has to say how it begins, in seconds.
_FAREWELL_S = 0.05
#: Tickets that were given and not shown yet; the oldest is forgotten beyond that.
_MAX_TICKETS = 1024
#: The accepting thread looks for connections that are overdue at most this often, in seconds.
_SHORTEST_S = 0.02
#: When the accepting thread was kept from running for so long, in seconds, strangers get that time back.
_STOOD_STILL_S = 1.0
#: How often the log says at most that strangers were dropped for others, in seconds.
_REPORT_DROPPED_S = 1.0
#: How the kernel gives the process at the other end of a Unix socket: pid, user, group.
_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True, kw_only=True, slots=True)
class ListenerStatistics:
    """What a listener has to do with at the moment, and what it has refused.

    Attributes:
      strangers: connections that have not proved who they are yet.
      channels: open channels.
      control: connections passed on to the control plane, proved or not.
      refused: connections sent away so far.
    """

    strangers: int
    channels: int
    control: int
    refused: int


_listening_here: set[Address] = set()


def listens_here(address: Address) -> bool:
    """Whether a listener of this process has the address."""
    return address in _listening_here


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
      environ: see `headwater.cluster.transport.ports.listen`.

    Raises:
      PermissionDeniedError: others could reach it and nothing guards it.
      AlreadyExistsError, UnavailableError: see `headwater.cluster.transport.ports.listen`.
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
        self._tls = security.server_context() if security.certificate_file is not None else None
        self._on_channel = on_channel
        self._options = options
        self._control_path = control_path
        self._listening = listen(address, environ=environ)
        try:
            bound = self._listening.getsockname()
            security.check_may_listen(bound[0])
            #: What guards this address.
            self.security: Security = security.at(bound[0])
            self.security.tokens()  # a secret that cannot be had is this task's problem, not that of who connects
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
            os.chmod(self._local_path, 0o600)
            self._local.listen(_MAX_TICKETS)
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        self._spare: int | None = _new_spare()
        self._waker.setblocking(False)
        self._stopping = False
        self._strangers: Strangers[_Stranger] = Strangers(options.max_strangers, options.handshake_s, time.monotonic)
        self._splices: set[Splice] = set()
        # By the names of their sockets at the control plane.
        self._callers: dict[str, _Stranger] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._refused = 0
        self._dropped = 0
        self._reported_dropped_at = -math.inf
        self._channels: set[Channel] = set()
        self._tickets: dict[bytes, Identity] = {}
        self._channel_threads = DaemonThreads(f"{me.task} channel")
        self._thread = threading.Thread(target=self._run, name=f"{me.task} accepts", daemon=True)

    def start(self) -> None:
        """Begins to accept."""
        self._thread.start()

    def stop(self) -> None:
        """Accepts no more and closes everything that was accepted. May be called again."""
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
        """The open channels."""
        with self._lock:
            return list(self._channels)

    def statistics(self) -> ListenerStatistics:
        """What is going on now."""
        with self._lock:
            return ListenerStatistics(
                strangers=len(self._strangers),
                channels=len(self._channels),
                control=len(self._splices),
                refused=self._refused,
            )

    def trust(self, caller: str) -> None:
        """A call to the control plane was let in: its connection may stay.

        Args:
          caller: what gRPC calls the connection's other end.
        """
        with self._lock:
            stranger = self._callers.pop(caller, None)
        if stranger is not None:
            self._strangers.remove(stranger)
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
            full = self._strangers.to_drop()
            now = time.monotonic()
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
                elif self._selector.get_map().get(key.fd) == key:  # nothing before it in the row has closed it
                    key.data()
            stood_still = time.monotonic() - now - (pause or 0.0)
            if stood_still > _STOOD_STILL_S and pause is not None:
                self._strangers.forgive(stood_still)
            for stranger in self._strangers.overdue():
                self._send_away(stranger)
        self._close_all()

    def _pause(self, open_again_at: float, room_in_s: float) -> float | None:
        """How long the thread may sleep, in seconds; None for ever."""
        left = open_again_at - time.monotonic()
        deadline = self._strangers.next_deadline_s()
        times = [seconds for seconds in (left, room_in_s) if seconds > 0]
        return min(times if deadline is None else [*times, max(_SHORTEST_S, deadline)], default=None)

    def _accept(self, listening: socket.socket) -> bool:
        try:
            sock, _ = listening.accept()
        except (BlockingIOError, ConnectionError):
            return True
        except OSError as error:
            _log.error("%s cannot accept a connection: %s", self._me.task, error.strerror)
            if error.errno in NO_DESCRIPTORS:
                self._accept_in_vain(listening)
            return False
        if sock.fileno() >= _descriptors():  # the system gives the lowest that is free
            self._turn_away(sock)
            return False
        sock.setblocking(False)
        stranger = _Stranger(sock)
        if listening is self._local and (user := _user_of(sock)) not in (0, os.geteuid()):
            self._refuse(stranger, f"it is a process of user {user}")
            return True
        full = self._strangers.to_drop()
        if full is not None:
            self._drop(full[0])
        self._strangers.add(stranger)
        self._selector.register(sock, selectors.EVENT_READ, lambda: self._read(stranger))
        return True

    def _accept_in_vain(self, listening: socket.socket) -> None:
        """Turns a connection away where there is no descriptor at all, by the one that is kept for this."""
        if self._spare is not None:
            os.close(self._spare)
            with contextlib.suppress(OSError):  # another thread was faster, or the other end left
                self._turn_away(listening.accept()[0])
        self._spare = _new_spare()

    def _turn_away(self, sock: socket.socket) -> None:
        """Tells the other end that there are no descriptors left."""
        with contextlib.suppress(OSError):
            sock.settimeout(_FAREWELL_S)
            with contextlib.suppress(TimeoutError):  # what is not read here would end the answer, too
                sock.recv(len(PREAMBLE) + 1)
            sock.sendall(PREAMBLE + bytes([FULL]))
        self._refuse(_Stranger(sock), "it has as many open files as it may have. Raise the limit (ulimit -n)")

    def _read(self, stranger: _Stranger) -> None:
        try:
            more = stranger.sock.recv(len(PREAMBLE) - len(stranger.seen))
        except BlockingIOError:
            return
        except OSError:
            more = b""
        stranger.seen += more
        if not more:
            self._selector.unregister(stranger.sock)
            self._strangers.remove(stranger)
            stranger.sock.close()
        elif stranger.seen == PREAMBLE:
            self._selector.unregister(stranger.sock)
            self._meet(stranger)
        elif not PREAMBLE.startswith(stranger.seen):
            self._selector.unregister(stranger.sock)
            self._pass_on(stranger)

    def _send_away(self, stranger: _Stranger) -> None:
        """Ends a connection whose time is over. One that greets ends by itself."""
        if stranger.talk is None and self._strangers.remove(stranger):
            self._end(stranger)
            if stranger.splice is None:
                self._refuse(stranger, "it did not say what it wants in time")
            else:
                # As a task does that only hears whether this one lives, since this one was started anew: no fault.
                self._refuse(stranger, "it calls nothing for which it shows the token", logging.INFO)

    def _drop(self, stranger: _Stranger) -> None:
        """Ends a connection to make room."""
        if self._strangers.remove(stranger):
            self._end(stranger)
            with self._lock:
                self._refused += 1
                self._dropped += 1
            now = time.monotonic()
            if now - self._reported_dropped_at >= _REPORT_DROPPED_S:
                self._reported_dropped_at = now
                _log.warning(
                    "%s dropped a connection from %s for others (%d so far): too many at once do not say who they are",
                    self._me.task,
                    stranger.place,
                    self._dropped,
                )

    def _end(self, stranger: _Stranger) -> None:
        if stranger.talk is not None:
            stranger.talk.break_off()
        elif stranger.splice is not None:
            stranger.splice.close()
        else:
            self._selector.unregister(stranger.sock)
            stranger.sock.close()

    def _pass_on(self, stranger: _Stranger) -> None:
        if self._control_path is None or len(self._splices) >= self._options.max_control + self._options.max_strangers:
            self._strangers.remove(stranger)
            self._refuse(stranger, "there is no control plane here" if self._control_path is None else "too many")
            return
        name = f"{self._control_path}-{next(self._numbers)}"
        try:
            server = _named_connection(self._control_path, name)
        except OSError as error:
            self._strangers.remove(stranger)
            self._refuse(stranger, f"the control plane does not answer: {error}")
            return
        if stranger.sock.family != socket.AF_UNIX:
            stranger.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        caller = f"unix:{name}"
        with self._lock:
            self._callers[caller] = stranger

        def ended(splice: Splice) -> None:
            self._splices.discard(splice)
            self._strangers.remove(stranger)
            with self._lock:
                self._callers.pop(caller, None)

        stranger.splice = Splice(self._selector, stranger.sock, server, stranger.seen, ended)
        if not stranger.splice.closed:
            self._splices.add(stranger.splice)

    def _meet(self, stranger: _Stranger) -> None:
        stranger.talk = TimedMessages(stranger.sock, max(0.001, self._strangers.remaining_s(stranger)))
        self._channel_threads.start(self._greet, stranger, stranger.talk)

    def _refuse(self, stranger: _Stranger, reason: str, level: int = logging.WARNING) -> None:
        with self._lock:
            self._refused += 1
        _log.log(level, "%s refused a connection from %s: %s", self._me.task, stranger.place, reason)
        stranger.sock.close()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # it is awake already, or stopped
            self._waker.send(b"\0")

    def _close_all(self) -> None:
        self._listening.close()
        if self._local is not None:
            self._local.close()
        for stranger in self._strangers.all():
            if stranger.splice is None and self._strangers.remove(stranger):
                self._end(stranger)
        for splice in list(self._splices):
            splice.close()
        self._selector.close()
        self._woken.close()
        self._waker.close()
        if self._spare is not None:
            os.close(self._spare)

    # --- in a channel's thread

    def _greet(self, stranger: _Stranger, talk: TimedMessages) -> None:
        channel: Channel | None = None
        try:
            channel = self._handshake(stranger, talk)
        finally:
            self._strangers.remove(stranger)
            if channel is not None:
                with self._lock:
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

    def _handshake(self, stranger: _Stranger, talk: TimedMessages) -> Channel | None:
        try:
            met = receive_greeting(
                talk,
                me=self._me,
                security=self.security,
                tls=self._tls,
                make_offer=lambda peer, lifeline: self._let_in(stranger, peer, lifeline),
                redeem=self._redeem,
            )
        except (Refusal, OpError) as refusal:
            self._refuse(stranger, refusal.detail if isinstance(refusal, Refusal) else refusal.message)
            return None
        except TimeoutError:
            self._refuse(stranger, "it did not say who it is in time")
            return None
        except (OSError, EOFError) as error:
            _log.debug("%s lost a connection before it said who it is: %s", self._me.task, error)
            stranger.sock.close()
            return None
        if met is None or not met.lifeline:
            return make_channel(met, options=self._options) if met is not None else None
        try:
            heart.hand_over(met.sock)
        except OSError as error:
            self._refuse(stranger, f"no process can be started that beats for this one: {error}")
        return None

    def _let_in(self, stranger: _Stranger, peer: Identity, lifeline: bool) -> Offer | None:
        """What to offer to ``peer``, which has proved who it is."""
        self._strangers.remove(stranger)
        if not lifeline:
            return self._make_offer(peer)
        # Before the answer: once the other end counts this one among the living, it must be told when that changes.
        with contextlib.suppress(OSError):  # as `heart.hand_over` says in the end
            heart.begin()
        return None

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
    """A connection that has not proved who is at its other end.

    Attributes:
      sock: the connection.
      place: the other end's address, for people.
      host: its host.
      seen: what was read of it.
      talk: its handshake, once that has begun.
      splice: its way to the control plane, once it has one.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.place = _from(sock)
        self.host = self.place.rpartition(":")[0]
        self.seen = b""
        self.talk: TimedMessages | None = None
        self.splice: Splice | None = None


def _descriptors() -> int:
    """How many descriptors connections may have, with all that is open besides."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if allowed == resource.RLIM_INFINITY else allowed - min(_KEPT_DESCRIPTORS, allowed // 4)


def _new_spare() -> int | None:
    """A descriptor to give up when there is no other; None where there is none now."""
    try:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def _named_connection(path: str, name: str) -> socket.socket:
    """A connection to a Unix socket whose near end has a name: by it, the control plane can tell whose call it has
    let in."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.bind(name)
        os.unlink(name)
        sock.connect(path)
    except OSError:
        sock.close()
        raise
    return sock


def _user_of(sock: socket.socket) -> int:
    """The id of the user whose process is at the other end of a Unix socket; this process's own where the system does
    not tell: the folder of the socket keeps others out."""
    if not hasattr(socket, "SO_PEERCRED"):
        return os.geteuid()
    return _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[1]


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
