"""Histories (see `tests.simulation.scheduler`) of mirrored groups: all processes sum their vectors in each step.

When a process is lost, the others end with an error, and a simulated launcher restarts all of them.

In each step, each process contributes a *unit*: a vector that is 1 at a position of this process and step. The state is
the total of all sums, so it shows which units were summed, and how often. After a given step, it must be equal on all
processes, whichever faults have occurred.
"""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwater.cluster.addresses import parse_address
from headwater.cluster.names import TaskName
from headwater.errors import DeadlineExceededError, UnavailableError
from headwater.keras.collectives.collective import LostPeerError
from headwater.keras.collectives.group import Group, GroupMember
from tests.simulation.cluster import Cluster, Task
from tests.simulation.faults import Fault, Faults
from tests.simulation.scheduler import HistoryError, Simulation, running

Array = NDArray[np.float32]

#: Time until the launcher restarts a process that has ended because of the loss of a peer, in seconds. The time until
#: the restart of a killed process is a property of the fault.
_PAUSE_S = 1.0
#: Time from a restart until the launcher also restarts processes that have already finished, in seconds.
_FINISHED_RESTART_S = 20.0
#: Longest time that a process waits for another process that never starts, in seconds: the deadline of the waiting
#: process, plus the interval at which the deadline is checked.
_LONGEST_WAIT_S = 130.0
#: Lengths of vectors that are summed in parts, and of vectors that are sent whole.
_LONG, _SHORT = 8192, 64


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The parameters of a history.

    Attributes:
      workers: number of processes.
      steps: number of steps of the whole training.
      saves: interval at which rank 0 saves, in steps.
      length: length of the vectors.
      faults: the faults.
      delay_s: mean latency of a message, in seconds.
      work_s: mean computation time of a step, in seconds.
      absent: the process that never starts; None if all start.
    """

    workers: int
    steps: int
    saves: int
    length: int
    faults: tuple[Fault, ...]
    delay_s: float
    work_s: float
    absent: int | None

    @staticmethod
    def draw(chance: random.Random) -> Setting:
        """Returns a random setting."""
        workers = chance.choice((2, 2, 3, 4))
        tasks = [f"worker{index}" for index in range(workers)]
        return Setting(
            workers=workers,
            steps=chance.randint(3, 10),
            saves=chance.choice((1, 2, 3)),
            length=chance.choice((_SHORT, _SHORT, _LONG)),
            faults=Fault.draw_some(chance, tasks, messages=300),
            delay_s=chance.choice((0.0002, 0.001, 0.01)),
            work_s=chance.choice((0.0, 0.005, 0.1)),
            absent=chance.randrange(workers) if chance.random() < 0.05 else None,
        )


class MirroredHistory:
    """A history of a mirrored group.

    Args:
      simulation: runs the history.
      setting: the history's parameters.
    """

    def __init__(self, simulation: Simulation, setting: Setting) -> None:
        self.simulation = simulation
        self.setting = setting
        self.cluster = Cluster(simulation, setting.delay_s, self._over)
        self._members = [
            GroupMember(task=TaskName("worker", index), address=parse_address(f"worker{index}:1"))
            for index in range(setting.workers)
        ]
        self._saved: tuple[int, Array] = (0, np.zeros(setting.length, np.float32))
        self._states: dict[int, bytes] = {}
        for index in range(setting.workers):
            if index != setting.absent:
                self.cluster.add(f"worker{index}", functools.partial(self._train, index))

    def run(self) -> None:
        """Runs the whole history; raises HistoryError if a rule is broken."""
        simulation, cluster = self.simulation, self.cluster
        simulation.note(str(self.setting))
        possible = [fault for fault in self.setting.faults if fault.task in cluster.tasks]
        faults = Faults(cluster, possible, lambda task: not task.returned, self._allow_restart)
        cluster.start(within_s=0.1)
        faults.begin()
        cluster.wait_until(lambda: all(task.done for task in cluster.tasks.values()))
        faults.end()
        if self.setting.absent is None:
            self._check()

    def close(self) -> None:
        """Does nothing: the history has no files."""

    def _over(self) -> bool:
        return all(task.returned for task in self.cluster.tasks.values())

    def _allow_restart(self, task: Task) -> bool:
        """Allows the restart of any killed process, and schedules the restart of finished ones."""
        del task
        self._schedule_restart_of_finished()
        return True

    def _schedule_restart_of_finished(self) -> None:
        """Schedules the restart of finished processes, unless all processes have finished by then.

        A restarted process may still have to make steps, which need all processes.
        """

        def restart_finished() -> None:
            finished = [task for task in self.cluster.tasks.values() if task.returned]
            if len(finished) < len(self._members):
                for task in finished:
                    task.returned = task.done = False
                    task.start()

        self.simulation.after(_FINISHED_RESTART_S, restart_finished)

    # The program ------------------------------------------------------------------------------------------------------

    def _train(self, rank: int) -> None:
        began = self.simulation.now
        try:
            group = Group(self._members, rank, silence_s=10.0)
        except (UnavailableError, DeadlineExceededError) as error:
            if self.setting.absent is not None:  # a launcher would give up as well
                self._check_error(rank, self.simulation.now - began, error)
                return
            self._restart(rank, error)
            return
        try:
            self._take_steps(group)
        except LostPeerError as error:
            group.close()
            self._restart(rank, error)
        else:
            group.close()

    def _take_steps(self, group: Group) -> None:
        setting, collective = self.setting, group.collective
        begin, saved = self._saved
        position, state = collective.broadcast([np.array(begin), saved], "the state that was saved")
        step, state = int(position), np.array(state)
        while step < setting.steps:
            running().sleep(running().random.expovariate(1.0) * setting.work_s)
            vector = np.zeros(setting.length, np.float32)
            vector[self._unit(step, group.rank)] = 1.0
            state += collective.sum(vector, f"gradients of step {step}")
            step += 1
            running().note(f"worker{group.rank} has taken step {step}")
            self._check_agreement(step, state)
            if group.rank == 0 and (step % setting.saves == 0 or step == setting.steps):
                self._saved = step, state.copy()

    def _check_error(self, rank: int, waited_s: float, error: Exception) -> None:
        """Checks the error with which a process ends in a history with a process that never starts.

        The process must not have waited too long. The error must have the address of the process that never starts, or
        of another process that has ended with this error: a restarted process first waits for the process with the
        lower rank.
        """
        running().note(f"worker{rank} gave up after {waited_s:.0f} s: {error}")
        if waited_s > _LONGEST_WAIT_S:
            raise HistoryError(f"worker{rank} waited {waited_s:.0f} s for a process that never started")
        tasks = self.cluster.tasks
        missing = [
            member
            for index, member in enumerate(self._members)
            if index == self.setting.absent or tasks[f"worker{index}"].returned
        ]
        if not any(str(member.address) in str(error) for member in missing):
            raise HistoryError(f"the error of worker{rank} names no missing process: {error}")

    def _restart(self, rank: int, error: Exception) -> None:
        """Ends a process, as with the exit code that requests a restart, and schedules its restart by the launcher."""
        simulation, task = self.simulation, self.cluster.tasks[f"worker{rank}"]
        simulation.note(f"worker{rank} ends, to be restarted: {error}")
        if not self.setting.faults:
            raise HistoryError(f"worker{rank} lost a peer, though the history has no faults: {error}")

        simulation.after(_PAUSE_S, task.start)
        self._schedule_restart_of_finished()
        task.end()
        # Raise Killed in this thread. If it returned, the task would count as finished.
        running().check(running().current)

    def _unit(self, step: int, rank: int) -> int:
        """Returns the position of the unit of a process and step."""
        return (step * self.setting.workers + rank) * 7 % self.setting.length

    # Rules ------------------------------------------------------------------------------------------------------------

    def _check_agreement(self, step: int, state: Array) -> None:
        """Checks that after a given step, all incarnations of all processes have had bitwise equal states."""
        if self._states.setdefault(step, state.tobytes()) != state.tobytes():
            raise HistoryError(f"the states of two processes differ after step {step}")

    def _check(self) -> None:
        expected: Any = np.zeros(self.setting.length, np.float32)
        for step in range(self.setting.steps):
            for rank in range(self.setting.workers):
                expected[self._unit(step, rank)] += 1.0
        step, state = self._saved
        if step != self.setting.steps or not np.array_equal(state, expected):
            raise HistoryError(f"the last saved state, after step {step}, is not the sum of all steps")


def history(seed: int) -> tuple[Simulation, MirroredHistory]:
    """Creates, but does not run, a history drawn from ``seed``."""
    simulation = Simulation(seed, horizon_s=900.0)
    return simulation, MirroredHistory(simulation, Setting.draw(random.Random(f"mirrored {seed}")))
