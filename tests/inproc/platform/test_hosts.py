"""A backend of several hosts, one of which does not answer or refuses requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from headwater.cluster.names import TaskName
from headwater.platform.backends.base import BackendError, NotEnough, Resources, TaskRequest
from headwater.platform.backends.hosts import HostsBackend


class Host:
    """A host with two cores, whose requests fail as the test chooses; it outlives backends.

    Attributes:
      refused: the methods that fail; None for all of them.
      ports: the ports of each job on this host.
    """

    labels: Mapping[str, str] = {}
    local = False

    def __init__(self, host: str) -> None:
        self.host = self.address = host
        self.refused: set[str] | None = set()
        self.ports: dict[str, set[int]] = {}
        self._next_port = 1000

    def call(self, method: str, **arguments: object) -> object:
        if self.refused is None or method in self.refused:
            raise BackendError(f"host {self.host}: refused", temporary=True)
        match method, arguments:
            case "describe", _:
                return {"cores": [0, 1], "memory_bytes": 1 << 30, "gpus": []}
            case "lease_ports", {"job_id": str(job_id), "count": int(count)}:
                first, self._next_port = self._next_port, self._next_port + count
                self.ports.setdefault(job_id, set()).update(range(first, self._next_port))
                return list(range(first, self._next_port))
            case "return_ports", {"job_id": str(job_id), "ports": list(ports)}:
                self.ports[job_id].difference_update(ports)
            case "release", {"job_id": str(job_id), "tasks": None}:
                self.ports.pop(job_id, None)
            case _:
                pass
        return None

    def silence_s(self) -> float:
        return 0.0

    def close(self) -> None:
        """Does nothing: there is no connection."""


def backend(tmp_path: Path, *hosts: Host) -> HostsBackend:
    """Returns the backend of a server that has just started."""
    return HostsBackend(hosts, lost_after_s=60.0, state_dir=tmp_path)


def workers(*indices: int, cpus: float = 1) -> Sequence[TaskRequest]:
    return [TaskRequest(task=TaskName("worker", index), resources=Resources(cpus=cpus)) for index in indices]


def test_places_are_released_on_all_hosts_when_one_host_refuses(tmp_path: Path) -> None:
    hosts = Host("a"), Host("b")
    several = backend(tmp_path, *hosts)
    (first,) = several.reserve("j", workers(0))
    before = {host.host: set(host.ports.get("j", ())) for host in hosts}
    for host in hosts:
        host.refused = {"lease_ports"}
        with pytest.raises(BackendError, match="refused"):
            several.reserve("j", workers(1, 2))
        host.refused = set()
        assert {host.host: host.ports.get("j", set()) for host in hosts} == before
    assert {place.host for place in several.reserve("j", workers(1, 2))} == {"a", "b"}
    assert first.address in {f"{host.host}:{port}" for host in hosts for port in host.ports["j"]}


def test_job_without_places_ends_although_a_host_is_silent(tmp_path: Path) -> None:
    host = Host("a")
    full = backend(tmp_path, host)
    with pytest.raises(NotEnough):
        full.reserve("j", workers(0, cpus=3))
    host.refused = None
    full.release("j")


def test_a_place_on_a_silent_host_stays_reserved_after_a_server_restart(tmp_path: Path) -> None:
    host = Host("a")
    places = backend(tmp_path, host).reserve("j", workers(0, cpus=2))
    host.refused = None
    following = backend(tmp_path, host)
    following.restore("j", places)
    host.refused = set()
    with pytest.raises(NotEnough):
        following.reserve("k", workers(0))
    following.release("j")
    assert following.capacity().hosts[0].free.cpus == 2
