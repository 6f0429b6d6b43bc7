"""Diagnosis of a task's address, as seen from this machine."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass

from headwater.cluster.addresses import Address, parse_address
from headwater.cluster.transport.connect import connect
from headwater.cluster.transport.handshake import PeerIdentity
from headwater.cluster.transport.options import TransportOptions
from headwater.cluster.transport.ports import holders_of_port, resolve
from headwater.cluster.transport.problems import ConnectFailure, Problem
from headwater.cluster.transport.security import Security

_ME = PeerIdentity(task="headwater doctor", generation=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """The diagnosis of one address.

    Attributes:
      address: the address, as passed.
      ok: whether a Headwater task answers there, and is the expected task, if a task was named.
      found: the task or process that answers there; empty for none.
      problem: a description of the problem; empty for none.
      hint: advice for the user; may be empty.
    """

    address: str
    ok: bool
    found: str = ""
    problem: str = ""
    hint: str = ""


def diagnose(address: str, *, timeout_s: float = 5.0, security: Security | None = None, task: str = "") -> Diagnosis:
    """Tries to connect to a task, and diagnoses a failure.

    Args:
      address: ``host:port``.
      timeout_s: the timeout for each step of the connection, in seconds.
      security: security settings; from the environment unless given.
      task: the expected name of the task; any unless given.
    """
    try:
        place = parse_address(address)
    except ValueError as error:
        return Diagnosis(address=address, ok=False, problem=str(error), hint="correct the cluster spec")
    try:
        channel = connect(
            place,
            me=_ME,
            wanted=PeerIdentity(task=task, generation=0),
            security=security or Security.from_environment(),
            options=TransportOptions(local_sockets=False),
            timeout_s=timeout_s,
        )
    except ConnectFailure as failure:
        return _explain(address, place, failure)
    with contextlib.closing(channel):
        return Diagnosis(address=address, ok=True, found=channel.peer)


def _explain(address: str, place: Address, failure: ConnectFailure) -> Diagnosis:
    problem, holders = failure.detail, ""
    if failure.problem in (Problem.NOT_HEADWATER, Problem.SILENT, Problem.CLOSED, Problem.CERTIFICATE):
        holders = " and ".join(str(holder) for holder in holders_of_port(place.port)) if _is_here(place) else ""
        if holders:
            problem = f"{problem}; the port is held by {holders}"
    return Diagnosis(address=address, ok=False, found=holders, problem=problem, hint=failure.hint)


def _is_here(place: Address) -> bool:
    """Returns whether the address belongs to this machine: only then can it be bound."""
    try:
        family, target = resolve(Address(place.host, 0))[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind(target)
    except OSError:
        return False
    return True
