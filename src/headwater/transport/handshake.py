"""How two tasks make sure whom they talk to, before the first frame.

::

    dialling end                                     accepting end
    preamble (8 bytes), flags (1 byte)      ->
                                            <-       preamble, flags
                    [TLS, if the flags of both say so]
                                            <-       [version, nonce]
    [version, nonce, own task, own generation,
     task wanted, generation wanted, proof] ->
                                            <-       ["", own task, own generation, proof, offer]
                                                     or [problem, detail], and the end
    [stays here]                            ->       only after an offer

Messages are msgpack arrays after their length (u32, little-endian), at most 16 KiB. A proof is the HMAC-SHA256 of a
label and all that both ends said, keyed with the token; empty where no token is set. The dialling end proves first,
so that a stranger learns nothing from an accepting end, not even a proof to try guesses on.

An offer is the path of a Unix socket, for a dialling end on the same machine, and a ticket: a random number that is
good for one connection to that socket. There the dialling end shows the ticket instead of all of the above.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
import socket
import ssl
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from headwater.errors import InvalidArgumentError
from headwater.transport import frames
from headwater.transport.problems import ConnectFailure, Problem, tls_reason
from headwater.transport.security import TOKEN, Security
from headwater.transport.shared import make_lane, receive_lane

#: The first bytes of a channel. No TLS record and no HTTP/2 connection starts like that.
PREAMBLE = b"\x89HWCHAN\n"
VERSION = 1
_TLS = 1
_TICKET = 2
_MAX_MESSAGE_BYTES = 1 << 14
_LENGTH = struct.Struct("<I")
_NONCE_BYTES = 32
_MAX_NAME = 256
_ACCEPTED = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """One end of a channel.

    Attributes:
      task: its name, such as ``/job:ps/task:0``; for whoever is no task, another name.
      generation: which of its lives; 0 for whoever has none.
    """

    task: str
    generation: int


class Offer(NamedTuple):
    """Another way to the accepting end, for those on its machine.

    Attributes:
      machine: what the kernel of that machine calls its present run.
      path: of the Unix socket.
      ticket: what to show there.
    """

    machine: str
    path: str
    ticket: bytes


class Met(NamedTuple):
    """What a handshake gave.

    Attributes:
      sock: what to talk over from now on: the socket, or TLS over it.
      peer: the other end.
      offer: what the accepting end offered, at the dialling end.
      lane: a second socket to the other end, if that is on this machine; see `headwater.transport.shared`.
    """

    sock: socket.socket
    peer: Identity
    offer: Offer | None = None
    lane: socket.socket | None = None


def new_generation() -> int:
    """A number for the life of a task that begins now: random, not 0, below 2 to the power of 63."""
    return secrets.randbelow((1 << 63) - 1) + 1


class _Nonsense(Exception):
    """The other end did something that no Headwater does: ``it`` followed by the message."""


class _Talk:
    """Messages over a socket until a deadline."""

    def __init__(self, sock: socket.socket, timeout_s: float) -> None:
        self.sock = sock
        self._deadline = time.monotonic() + timeout_s

    def arm(self) -> None:
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        self.sock.settimeout(remaining)

    def send(self, data: bytes) -> None:
        self.arm()
        self.sock.sendall(data)

    def send_message(self, *values: Any) -> None:
        packed = frames.pack(values)
        self.send(_LENGTH.pack(len(packed)) + packed)

    def receive(self, nbytes: int) -> bytes:
        data = b""
        while len(data) < nbytes:
            self.arm()
            more = self.sock.recv(nbytes - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def receive_message(self) -> tuple[Any, ...]:
        (length,) = _LENGTH.unpack(self.receive(_LENGTH.size))
        if length > _MAX_MESSAGE_BYTES:
            raise _Nonsense(f"announced a message of {length} bytes")
        try:
            return frames.parse_header(self.receive(length))
        except InvalidArgumentError as error:
            raise _Nonsense("sent a message that cannot be read") from error

    def start_tls(self, context: ssl.SSLContext, *, server_hostname: str | None) -> None:
        self.arm()
        self.sock = context.wrap_socket(self.sock, server_side=server_hostname is None, server_hostname=server_hostname)


def _prove(security: Security, label: bytes, *said: Any) -> bytes:
    if security.token is None:
        return b""
    return hmac.digest(security.token.encode(), label + frames.pack(said), hashlib.sha256)


def _proves(security: Security, proof: bytes, label: bytes, *said: Any) -> bool:
    return hmac.compare_digest(_prove(security, label, *said), proof)


_DIALLING = b"headwater channel, dialling end\0"
_ACCEPTING = b"headwater channel, accepting end\0"


# --- the dialling end ------------------------------------------------------------------------------------------------


def greet(
    sock: socket.socket,
    *,
    me: Identity,
    wanted: Identity,
    host: str,
    security: Security,
    timeout_s: float,
) -> Met:
    """The dialling end's part, up to what the accepting end answers.

    After an offer, `stay` must be called, or the socket be closed. Without a `Met`, the connection is closed.

    Args:
      sock: connected.
      me: this end.
      wanted: the task that should be there, ``""`` for any, and its generation, 0 for any.
      host: as dialled; a certificate must be for it.
      security: this end's.
      timeout_s: for all of it, in seconds.

    Raises:
      ConnectFailure: the other end refused, or is not who was wanted.
      OSError, EOFError: the connection broke.
    """
    talk = _Talk(sock, timeout_s)
    with contextlib.ExitStack() as closing:
        closing.callback(lambda: talk.sock.close())  # which may have become a TLS socket by then
        try:
            met = _greet(talk, me, wanted, host, security)
        except _Nonsense as nonsense:
            detail = f"what listens there is not Headwater: it {nonsense}"
            raise ConnectFailure(Problem.NOT_HEADWATER, detail) from nonsense
        closing.pop_all()
        return met


def _greet(talk: _Talk, me: Identity, wanted: Identity, host: str, security: Security) -> Met:
    talk.send(PREAMBLE + bytes([_TLS if security.tls else 0]))
    peer_tls = _receive_preamble(talk) & _TLS
    if security.tls and not peer_tls:
        raise ConnectFailure(Problem.CERTIFICATE, "it does not speak TLS, which this task asks for")
    if peer_tls and not security.tls:
        raise ConnectFailure(Problem.CERTIFICATE, "it speaks TLS, for which this task has no certificates")
    if peer_tls:
        talk.start_tls(security.client_context(), server_hostname=host)
    match talk.receive_message():
        case (int(version), bytes(their_nonce)):
            _check_version(version)
        case _:
            raise _Nonsense("sent an unknown greeting")
    nonce = secrets.token_bytes(_NONCE_BYTES)
    said = (nonce, their_nonce, me.task, me.generation, wanted.task, wanted.generation)
    proof = _prove(security, _DIALLING, *said)
    talk.send_message(VERSION, nonce, me.task, me.generation, wanted.task, wanted.generation, proof)
    try:
        answer = talk.receive_message()
    except ssl.SSLEOFError:
        raise
    except ssl.SSLError as error:
        # With TLS 1.3 the dialling end learns only now that its certificate was not accepted.
        detail = f"it did not accept this task's certificate: {tls_reason(error)}"
        raise ConnectFailure(Problem.CERTIFICATE, detail) from error
    match answer:
        case (str(task), int(generation), bytes(proof), offer):
            pass
        case (str(problem), str(detail)):
            raise ConnectFailure(_known_problem(problem), detail)
        case _:
            raise _Nonsense("sent an unknown answer")
    if not _proves(security, proof, _ACCEPTING, *said, task, generation):
        detail = "it does not know this task's token" if security.token else "it has a token, this task has none"
        raise ConnectFailure(Problem.TOKEN, detail)
    return Met(talk.sock, Identity(task=task, generation=generation), _read_offer(offer))


def stay(sock: socket.socket) -> None:
    """The dialling end's answer to an offer that it does not take."""
    sock.sendall(_LENGTH.pack(2) + b"\x91\xc3")


