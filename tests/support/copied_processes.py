"""Two ``ps`` of a graph with backups of each other, and two workers, as processes that are killed and stopped."""

from __future__ import annotations

from pathlib import Path

from tests.support.processes import Process, Processes


class CopiedTasks:
    """The processes of a training program. Its workers print a line that begins with ``step`` for each step.

    Args:
      cluster: the processes.
      folder: passed to the program as ``--folder``.
      program: the program's file.

    Attributes:
      ps: the two ``ps``, each with replicas of both ``ps`` tasks of the graph.
      workers: the two workers.
    """

    def __init__(self, cluster: Processes, folder: Path, program: Path) -> None:
        self._cluster = cluster
        self._program = program
        self._folder = folder
        self.ps: list[Process] = [self.start("ps", index) for index in range(2)]
        self.workers: list[Process] = [self.start("worker", index) for index in range(2)]
        for task, one in enumerate(self.ps):
            one.wait_for(f"has a copy of the state of /job:ps/task:{task} ")

    def start(self, job: str, index: int) -> Process:
        """Starts a task."""
        environment = {"HEADWATER_REPLICAS": "2", "HEADWATER_FIRST_PS": "2"}
        return self._cluster.start(job, index, self._program, f"--folder={self._folder}", **environment)

    def go_on(self) -> None:
        """Waits until each worker has made further steps."""
        for worker in self.workers:
            worker.wait_for("^step ", after=worker.line_count())

    def kill_each_ps_in_turn(self) -> None:
        """Kills each ``ps`` in turn, restarts it, and checks the failover and the handoff.

        Meanwhile the other ``ps`` serves both tasks. After the restart, the other ``ps`` sends snapshots to the
        restarted ``ps``, and hands the restarted task off to it.
        """
        for index in (0, 1):
            other = self.ps[1 - index]
            self.go_on()
            self.ps[index].kill()
            other.wait_for(rf"/job:ps/task:{1 - index} serves the state of /job:ps/task:{index} now")
            self.go_on()
            before = other.line_count()
            self.ps[index] = self.start("ps", index)
            for task in (0, 1):
                other.wait_for(f"has a copy of the state of /job:ps/task:{task} ", after=before)
            self._wait_for_handoff(index, before)
        self.go_on()

    def stop_a_ps(self) -> None:
        """Stops the first ``ps`` until the other one serves both tasks, and then continues it.

        The first ``ps`` has to discard its replicas, receive snapshots from the other ``ps``, and serve its task again.
        """
        self.go_on()
        self.ps[0].suspend()
        self.ps[1].wait_for("/job:ps/task:1 serves the state of /job:ps/task:0 now")
        self.go_on()
        before = self.ps[1].line_count()
        self.ps[0].resume()
        self.ps[0].wait_for("drops its copy of the state of /job:ps/task:0")
        for task in (0, 1):
            self.ps[1].wait_for(f"has a copy of the state of /job:ps/task:{task} ", after=before)
        self._wait_for_handoff(0, before)
        self.go_on()

    def _wait_for_handoff(self, index: int, after: int) -> None:
        """Waits until the other ``ps`` has logged the handoff of task ``index`` to ``ps`` ``index``."""
        task = f"/job:ps/task:{index}"
        self.ps[1 - index].wait_for(f"has handed off the state of {task} to {task} in ", after=after)
