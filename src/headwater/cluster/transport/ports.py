"""Ports: listening at a task's port, and finding the process that holds a port in use."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pwd
import socket
import threading
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.cluster.addresses import Address, parse_address
from headwater.cluster.variables import LISTEN_FDS
from headwater.errors import AlreadyExistsError, InvalidArgumentError, PermissionDeniedError, UnavailableError

#: Environment variable: the host at which to listen, instead of the host in the cluster spec. Needed if others reach
#: this machine by an address that is not its own, for example behind a load balancer or a Kubernetes service.
BIND_HOST = "HEADWATER_BIND_HOST"
_BACKLOG = 1024
_LISTENING = "0A"
_MAX_COMMAND = 200
_taking = threading.Lock()


@dataclass(frozen=True, kw_only=True, slots=True)
class Holder:
    """A process that listens at a port of this machine.

    Attributes:
      pid: its process id; None if the system does not show it, as for another user's process.
      command: its command line, shortened; empty if the system does not show it.
      user: the user of the process.
    """

    pid: int | None
    command: str
    user: str

    def __str__(self) -> str:
        if self.pid is None:
            return f"a process of user {self.user}"
        return f"process {self.pid} ({self.command})" if self.command else f"process {self.pid}"


def resolve(address: Address) -> Sequence[tuple[socket.AddressFamily, tuple[Any, ...]]]:
    """Resolves ``address``, IPv4 first. Raises socket.gaierror for an unknown host.

    A server binds the first result and a client dials them in this order, so that both use the same address.
    """
    infos = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    unique = dict.fromkeys((family, place) for family, _, _, _, place in infos)
    return sorted(unique, key=lambda entry: entry[0] != socket.AF_INET)


def listen(address: Address, *, environ: MutableMapping[str, str] | None = None) -> socket.socket:
    """Returns a socket that listens at ``address`` only.

    Args:
      address: the address; with port 0 the system chooses the port.
      environ: the environment; the process's own unless given. If `LISTEN_FDS` has a socket that listens at the address
        already, that socket is returned, and removed from the variable. `BIND_HOST` may name another host.

    Raises:
      AlreadyExistsError: another process holds the port; the message names it.
      UnavailableError: the host is unknown, or not an address of this machine.
      PermissionDeniedError: this user may not use the port.
      InvalidArgumentError: `LISTEN_FDS` is malformed.
    """
    environ = os.environ if environ is None else environ
    inherited = _take_inherited(address, environ)
    if inherited is not None:
        return inherited
    address = address._replace(host=environ.get(BIND_HOST) or address.host)
    try:
        family, place = resolve(address)[0]
    except socket.gaierror as error:
        raise UnavailableError(f"cannot listen at {address}: unknown host: {error.strerror}") from error
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Let a restarted task bind its port even if connections of its predecessor are still in TIME_WAIT.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise _cannot_listen(address, error) from error
    return listening


def _take_inherited(address: Address, environ: MutableMapping[str, str]) -> socket.socket | None:
    """Returns the inherited socket for ``address``, or None, and removes it from the variable.

    The socket is removed so that a later listener, after this socket was closed, binds the port again.
    """
    with _taking:
        text = environ.get(LISTEN_FDS)
        if not text:
            return None
        try:
            descriptors = {parse_address(name): int(number) for name, number in json.loads(text).items()}
        except (ValueError, TypeError, AttributeError) as error:
            raise InvalidArgumentError(f"{LISTEN_FDS} is {text!r}, which cannot be used: {error}") from error
        number = descriptors.pop(address, None)
        listening = None if number is None else _adopt(number, address.port)
        if listening is None:
            return None
        if descriptors:
            environ[LISTEN_FDS] = json.dumps({str(name): descriptor for name, descriptor in descriptors.items()})
        else:
            del environ[LISTEN_FDS]
        return listening


def _adopt(descriptor: int, port: int) -> socket.socket | None:
    """Returns the socket of ``descriptor`` if it listens at ``port``; otherwise returns None and does not touch it.

    In a process that inherited the variable but not the descriptor, the number may belong to another file.
    """
    try:
        listening = socket.socket(fileno=descriptor)
    except OSError:
        return None
    with contextlib.suppress(OSError):
        if listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and listening.getsockname()[1] == port:
            listening.set_inheritable(False)  # a child process would keep the port in use
            listening.listen(_BACKLOG)
            return listening
    listening.detach()
    return None


def _cannot_listen(address: Address, error: OSError) -> Exception:
    if error.errno == errno.EADDRINUSE:
        holders = " and ".join(str(holder) for holder in holders_of_port(address.port)) or "another process"
        return AlreadyExistsError(
            f"cannot listen at {address}: the port is in use by {holders}; stop it, or use another port in the "
            "cluster spec"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return UnavailableError(
            f"cannot listen at {address}: no address of this machine. Does this task run on the machine that the "
            f"cluster spec names for it? If others reach this machine by an address that it does not have itself, set "
            f"{BIND_HOST} to one of its own addresses"
        )
    if isinstance(error, PermissionError):
        return PermissionDeniedError(
            f"cannot listen at {address}: not allowed (ports below 1024 are for the superuser)"
        )
    return UnavailableError(f"cannot listen at {address}: {error.strerror or error}")


def holders_of_port(port: int) -> list[Holder]:
    """Returns the processes that listen at TCP port ``port`` of this machine, at any of its addresses.

    Empty if there are none, or if the system does not show them (other than Linux).
    """
    users = _listening_inodes(port)
    if not users:
        return []
    processes = _processes_with({f"socket:[{inode}]" for inode in users})
    if processes:
        return [_holder(pid) for pid in processes]
    return [Holder(pid=None, command="", user=user) for user in sorted(set(users.values()))]


def _listening_inodes(port: int) -> dict[int, str]:
    """Maps the inode of each socket that listens at ``port`` to the id of its user."""
    inodes: dict[int, str] = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    inodes[int(fields[9])] = fields[7]
    return inodes


def _processes_with(links: set[str]) -> list[int]:
    pids: list[int] = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        # Skip a process that exits meanwhile, or is another user's.
        with contextlib.suppress(OSError):
            directory = f"/proc/{pid}/fd"
            if any(os.readlink(f"{directory}/{name}") in links for name in os.listdir(directory)):
                pids.append(int(pid))
    return pids


def _holder(pid: int) -> Holder:
    command, user = "", ""
    with contextlib.suppress(OSError, KeyError):
        command = " ".join(Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ").split())
        user = pwd.getpwuid(os.stat(f"/proc/{pid}").st_uid).pw_name
    if len(command) > _MAX_COMMAND:
        command = command[: _MAX_COMMAND - 3] + "..."
    return Holder(pid=pid, command=command, user=user)
