"""Tasks for tests of the platform's backends: orders, and waits for tasks without polling."""

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

#: The beginning of the programs of tasks. Its function `tell` writes a line to the pipe that the test reads.
PREAMBLE = """
import json, os, signal, socket, subprocess, sys, threading
def tell(what=""):
    with open(os.environ["TELL"], "w") as pipe:
        pipe.write(json.dumps(what) + "\\n")
"""


class ValuePipe:
    """A named pipe through which tasks send values to the test. Each call waits for the next value and returns it."""

    def __init__(self, folder: Path) -> None:
        path = folder / "tell"
        os.mkfifo(path)
        # Open for writing as well, so that the reader sees no end of file when the last task closes the pipe.
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
    """Returns an order to run a Python program or a command line; reserves a place unless one is given."""
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
    """Returns the id of the process that supervises a task on this machine."""
    keeper = AttemptFolder(Path(json.loads(handle)["folder"])).keeper()
    assert keeper is not None
    return keeper.pid


def wait_for_end(pid: int) -> None:
    """Waits until the process ``pid`` has ended, even if it is not a child of this process."""
    # A pidfd becomes readable at the end of any process; `os.waitpid` works for children only.
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    select.select([descriptor], [], [])
    os.close(descriptor)


def ends(backend: TaskBackend, handle: str) -> Exited:
    """Waits until the supervisor of a task on this machine has ended; returns how the task ended."""
    state = backend.poll(handle)
    if isinstance(state, Running):
        wait_for_end(keeper_of(handle))
        state = backend.poll(handle)
    assert isinstance(state, Exited), state
    return state


def printed(log: Path) -> str:
    """Returns a task's output, without the timestamps in its log."""
    return plain(log.read_bytes())
