"""Access control: tokens, certificates and matching specs; all other connections are refused in time, with a reason."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import EXEC, Process, Processes, processes

PROGRAMS = Path(__file__).with_name("programs")
TASK = PROGRAMS / "task_only.py"

pytestmark = pytest.mark.slow


def client(cluster: Processes, **environ: str) -> Process:
    """A program that adds 5 to a variable on the ps."""
    target = f"grpc://{cluster.address('ps')}"
    return cluster.run(*EXEC, str(PROGRAMS / "client.py"), target, "5", "leave", pass_fds=(), **environ)


def test_a_token_is_asked_for() -> None:
    with processes(ps=1) as cluster:
        ps = cluster.start("ps", 0, TASK, HEADWATER_TOKEN="secret")
        ps.wait_for("serving")
        strangers = [client(cluster), client(cluster, HEADWATER_TOKEN="guessed")]
        for stranger in strangers:
            assert stranger.ends() != 0
            assert "UnauthenticatedError" in stranger.output
            assert cluster.address("ps") in stranger.output
            assert "token" in stranger.output
        ps.wait_for("refused a connection from .*: it has no token")
        ps.wait_for("refused a connection from .*: it has another token")
        assert "secret" not in ps.output
        assert "shared 5" in client(cluster, HEADWATER_TOKEN="secret").succeeds()


def test_mutual_tls(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("headwater")), "certs", "--hosts", "127.0.0.1,localhost"]
    made = [
        subprocess.run([*command, str(tmp_path / name)], capture_output=True, text=True, check=True).stdout
        for name in ("ours", "theirs")
    ]
    ours, theirs = (dict(re.findall(r"(HEADWATER_TLS_\w+)=(\S+)", text)) for text in made)
    assert sorted(ours) == ["HEADWATER_TLS_CA", "HEADWATER_TLS_CERT", "HEADWATER_TLS_KEY"]
    with processes(ps=1, worker=1) as cluster:
        ps = cluster.start("ps", 0, PROGRAMS / "loop.py", **ours)
        worker = cluster.start("worker", 0, PROGRAMS / "loop.py", **ours)
        worker.wait_for("^step 100$")
        for stranger in (client(cluster), client(cluster, **theirs)):
            assert stranger.ends() != 0
            assert "certificate" in stranger.output or "TLS" in stranger.output
        assert "shared 5" in client(cluster, **ours).succeeds()
        lines = worker.line_count()
        worker.wait_for("^step ", after=lines)
        assert worker.terminate() == -15
        assert ps.terminate() == 0


@pytest.mark.parametrize(("job", "index"), [("worker", 0), ("worker", 1)], ids=["chief", "worker"])
def test_a_deadline_ends_a_monitored_session(job: str, index: int, tmp_path: Path) -> None:
    with processes(ps=1, worker=2) as cluster:
        program, deadline = PROGRAMS / "monitored.py", {"HEADWATER_CONNECT_DEADLINE_S": "1"}
        late = cluster.start(job, index, program, f"--folder={tmp_path}", **deadline)
        assert late.ends() not in (0, None)
        last = late.output.splitlines()[-1]
        assert f"gave up waiting for /job:ps/task:0 at {cluster.address('ps')}" in last
        assert "is the task started, and is the address the right one?" in last


def test_the_replicas_of_a_chief_that_is_done_end(tmp_path: Path) -> None:
    program = PROGRAMS / "sync.py"
    with processes(ps=1, worker=2) as cluster:
        ps = cluster.start("ps", 0, program)
        chief = cluster.start("worker", 0, program, "--steps=20", "--last_step=100")
        worker = cluster.start("worker", 1, program, "--steps=20")
        chief.succeeds()
        worker.succeeds()  # the worker waits for a step that never happens
        ps.succeeds()


def test_a_deadline_and_a_spec_that_does_not_fit() -> None:
    with processes(ps=1) as cluster, processes(ps=1, worker=1) as other:
        cluster.start("ps", 0, TASK).wait_for("serving")
        program = PROGRAMS / "loop.py"
        late = other.start("worker", 0, program, HEADWATER_CONNECT_DEADLINE_S="1")
        # The same address, which is another task in this task's spec.
        swapped = other.run(
            *EXEC,
            str(program),
            f"--ps_hosts={other.address('ps')}",
            f"--worker_hosts=127.0.0.1:0,{cluster.address('ps')}",
            "--job_name=worker",
            "--task_index=0",
        )
        taken = cluster.run(*EXEC, str(TASK), f"--ps_hosts={cluster.address('ps')}", "--job_name=ps", "--task_index=0")
        assert taken.ends() != 0
        assert "AlreadyExistsError" in taken.output
        assert f"cannot listen at {cluster.address('ps')}" in taken.output
        assert re.search(r"process \d+ \(.*task_only\.py", taken.output)
        swapped.wait_for(r"it is /job:ps/task:0, not /job:worker/task:1")
        assert late.ends() != 0
        assert f"gave up waiting for /job:ps/task:0 at {other.address('ps')}" in late.output
