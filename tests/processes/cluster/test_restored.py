"""Synchronous replicas wait while a task is killed, or stopped and continued; all then use the restored state.

``HEADWATER_TEST_FAULTS`` is the number of faults of each kind, 1 by default; ``HEADWATER_TEST_SEED`` determines their
times.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processes.cluster.test_losses import newest_step
from tests.support.processes import Process, Processes, processes

PROGRAMS = Path(__file__).with_name("programs")
FAULTS = int(os.environ.get("HEADWATER_TEST_FAULTS", "1"))
SEED = int(os.environ.get("HEADWATER_TEST_SEED", "0"))
CONSISTENT = "consistent.py", "--consistency=synchronous 2"
REPLICAS = "sync.py", ""
#: The ps at which the replicas of a program wait for each other.
MEETING_PLACE = {CONSISTENT: 1, REPLICAS: 0}

pytestmark = pytest.mark.slow


class Training:
    """Two ps and two synchronous replicas, each needed for every step.

    Args:
      cluster: the processes.
      folder: the folder of the checkpoints.
      program: the workers' program, and an argument.
    """

    def __init__(self, cluster: Processes, folder: Path, program: tuple[str, str]) -> None:
        self._cluster = cluster
        self._folder = folder
        self._program = program
        self.meeting_place = MEETING_PLACE[program]
        self.ps = [self.start("ps", index) for index in range(2)]
        self.workers = [self.start("worker", index) for index in range(2)]

    def start(self, job: str, index: int) -> Process:
        name, argument = self._program
        arguments = ["--steps=1", f"--folder={self._folder}", *([argument] if argument else [])]
        return self._cluster.start(job, index, PROGRAMS / name, *arguments, HEADWATER_BEHIND_AFTER_S="1")

    def goes_on(self, steps: int) -> None:
        """Waits until both workers have made ``steps`` further steps."""
        begun = [worker.line_count() for worker in self.workers]
        for worker, line in zip(self.workers, begun, strict=True):
            for _ in range(steps):
                line = worker.next_line("^step ", after=line) + 1


def chief_killed(training: Training) -> None:
    training.workers[0].kill()
    training.workers[0] = training.start("worker", 0)
    training.workers[0].wait_for("^step ")


def ps_killed(training: Training, index: int) -> None:
    training.ps[index].kill()
    training.ps[index] = training.start("ps", index)


def ps_stopped(training: Training, index: int) -> None:
    # The chief needs both ps for each update; the other worker may have sent its gradient and wait at a barrier.
    chief = training.workers[0]
    lines = chief.line_count()
    training.ps[index].suspend()
    chief.wait_for("it no longer answers", after=lines)
    training.ps[index].resume()


def worker_stopped(training: Training, index: int) -> None:
    ps, worker = training.ps[training.meeting_place], f"/job:worker/task:{index}"
    lines = ps.line_count()
    training.workers[index].suspend()
    ps.wait_for(rf"have waited for|for {worker}, \d+ s so far|{worker} is behind|has lost {worker}", after=lines)
    training.workers[index].resume()


FAULT: dict[str, Callable[[Training], None]] = {
    "chief-killed": chief_killed,
    "first-ps-killed": lambda training: ps_killed(training, 0),
    "second-ps-killed": lambda training: ps_killed(training, 1),
    "first-ps-stopped": lambda training: ps_stopped(training, 0),
    "second-ps-stopped": lambda training: ps_stopped(training, 1),
    "chief-stopped": lambda training: worker_stopped(training, 0),
    "worker-stopped": lambda training: worker_stopped(training, 1),
}


#: `make test-long` runs the other faults, and the other program.
_SHORT = ("chief-killed", "first-ps-killed", "second-ps-stopped")

CASES = [
    pytest.param(
        fault,
        program,
        id=f"{fault}-{program[0]}",
        marks=() if program is REPLICAS and fault in _SHORT else pytest.mark.long,
    )
    for program in (REPLICAS, CONSISTENT)
    for fault in FAULT
]


@pytest.mark.parametrize(("fault", "program"), CASES)
def test_all_workers_continue_from_the_restored_state(fault: str, program: tuple[str, str], tmp_path: Path) -> None:
    moments = random.Random(SEED)
    with processes(ps=2, worker=2) as cluster:
        training = Training(cluster, tmp_path, program)
        for number in range(FAULTS):
            training.goes_on(moments.randrange(1, 60))
            FAULT[fault](training)
            training.goes_on(10)
            print(fault, program[0], number, [newest_step(worker) for worker in training.workers], flush=True)
