"""Histories of mirrored groups, with faults: all processes sum together, and all restart when one is lost.

In each step, each process contributes a *unit*: a vector that is 1 at a position of this process and step. The state is
the total of all sums, so it shows which units were summed, and how often. After the same step, it must be equal on all
processes, whatever happened before.
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

#: Time until a launcher restarts a lost process, in seconds.
_PAUSE_S = 1.0
#: Time until it checks whether other processes had finished before, which it restarts as well, in seconds.
_LOOK_S = 20.0
#: Longest time that a process waits for another that never starts, in seconds: its deadline, plus the interval at which
#: it checks the deadline.
_LONGEST_WAIT_S = 130.0
#: Lengths of vectors that are summed in parts, and of vectors that are sent whole.
_LONG, _SHORT = 8192, 64


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The setting of a history.

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
      simulation: the history.
      setting: the history's setting.
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
        happens = [fault for fault in self.setting.faults if fault.task in cluster.tasks]
        faults = Faults(cluster, happens, lambda task: not task.returned, self._may_restart)
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

    def _may_restart(self, task: Task) -> bool:
        del task
        self._started_again()
        return True

    def _started_again(self) -> None:
        """Restarts finished processes as well, as a launcher does: a lost process may lack the last step."""

        def look() -> None:
            early = [task for task in self.cluster.tasks.values() if task.returned]
            if len(early) < len(self._members):
                for task in early:
                    task.returned = task.done = False
                    task.start()

        self.simulation.after(_LOOK_S, look)

    # The program ------------------------------------------------------------------------------------------------------

    def _train(self, rank: int) -> None:
        began = self.simulation.now
        try:
            group = Group(self._members, rank, silence_s=10.0)
        except (UnavailableError, DeadlineExceededError) as error:
            if self.setting.absent is not None:  # a launcher would give up as well
                self._gave_up(rank, self.simulation.now - began, error)
                return
            self._again(rank, error)
            return
        try:
            self._take_steps(group)
        except LostPeerError as error:
            group.close()
            self._again(rank, error)
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
            self._agree(step, state)
            if group.rank == 0 and (step % setting.saves == 0 or step == setting.steps):
                self._saved = step, state.copy()

    def _gave_up(self, rank: int, waited_s: float, error: Exception) -> None:
        """Checks that the other processes end with an error that names the process that never started."""
        running().note(f"worker{rank} gave up after {waited_s:.0f} s: {error}")
        if waited_s > _LONGEST_WAIT_S:
            raise HistoryError(f"worker{rank} waited {waited_s:.0f} s for a process that never started")

    def _again(self, rank: int, error: Exception) -> None:
        """Simulates the launcher's restart of a process that has ended with the exit code for a restart."""
        simulation, task = self.simulation, self.cluster.tasks[f"worker{rank}"]
        simulation.note(f"worker{rank} is to be started again: {error}")
        if not self.setting.faults:
            raise HistoryError(f"worker{rank} lost a process, though nothing happened to any: {error}")

        simulation.after(_PAUSE_S, task.start)
        self._started_again()
        task.end()
        running().check(running().current)

    def _unit(self, step: int, rank: int) -> int:
        """Returns the position of the unit of a process and step."""
        return (step * self.setting.workers + rank) * 7 % self.setting.length

    # Rules ------------------------------------------------------------------------------------------------------------

    def _agree(self, step: int, state: Array) -> None:
        """Checks that after a given step, all incarnations of all processes have had bitwise equal states."""
        if self._states.setdefault(step, state.tobytes()) != state.tobytes():
            raise HistoryError(f"two processes differ after step {step}")

    def _check(self) -> None:
        expected: Any = np.zeros(self.setting.length, np.float32)
        for step in range(self.setting.steps):
            for rank in range(self.setting.workers):
                expected[self._unit(step, rank)] += 1.0
        step, state = self._saved
        if step != self.setting.steps or not np.array_equal(state, expected):
            raise HistoryError(f"what was saved last, after step {step}, is not the sum of all steps")


def history(seed: int) -> tuple[Simulation, MirroredHistory]:
    """Creates the history of a seed, without running it."""
    simulation = Simulation(seed, horizon_s=900.0)
    return simulation, MirroredHistory(simulation, Setting.draw(random.Random(f"mirrored {seed}")))
