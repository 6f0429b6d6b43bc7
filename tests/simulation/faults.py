"""The faults of a history's tasks, and their times."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tests.simulation.cluster import Cluster, Task
from tests.simulation.disk import SimulatedDisk

Kind = Literal["kill", "vanish", "stop", "part", "part one way", "lose connections", "fill disk", "flip bit"]

#: Kinds of faults, weighted by repetition: most faults kill or stop a task.
_KINDS: tuple[Kind, ...] = ("kill", "kill", "vanish", "stop", "stop", "part", "part one way", "lose connections")
_DISK_KINDS: tuple[Kind, ...] = ("fill disk", "flip bit", "flip bit")
#: The first faults happen within this number of messages.
_MESSAGES = 1500
#: Interval of checks whether the cluster has recovered from the previous fault, in seconds.
_LOOK_S = 0.1


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault of a task.

    Attributes:
      kind: ``kill``: the task's process is killed and restarted later. ``vanish``: the same, together with its machine,
        so that connections stay open. ``stop``: the process is stopped temporarily. ``part``: a temporary network
        partition between the task and another task; ``part one way``: in one direction. ``lose connections``: the
        connections of the task to another task break. ``fill disk``: the disk is temporarily full. ``flip bit``: a bit
        of a file flips.
      task: the task.
      other: the other task, for kinds that concern two.
      message: the fault happens after this number of messages since the previous fault ...
      after_s: ... or after this time in seconds, whichever is first.
      seconds: the duration of the fault.
    """

    kind: Kind
    task: str
    other: str
    message: int
    after_s: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.kind} {self.task} {self.other} {self.seconds:.2f} s"

    @staticmethod
    def draw_some(
        chance: random.Random, tasks: Sequence[str], messages: int = _MESSAGES, *, disk: bool = False
    ) -> tuple[Fault, ...]:
        """Returns random faults of tasks and, with ``disk``, of the disk."""
        kinds = _KINDS + _DISK_KINDS if disk else _KINDS
        return tuple(Fault.draw(chance, tasks, messages, kinds) for _ in range(chance.choice((0, 1, 1, 1, 2, 2, 3))))

    @staticmethod
    def draw(chance: random.Random, tasks: Sequence[str], messages: int, kinds: Sequence[Kind]) -> Fault:
        """Returns a random fault."""
        kind = chance.choice(kinds)
        task, other = chance.sample(list(tasks), 2)
        return Fault(
            kind=kind,
            task=task,
            other=other,
            message=int(messages ** chance.random()) if chance.random() < 0.3 else chance.randint(1, messages),
            after_s=10.0 ** chance.uniform(-2.0, 1.5),
            seconds=10.0 ** chance.uniform(-2.0, 1.5),
        )


class Faults:
    """Injects faults one after the other.

    Args:
      cluster: the cluster with the tasks.
      faults: the faults, in their order.
      may_fail: whether a task may still have a fault.
      may_restart: whether a killed task may restart.
      disk: the disk, if there is one.
      whole: whether all tasks have recovered from the previous fault; if given, the next fault waits until it returns
        True.
    """

    def __init__(
        self,
        cluster: Cluster,
        faults: Sequence[Fault],
        may_fail: Callable[[Task], bool],
        may_restart: Callable[[Task], bool],
        disk: SimulatedDisk | None = None,
        whole: Callable[[], bool] | None = None,
    ) -> None:
        self._disk = disk
        self._whole = whole
        self._over_at = 0.0
        self._cluster = cluster
        self._faults = list(faults)
        self._may_fail = may_fail
        self._may_restart = may_restart
        self._number = 0

    @property
    def under_way(self) -> bool:
        """Whether the previous fault is still in effect."""
        return self._cluster.simulation.now < self._over_at

    def begin(self) -> None:
        """Schedules the next fault."""
        self._number += 1
        if not self._faults:
            return
        number, fault, simulation = self._number, self._faults.pop(0), self._cluster.simulation

        def due() -> None:
            if self._number != number:
                return
            if self._whole is not None and (self.under_way or not self._whole()):
                simulation.after(_LOOK_S, due)
                return
            self._over_at = simulation.now + fault.seconds
            self._happen(fault)
            self.begin()

        self._cluster.network.after_messages(fault.message, due)
        simulation.after(fault.after_s, due)

    def end(self) -> None:
        """Cancels all further faults."""
        self._faults.clear()
        self._number += 1

    def _happen(self, fault: Fault) -> None:
        cluster, task = self._cluster, self._cluster.tasks[fault.task]
        simulation, network, process = cluster.simulation, cluster.network, task.process
        if process.dead or not self._may_fail(task):
            return
        match fault.kind:
            case "kill" | "vanish":
                task.end(silently=fault.kind == "vanish")
                simulation.after(fault.seconds, lambda: self._restart(task))
            case "stop":
                simulation.stop(process)
                simulation.after(fault.seconds, lambda: simulation.go_on(process))
            case "part" | "part one way":
                network.interrupt(fault.task, fault.other, fault.seconds, both=fault.kind == "part")
            case "lose connections":
                network.lose(fault.task, fault.other)
            case "fill disk" if self._disk is not None:
                self._disk.fill(fault.seconds)
            case "flip bit" if self._disk is not None:
                self._disk.flip()
            case _:
                raise AssertionError(f"{fault.kind} needs a disk")

    def _restart(self, task: Task) -> None:
        if self._may_restart(task):
            task.start()
