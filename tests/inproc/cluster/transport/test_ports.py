"""Reservation of a port."""

from __future__ import annotations

import json
import os
import socket

import pytest

from headwater.cluster.addresses import Address
from headwater.cluster.transport.ports import LISTEN_FDS, Holder, listen, resolve
from headwater.errors import AlreadyExistsError, InvalidArgumentError, UnavailableError
from tests.support.processes import bound


def test_only_at_its_own_address() -> None:
    with listen(Address("127.0.0.1", 0), environ={}) as listening:
        port = listening.getsockname()[1]
        assert listening.getsockname() == ("127.0.0.1", port)
        assert listening.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT) == 0
        with listen(Address("127.0.0.2", port), environ={}) as other:
            assert other.getsockname() == ("127.0.0.2", port)


def test_a_port_of_our_own_is_taken_too() -> None:
    with listen(Address("localhost", 0), environ={}) as listening:
        with pytest.raises(AlreadyExistsError, match=f"process {os.getpid()} "):
            listen(Address("localhost", listening.getsockname()[1]), environ={})
        with pytest.raises(AlreadyExistsError, match="in use by"):
            listen(Address("0.0.0.0", listening.getsockname()[1]), environ={})


def test_ipv6() -> None:
    try:
        probe = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6")
    probe.close()
    with listen(Address("::1", 0), environ={}) as listening:
        assert listening.family is socket.AF_INET6


def test_ipv4_comes_first() -> None:
    families = [family for family, _ in resolve(Address("localhost", 1))]
    assert families[0] is socket.AF_INET


def test_addresses_that_are_not_here() -> None:
    with pytest.raises(UnavailableError, match="no address of this machine"):
        listen(Address("192.0.2.1", 0), environ={})
    with pytest.raises(UnavailableError, match="unknown host"):
        listen(Address("no-such-host.invalid", 1), environ={})


def test_an_inherited_socket_is_taken_for_good() -> None:
    with bound() as kept:
        address, other = Address(*kept.getsockname()), Address("elsewhere", 1)
        inherited = bound(address)
        inherited.listen()
        environ = {LISTEN_FDS: json.dumps({str(address): inherited.detach(), str(other): 0})}
        with listen(address, environ=environ) as listening:
            assert not listening.get_inheritable()
            with socket.create_connection(address):
                listening.accept()[0].close()
            assert json.loads(environ[LISTEN_FDS]) == {str(other): 0}
            with pytest.raises(AlreadyExistsError, match=f"process {os.getpid()} "):
                listen(address, environ=environ)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)
        with listen(address, environ=environ), socket.create_connection(address):
            pass


def test_the_last_inherited_socket_takes_the_variable_with_it() -> None:
    inherited = socket.create_server(("127.0.0.1", 0))
    address = Address(*inherited.getsockname())
    environ = {LISTEN_FDS: json.dumps({str(address): inherited.detach()})}
    with listen(address, environ=environ):
        assert environ == {}


def test_a_descriptor_that_is_something_else_is_passed_over() -> None:
    address = Address("127.0.0.1", 0)
    with socket.socket() as not_listening, open(os.devnull) as no_socket:
        for number in (not_listening.fileno(), no_socket.fileno(), 9999):
            with listen(address, environ={LISTEN_FDS: json.dumps({str(address): number})}) as listening:
                assert listening.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', '{"a:1": "x"}', '{"a:1": null}'])
def test_a_variable_that_is_wrong(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=LISTEN_FDS):
        listen(Address("127.0.0.1", 0), environ={LISTEN_FDS: text})


def test_descriptions_of_port_holders() -> None:
    assert str(Holder(pid=12, command="nc -l 2222", user="ann")) == "process 12 (nc -l 2222)"
    assert str(Holder(pid=12, command="", user="")) == "process 12"
    assert str(Holder(pid=None, command="", user="1000")) == "a process of user 1000"
