"""Servers of the platform for tests, as processes, and jobs whose tasks run small shell scripts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headwater.platform.client import ApiClient
from tests.support.processes import Process

HEADWATER = (sys.executable, "-u", "-m", "headwater")


class Server:
    """``headwater serve`` on a free port, with a client; it can be killed and restarted on the same data.

    Args:
      folder: the folder of its data.
      options: further options of the command.
    """

    def __init__(self, folder: Path, options: Sequence[str] = ()) -> None:
        self.data_dir = folder / "data"
        self._options = options
        self.start()

    def start(self) -> None:
        """Starts the server; called again after its end, restarts it."""
        command = [*HEADWATER, "serve", "--port", "0", "--data-dir", str(self.data_dir), *self._options]
        self.process = Process(command, dict(os.environ))
        self.address = self.process.wait_for(r"serves at (\S+)")[1]
        self.process.wait_for("startup complete")
        self.token = (self.data_dir / "admin.token").read_text().strip()
        self.client = ApiClient(self.address, self.token)

    def kill(self) -> None:
        """Sends SIGKILL, and waits for the end of the server."""
        self.client.close()
        self.process.kill()

    def stop(self) -> int:
        """Sends SIGTERM, and waits for the end of the server; returns the exit code."""
        self.client.close()
        return self.process.terminate()

    def submit(self, script: str, **fields: Any) -> str:
        """Submits a job whose tasks run a shell script; returns its id."""
        return str(self.client.post("/jobs", shell_job(script, **fields))["id"])

    def job(self, job_id: str) -> Any:
        """Returns the current record of a job."""
        return self.client.get(f"/jobs/{job_id}")

    def until(self, job_id: str, met: Callable[[Any], bool]) -> Any:
        """Waits until ``met`` returns True for a job's record; AssertionError if the job ends before."""
        job = None
        with self.client.stream(f"/jobs/{job_id}/stream") as events:
            for kind, entry in events:
                if kind == "job":
                    job = entry
                    if met(job):
                        return job
        raise AssertionError(f"the job is over: {job}")

    def over(self, job_id: str) -> Any:
        """Waits until a job is over; returns its record."""
        return self.until(job_id, lambda job: job["phase"] in ("succeeded", "failed", "stopped"))

    def log(self, job_id: str, task: str) -> list[str]:
        """Returns the lines that a task has printed."""
        return str(self.client.get(f"/jobs/{job_id}/logs/{task}")["text"]).splitlines()

    def wait_log(self, job_id: str, task: str, line: str, *, within: bool = False) -> None:
        """Waits until a task has printed ``line``; with ``within``, until it has printed a line that contains it."""
        with self.client.stream(f"/jobs/{job_id}/logs", task=task) as lines:
            for _, entry in lines:
                if entry["line"] == line or (within and line in entry["line"]):
                    return
        raise AssertionError(f"{task} never printed {line!r}: {self.log(job_id, task)}")

    def events(self, job_id: str) -> list[str]:
        """Returns the events of a job, each as ``kind: text``."""
        return [f"{event['kind']}: {event['text']}" for event in self.client.get(f"/jobs/{job_id}/events")]

    def end_all(self) -> None:
        """Stops all jobs and waits for their end, so that no process of a task continues after the test."""
        jobs = self.client.get("/jobs", live=True)["jobs"]
        for job in jobs:
            if job["phase"] != "ending":
                self.client.post(f"/jobs/{job['id']}/stop")
        for job in jobs:
            self.over(job["id"])


def shell_job(script: str, **fields: Any) -> dict[str, Any]:
    """Returns a job file, as a dict, whose tasks run a shell script."""
    deadlines: Mapping[str, Any] = {"grace": 1, **fields.pop("deadlines", {})}
    return {"name": "test", "command": ["sh", "-c", script], "deadlines": deadlines, **fields}


@contextmanager
def server(folder: Path, *options: str) -> Iterator[Server]:
    """Context manager for a server. After a successful test, all jobs are stopped."""
    running = Server(folder, options)
    try:
        yield running
        running.end_all()
    finally:
        running.kill()
