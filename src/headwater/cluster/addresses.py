"""Network addresses of tasks: ``host:port``, with IPv6 addresses in brackets."""

from __future__ import annotations

import re
from typing import NamedTuple

_BRACKETED = re.compile(r"\[(?P<host>[^\[\]]+)\](?::(?P<port>.*))?", re.DOTALL)
MAX_PORT = 65535


class Address(NamedTuple):
    """The address where a task listens.

    Attributes:
      host: a name, an IPv4 address, or an IPv6 address without brackets.
      port: 0 to 65,535; 0 lets the system choose.
    """

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def strip_blanks(address: str) -> str:
    """Returns ``address`` without blanks, as lists of addresses may have them, such as ``"localhost: 2223"``."""
    return "".join(address.split())


def parse_address(address: str) -> Address:
    """Reads ``host:port``, ``[IPv6]:port``, with a scheme such as ``grpc://`` or without.

    Raises:
      ValueError: the host or the port is missing, or the port is not a number from 0 to 65,535.
    """
    text = strip_blanks(address)
    _, _, text = text.rpartition("://")
    match = _BRACKETED.fullmatch(text)
    if match is not None:
        host, port = match["host"], match["port"] or ""
        if ":" not in host:
            raise ValueError(f"address {address!r}: only IPv6 addresses may have brackets")
    else:
        host, _, port = text.rpartition(":")
        if ":" in host:
            raise ValueError(f"address {address!r}: write an IPv6 address in brackets, such as '[::1]:2222'")
    if not host:
        raise ValueError(f"address {address!r} lacks a host or a port; write 'host:port'")
    if not (port.isascii() and port.isdigit() and int(port) <= MAX_PORT):
        raise ValueError(f"address {address!r}: the port must be a number from 0 to {MAX_PORT}")
    return Address(host, int(port))
