from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headwater.cluster.addresses import Address
from headwater.platform.host import ports
from headwater.platform.host.ports import NoPort, leasable_ports, lease_again, lease_ports, release_ports, reserve_port


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "leases").mkdir()
    return tmp_path / "leases"


def test_no_port_is_leased_twice(folder: Path, tmp_path: Path) -> None:
    first = lease_ports(folder, "one", tmp_path, 50)
    second = lease_ports(folder, "two", tmp_path, 50)
    assert len({*first, *second}) == 100
    assert all(port in leasable_ports() for port in first)


def test_a_damaged_lease_gives_its_port_to_no_other(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (port,) = lease_ports(folder, "one", tmp_path, 1)
    monkeypatch.setattr(ports, "leasable_ports", lambda: [port])
    path = folder / str(port)
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
        with pytest.raises(NoPort):
            lease_ports(folder, "two", tmp_path, 1)
        release_ports(folder, "two")
        assert path.exists()
    lease_again(folder, "one", tmp_path, [port])
    assert path.read_bytes() == content
    release_ports(folder, "one")
    assert lease_ports(folder, "two", tmp_path, 1) == [port]


def test_released_ports_can_be_leased(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = lease_ports(folder, "one", tmp_path, 3)
    monkeypatch.setattr(ports, "leasable_ports", lambda: few)
    with pytest.raises(NoPort, match="only 0 of 1 ports"):
        lease_ports(folder, "two", tmp_path, 1)
    release_ports(folder, "one", few[:1])
    release_ports(folder, "another", few[1:])
    assert lease_ports(folder, "one", tmp_path, 1) == few[:1]
    release_ports(folder, "one")
    assert sorted(lease_ports(folder, "two", tmp_path, 3)) == sorted(few)
    with pytest.raises(NoPort):
        lease_ports(folder, "three", tmp_path, 1)


def test_leases_end_with_their_owners_folder_and_with_the_machine(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    few = lease_ports(folder, "one", home, 2)
    monkeypatch.setattr(ports, "leasable_ports", lambda: few)
    home.rmdir()
    assert sorted(lease_ports(folder, "two", tmp_path, 2)) == sorted(few)
    monkeypatch.setattr(ports, "boot_id", lambda: "another")
    assert sorted(lease_ports(folder, "three", tmp_path, 2)) == sorted(few)
    lease_again(folder, "three", tmp_path, few)
    release_ports(folder, "three")
    assert list(folder.iterdir()) == []


def test_a_lease_that_has_ended_is_taken_over_by_one(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    few = lease_ports(folder, "old", home, 8)
    home.rmdir()
    monkeypatch.setattr(ports, "leasable_ports", lambda: few)
    with ThreadPoolExecutor(8) as pool:
        taken = pool.map(lambda number: lease_ports(folder, f"new{number}", tmp_path, 1), range(8))
        assert sorted(port for one in taken for port in one) == sorted(few)


def test_ports_are_leased_all_or_none(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = lease_ports(folder, "one", tmp_path, 2)
    release_ports(folder, "one")
    monkeypatch.setattr(ports, "leasable_ports", lambda: few)
    with pytest.raises(NoPort, match="only 2 of 3 ports"):
        lease_ports(folder, "one", tmp_path, 3)
    assert list(folder.iterdir()) == []


def test_a_held_port_can_be_bound_as_servers_do(folder: Path, tmp_path: Path) -> None:
    (port,) = lease_ports(folder, "one", tmp_path, 1)
    with reserve_port(Address("127.0.0.1", port)):
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        with socket.create_server(("127.0.0.1", port)):
            socket.create_connection(("127.0.0.1", port)).close()
            with pytest.raises(NoPort, match=str(port)):
                reserve_port(Address("127.0.0.1", port))
    # An address that this machine does not have itself, and a name that it does not know.
    for host in ("192.0.2.77", "no.such.host.invalid"):
        reserve_port(Address(host, port)).close()