def show_ticket(sock: socket.socket, ticket: bytes, peer: Identity, *, timeout_s: float) -> Met:
    """The dialling end's part at the Unix socket of an `Offer` that ``peer`` made.

    Raises:
      ConnectFailure: the ticket was not accepted.
      OSError, EOFError: the connection broke.
    """
    talk = _Talk(sock, timeout_s)
    talk.send(PREAMBLE + bytes([_TICKET]))
    talk.send_message(ticket)
    try:
        _receive_preamble(talk)
        answer = talk.receive_message()
    except _Nonsense:
        answer = ()
    match answer:
        case ("",):
            return Met(sock, peer, lane=make_lane(sock))
        case _:
            raise ConnectFailure(Problem.OTHER, "the ticket was not accepted")


def _receive_preamble(talk: _Talk) -> int:
    data = b""
    try:
        while len(data) < len(PREAMBLE) + 1:
            data += talk.receive(1)
            if not PREAMBLE.startswith(data[: len(PREAMBLE)]):
                raise _Nonsense(f"answered {data!r}")
    except TimeoutError:
        raise ConnectFailure(Problem.SILENT, "connected, but got no answer") from None
    return data[-1]


def _check_version(version: int) -> None:
    if version != VERSION:
        raise ConnectFailure(
            Problem.VERSION, f"it speaks version {version} of the channel protocol, this task version {VERSION}"
        )


def _known_problem(name: str) -> Problem:
    try:
        return Problem(name)
    except ValueError:
        return Problem.OTHER


def _read_offer(offer: Any) -> Offer | None:
    match offer:
        case (str(machine), str(path), bytes(ticket)):
            return Offer(machine, path, ticket)
        case _:
            return None


# --- the accepting end -----------------------------------------------------------------------------------------------


class Refusal(Exception):
    """The accepting end sent the other away.

    Attributes:
      problem: why, for programs.
      detail: why, for people at the accepting end.
    """

    def __init__(self, problem: Problem, detail: str) -> None:
        super().__init__(detail)
        self.problem = problem
        self.detail = detail


