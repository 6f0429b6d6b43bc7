"""Leases of ports of this machine: reserved for tasks before they start, and kept across their restarts.

A leased port is outside the range of ports that the system assigns automatically. So only a program that asks for this
number can take it. Each lease is a file in a folder that all servers of this user on this machine share; the file of a
port can be created only once. A lease ends when it is released, when the machine restarts, or when the folder of its
owner is deleted. While a task runs, its keeper also holds the port (`reserve_port`).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import random
import secrets
import socket
import tempfile
from collections.abc import Collection, Generator
from pathlib import Path

from headwater.cluster.addresses import MAX_PORT, Address
from headwater.data.io.sealed import read_text, seal
from headwater.errors import DataLossError
from headwater.platform.host.folders import private_folder
from headwater.platform.host.processes import boot_id

_logger = logging.getLogger(__name__)
_FIRST_PORT = 20_000
_MIN_PORTS = 2000
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


class NoPort(Exception):
    """No port is left, or the requested port is taken; the message has the reason."""


def lease_folder() -> Path:
    """Returns the folder with the leases of this user on this machine.

    Raises:
      NoPort: another user has created a folder of this name.
    """
    try:
        return private_folder(Path(tempfile.gettempdir(), f"headwater-ports-{os.getuid()}"))
    except PermissionError as error:
        raise NoPort(str(error)) from error


def lease_ports(folder: Path, owner: str, home: Path, count: int) -> list[int]:
    """Leases ``count`` ports to ``owner``, a word, whose folder is ``home``.

    Raises:
      NoPort: fewer are available.
    """
    candidates = list(leasable_ports())
    random.shuffle(candidates)
    leased: list[int] = []
    with _lock_leases(folder):
        for port in candidates:
            if len(leased) == count:
                break
            if _lease(folder / str(port), owner, home):
                if _is_free(port):
                    leased.append(port)
                else:
                    (folder / str(port)).unlink()
        if len(leased) < count:
            _release(folder, leased)
    if len(leased) < count:
        raise NoPort(
            f"only {len(leased)} of {count} ports are free of {candidates[0]} and {len(candidates) - 1} others"
        )
    return leased


def lease_again(folder: Path, owner: str, home: Path, ports: list[int]) -> None:
    """Creates missing leases of ``owner`` for ``ports``; keeps existing ones, which are of the same owner.

    A damaged lease is created again.
    """
    with _lock_leases(folder):
        for port in ports:
            if (folder / str(port)).exists() and not _read(folder / str(port))[1]:
                (folder / str(port)).unlink()
            _lease(folder / str(port), owner, home)


def release_ports(folder: Path, owner: str, ports: Collection[int] | None = None) -> None:
    """Releases ``ports`` of ``owner``, all unless given."""
    with _lock_leases(folder):
        for entry in folder.iterdir():
            wanted = entry.name.isdecimal() and (ports is None or int(entry.name) in ports)
            if wanted and _read(entry)[1] == owner:
                entry.unlink()


def leasable_ports() -> range:
    """Returns the ports that may be leased: ports that the system never assigns automatically."""
    try:
        first, last = map(int, _RANGE.read_text().split())
    except (OSError, ValueError):  # the system does not have this file: assume Linux's default
        first, last = 32_768, 60_999
    if first - _FIRST_PORT >= _MIN_PORTS:
        return range(_FIRST_PORT, first)
    return range(last + 1, MAX_PORT + 1) if MAX_PORT - last >= _MIN_PORTS else range(1024, first)


def reserve_port(address: Address) -> socket.socket:
    """Returns a socket that is bound to ``address`` and does not listen.

    While the socket is open, the system assigns the port to no other process, and connections to the port are refused
    immediately; the task can bind the port as any server does (with SO_REUSEADDR).

    Raises:
      NoPort: another program has the port.
    """
    try:
        family, _, _, _, place = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror:  # the name resolves only on other machines
        family, place = socket.AF_INET, ("", address.port)
    try:
        return _bound(family, place)
    except OSError as error:
        # Others may reach this machine by an address that is not local, as behind NAT: hold the port at all local
        # addresses.
        if error.errno != errno.EADDRNOTAVAIL:
            raise _cannot_bind(address, error) from error
    try:
        return _bound(family, ("", address.port))
    except OSError as error:
        raise _cannot_bind(address, error) from error


def _bound(family: socket.AddressFamily, place: tuple[object, ...]) -> socket.socket:
    held = socket.socket(family, socket.SOCK_STREAM)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(place)
    except OSError:
        held.close()
        raise
    return held


def _cannot_bind(address: Address, error: OSError) -> NoPort:
    return NoPort(f"port {address.port} cannot be bound: {error.strerror}; another program may listen there")


@contextlib.contextmanager
def _lock_leases(folder: Path) -> Generator[None]:
    """Locks the leases: two processes that find an expired lease must not both take its port."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _lease(path: Path, owner: str, home: Path) -> bool:
    """Creates a lease; returns False if the port is leased already."""
    # Write the file completely before it gets its name. Otherwise another process could read a partly written lease,
    # and treat the lease as expired.
    written = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    written.write_bytes(seal(f"{boot_id()} {owner} {home}\n".encode()))
    try:
        for _ in range(2):
            try:
                os.link(written, path)
            except FileExistsError:
                if not _has_ended(path):
                    return False
                path.unlink(missing_ok=True)
            else:
                return True
    finally:
        written.unlink(missing_ok=True)
    return False


def _has_ended(path: Path) -> bool:
    if not path.exists():
        return True
    boot, owner, home = _read(path)
    return bool(owner) and (boot != boot_id() or not Path(home).exists())


def _read(path: Path) -> tuple[str, str, str]:
    """Returns boot, owner and home of a lease; empty for a damaged one, whose port stays leased, with a warning."""
    try:
        boot, owner, home = read_text(path, _check_lease).rstrip("\n").split(" ", 2)
    except DataLossError as error:
        _logger.warning(
            "%s. The port is not leased to any job; remove the file once no task uses the port", error.message
        )
        return "", "", ""
    return boot, owner, home


def _check_lease(text: str) -> None:
    if len(text.split(" ", 2)) != 3:
        raise ValueError("it is not a lease of a port")


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def _release(folder: Path, ports: list[int]) -> None:
    for port in ports:
        (folder / str(port)).unlink()
