"""One attempt to open a channel to a task."""

from __future__ import annotations

import contextlib
import socket

from headwater.cluster.addresses import Address
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.dialling import dialling_handshake, show_ticket, stay
from headwater.cluster.transport.handshake import HandshakeResult, PeerIdentity
from headwater.cluster.transport.listener import machine_id, make_channel
from headwater.cluster.transport.options import TransportOptions
from headwater.cluster.transport.ports import resolve
from headwater.cluster.transport.problems import ConnectFailure, Problem, failure_of
from headwater.cluster.transport.security import Security


def connect(
    address: Address,
    *,
    me: PeerIdentity,
    wanted: PeerIdentity,
    security: Security,
    options: TransportOptions,
    timeout_s: float = 5.0,
) -> Channel:
    """Opens a channel.

    Args:
      address: the task's address.
      me: this task, or a client, with generation 0.
      wanted: the expected task, ``""`` for any, and its generation, 0 for any.
      security: the security settings of this end.
      options: limits.
      timeout_s: the timeout for each of name resolution, connection, and handshake, in seconds.

    Raises:
      ConnectFailure: the attempt failed; it has the reason.
    """
    try:
        sock = dial(address, timeout_s=timeout_s)
    except OSError as error:
        raise failure_of(error) from error
    try:
        return _introduce(sock, address, me, wanted, security, options, timeout_s)
    except TimeoutError as error:
        raise ConnectFailure(Problem.SILENT, "connected, but got no answer") from error
    except (OSError, EOFError) as error:
        raise failure_of(error) from error


def connect_lifeline(
    address: Address, *, me: PeerIdentity, wanted: PeerIdentity, security: Security, timeout_s: float
) -> socket.socket:
    """Opens a connection for heartbeats of the task; see `headwater.cluster.transport.lifeline`.

    Arguments and errors as in `connect`.
    """
    try:
        sock = dial(address, timeout_s=timeout_s)
        security = _at_other_end(sock, security)
        return dialling_handshake(
            sock, me=me, wanted=wanted, host=address.host, security=security, timeout_s=timeout_s, lifeline=True
        ).sock
    except (OSError, EOFError) as error:
        raise failure_of(error) from error


def _at_other_end(sock: socket.socket, security: Security) -> Security:
    """Returns `Security.for_host` for the address to which ``sock`` is connected. Closes ``sock`` on errors."""
    try:
        return security.for_host(sock.getpeername()[0])
    except BaseException:
        sock.close()
        raise


def _introduce(
    sock: socket.socket,
    address: Address,
    me: PeerIdentity,
    wanted: PeerIdentity,
    security: Security,
    options: TransportOptions,
    timeout_s: float,
) -> Channel:
    security = _at_other_end(sock, security)
    handshake = dialling_handshake(
        sock, me=me, wanted=wanted, host=address.host, security=security, timeout_s=timeout_s
    )
    with contextlib.ExitStack() as closing:
        closing.callback(handshake.sock.close)
        local = _local(handshake, options, timeout_s)
        if local is not None:
            return make_channel(local, options=options)
        if handshake.offer is not None:  # the accepting end waits for the acceptance or refusal of its offer
            stay(handshake.sock, timeout_s=timeout_s)
        channel = make_channel(handshake, options=options)
        closing.pop_all()
        return channel


def dial(address: Address, *, timeout_s: float) -> socket.socket:
    """Opens a TCP connection to the first of the host's addresses that answers; raises the error of the last one.

    Raises:
      OSError: unknown host, refused, no answer in time, no route.
    """
    places = resolve(address)
    for number, (family, place) in enumerate(places):
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.settimeout(timeout_s)
        try:
            sock.connect(place)
        except OSError:
            sock.close()
            if number == len(places) - 1:
                raise
        else:
            return sock
    raise OSError(f"the host {address.host} has no address")


def _local(handshake: HandshakeResult, options: TransportOptions, timeout_s: float) -> HandshakeResult | None:
    """Connects to the Unix socket of an offer; returns None if that is not possible from here."""
    offer = handshake.offer
    if offer is None or not options.local_sockets or offer.machine != machine_id():
        return None
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(timeout_s)
    try:
        sock.connect(offer.path)
        return show_ticket(sock, offer.ticket, handshake.peer, timeout_s=timeout_s)
    except (ConnectFailure, OSError, EOFError):
        # Another container under the same kernel has another file system.
        sock.close()
        return None
