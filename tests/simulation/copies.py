"""Histories of parameter servers of whose parts there are two copies each, with one failure at a time.

Whatever is killed, stopped or cut off, the next failure comes once each part has two copies again. Then no acknowledged
update is lost, and none is applied twice; had two copies of a part both acknowledged at the same time, those of one of
them would be lost. Each example of an epoch counts once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from headwater.accounting.ledger import Plan
from headwater.consistency import Consistency, from_text
from headwater.parameters.client import ParameterClient
from headwater.parameters.process import ParameterTask
from tests.simulation.account import NO_UNIT
from tests.simulation.examples import ExampleHistory
from tests.simulation.faults import Fault
from tests.simulation.parameters import CountingUpdater, ParameterHistory, Setting
from tests.simulation.scheduler import HistoryError, Simulation


class CopiesHistory(ParameterHistory):
    """A history; see `ParameterHistory`."""

    def __init__(self, simulation: Simulation, setting: Setting, *others: Any) -> None:
        super().__init__(simulation, setting, *others)
        self._served: dict[int, ParameterTask] = {}
        self._told: set[int] = set()
        self._final: Sequence[Any] = ()

    def _serve(self, index: int) -> None:
        task = self._served[index] = self._task("ps", index)

        def make(number: int) -> CountingUpdater:
            return CountingUpdater(self.setting.servers, strict=self._is_strict(number))

        task.host("set", self._layout, make, from_text(self.setting.consistency, self.setting.workers), replicas=2)
        task.shell.wait_until_over()

    def _access(self, task: ParameterTask, choice: Consistency, initial: Sequence[Any]) -> ParameterClient:
        return task.client("set", self._layout, choice, initial, replicas=2)

    def _recovery(self) -> Callable[[], bool]:
        return self._is_whole

    def _is_whole(self) -> bool:
        """Whether all tasks are there, and each part has two copies."""
        if any(task.process.dead and not task.done for task in self.cluster.tasks.values()):
            return False
        copies = [copy for task in self._served.values() for copy in task.copies.values()]
        return sum(copy.is_whole for copy in copies) == self.setting.servers

    def _finished(self, index: int, client: ParameterClient) -> None:
        if index == 0:
            self._told = self.account.acknowledged - {NO_UNIT}
            client.pull()
            self._final = client.values()

    def _check(self) -> None:
        for name, values in zip("ab", self._final, strict=True):
            for shard in range(self.setting.servers):
                self.account.check(f"{name} of shard {shard}", values[shard], sorted(self._told))


class CopiesOfExamples(CopiesHistory, ExampleHistory):
    """A history of workers that go through epochs; see `ExampleHistory`."""

    def _check(self) -> None:
        expected = self._epochs * self._plan.size
        for name, values in zip("ab", self._final, strict=True):
            wrong = {at: count for at, count in enumerate(values[0].tolist()) if count != (at < expected)}
            if wrong:
                raise HistoryError(f"{name} of shard 0 has examples not exactly once: {wrong}")


def history(seed: int) -> tuple[Simulation, CopiesHistory]:
    """The history of a seed, yet to be run."""
    return _history(seed, "copies", ("async",))


def history_in_step(seed: int) -> tuple[Simulation, CopiesHistory]:
    """The history of a seed in which workers keep together, yet to be run."""
    return _history(seed, "copies in step", ("sync", "staleness=2"))


def _history(seed: int, name: str, choices: Sequence[str]) -> tuple[Simulation, CopiesHistory]:
    simulation = Simulation(seed, horizon_s=900.0)
    chance = random.Random(f"{name} {seed}")
    drawn = Setting.draw(chance)
    servers = max(2, drawn.servers)
    tasks = [f"ps{index}" for index in range(servers)] + [f"worker{index}" for index in range(drawn.workers)]
    setting = replace(
        drawn,
        servers=servers,
        # Without a choice nothing is drawn, so that histories keep their numbers.
        consistency=choices[0] if len(choices) == 1 else chance.choice(choices),
        steps=chance.randint(5, 40),
        snapshots=0,
        work_s=chance.choice((0.005, 0.1, 0.5)),
        faults=Fault.draw_some(chance, tasks, messages=300),
    )
    if chance.random() < 0.3:
        plan = Plan(size=chance.randint(10, 60), batch=chance.randint(1, 4), tries=1000)
        return simulation, CopiesOfExamples(simulation, setting, plan, chance.randint(1, 3))
    return simulation, CopiesHistory(simulation, setting)
