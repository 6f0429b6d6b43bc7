"""The dialling end of a handshake; see `headwater.cluster.transport.handshake`."""

from __future__ import annotations

import contextlib
import secrets
import socket
import ssl

from headwater.cluster.transport.handshake import (
    ACCEPTED,
    ACCEPTING,
    DIALLING,
    FULL,
    LIFELINE,
    NONCE_BYTES,
    PREAMBLE,
    TICKET,
    TLS,
    VERSION,
    HandshakeResult,
    Offer,
    PeerIdentity,
    ProtocolViolation,
    TimedMessages,
    prove,
    proven,
)
from headwater.cluster.transport.problems import ConnectFailure, Problem, tls_reason
from headwater.cluster.transport.security import Security
from headwater.cluster.transport.shared import make_lane


def dialling_handshake(
    sock: socket.socket,
    *,
    me: PeerIdentity,
    wanted: PeerIdentity,
    host: str,
    security: Security,
    timeout_s: float,
    lifeline: bool = False,
) -> HandshakeResult:
    """Performs the handshake of the dialling end, up to the answer of the accepting end.

    If the result has an offer, the caller must call `stay` or close the socket. On an error the connection is closed.

    Args:
      sock: the connected socket.
      me: this end.
      wanted: the expected task, ``""`` for any, and its generation, 0 for any.
      host: the host as dialled; a certificate must be valid for it.
      security: this end's security settings.
      timeout_s: the timeout for the whole handshake, in seconds.
      lifeline: whether to open a connection for heartbeats instead of a channel.

    Raises:
      ConnectFailure: the other end refused, or is not the expected task.
      OSError, EOFError: the connection broke.
    """
    messages = TimedMessages(sock, timeout_s)
    with contextlib.ExitStack() as closing:
        closing.callback(lambda: messages.sock.close())  # look the socket up when closing: TLS may have replaced it
        try:
            met = _greet(messages, me, wanted, host, security, LIFELINE * lifeline)
        except ProtocolViolation as violation:
            detail = f"the listening process is not Headwater: it {violation}"
            raise ConnectFailure(Problem.NOT_HEADWATER, detail) from violation
        closing.pop_all()
        return met


def _greet(
    messages: TimedMessages, me: PeerIdentity, wanted: PeerIdentity, host: str, security: Security, flags: int
) -> HandshakeResult:
    messages.send(PREAMBLE + bytes([flags | (TLS if security.tls else 0)]))
    peer_flags = _receive_preamble(messages)
    if peer_flags & FULL:
        raise ConnectFailure(Problem.FULL, "it has reached its limit of open files")
    peer_tls = peer_flags & TLS
    if security.tls and not peer_tls:
        raise ConnectFailure(Problem.CERTIFICATE, "it does not speak TLS, which this task requires")
    if peer_tls and not security.tls:
        raise ConnectFailure(Problem.CERTIFICATE, "it speaks TLS, for which this task has no certificates")
    if peer_tls:
        messages.start_tls(security.client_context(), server_hostname=host)
    match messages.receive_message():
        case (int(version), bytes(their_nonce)):
            _check_version(version)
        case _:
            raise ProtocolViolation("sent an unknown greeting")
    nonce = secrets.token_bytes(NONCE_BYTES)
    transcript = (nonce, their_nonce, me.task, me.generation, wanted.task, wanted.generation)
    tokens = security.tokens()
    # The dialling end proves itself first, so that an accepting end reveals nothing to an unauthenticated dialling end.
    proof = prove(tokens, DIALLING, *transcript)
    messages.send_message(VERSION, nonce, me.task, me.generation, wanted.task, wanted.generation, proof)
    try:
        answer = messages.receive_message()
    except ssl.SSLEOFError:  # a lost connection, not a rejected certificate
        raise
    except ssl.SSLError as error:
        # With TLS 1.3 the dialling end learns only here that its certificate was rejected.
        detail = f"it did not accept this task's certificate: {tls_reason(error)}"
        raise ConnectFailure(Problem.CERTIFICATE, detail) from error
    match answer:
        case (str(task), int(generation), bytes(proof), offer):
            pass
        case (str(problem), str(detail)):
            raise ConnectFailure(_parse_problem(problem), detail)
        case _:
            raise ProtocolViolation("sent an unknown answer")
    if proven(tokens, proof, ACCEPTING, *transcript, task, generation) is None:
        detail = "it does not know this task's token" if tokens.values else "it has a token, this task has none"
        raise ConnectFailure(Problem.TOKEN, detail)
    return HandshakeResult(messages.sock, PeerIdentity(task=task, generation=generation), _read_offer(offer))


def stay(sock: socket.socket, *, timeout_s: float) -> None:
    """Declines an offer; raises OSError if the connection is broken."""
    TimedMessages(sock, timeout_s).send_message(True)


def show_ticket(sock: socket.socket, ticket: bytes, peer: PeerIdentity, *, timeout_s: float) -> HandshakeResult:
    """Accepts an offer of ``peer``, at its Unix socket.

    Raises:
      ConnectFailure: the ticket was not accepted.
      OSError, EOFError: the connection broke.
    """
    messages = TimedMessages(sock, timeout_s)
    messages.send(PREAMBLE + bytes([TICKET]))
    messages.send_message(ticket)
    try:
        _receive_preamble(messages)
        answer = messages.receive_message()
    except ProtocolViolation:
        answer = ()
    match answer:
        case (accepted,) if accepted == ACCEPTED:
            return HandshakeResult(sock, peer, lane=make_lane(sock))
        case _:
            raise ConnectFailure(Problem.OTHER, "the ticket was not accepted")


def _receive_preamble(messages: TimedMessages) -> int:
    data = b""
    try:
        # Read byte by byte: a server of another protocol may send less than a preamble, and then wait for this end.
        while len(data) < len(PREAMBLE) + 1:
            data += messages.receive(1)
            if not PREAMBLE.startswith(data[: len(PREAMBLE)]):
                raise ProtocolViolation(f"answered {data!r}")
    except TimeoutError:
        raise ConnectFailure(Problem.SILENT, "connected, but got no answer") from None
    return data[-1]


def _check_version(version: int) -> None:
    if version != VERSION:
        raise ConnectFailure(
            Problem.VERSION, f"it speaks version {version} of the channel protocol, this task version {VERSION}"
        )


def _parse_problem(name: str) -> Problem:
    try:
        return Problem(name)
    except ValueError:
        return Problem.OTHER


def _read_offer(offer: object) -> Offer | None:
    match offer:
        case (str(machine), str(path), bytes(ticket)):
            return Offer(machine, path, ticket)
        case _:
            return None