def receive_greeting(
    sock: socket.socket,
    *,
    me: Identity,
    security: Security,
    tls: ssl.SSLContext | None,
    make_offer: Callable[[Identity], Offer | None],
    redeem: Callable[[bytes], Identity | None],
    timeout_s: float,
) -> Met | None:
    """The accepting end's part, after the preamble was read.

    Args:
      sock: the next byte is the one after the preamble.
      me: this end.
      security: this end's.
      tls: the context for TLS, None where this end does not speak it.
      make_offer: what to offer to an end that has proved who it is.
      redeem: who was given this ticket, None when nobody was.
      timeout_s: for all of it, in seconds.

    Returns:
      Who is there, or None when the other end took the offer and left. Without a `Met`, the connection is closed.

    Raises:
      Refusal: the other end was told why, where it could understand.
      OSError, EOFError: the connection broke.
    """
    talk = _Talk(sock, timeout_s)
    with contextlib.ExitStack() as closing:
        closing.callback(lambda: talk.sock.close())  # which may have become a TLS socket by then
        try:
            met = _receive_greeting(talk, me, security, tls, make_offer, redeem)
        except _Nonsense as nonsense:
            raise Refusal(Problem.NOT_HEADWATER, f"it {nonsense}") from nonsense
        if met is not None:
            closing.pop_all()
        return met


def _receive_greeting(
    talk: _Talk,
    me: Identity,
    security: Security,
    tls: ssl.SSLContext | None,
    make_offer: Callable[[Identity], Offer | None],
    redeem: Callable[[bytes], Identity | None],
) -> Met | None:
    flags = talk.receive(1)[0]
    if flags & _TICKET:
        return _receive_ticket(talk, redeem)
    talk.send(PREAMBLE + bytes([_TLS if tls is not None else 0]))
    if bool(flags & _TLS) != (tls is not None):
        raise Refusal(Problem.CERTIFICATE, "it asked for TLS" if flags & _TLS else "it did not ask for TLS")
    if tls is not None:
        try:
            talk.start_tls(tls, server_hostname=None)
        except ssl.SSLError as error:
            raise Refusal(Problem.CERTIFICATE, f"no TLS connection: {tls_reason(error)}") from error
    nonce = secrets.token_bytes(_NONCE_BYTES)
    talk.send_message(VERSION, nonce)
    peer = _receive_identity(talk, nonce, me, security, make_offer)
    return Met(talk.sock, peer) if peer is not None else None


def _receive_ticket(talk: _Talk, redeem: Callable[[bytes], Identity | None]) -> Met:
    match talk.receive_message():
        case (bytes(ticket),):
            peer = redeem(ticket)
        case _:
            peer = None
    talk.send(PREAMBLE + bytes([0]))
    if peer is None:
        _refuse(talk, Problem.TOKEN, "a ticket that nobody was given", "the ticket is not valid")
    talk.send_message(_ACCEPTED)
    talk.arm()
    return Met(talk.sock, peer, lane=receive_lane(talk.sock))


def _receive_identity(
    talk: _Talk, nonce: bytes, me: Identity, security: Security, make_offer: Callable[[Identity], Offer | None]
) -> Identity | None:
    match talk.receive_message():
        case (int(version), *_) if version != VERSION:
            detail = f"version {version} of the channel protocol met version {VERSION}"
            _refuse(talk, Problem.VERSION, detail, detail)
        case (_, bytes(theirs), str(task), int(generation), str(wanted), int(wanted_generation), bytes(proof)):
            pass
        case _:
            raise _Nonsense("sent an unknown greeting")
    if not (task.isprintable() and wanted.isprintable() and max(len(task), len(wanted)) <= _MAX_NAME):
        raise _Nonsense("sent an impossible name")
    said = (theirs, nonce, task, generation, wanted, wanted_generation)
    if len(theirs) != _NONCE_BYTES or not _proves(security, proof, _DIALLING, *said):
        if security.token is None:
            _refuse(talk, Problem.TOKEN, "it has a token, this task has none", f"{TOKEN} is not set there")
        problem = "another token" if proof else "no token"
        _refuse(talk, Problem.TOKEN, f"it has {problem}", f"it asks for a token, and this task has {problem}")
    if wanted and wanted != me.task:
        _refuse(talk, Problem.OTHER_TASK, f"it looked for {wanted} here", f"it is {me.task}, not {wanted}")
    if wanted_generation not in (0, me.generation):
        detail = f"{me.task} is of generation {me.generation:x}, not {wanted_generation:x}"
        _refuse(talk, Problem.GENERATION, detail, detail)
    peer = Identity(task=task, generation=generation)
    offer = make_offer(peer)
    proof = _prove(security, _ACCEPTING, *said, me.task, me.generation)
    talk.send_message(me.task, me.generation, proof, offer)
    if offer is not None:
        try:
            talk.receive_message()
        except EOFError:
            return None
    return peer


def _refuse(talk: _Talk, problem: Problem, detail: str, told: str) -> NoReturn:
    talk.send_message(problem.value, told)
    raise Refusal(problem, detail)
