"""A task at its limit of open files: a new connection is refused with the reason, and existing ones continue."""

from __future__ import annotations

import itertools
import os
import resource
import sys
from pathlib import Path

import pytest

from tests.support.processes import EXEC, Process, processes

PROGRAMS = Path(__file__).with_name("programs")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux limits another process"),
]


def limit(process: Process, spare: int | None) -> None:
    """Limits the process to ``spare`` further files; None restores its previous limit.

    A new file gets the lowest free number; a socket that the process was given may have a high one.
    """
    _, most = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
    used = set(map(int, os.listdir(f"/proc/{process.pid}/fd")))
    free = (number for number in itertools.count() if number not in used)
    least = most if spare is None else next(itertools.islice(free, spare, None))
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (least, most))


@pytest.mark.parametrize("spare", [0, pytest.param(4, marks=pytest.mark.long)])
def test_a_ps_without_descriptors_says_so_and_serves_the_others(spare: int) -> None:
    with processes(ps=1, worker=1) as cluster:
        ps = cluster.start("ps", 0, PROGRAMS / "loop.py")
        worker = cluster.start("worker", 0, PROGRAMS / "loop.py", "--steps=50")
        worker.wait_for("step 50")
        client = [*EXEC, str(PROGRAMS / "client.py"), f"grpc://{cluster.address('ps')}", "1", "leave"]
        limit(ps, spare)
        late = cluster.run(*client, HEADWATER_CONNECT_DEADLINE_S="2")
        assert late.ends() == 1
        error = (
            f"ResourceExhaustedError: .* the master at {cluster.address('ps')}.* it has reached its limit of open files"
        )
        late.wait_for(error)
        ps.wait_for("/job:ps/task:0 refused a connection from .*: it has reached its limit of open files")
        worker.wait_for("step", after=worker.line_count())
        limit(ps, None)
        assert "shared 1" in cluster.run(*client).succeeds()


def test_a_client_without_descriptors_says_so_at_once() -> None:
    with processes(ps=1) as cluster:
        ps = cluster.start("ps", 0, PROGRAMS / "task_only.py")
        ps.wait_for("serving")
        client = cluster.run(sys.executable, str(PROGRAMS / "no_descriptors.py"), f"grpc://{cluster.address('ps')}")
        assert client.ends() == 1
        client.wait_for("ResourceExhaustedError: .* this process has reached its limit of open files")
