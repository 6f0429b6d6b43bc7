"""Tasks of a history: processes that run a program, end, are killed, and restart."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from headwater.errors import DeadlineExceededError, FailedPreconditionError, GaveUpError, OpError, OutOfRangeError
from tests.simulation import facades
from tests.simulation.network import Network
from tests.simulation.scheduler import HistoryError, Process, Simulation, running

_log = logging.getLogger("headwater")


class Task:
    """A task, with all its incarnations.

    Args:
      cluster: the cluster.
      name: such as ``ps0``; also the name of its host.
      program: the program of each incarnation; the task is done when the program returns.

    Attributes:
      process: the process of the current incarnation.
      returned: whether the program has returned.
      done: whether the process has ended after the program has returned.
    """

    def __init__(self, cluster: Cluster, name: str, program: Callable[[], None]) -> None:
        self.cluster = cluster
        self.name = name
        self.done = False
        self.returned = False
        self._program = program
        self.process: Process = cluster.simulation.process(name)

    def start(self) -> None:
        """Starts a new incarnation."""
        simulation = self.cluster.simulation
        self.process = process = simulation.process(self.name)
        simulation.note(f"{process} begins")
        self.cluster.network.handle_start(process)
        simulation.thread(process, "program", lambda: self._run(process)).start()

    def restart_after(self, after_s: float) -> None:
        """Starts a new incarnation after ``after_s`` seconds, unless the job is over by then."""

        def begin() -> None:
            if not self.cluster.over():
                self.done = False
                self.start()

        self.cluster.simulation.after(after_s, begin)

    def _run(self, process: Process) -> None:
        try:
            self._program()
            self.returned = True
        except (DeadlineExceededError, FailedPreconditionError, GaveUpError, OutOfRangeError) as error:
            too_late = not isinstance(error, FailedPreconditionError) or "has connected after the end" in error.message
            if not self.cluster.over() or not too_late:
                raise
            # The servers ended while this task was disconnected. An error is the correct end of the task.
            self.cluster.simulation.note(f"{process} ends with an error after the job: {error.message}")
            self.cluster.killed = True
        for call, args, kwargs in reversed(facades.at_exit(process)[:]):
            call(*args, **kwargs)
        self.done = True
        self.end()

    def end(self, *, silently: bool = False) -> None:
        """Kills the process; with ``silently``, its machine fails as well, so that its connections stay open."""
        simulation = self.cluster.simulation
        process = self.process
        if process.dead:
            return
        self.cluster.killed |= not self.done
        simulation.kill(process)
        self.cluster.network.handle_end(process, silently=silently)
        self.cluster.changed()


class Cluster:
    """The tasks of a history, and its network.

    Args:
      simulation: the history.
      delay_s: see `Network`.
      over: whether the job is over. A task that was disconnected until then may find that all others have ended.

    Attributes:
      killed: whether a task was killed, or gave up, before it was done.
    """

    def __init__(self, simulation: Simulation, delay_s: float, over: Callable[[], bool]) -> None:
        self.simulation = simulation
        self.over = over
        self.network = Network(simulation, delay_s)
        self.tasks: dict[str, Task] = {}
        self.killed = False
        self._changed = facades.primitives.Event()
        vars(simulation)["network"] = self.network

    def add(self, name: str, program: Callable[[], None]) -> Task:
        """Adds a task, to be started later."""
        task = self.tasks[name] = Task(self, name, program)
        return task

    def start(self, *, within_s: float) -> None:
        """Starts each task at a random moment of the next ``within_s`` seconds, and waits until all are started."""
        for task in self.tasks.values():
            self.simulation.after(self.simulation.random.random() * within_s, task.start)
        self.simulation.sleep(within_s)

    def may_restart(self, task: Task, chief: Task) -> bool:
        """Returns whether a killed task may restart. A worker that is killed after the chief has ended the job is not
        restarted: it counts as done."""
        if chief.returned and task.name.startswith("worker"):
            task.done = True
            self.changed()
            return False
        return True

    def changed(self) -> None:
        """Wakes `wait_until`, because a task has ended."""
        self.simulation.after(0.0, self._changed.set)

    def wait_until(self, reached: Callable[[], bool]) -> None:
        """Waits until ``reached`` returns True; calls it each time that a task has ended."""
        while not reached():
            self._changed.clear()
            self._changed.wait()

    def wait_for_ends(self, seconds: float) -> None:
        """Waits until serving tasks have noticed the end of the job; then ends tasks that a launcher would end.

        Raises:
          HistoryError: a task does not end, although no task was lost, so that all tasks must have learnt that the job
            is over.
        """
        simulation = self.simulation
        simulation.sleep(seconds)
        # A server waits for workers that were killed before they joined, until the launcher ends it.
        none_lost = all(task.process.incarnation <= 1 for task in self.tasks.values()) and not self.killed
        for name, task in self.tasks.items():
            if not task.process.dead:
                if none_lost:
                    raise HistoryError(simulation.report(f"{name} does not end though the job is over"))
                task.end()


class Journal(logging.Handler):
    """Adds Headwater's log messages to a history's notes. A logged exception that is unexpected ends the history."""

    def emit(self, record: logging.LogRecord) -> None:
        simulation: Any = None
        try:
            simulation = running()
        except AssertionError:
            return
        simulation.note(f"{simulation.current.process}: {record.levelname[0]} {record.getMessage()}")
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, OpError):
            simulation.fail(error)
