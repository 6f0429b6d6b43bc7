"""Histories of parameter servers with shards that move between them, and one failure at a time.

Workers request moves of shards at random moments. Parameter servers join without shards, and drain. Whatever fails
meanwhile, no acknowledged update may be lost, and no update may be applied twice. In histories with odd seeds, each
shard has one replica, and no fault ends a parameter server.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from headwater.cluster.variables import FIRST_PS
from headwater.ps.client import ParameterClient
from headwater.ps.consistency import Consistency
from headwater.ps.process import ParameterTask
from headwater.state.copy import Replica
from tests.simulation.copies import (
    CopiesHistory,
    CopiesOfExamples,
    CopiesOfRows,
    CopiesOfTables,
    draw_history,
    draw_setting,
)
from tests.simulation.moves import move_some
from tests.simulation.parameters import Setting
from tests.simulation.scheduler import Simulation, me, running

#: Number of shards of the variables.
_SHARDS = 5
#: Probability that a worker moves shards after a step.
_MOVES = 0.2
#: Faults that end a task.
_ENDS = {"kill", "vanish"}
#: Time until the restart of a drained parameter server, in seconds.
_AWAY_S = 0.5


class MovedCopies(CopiesHistory):
    """A history; see `CopiesHistory`."""

    shards = _SHARDS

    def __init__(self, simulation: Simulation, setting: Setting, *others: Any) -> None:
        self._leaves: dict[int, float] = {}
        self._going: set[int] = set()
        self._tasks: dict[int, ParameterTask] = {}
        if simulation.seed % 2:
            self.replicas = 1
            faults = (one for one in setting.faults if not (one.task.startswith("ps") and one.kind in _ENDS))
            setting = replace(setting, faults=tuple(faults))
        super().__init__(simulation, setting, *others)

    @property
    def parts(self) -> int:
        return _SHARDS

    def begin_with(self, first: int, leaves: dict[int, float]) -> None:
        """Sets the number of parameter servers that have shards at the beginning, and the servers that drain, each with
        the time in seconds after its start."""
        self._leaves = leaves
        os.environ[FIRST_PS] = str(first)
        self.simulation.note(f"the first {first} have the shards; asked to end: {leaves}")

    def close(self) -> None:
        super().close()
        os.environ.pop(FIRST_PS, None)  # the environment is shared by all histories

    # Parameter servers ------------------------------------------------------------------------------------------------

    def _on_start(self, index: int, task: ParameterTask) -> None:
        self._going.discard(index)
        ends_at = self._leaves.pop(index, None)
        if ends_at is not None:

            def end() -> None:
                running().sleep(ends_at)
                # Only one server drains at a time. If all drained, no server could take over the replicas, and they
                # would be lost.
                while self._going or not self._is_complete():
                    running().sleep(_AWAY_S)
                self._going.add(index)
                task.shell.end()

            running().thread(me(), "SIGTERM", end).start()

    def _on_end(self, index: int) -> None:
        self._going.discard(index)
        if not self.cluster.over():
            running().note(f"ps{index} has ended")
            self.cluster.tasks[f"ps{index}"].restart_after(_AWAY_S)

    def _is_complete(self) -> bool:
        if any(task.process.dead and not task.done for task in self.cluster.tasks.values()):
            return False
        holders = [task.copy_holders["set"] for task in self._served.values() if "set" in task.copy_holders]
        return self._are_complete(copy for one in holders for copy in one.copies.values() if isinstance(copy, Replica))

    # Workers ----------------------------------------------------------------------------------------------------------

    def _access(self, task: ParameterTask, choice: Consistency, initial: Any) -> ParameterClient:
        self._tasks[task.members.number] = task
        return super()._access(task, choice, initial)

    def _after_step(self, index: int) -> None:
        super()._after_step(index)
        move_some(self._tasks[index], _MOVES, self.replicas, self.setting.servers)


class MovedRows(MovedCopies, CopiesOfRows):
    """See `CopiesOfRows`."""


class MovedTables(MovedCopies, CopiesOfTables):
    """See `CopiesOfTables`."""

    def _is_complete(self) -> bool:
        held = [task.copy_holders.get("+tables") for task in self._served.values()]
        copies = [copy for one in held if one is not None for copy in one.copies.values()]
        return MovedCopies._is_complete(self) and self._are_complete(
            copy for copy in copies if isinstance(copy, Replica)
        )


class MovedExamples(MovedCopies, CopiesOfExamples):
    """See `CopiesOfExamples`."""


def history(seed: int) -> tuple[Simulation, MovedCopies]:
    """Creates, but does not run, a history drawn from ``seed``."""
    simulation = Simulation(seed, horizon_s=900.0)
    setting, chance = draw_setting(seed, "moved copies", ("async", "async", "sync", "staleness=2"), 3)
    made = draw_history(simulation, setting, chance, (MovedCopies, MovedRows, MovedTables, MovedExamples))
    assert isinstance(made, MovedCopies)
    leaves = {at: 10.0 ** chance.uniform(-1, 1) for at in range(setting.servers) if chance.random() < 0.4}
    made.begin_with(chance.randint(2, setting.servers), leaves)
    return simulation, made
