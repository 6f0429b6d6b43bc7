"""Every command of a job file, asked to end in every way and at every moment, on a server with the local backend."""

from __future__ import annotations

import functools
import itertools
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.platform.host.processes import ProcessTable
from tests.processes.platform.test_local import COMMANDS, LAUNCH
from tests.support.platform import Server, server

pytestmark = [pytest.mark.slow, pytest.mark.long]

PROGRAM = """
import os, signal, sys
if os.environ["HEADWATER_ATTEMPT"] != "0":
    print("continues")
    sys.exit()
index = '"index": 1' in os.environ["TF_CONFIG"]
def await_gate():
    with open(f"{os.environ['GATES']}/gate-{index:d}") as gate:
        gate.read()
def save(*_):
    print("saves", flush=True)
    await_gate()
    print("saved", flush=True)
    sys.exit(75)
HANDLER
print("runs", os.getpid(), flush=True)
FINISH
while True: signal.pause()
"""
#: For each moment of the request: the program's handler and last statements, and the lines that it prints after it.
MOMENTS: dict[str, tuple[str, str, list[str]]] = {
    "before the first step": ("pass", "pass", []),
    "in a save": ("signal.signal(signal.SIGTERM, save)", "pass", ["saves", "saved"]),
    "after the last step": (
        "signal.signal(signal.SIGTERM, lambda *_: print('asked', flush=True))",
        "await_gate(); print('result', flush=True); sys.exit(0)",
        ["asked", "result"],
    ),
}
#: For each request: the lines that a worker prints after its restart, if the job is queued again.
REQUESTS: dict[str, list[str]] = {
    "stop": [],
    "requeue": ["continues"],
    "stop, and the server is killed": [],
    "requeue, and the server is killed": ["continues"],
    "scale": [],
    "preempt": ["continues"],
}
#: Lines of the shells around a program.
ECHOES = {"trapped", "Terminated", "inner", "outer", "after"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server(tmp_path_factory.mktemp("server")) as running:
        yield running


def ask(running: Server, job_id: str, request_: str, pids: list[int]) -> None:
    """Asks the workers of a job to end; `scale` asks worker 1 first, which is the last to stop."""
    match request_:
        case "scale":
            running.client.post(f"/jobs/{job_id}/scale", {"workers": 1})
        case "preempt":
            for pid in pids:
                os.kill(keeper_of(pid), signal.SIGTERM)
        case _:
            running.client.post(f"/jobs/{job_id}/stop", {"requeue": request_.startswith("requeue")})


def keeper_of(pid: int) -> int:
    """Returns the process that runs a task, from a process of the task."""
    table = ProcessTable()
    while b"headwater.platform.host.keeper" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        pid = table.parent(pid)
    return pid


def submit_all(running: Server, folder: Path, program: str, **fields: Any) -> dict[str, tuple[str, Path]]:
    """Submits a job of two workers for each command; returns their ids and folders."""
    found: dict[str, tuple[str, Path]] = {}
    for name, words in COMMANDS.items():
        own = folder / str(len(found))
        own.mkdir()
        (own / "program.py").write_text(program)
        for index in (0, 1):
            os.mkfifo(own / f"gate-{index}")
        replaced = {"LAUNCH": LAUNCH, "$P": f"{sys.executable} {{program}}", "{program}": f"{own}/program.py"}
        command = [functools.reduce(lambda word, pair: word.replace(*pair), replaced.items(), word) for word in words]
        job: dict[str, Any] = {"name": "request", "command": command, "deadlines": {"grace": 60}, **fields}
        job |= {"env": {"GATES": str(own), "PYTHONPATH": str(own)}, "restart": {"scope": "task"}}
        found[name] = str(running.client.post("/jobs", job)["id"]), own
    return found


@pytest.mark.parametrize(("request_", "moment"), list(itertools.product(REQUESTS, MOMENTS)))
def test_no_command_loses_work_at_a_request(running: Server, tmp_path: Path, request_: str, moment: str) -> None:
    handler, finish, expected = MOMENTS[moment]
    program = PROGRAM.replace("HANDLER", handler).replace("FINISH", finish)
    jobs = submit_all(running, tmp_path, program, workers="1:2" if request_ == "scale" else 2)
    pids: dict[str, list[int]] = {}
    for name, (job_id, _) in jobs.items():
        if request_ == "scale":
            running.wait_log(job_id, "worker-0", "runs", within=True)
            running.client.post(f"/jobs/{job_id}/scale", {"workers": 2})
            running.until(job_id, lambda job: job["tasks_running"] == 2)
        for index in (0, 1):
            running.wait_log(job_id, f"worker-{index}", "runs", within=True)
        pids[name] = [int(running.log(job_id, f"worker-{index}")[0].split()[1]) for index in (0, 1)]
    asked = (1,) if request_ == "scale" else (0, 1)
    for name, (job_id, _) in jobs.items():
        ask(running, job_id, request_, pids[name])
    for (job_id, _), index in itertools.product(jobs.values(), asked if expected else ()):
        running.wait_log(job_id, f"worker-{index}", expected[0])
    if request_.endswith("killed"):
        running.kill()
        running.start()
    for (_, folder), index in itertools.product(jobs.values(), asked if expected else ()):
        (folder / f"gate-{index}").write_text("continue")
    again = REQUESTS[request_]
    for name, (job_id, folder) in jobs.items():
        if request_ == "scale":
            running.until(job_id, lambda job: job["tasks_running"] == 1)
            running.client.post(f"/jobs/{job_id}/stop")
            if expected:
                running.wait_log(job_id, "worker-0", expected[0])
                (folder / "gate-0").write_text("continue")
        job = running.over(job_id)
        assert (job["phase"], job["restarts"]) == ("succeeded" if again else "stopped", 0), (name, job["reason"])
        for index in (0, 1):
            lines = running.log(job_id, f"worker-{index}")
            first, *printed = [line for line in lines if line not in ECHOES]
            assert [first, *printed] == [f"runs {pids[name][index]}", *expected, *again], name
            # A shell must not continue behind the program that was asked to end.
            assert again or not {"inner", "outer", "after"}.intersection(lines), name
