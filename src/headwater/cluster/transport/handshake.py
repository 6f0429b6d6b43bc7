"""Handshake of a channel: mutual authentication of two tasks before the first frame.

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
label and all values that both ends have sent, keyed with the token; it is empty if no token is set. The dialling end
sends its proof first. So an unauthenticated end gets nothing from an accepting end, not even a proof with which it
could search for the token offline. An end without ``HEADWATER_TOKEN`` has its user's token, and perhaps the token of
its launcher: it sends a "u" and a proof for each, and the accepting end answers with a proof for the token that both
know.

An offer is the path of a Unix socket, for a dialling end on the same machine, and a ticket: a random number that is
valid for one connection to that socket. On that connection, the ticket replaces the handshake above.

This module has the parts that both ends share; the parts of each end are `headwater.cluster.transport.dialling` and
`headwater.cluster.transport.accepting`.
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
from dataclasses import dataclass
from typing import Any, NamedTuple

from headwater.cluster.transport import frames
from headwater.cluster.transport.security import Tokens
from headwater.errors import InvalidArgumentError

#: The first bytes of a channel. No TLS record and no HTTP/2 connection starts with them.
PREAMBLE = b"\x89HWCHAN\n"
VERSION = 1
#: Flags after the preamble: TLS begins here; a ticket follows; the connection is for heartbeats, not a channel; the
#: accepting end has no descriptors left, and closes the connection.
TLS, TICKET, LIFELINE, FULL = 1, 2, 4, 8
#: Length of the random numbers that both ends choose, in bytes.
NONCE_BYTES = 32
#: Labels of the proofs of each end.
DIALLING = b"headwater channel, dialling end\0"
ACCEPTING = b"headwater channel, accepting end\0"
#: Sent in place of a problem.
ACCEPTED = ""

_MAX_MESSAGE_BYTES = 1 << 14
_SHORTEST_S = 0.001
_PROOF_BYTES = hashlib.sha256().digest_size
#: Prefix of proofs of tokens that are not from ``HEADWATER_TOKEN``.
_USER_PREFIX = b"u"
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerIdentity:
    """One end of a channel.

    Attributes:
      task: the task's name, such as ``/job:ps/task:0``; for a client that is not a task, another name.
      generation: the generation of the task's incarnation; 0 for a client, which has none.
    """

    task: str
    generation: int


class Offer(NamedTuple):
    """An offer of a Unix socket, for a dialling end on the machine of the accepting end.

    Attributes:
      machine: the boot id of that machine.
      path: the path of the Unix socket.
      ticket: the ticket to send there.
    """

    machine: str
    path: str
    ticket: bytes


class HandshakeResult(NamedTuple):
    """The result of a handshake.

    Attributes:
      sock: the socket to use from now on, with TLS if that was negotiated.
      peer: the other end.
      offer: at the dialling end, the offer of the accepting end.
      lane: a second socket to the other end, if that is on this machine; see `headwater.cluster.transport.shared`.
      lifeline: whether the connection is for heartbeats of the accepting end; see
        `headwater.cluster.transport.lifeline`.
    """

    sock: socket.socket
    peer: PeerIdentity
    offer: Offer | None = None
    lane: socket.socket | None = None
    lifeline: bool = False


def new_generation() -> int:
    """Returns a generation for a new incarnation of a task: random, from 1 to 2**63 - 1."""
    return secrets.randbelow((1 << 63) - 1) + 1


class ProtocolViolation(Exception):
    """Raised when the other end has violated the protocol. The message completes a sentence that begins with "it", such
    as ``sent an unknown answer``."""


class TimedMessages:
    """Messages over a socket until a deadline.

    Every method raises OSError or EOFError when the connection breaks, and TimeoutError at the deadline.

    Args:
      sock: the connected socket; `start_tls` replaces the attribute `sock`.
      timeout_s: time until the deadline, in seconds.
    """

    def __init__(self, sock: socket.socket, timeout_s: float) -> None:
        self.sock = sock
        self._deadline = time.monotonic() + timeout_s
        self._broken_off = False

    def arm(self) -> None:
        """Sets the timeout of the next call on the socket to the deadline.

        After the deadline, the call can still read data that has arrived, in case this process itself was delayed.
        """
        if self._broken_off:
            raise EOFError
        self.sock.settimeout(max(_SHORTEST_S, self._deadline - time.monotonic()))

    def break_off(self) -> None:
        """Breaks the connection: a method that runs in another thread raises EOFError or OSError."""
        self._broken_off = True
        with contextlib.suppress(OSError):
            # SSLSocket.shutdown would change the TLS state while the other thread uses it.
            socket.socket.shutdown(self.sock, socket.SHUT_RDWR)

    def send(self, data: bytes) -> None:
        """Sends bytes."""
        self.arm()
        self.sock.sendall(data)

    def send_message(self, *values: object) -> None:
        """Sends a message."""
        packed = frames.pack(values)
        self.send(_LENGTH.pack(len(packed)) + packed)

    def receive(self, nbytes: int) -> bytes:
        """Receives exactly this number of bytes."""
        data = b""
        while len(data) < nbytes:
            self.arm()
            more = self.sock.recv(nbytes - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def receive_message(self) -> tuple[Any, ...]:
        """Receives a message; raises `ProtocolViolation` if it is malformed."""
        (length,) = _LENGTH.unpack(self.receive(_LENGTH.size))
        if length > _MAX_MESSAGE_BYTES:
            raise ProtocolViolation(f"announced a message of {length} bytes")
        try:
            return frames.parse_header(self.receive(length))
        except InvalidArgumentError as error:
            raise ProtocolViolation("sent a message that cannot be read") from error

    def start_tls(self, context: ssl.SSLContext, *, server_hostname: str | None) -> None:
        """Starts TLS: as a client of ``server_hostname``, or as a server if that is None."""
        tls = context.wrap_socket(
            self.sock,
            server_side=server_hostname is None,
            server_hostname=server_hostname,
            do_handshake_on_connect=False,
        )
        self.sock: socket.socket = tls
        self.arm()
        tls.do_handshake()


def prove(tokens: Tokens, label: bytes, *transcript: object) -> bytes:
    """Returns a proof that the sender of the values ``transcript`` knows each of ``tokens``; empty without tokens."""
    message = label + frames.pack(transcript)
    proofs = b"".join(hmac.digest(token.encode(), message, hashlib.sha256) for token in tokens.values)
    return _USER_PREFIX + proofs if tokens.of_user else proofs


def proven(tokens: Tokens, proof: bytes, label: bytes, *transcript: object) -> Tokens | None:
    """Returns the token among ``tokens`` that ``proof`` proves; None if the proof is invalid.

    If both ends have no token, returns ``tokens``, which are empty.
    """
    if not tokens.values:
        return None if proof else tokens
    proofs = proof.removeprefix(_USER_PREFIX) if of_user(proof) else proof
    for token in tokens.values:
        one = Tokens(values=(token,))
        expected = prove(one, label, *transcript)
        if any(
            hmac.compare_digest(expected, proofs[at : at + _PROOF_BYTES]) for at in range(0, len(proofs), _PROOF_BYTES)
        ):
            return one
    return None


def of_user(proof: bytes) -> bool:
    """Returns whether the sender of ``proof`` has no ``HEADWATER_TOKEN``, only tokens of its user or launch."""
    return len(proof) % _PROOF_BYTES == len(_USER_PREFIX) and proof.startswith(_USER_PREFIX)
