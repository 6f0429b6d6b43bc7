"""What happens to the tasks of a history, and when."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tests.simulation.cluster import Cluster, Task
from tests.simulation.disk import SimulatedDisk

Kind = Literal["kill", "vanish", "stop", "part", "part one way", "lose connections", "fill disk", "flip bit"]

#: Half of them stop a task for good or for a while.
_KINDS: tuple[Kind, ...] = ("kill", "kill", "vanish", "stop", "stop", "part", "part one way", "lose connections")
_DISK_KINDS: tuple[Kind, ...] = ("fill disk", "flip bit", "flip bit")
#: The first faults come within this number of messages.
_MESSAGES = 1500
#: Between two looks whether all has recovered, in seconds.
_LOOK_S = 0.1


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Something that happens to a task.

    Attributes:
      kind: ``kill``: its process is killed, and started again after a while. ``vanish``: likewise, with its machine.
        ``stop``: it stands still for a while. ``part``: nothing gets from it to another one and back for a while.
        ``lose connections``: those between it and another one break. ``fill disk``: the disk is full for a while.
        ``flip bit``: a bit of a file flips.
      task: the task.
      other: the other task, where there is one.
      message: when: as soon as so many messages were sent since the former fault ...
      after_s: ... or so many seconds have passed, whatever is first.
      seconds: how long it takes.
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
        """Some faults at random; ``disk``: of the disk, too."""
        kinds = _KINDS + _DISK_KINDS if disk else _KINDS
        return tuple(Fault.draw(chance, tasks, messages, kinds) for _ in range(chance.choice((0, 1, 1, 1, 2, 2, 3))))

    @staticmethod
    def draw(chance: random.Random, tasks: Sequence[str], messages: int, kinds: Sequence[Kind]) -> Fault:
        """A fault at random."""
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
    """Has faults happen one after the other.

    Args:
      cluster: whose tasks.
      faults: what happens.
      may_fail: whether something may still happen to a task.
      may_return: whether a task that was killed is started again.
      disk: where there is one.
      whole: whether all has recovered from the former fault; given, a fault waits for that.
    """

    def __init__(
        self,
        cluster: Cluster,
        faults: Sequence[Fault],
        may_fail: Callable[[Task], bool],
        may_return: Callable[[Task], bool],
        disk: SimulatedDisk | None = None,
        whole: Callable[[], bool] | None = None,
    ) -> None:
        self._disk = disk
        self._whole = whole
        self._over_at = 0.0
        self._cluster = cluster
        self._faults = list(faults)
        self._may_fail = may_fail
        self._may_return = may_return
        self._number = 0

    @property
    def under_way(self) -> bool:
        """Whether the former fault goes on."""
        return self._cluster.simulation.now < self._over_at

    def begin(self) -> None:
        """Has the next fault happen when its time comes."""
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
        """No other fault happens."""
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
                network.part(fault.task, fault.other, fault.seconds, both=fault.kind == "part")
            case "lose connections":
                network.lose(fault.task, fault.other)
            case "fill disk" if self._disk is not None:
                self._disk.fill(fault.seconds)
            case "flip bit" if self._disk is not None:
                self._disk.flip()
            case _:
                raise AssertionError(f"{fault.kind} needs a disk")

    def _restart(self, task: Task) -> None:
        if self._may_return(task):
            task.start()
