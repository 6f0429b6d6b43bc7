"""Histories of parameter servers with shards that move between them.

Workers request moves of shards at random moments; parameter servers join empty, drain with a handoff of their shards,
and are killed meanwhile. At the end each shard is on one server, with each unit applied at most once; acknowledged
updates are present unless the server that had them was lost.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headwater.cluster.variables import FIRST_PS
from headwater.errors import OpError
from headwater.ps.client import ParameterClient
from headwater.ps.consistency import Consistency, from_text
from headwater.ps.process import ParameterTask
from headwater.ps.shards.holder import ShardHolder
from tests.simulation.parameters import CountingUpdater, ParameterHistory, Setting
from tests.simulation.scheduler import HistoryError, Simulation, me, running

#: Number of shards of the variables.
_SHARDS = 5
#: Probability that a worker moves shards after a step.
_MOVES = 0.4
#: Time until the restart of a drained parameter server, in seconds.
_AWAY_S = 0.2


def move_some(task: ParameterTask, often: float, least: int, most: int) -> None:
    """Moves shards, with some probability, at the request of a worker.

    Args:
      task: the worker.
      often: probability of a move.
      least, most: range of the random number of parameter servers that get the shards. Some moves use all servers.
    """
    chance = running().random
    if chance.random() >= often:
        return
    servers, worker = chance.choice((None, *range(least, most + 1))), task.members.number
    try:
        moved = task.spread(servers, by_rate=chance.random() < 0.5)
    except OpError as error:
        running().note(f"worker{worker} has no shards moved: {error.message}")
    else:
        running().note(f"worker{worker} had {len(moved)} shards moved")


class Moves(ParameterHistory):
    """A history; see `ParameterHistory`.

    Args:
      simulation: the history.
      setting: the history's setting.
      first: number of parameter servers with shards at the beginning.
      leaves: parameter servers that drain, each with the time in seconds after its start.
    """

    def __init__(self, simulation: Simulation, setting: Setting, first: int, leaves: dict[int, float]) -> None:
        super().__init__(simulation, setting)
        self._leaves = leaves
        self._tasks: dict[int, ParameterTask] = {}
        self._holders: dict[int, ShardHolder] = {}
        self._whole: set[int] = set()
        self._last: list[int] = []
        os.environ[FIRST_PS] = str(first)
        simulation.note(f"the first {first} have the shards; told to end: {leaves}")

    @property
    def parts(self) -> int:
        return _SHARDS

    def close(self) -> None:
        """Resets the environment, which all histories share."""
        os.environ.pop(FIRST_PS, None)

    def _serve(self, index: int) -> None:
        self._holders.pop(index, None)
        task = self._task("ps", index)
        ends_at = self._leaves.pop(index, None)
        if ends_at is not None:

            def end() -> None:
                running().sleep(ends_at)
                task.shell.end()

            running().thread(me(), "SIGTERM", end).start()
        choice = from_text(self.setting.consistency, self.setting.workers)

        def make(shard: int) -> CountingUpdater:
            del shard
            return CountingUpdater(1)

        task.host("set", self._layout, make, choice, shards=_SHARDS)
        self._holders[index] = task.holders["set"]
        if index not in self._whole and not self._has_all(index):
            self.account.lose()
        self._whole.discard(index)
        task.shell.wait_until_over()
        if ends_at is not None and not self.cluster.tasks["worker0"].returned:
            if not self._holders[index].held:
                self._whole.add(index)
            running().note(f"ps{index} has ended with shards {self._holders[index].held}")
            self.cluster.tasks[f"ps{index}"].come_back(_AWAY_S)

    def _has_all(self, index: int) -> bool:
        """Returns whether a restarted server has values in each of its shards, which the chief has kept."""
        holder = self._holders[index]
        found = [holder.updater(shard) for shard in holder.held]
        return bool(found) and all(updater is not None and updater.values(None) for updater in found)

    def _access(self, task: ParameterTask, choice: Consistency, initial: Sequence[Any]) -> ParameterClient:
        worker = task.members.number
        self._tasks[worker] = task
        return task.client("set", self._layout, choice, initial, shards=_SHARDS)

    def _after_step(self, index: int) -> None:
        move_some(self._tasks[index], _MOVES, 1, self.setting.servers)

    def _trained(self) -> None:
        tasks = self.cluster.tasks
        # A server that joined after the others had ended waits for them until the launcher ends it.
        late = len(self._holders) < self.setting.servers
        self.cluster.killed |= late or any(not holder.held for holder in self._holders.values())
        # The shards of a killed server cannot be read.
        self._last = [
            index
            for index in range(self.setting.servers)
            if tasks[f"ps{index}"].done or not tasks[f"ps{index}"].process.dead
        ]

    def _check(self) -> None:
        lossless = self._lossless()
        holders = {index: self._holders[index] for index in self._last if index in self._holders}
        for shard in range(_SHARDS):
            having = [index for index, holder in holders.items() if shard in holder.held]
            # A server that joins after the end of the job cannot receive its initial shards: the others have ended.
            updaters = {index: holders[index].updater(shard) for index in having}
            having = [index for index, found in updaters.items() if found is not None and found.values(None)] or having
            # A migrating shard does not count if its receiver has ended with the job: the sender no longer serves it.
            having = [index for index in having if shard not in holders[index].moving] or having
            if not having and len(self._last) < self.setting.servers:
                continue  # its server was killed after all workers had finished
            if len(having) != 1:
                raise HistoryError(f"shard {shard} is on parameter servers {having} at the end")
            updater = holders[having[0]].updater(shard)
            assert updater is not None
            for name, (applied,) in zip("ab", updater.values(None), strict=False):
                self.account.check(f"{name} of shard {shard} on ps{having[0]}", applied, lossless)


def history(seed: int) -> tuple[Simulation, Moves]:
    """Creates the history of a seed, without running it."""
    simulation = Simulation(seed, horizon_s=900.0)
    chance = random.Random(f"moves {seed}")
    setting = Setting.draw(chance)
    setting = replace(setting, servers=max(2, setting.servers))
    leaves = {index: chance.choice((0.05, 0.2, 1.0)) for index in range(1, setting.servers) if chance.random() < 0.5}
    return simulation, Moves(simulation, setting, chance.randint(1, setting.servers), leaves)
