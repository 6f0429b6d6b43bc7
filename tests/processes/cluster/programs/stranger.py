"""Attempts every kind of access to the ports, sockets and processes of a job that it is not part of, and prints the
outcomes.

Usage: stranger.py '{"ports": [...], "sockets": [...], "pids": [...]}'
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import sys
from collections.abc import Callable

from headwater.cluster.addresses import Address
from headwater.cluster.claims import Claim
from headwater.cluster.transport.connect import connect
from headwater.cluster.transport.control_client import ControlClient
from headwater.cluster.transport.handshake import PeerIdentity
from headwater.cluster.transport.options import TransportOptions
from headwater.cluster.transport.problems import ConnectFailure
from headwater.cluster.transport.security import Security
from headwater.errors import OpError

ME = PeerIdentity(task="/job:worker/task:0", generation=1)
ANY = PeerIdentity(task="", generation=0)


def channel(port: int, security: Security) -> None:
    address = Address("127.0.0.1", port)
    connect(address, me=ME, wanted=ANY, security=security, options=TransportOptions()).close()


def call(port: int, security: Security, name: str, *arguments: object) -> None:
    client = ControlClient(Address("127.0.0.1", port), peer="the task", security=security)
    try:
        getattr(client, name)(*arguments)
    finally:
        client.close()


def page(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/api/v1/jobs")
        status = connection.getresponse().status
    finally:
        connection.close()
    if status != 200:
        raise PermissionError(f"status {status}")


def enter(path: str, kind: socket.SocketKind) -> None:
    with socket.socket(socket.AF_UNIX, kind) as sock:
        sock.connect(path)


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def outcome(attempt: Callable[..., object], *arguments: object) -> str:
    try:
        attempt(*arguments)
    except ConnectFailure as failure:
        return failure.problem.value
    except (OpError, OSError, http.client.HTTPException) as error:
        return type(error).__name__
    return "let in"


targets = json.loads(sys.argv[1])
found: dict[str, str] = {}
for port in targets["ports"]:
    for who, security in (("own", Security.from_environment()), ("none", Security())):
        found[f"{port} channel {who}"] = outcome(channel, port, security)
        found[f"{port} status {who}"] = outcome(call, port, security, "status")
        found[f"{port} session {who}"] = outcome(call, port, security, "create_session", b"", b"")
        found[f"{port} shutdown {who}"] = outcome(call, port, security, "shutdown", "because", Claim())
    found[f"{port} page"] = outcome(page, port)
for path in targets["sockets"]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        found[f"{path} {kind.name}"] = outcome(enter, path, kind)
for pid in targets["pids"]:
    found[f"{pid} descriptors"] = outcome(os.listdir, f"/proc/{pid}/fd")
    found[f"{pid} environment"] = outcome(read, f"/proc/{pid}/environ")
print(json.dumps(found), flush=True)
