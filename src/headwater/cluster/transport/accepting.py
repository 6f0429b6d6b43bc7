"""The accepting end of a handshake; see `headwater.cluster.transport.handshake`."""

from __future__ import annotations

import contextlib
import os
import secrets
import ssl
from collections.abc import Callable
from typing import NoReturn

from headwater.cluster.transport.handshake import (
    ACCEPTED,
    ACCEPTING,
    DIALLING,
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
    of_user,
    prove,
    proven,
)
from headwater.cluster.transport.problems import Problem, tls_reason
from headwater.cluster.transport.security import TOKEN, Security, Tokens
from headwater.cluster.transport.shared import receive_lane

_MAX_NAME = 256


class Refusal(Exception):
    """Raised at the accepting end, which has refused the other end.

    Attributes:
      problem: the reason, for programs.
      detail: the reason, for the log of the accepting end.
    """

    def __init__(self, problem: Problem, detail: str) -> None:
        super().__init__(detail)
        self.problem = problem
        self.detail = detail


def receive_greeting(
    messages: TimedMessages,
    *,
    me: PeerIdentity,
    security: Security,
    tls: ssl.SSLContext | None,
    make_offer: Callable[[PeerIdentity, bool], Offer | None],
    redeem: Callable[[bytes], PeerIdentity | None],
) -> HandshakeResult | None:
    """Authenticates the other end, after the preamble was read.

    Args:
      messages: the connection; the next byte follows the preamble.
      me: this end.
      security: this end's security settings.
      tls: the context for TLS; None if this end does not use TLS.
      make_offer: called with the authenticated peer and a boolean, whether the peer wants a lifeline; returns the offer
        for the peer.
      redeem: returns the peer to which a ticket was given; None for an unknown ticket.

    Returns:
      The authenticated connection, or None if the other end accepted the offer and disconnected. If the result is None,
      this end is closed, too.

    Raises:
      Refusal: this end has refused the other end. If the other end speaks the protocol, it was sent the reason.
      OSError, EOFError: the connection broke.
    """
    with contextlib.ExitStack() as closing:
        closing.callback(
            lambda: messages.sock.close()
        )  # evaluated at the time of closing, because TLS may replace the socket
        try:
            met = _receive_greeting(messages, me, security, tls, make_offer, redeem)
        except ProtocolViolation as violation:
            raise Refusal(Problem.NOT_HEADWATER, f"it {violation}") from violation
        if met is not None:
            closing.pop_all()
        return met


def _receive_greeting(
    messages: TimedMessages,
    me: PeerIdentity,
    security: Security,
    tls: ssl.SSLContext | None,
    make_offer: Callable[[PeerIdentity, bool], Offer | None],
    redeem: Callable[[bytes], PeerIdentity | None],
) -> HandshakeResult | None:
    flags = messages.receive(1)[0]
    if flags & TICKET:
        return _receive_ticket(messages, redeem)
    messages.send(PREAMBLE + bytes([TLS if tls is not None else 0]))
    if bool(flags & TLS) != (tls is not None):
        raise Refusal(Problem.CERTIFICATE, "it requires TLS" if flags & TLS else "it does not use TLS")
    if tls is not None:
        try:
            messages.start_tls(tls, server_hostname=None)
        except ssl.SSLError as error:
            raise Refusal(Problem.CERTIFICATE, f"no TLS connection: {tls_reason(error)}") from error
    nonce = secrets.token_bytes(NONCE_BYTES)
    messages.send_message(VERSION, nonce)
    lifeline = bool(flags & LIFELINE)
    peer = _receive_identity(messages, nonce, me, security, lambda peer: make_offer(peer, lifeline))
    return HandshakeResult(messages.sock, peer, lifeline=lifeline) if peer is not None else None


def _receive_ticket(messages: TimedMessages, redeem: Callable[[bytes], PeerIdentity | None]) -> HandshakeResult:
    match messages.receive_message():
        case (bytes(ticket),):
            peer = redeem(ticket)
        case _:
            peer = None
    messages.send(PREAMBLE + bytes([0]))
    if peer is None:
        _refuse(messages, Problem.TOKEN, "an unknown ticket", "the ticket is not valid")
    # This raises OSError if no descriptor is left for the lane. Then the ticket is not accepted, and the other end
    # continues over TCP.
    os.close(os.dup(messages.sock.fileno()))
    messages.send_message(ACCEPTED)
    messages.arm()
    return HandshakeResult(messages.sock, peer, lane=receive_lane(messages.sock))


def _receive_identity(
    messages: TimedMessages,
    nonce: bytes,
    me: PeerIdentity,
    security: Security,
    make_offer: Callable[[PeerIdentity], Offer | None],
) -> PeerIdentity | None:
    match messages.receive_message():
        case (int(version), *_) if version != VERSION:
            detail = f"version {version} of the channel protocol met version {VERSION}"
            _refuse(messages, Problem.VERSION, detail, detail)
        case (_, bytes(theirs), str(task), int(generation), str(wanted), int(wanted_generation), bytes(proof)):
            pass
        case _:
            raise ProtocolViolation("sent an unknown greeting")
    # Names are written to logs, so reject control characters and long texts.
    if not (task.isprintable() and wanted.isprintable() and max(len(task), len(wanted)) <= _MAX_NAME):
        raise ProtocolViolation("sent an impossible name")
    transcript = (theirs, nonce, task, generation, wanted, wanted_generation)
    tokens = security.tokens()
    known = proven(tokens, proof, DIALLING, *transcript) if len(theirs) == NONCE_BYTES else None
    if known is None:
        _refuse(messages, Problem.TOKEN, *_token_problem(tokens, proof))
    # Check this after the proof: an unauthenticated end must learn neither the name nor the generation of this task.
    if wanted and wanted != me.task:
        _refuse(messages, Problem.OTHER_TASK, f"it looked for {wanted} here", f"it is {me.task}, not {wanted}")
    if wanted_generation not in (0, me.generation):
        detail = f"{me.task} is of generation {me.generation:x}, not {wanted_generation:x}"
        _refuse(messages, Problem.GENERATION, detail, detail)
    peer = PeerIdentity(task=task, generation=generation)
    offer = make_offer(peer)
    proof = prove(known, ACCEPTING, *transcript, me.task, me.generation)
    messages.send_message(me.task, me.generation, proof, offer)
    if offer is not None:
        try:
            messages.receive_message()
        except EOFError:  # the other end has accepted the offer and uses the Unix socket
            return None
    return peer


def _token_problem(tokens: Tokens, proof: bytes) -> tuple[str, str]:
    """Returns the reasons why a proof is not accepted: for this end, and for the other end."""
    if not tokens.values:
        return "it has a token, this task has none", f"{TOKEN} is not set there"
    if tokens.of_user:
        shown = "no token" if not proof else "another user's token" if of_user(proof) else f"a {TOKEN}, this task none"
        return (
            f"it has {shown}",
            f"it has no {TOKEN}, and so accepts only programs of user {os.geteuid()} on its machine",
        )
    problem = "another token" if proof and not of_user(proof) else "no token"
    return f"it has {problem}", f"it requires a token, and this task has {problem}"


def _refuse(messages: TimedMessages, problem: Problem, detail: str, reply: str) -> NoReturn:
    messages.send_message(problem.value, reply)
    raise Refusal(problem, detail)
