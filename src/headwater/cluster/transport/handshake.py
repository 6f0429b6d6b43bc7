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
so that a stranger learns nothing from an accepting end, not even a proof to try guesses on. An end that has no
``HEADWATER_TOKEN`` but its user's token, and perhaps one of its launch, sends a "u" and a proof for each; the accepting
end answers with a proof for the one that both know.

An offer is the path of a Unix socket, for a dialling end on the same machine, and a ticket: a random number that is
good for one connection to that socket. There the dialling end shows the ticket instead of all of the above.

This module holds what both ends have in common; their parts are `headwater.cluster.transport.dialling` and
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

#: The first bytes of a channel. No TLS record and no HTTP/2 connection starts like that.
PREAMBLE = b"\x89HWCHAN\n"
VERSION = 1
#: Flags after the preamble: TLS begins here; a ticket follows; this is no channel, but for signs of life; the accepting
#: end has no descriptors left, and ends the connection.
TLS, TICKET, LIFELINE, FULL = 1, 2, 4, 8
#: Length of the random numbers that both ends choose, in bytes.
NONCE_BYTES = 32
#: What a proof is for.
DIALLING = b"headwater channel, dialling end\0"
ACCEPTING = b"headwater channel, accepting end\0"
#: Instead of a problem.
ACCEPTED = ""

_MAX_MESSAGE_BYTES = 1 << 14
_SHORTEST_S = 0.001
_PROOF_BYTES = hashlib.sha256().digest_size
#: Begins proofs of tokens that are not from ``HEADWATER_TOKEN``.
_OF_USER = b"u"
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """One end of a channel.

    Attributes:
      task: its name, such as ``/job:ps/task:0``; for a client that is no task, another name.
      generation: which of its lives; 0 for a client that has none.
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
      lane: a second socket to the other end, if that is on this machine; see `headwater.cluster.transport.shared`.
      lifeline: the dialling end wants to hear whether the accepting one lives; see
      `headwater.cluster.transport.lifeline`.
    """

    sock: socket.socket
    peer: Identity
    offer: Offer | None = None
    lane: socket.socket | None = None
    lifeline: bool = False


def new_generation() -> int:
    """A number for the life of a task that begins now: random, not 0, below 2 to the power of 63."""
    return secrets.randbelow((1 << 63) - 1) + 1


class Nonsense(Exception):
    """The other end did something that no Headwater does: ``it`` followed by the message."""


class TimedMessages:
    """Messages over a socket until a deadline.

    Every method raises OSError or EOFError when the connection breaks, and TimeoutError at the deadline.

    Args:
      sock: connected; `sock` is it, or TLS over it.
      timeout_s: until the deadline, in seconds.
    """

    def __init__(self, sock: socket.socket, timeout_s: float) -> None:
        self.sock = sock
        self._deadline = time.monotonic() + timeout_s
        self._broken_off = False

    def arm(self) -> None:
        """Makes the next call on the socket end at the deadline. After it, the call takes what is there already: this
        process may be the one that was late."""
        if self._broken_off:
            raise EOFError
        self.sock.settimeout(max(_SHORTEST_S, self._deadline - time.monotonic()))

    def break_off(self) -> None:
        """Ends it; another thread, which is at one of the methods, gets EOFError or OSError."""
        self._broken_off = True
        with contextlib.suppress(OSError):
            # Not the method of an SSLSocket, which would change its state under the other thread.
            socket.socket.shutdown(self.sock, socket.SHUT_RDWR)

    def send(self, data: bytes) -> None:
        """Sends bytes."""
        self.arm()
        self.sock.sendall(data)

    def send_message(self, *values: Any) -> None:
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
        """Receives a message; `Nonsense` when it is none."""
        (length,) = _LENGTH.unpack(self.receive(_LENGTH.size))
        if length > _MAX_MESSAGE_BYTES:
            raise Nonsense(f"announced a message of {length} bytes")
        try:
            return frames.parse_header(self.receive(length))
        except InvalidArgumentError as error:
            raise Nonsense("sent a message that cannot be read") from error

    def start_tls(self, context: ssl.SSLContext, *, server_hostname: str | None) -> None:
        """Goes on with TLS: as a client of ``server_hostname``, or as a server where that is None."""
        tls = context.wrap_socket(
            self.sock,
            server_side=server_hostname is None,
            server_hostname=server_hostname,
            do_handshake_on_connect=False,
        )
        self.sock: socket.socket = tls
        self.arm()
        tls.do_handshake()


def prove(tokens: Tokens, label: bytes, *said: object) -> bytes:
    """That each of ``tokens`` is known to the sender of all that; empty without any."""
    message = label + frames.pack(said)
    proofs = b"".join(hmac.digest(token.encode(), message, hashlib.sha256) for token in tokens.values)
    return _OF_USER + proofs if tokens.of_user else proofs


def proven(tokens: Tokens, proof: bytes, label: bytes, *said: object) -> Tokens | None:
    """That one of ``tokens`` which ``proof`` is for, or no token if both ends have none; None if it is for another."""
    if not tokens.values:
        return None if proof else tokens
    shown = proof.removeprefix(_OF_USER) if of_user(proof) else proof
    for token in tokens.values:
        one = Tokens(values=(token,))
        expected = prove(one, label, *said)
        if any(
            hmac.compare_digest(expected, shown[at : at + _PROOF_BYTES]) for at in range(0, len(shown), _PROOF_BYTES)
        ):
            return one
    return None


def of_user(proof: bytes) -> bool:
    """Whether the maker of ``proof`` has no ``HEADWATER_TOKEN``, only what all programs of its user have."""
    return len(proof) % _PROOF_BYTES == len(_OF_USER) and proof.startswith(_OF_USER)
