"""Histories of graphs of whose variables there are two copies each, with one failure at a time.

Whatever is killed, stopped or cut off, the next failure comes once each ``ps`` task has two copies again. Then no
acknowledged step is lost, none is applied twice, and the chief never prepares the model once more. Had two copies of a
task both acknowledged at the same time, the steps of one of them would be lost.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from headwater.cluster.variables import REPLICAS
from headwater.server.replicas.copy import GraphCopy
from tests.simulation.faults import Fault
from tests.simulation.graph_examples import GraphExamplesHistory
from tests.simulation.graphs import GraphHistory, Mode, Setting
from tests.simulation.scheduler import HistoryError, Simulation

ROUNDS: tuple[Mode, ...] = ("synchronous", "consistent")


class GraphCopiesHistory(GraphHistory):
    """A history; see `GraphHistory`."""

    def __init__(self, simulation: Simulation, setting: Setting) -> None:
        super().__init__(simulation, setting)
        self._running: dict[int, Any] = {}
        self._terms: dict[str, int] = {}
        os.environ[REPLICAS] = "2"
        self._closing.callback(os.environ.pop, REPLICAS, None)

    def _serve(self, index: int) -> None:
        self._running.pop(index, None)
        super()._serve(index)

    def _begun(self, index: int, server: Any) -> None:
        self._running[index] = server._running

    def _ended(self, index: int, server: Any) -> None:
        for copy in server._running.copies.copies:
            view = copy._standing.view
            name = f"ps{copy.served.index}"
            if copy.serves and view is not None and view.term > self._terms.get(name, 0):
                self._terms[name] = view.term
                self._values[name] = self._values_of(copy)

    @staticmethod
    def _values_of(copy: GraphCopy) -> dict[str, np.ndarray[Any, Any]]:
        cells = copy.runtime.resources.cells()
        return {name: np.asarray(cell.value) for (_, name), cell in cells.items() if cell.value is not None}

    def _recovery(self) -> Callable[[], bool]:
        return self._is_whole

    def _is_whole(self) -> bool:
        """Whether all tasks are there, and each ``ps`` task has two copies."""
        if any(task.process.dead and not task.done for task in self.cluster.tasks.values()):
            return False
        copies = [copy for running in self._running.values() for copy in running.copies.copies]
        return sum(copy.is_whole for copy in copies) == self.setting.servers

    def _begins_anew(self) -> None:
        if self._prepared:
            raise HistoryError("the chief threw the state away, though each ps has a second copy")
        self.account.lose()


class ExampleCopiesHistory(GraphCopiesHistory, GraphExamplesHistory):
    """A history of a graph whose examples are accounted for: each counts once."""


def history(seed: int) -> tuple[Simulation, GraphCopiesHistory]:
    """The history of a seed, yet to be run."""
    simulation = Simulation(seed, horizon_s=900.0)
    return simulation, GraphCopiesHistory(simulation, drawn(random.Random(f"graph copies {seed}")))


def history_of_examples(seed: int) -> tuple[Simulation, ExampleCopiesHistory]:
    """The history of a seed whose examples are accounted for, yet to be run."""
    simulation = Simulation(seed, horizon_s=900.0)
    return simulation, ExampleCopiesHistory(simulation, drawn(random.Random(f"graph copies of examples {seed}")))


def history_of_rounds(seed: int) -> tuple[Simulation, GraphCopiesHistory]:
    """The history of a seed whose updates are rounds of several workers, yet to be run."""
    simulation = Simulation(seed, horizon_s=900.0)
    chance = random.Random(f"graph copies in rounds {seed}")
    mode = chance.choice(ROUNDS)
    return simulation, GraphCopiesHistory(simulation, replace(drawn(chance), mode=mode, steps=chance.randint(3, 15)))


def drawn(chance: random.Random) -> Setting:
    """A setting at random for two copies of each ``ps``."""
    found = Setting.draw(chance)
    servers = max(2, found.servers)
    tasks = [f"ps{index}" for index in range(servers)] + [f"worker{index}" for index in range(found.workers)]
    return replace(
        found,
        servers=servers,
        mode="asynchronous",
        steps=chance.randint(5, 40),
        saves=False,
        faults=Fault.draw_some(chance, tasks, messages=300),
        stale=None,
        absent=None,
    )
