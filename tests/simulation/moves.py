"""Histories of parameter servers with shards that move between them.

Workers request moves of shards at random moments; parameter servers join empty, drain with a handoff of their shards,
and are killed meanwhile. At the end each shard has a primary, in which each unit was applied at most once. Acknowledged
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
from headwater.ps.replicas.shard import ShardCopy
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
        moved = task.balance_shards(servers, by_rate=chance.random() < 0.5)
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
        self._copies: dict[int, list[ShardCopy]] = {}
        self._ended: set[int] = set()
        self._last: list[int] = []
        os.environ[FIRST_PS] = str(first)
        simulation.note(f"the first {first} have the shards; asked to end: {leaves}")

    @property
    def parts(self) -> int:
        return _SHARDS

    def close(self) -> None:
        """Resets the environment, which all histories share."""
        os.environ.pop(FIRST_PS, None)

    def _serve(self, index: int) -> None:
        self._copies.pop(index, None)
        # A server that drained has passed its shards on, or has deposited them with the chief.
        if index not in self._ended:
            self.account.lose()
        self._ended.discard(index)
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
        copies = task.copy_holders["set"].copies.values()
        self._copies[index] = [copy for copy in copies if isinstance(copy, ShardCopy)]
        task.shell.wait_until_over()
        if ends_at is not None and not self.cluster.tasks["worker0"].returned:
            self._ended.add(index)
            running().note(f"ps{index} has ended with shards {self._serving(index)}")
            self.cluster.tasks[f"ps{index}"].restart_after(_AWAY_S)

    def _serving(self, index: int) -> list[int]:
        """Returns the shards for which a server has the primary, as far as it knows."""
        return [shard for shard, copy in enumerate(self._copies[index]) if copy.serves]

    def _access(self, task: ParameterTask, choice: Consistency, initial: Sequence[Any]) -> ParameterClient:
        worker = task.members.number
        if worker == 0 and worker in self._tasks:  # the previous chief may have had deposited shards
            self.account.lose()
        self._tasks[worker] = task
        return task.client("set", self._layout, choice, initial, shards=_SHARDS)

    def _after_step(self, index: int) -> None:
        move_some(self._tasks[index], _MOVES, 1, self.setting.servers)

    def _on_training_end(self) -> None:
        tasks = self.cluster.tasks
        # A server that joined after the others had ended waits for them until the launcher ends it.
        late = len(self._copies) < self.setting.servers
        self.cluster.killed |= late or any(not self._serving(index) for index in self._copies)
        # The shards of a killed server cannot be read.
        self._last = [
            index
            for index in range(self.setting.servers)
            if tasks[f"ps{index}"].done or not tasks[f"ps{index}"].process.dead
        ]

    def _check(self) -> None:
        lossless = self._lossless()
        for shard in range(_SHARDS):
            having = [copies[shard] for index in self._last if (copies := self._copies.get(index)) is not None]
            terms = {copy: copy.view.term for copy in having if copy.serves and copy.view is not None}
            # A server that joins after the end of the job does not receive its shards: the others have ended.
            if not terms and self.cluster.killed:
                continue
            if not terms:
                raise HistoryError(f"shard {shard} is on no parameter server at the end")
            last = max(terms, key=lambda copy: terms[copy])
            for name, (applied,) in zip("ab", last._updater.values(None), strict=False):
                self.account.check(f"{name} of shard {shard}, term {terms[last]}", applied, lossless)


def history(seed: int) -> tuple[Simulation, Moves]:
    """Creates, but does not run, a history drawn from ``seed``."""
    simulation = Simulation(seed, horizon_s=900.0)
    chance = random.Random(f"moves {seed}")
    setting = Setting.draw(chance)
    setting = replace(setting, servers=max(2, setting.servers))
    leaves = {index: chance.choice((0.05, 0.2, 1.0)) for index in range(1, setting.servers) if chance.random() < 0.5}
    return simulation, Moves(simulation, setting, chance.randint(1, setting.servers), leaves)
