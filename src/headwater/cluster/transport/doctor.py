"""What is wrong with a task's address, as seen from this machine."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass

from headwater.cluster.addresses import Address, parse_address
from headwater.cluster.transport.connect import connect
from headwater.cluster.transport.handshake import Identity
from headwater.cluster.transport.options import TransportOptions
from headwater.cluster.transport.ports import holders_of_port, resolve
from headwater.cluster.transport.problems import ConnectFailure, Problem
from headwater.cluster.transport.security import Security

_ME = Identity(task="headwater doctor", generation=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """How it stands with one address.

    Attributes:
      address: as asked for.
      ok: whether a Headwater task answers there, and the wanted one where one was wanted.
      found: what answers there; empty where nothing does.
      problem: what is wrong; empty when nothing is.
      hint: what to look at; may be empty.
    """

    address: str
    ok: bool
    found: str = ""
    problem: str = ""
    hint: str = ""


def diagnose(address: str, *, timeout_s: float = 5.0, security: Security | None = None, task: str = "") -> Diagnosis:
    """Tries to reach a task and says what is wrong if that does not work.

    Args:
      address: ``host:port``.
      timeout_s: for each step of connecting, in seconds.
      security: what to show; from the environment unless given.
      task: the name that the task there should have; any unless given.
    """
    try:
        place = parse_address(address)
    except ValueError as error:
        return Diagnosis(address=address, ok=False, problem=str(error), hint="mend the cluster spec")
    try:
        channel = connect(
            place,
            me=_ME,
            wanted=Identity(task=task, generation=0),
            security=security or Security.from_environment(),
            options=TransportOptions(local_sockets=False),
            timeout_s=timeout_s,
        )
    except ConnectFailure as failure:
        return _explained(address, place, failure)
    with contextlib.closing(channel):
        return Diagnosis(address=address, ok=True, found=channel.peer)


def _explained(address: str, place: Address, failure: ConnectFailure) -> Diagnosis:
    problem, found = failure.detail, ""
    if failure.problem in (Problem.NOT_HEADWATER, Problem.SILENT, Problem.CLOSED, Problem.CERTIFICATE):
        found = " and ".join(str(holder) for holder in holders_of_port(place.port)) if _is_here(place) else ""
        if found:
            problem = f"{problem}; the port is held by {found}"
    return Diagnosis(address=address, ok=False, found=found, problem=problem, hint=failure.hint)


def _is_here(place: Address) -> bool:
    """Whether the address is one of this machine: only those can be bound."""
    try:
        family, target = resolve(Address(place.host, 0))[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind(target)
    except OSError:
        return False
    return True
