"""Another user of the machine has no access to the ports, sockets and processes of a job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.platform import server
from tests.support.processes import Process, Processes, processes

PROGRAMS = Path(__file__).with_name("programs")
KERAS = Path(__file__).parents[1] / "keras"
RUN = (sys.executable, "-u", "-m", "headwater", "run", "--grace", "1")
NOBODY = 65534

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can become another user"),
]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def as_user(user: int) -> tuple[str, ...]:
    """Returns the prefix of a command that runs the command as another user."""
    return ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups")


@pytest.fixture(scope="module", autouse=True)
def others_can_run_python() -> None:
    """Skips if another user cannot read the interpreter or its packages, for example in a home folder."""
    tried = subprocess.run(
        [*as_user(NOBODY), sys.executable, "-c", "import numpy"], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"user {NOBODY} cannot run {sys.executable}: {tried.stderr.strip().splitlines()[-1]}")


def everything(pids: list[int]) -> dict[str, list[Any]]:
    """Returns the addresses at which the processes and their children listen, and the process ids."""
    family = [psutil.Process(pid) for pid in pids]
    family += [child for process in family for child in process.children(recursive=True)]
    ports: set[int] = set()
    sockets: set[str] = set()
    for process in family:
        for connection in process.net_connections("all"):
            if connection.status == psutil.CONN_LISTEN:
                ports.add(connection.laddr.port)
            elif isinstance(connection.laddr, str) and connection.laddr.startswith("/"):
                sockets.add(connection.laddr)
    return {"ports": sorted(ports), "sockets": sorted(sockets), "pids": [process.pid for process in family]}


def stranger(cluster: Processes, targets: dict[str, list[Any]], user: int = NOBODY) -> dict[str, str]:
    """Runs all attempts as another user, and returns their outcomes."""
    command = (*as_user(user), sys.executable, str(PROGRAMS / "stranger.py"), json.dumps(targets))
    output = cluster.run(*command, HEADWATER_TOKEN="", HOME="/").succeeds()
    return dict(json.loads(output.splitlines()[-1]))


def started(stack: ExitStack, kind: str, folder: Path) -> tuple[Processes, list[Process], int]:
    """Waits until the tasks of a job are connected; returns them with their expected number of ports."""
    jobs = {
        "graphs": {"ps": 1, "worker": 1},
        "parameters": {"ps": 1, "worker": 1},
        "mirrored": {"worker": 2},
        "coordinator": {"ps": 1, "chief": 1, "worker": 1},
    }
    cluster = stack.enter_context(processes(**jobs.get(kind, {})))
    if kind == "launched":
        launcher = cluster.run(*RUN, "--ps", "1", "--workers", "1", "--flags", str(PROGRAMS / "loop.py"))
        launcher.wait_for("step 100$")
        return cluster, [launcher], 2
    if kind == "graphs":
        ps, worker = (cluster.start(job, 0, PROGRAMS / "loop.py") for job in ("ps", "worker"))
        worker.wait_for("step 100$")
        return cluster, [ps, worker], 2
    tasks: list[Process] = []
    for job, hosts in cluster.hosts.items():
        for index in range(len(hosts)):
            config = json.dumps({"cluster": cluster.hosts, "task": {"type": job, "index": index}})
            program = (KERAS / "served.py", folder) if kind == "parameters" else (PROGRAMS / "waits.py", kind)
            tasks.append(cluster.start(job, index, program[0], str(program[1]), TF_CONFIG=config))
    tells = {"parameters": tasks[1:], "mirrored": tasks, "coordinator": tasks[1:2]}[kind]
    for task in tells:
        task.wait_for("^(epoch|ready)")
    return cluster, tasks, len(tasks)


@pytest.mark.parametrize("kind", ["launched", "graphs", "parameters", "mirrored", "coordinator"])
def test_another_user_is_refused_at_every_port_and_socket(stack: ExitStack, tmp_path: Path, kind: str) -> None:
    cluster, tasks, ports = started(stack, kind, tmp_path)
    targets = everything([task.pid for task in tasks])
    assert len(targets["ports"]) == ports
    assert len(targets["sockets"]) >= ports
    found = stranger(cluster, targets)
    assert len(found) > 9 * ports
    assert [name for name, result in found.items() if result == "let in"] == []
    for port in targets["ports"]:
        assert found[f"{port} channel own"] == found[f"{port} channel none"] == "token"
    output = "\n".join(task.output for task in tasks)
    assert "refused a connection from 127.0.0.1:" in output
    assert "it has another user's token" in output
    assert "it has no token" in output
    # The same attempts succeed for the tasks' own user.
    ours = stranger(cluster, {"ports": targets["ports"][:1], "sockets": targets["sockets"][:1], "pids": []}, user=0)
    assert ours[f"{targets['ports'][0]} channel own"] == "let in"


def test_another_user_is_refused_by_the_platform_and_its_tasks(stack: ExitStack, tmp_path: Path) -> None:
    running = stack.enter_context(server(tmp_path / "server"))
    cluster = stack.enter_context(processes())
    job = {"name": "served", "program": str(PROGRAMS / "loop.py"), "flags": True, "ps": 1, "workers": 1}
    job_id = str(running.client.post("/jobs", job)["id"])
    running.wait_log(job_id, "worker-0", "step 100")
    pids = [process.pid for process in psutil.process_iter() if running_of(process, str(tmp_path))]
    targets = everything(pids)
    assert len(targets["ports"]) >= 3
    found = stranger(cluster, targets)
    assert [name for name, result in found.items() if result == "let in"] == []
    # The job's own user can query a task's status, as the platform's page does.
    places = [task["address"].rpartition(":")[2] for task in running.job(job_id)["tasks"]]
    ours = stranger(cluster, {"ports": [int(places[0])], "sockets": [], "pids": []}, user=0)
    assert ours[f"{places[0]} status own"] == "let in"


def running_of(process: psutil.Process, folder: str) -> bool:
    """Returns whether a process belongs to the server in ``folder`` or to one of its jobs."""
    try:
        return any(folder in word for word in process.cmdline()) or folder in process.environ().get("TMPDIR", "")
    except psutil.Error:
        return False
