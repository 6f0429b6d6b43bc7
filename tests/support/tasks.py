"""Tasks of the platform's backends in tests: orders, and waiting for what tasks do without asking again and again."""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headwater.cluster.names import TaskName
from headwater.platform.backends.base import Exited, Resources, Running, TaskBackend, TaskOrder, TaskPlace, TaskRequest
from headwater.platform.host.records import AttemptFolder
from headwater.platform.logfiles import plain

WORKER = TaskName("worker", 0)

#: Begins the programs of tasks: `tell` writes a line to the pipe that the test reads.
PREAMBLE = """
import json, os, signal, socket, subprocess, sys, threading
def tell(what=""):
    with open(os.environ["TELL"], "w") as pipe:
        pipe.write(json.dumps(what) + "\\n")
"""


class Told:
    """A named pipe through which tasks tell the test something; each call waits for the next that they tell."""

    def __init__(self, folder: Path) -> None:
        path = folder / "tell"
        os.mkfifo(path)
        # Open for writing, too, so that the pipe does not end when a task closes it.
        self._pipe = os.fdopen(os.open(path, os.O_RDWR), "r", closefd=True)

    def __call__(self) -> Any:
        return json.loads(self._pipe.readline())

    def close(self) -> None:
        self._pipe.close()


def order(
    backend: TaskBackend,
    tmp_path: Path,
    program: str | list[str],
    *,
    job_id: str = "j1",
    task: TaskName = WORKER,
    attempt: int = 0,
    place: TaskPlace | None = None,
    resources: Resources | None = None,
    env: Mapping[str, str] | None = None,
    **more: Any,
) -> TaskOrder:
    """An order for a Python program, or a command line; at a place that is reserved unless given."""
    argv = program if isinstance(program, list) else [sys.executable, "-c", PREAMBLE + program]
    if place is None:
        (place,) = backend.reserve(job_id, [TaskRequest(task=task, resources=resources or Resources())])
    return TaskOrder(
        job_id=job_id,
        attempt=attempt,
        place=place,
        argv=argv,
        env={"TELL": str(tmp_path / "tell"), **(env or {})},
        log_path=tmp_path / f"{job_id}-{task.job}-{task.index}.log",
        **more,
    )


def keeper_of(handle: str) -> int:
    """The process that keeps a task on this machine."""
    keeper = AttemptFolder(Path(json.loads(handle)["folder"])).keeper()
    assert keeper is not None
    return keeper.pid


def wait_for_end(pid: int) -> None:
    """Waits until there is no process ``pid`` any more, whoever's child it is."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    select.select([descriptor], [], [])
    os.close(descriptor)


def ends(backend: TaskBackend, handle: str) -> Exited:
    """Waits for a task's keeper on this machine to end; how the task ended."""
    state = backend.poll(handle)
    if isinstance(state, Running):
        wait_for_end(keeper_of(handle))
        state = backend.poll(handle)
    assert isinstance(state, Exited), state
    return state


def printed(log: Path) -> str:
    """What a task has printed, without the times that stand before the lines of its log."""
    return plain(log.read_bytes())
