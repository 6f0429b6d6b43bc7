"""Histories of graphs with two replicas of each ``ps`` task, and one failure at a time.

A failure kills, stops or disconnects a task. The next failure happens only after each ``ps`` task has two replicas
again. Under this condition, no acknowledged step may be lost or applied twice, and the chief must not initialize the
model a second time. The same checks would detect two replicas of a task that acknowledge steps at the same time,
because the steps of one of them would be lost.

In some histories additional ``ps`` processes join and drain, so that replicas move. While a process drains and only one
other process stays, there is only one replica of each task, so no fault is injected.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from headwater.cluster.variables import FIRST_PS, REPLICAS
from headwater.graph.server.replicas.copy import GraphCopy
from headwater.tf1.compat import tf
from tests.simulation.copies import count_complete_parts
from tests.simulation.faults import Fault
from tests.simulation.graph_examples import GraphExamplesHistory
from tests.simulation.graphs import GraphHistory, Mode, Setting
from tests.simulation.scheduler import HistoryError, Simulation, me, running

ROUNDS: tuple[Mode, ...] = ("synchronous", "consistent")


#: Probability that a ``ps`` process drains while the job runs.
_LEAVES = 0.6
#: Mean time from the start of a ``ps`` process to its drain, in seconds.
_STAYS_S = 4.0
#: Interval of the checks whether another process may drain, in seconds.
_LOOK_S = 0.1
#: Longest pause between the end of a drained process and its restart, and between the start of the history and the
#: start of an additional process, in seconds.
_AWAY_S = 1.0


class GraphCopiesHistory(GraphHistory):
    """A history; see `GraphHistory`.

    Args:
      simulation: the history.
      setting: the history's setting.
      extra: number of ``ps`` processes that join later, besides the initial processes of the graph's tasks.
    """

    def __init__(self, simulation: Simulation, setting: Setting, extra: int = 0) -> None:
        super().__init__(simulation, setting)
        self._extra = extra
        self._leaving = False
        self._leaves_one = False
        os.environ[FIRST_PS] = str(setting.servers)
        self._closing.callback(os.environ.pop, FIRST_PS, None)
        for index in range(setting.servers, setting.servers + extra):
            self.cluster.add(f"ps{index}", functools.partial(self._serve, index))
        self._running: dict[int, Any] = {}
        self._terms: dict[str, int] = {}
        os.environ[REPLICAS] = "2"
        self._closing.callback(os.environ.pop, REPLICAS, None)

    def _serve(self, index: int) -> None:
        self._running.pop(index, None)
        if not self._extra:
            super()._serve(index)
            return
        if index >= self.setting.servers:  # an additional process, which joins while the job runs
            running().sleep(running().random.random() * _AWAY_S)
        known = max(self.setting.servers, index + 1)
        spec = {**self._spec, "ps": [f"ps{number}:1" for number in range(known)]}
        server = tf.train.Server(spec, job_name="ps", task_index=index)
        self._on_start(index, server)
        leaves = running().random.random() < _LEAVES
        if leaves:
            running_server = server._running
            assert running_server is not None
            assert running_server.copies is not None
            processes = running_server.copies.processes

            def leaves_one() -> bool:
                with running().apart():
                    return len(processes.staying()) < 3

            def end() -> None:
                running().sleep(running().random.expovariate(1.0) * _STAYS_S)
                # Wait until no other process drains, each task has two replicas, and no fault is under way that could
                # remove the second replica: otherwise the drain could remove the last replica of a task.
                while self._leaving or not self._is_complete() or (self._faults.under_way and leaves_one()):
                    running().sleep(_LOOK_S)
                self._leaving, self._leaves_one = True, leaves_one()
                running().note(f"ps{index} is asked to end")
                running_server.shell.end()

            running().thread(me(), "SIGTERM", end).start()
        with contextlib.suppress(SystemExit):
            server.join()
        self._on_end(index, server)
        self._running.pop(index, None)
        self._leaving = self._leaves_one = False
        if leaves and not self._chief.returned:
            self.cluster.tasks[f"ps{index}"].restart_after(_AWAY_S)

    def _on_start(self, index: int, server: Any) -> None:
        self._running[index] = server._running

    def _on_end(self, index: int, server: Any) -> None:
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

    def _may_miss_end(self) -> bool:
        extra = range(self.setting.servers, self.setting.servers + self._extra)
        tasks = self.cluster.tasks
        alive = [index for index in extra if not tasks[f"ps{index}"].process.dead]
        if any(tasks[f"ps{index}"].process.stopped for index in alive):
            # When a stopped process continues, all others may have ended, so that it cannot learn that the job is over.
            return True
        return not all(index in self._running and self._running[index].copies.processes.met for index in alive)

    def _recovery(self) -> Callable[[], bool]:
        return self._is_complete

    def _is_complete(self) -> bool:
        """Returns whether all tasks are running, and each ``ps`` task has two replicas.

        Returns False while a drain leaves only one process, which then has the only replica of each task.
        """
        if self._leaves_one or any(task.process.dead and not task.done for task in self.cluster.tasks.values()):
            return False
        copies = [copy for running in self._running.values() for copy in running.copies.copies]
        return count_complete_parts(copies) == self.setting.servers

    def _record_new_state(self) -> None:
        if self._prepared:
            raise HistoryError("the chief discarded the state, though each ps has a backup")
        self.account.lose()


class ExampleCopiesHistory(GraphCopiesHistory, GraphExamplesHistory):
    """A history of a graph with accounting of examples on the first ``ps``: each example must count once per epoch."""

    epochs = 8

    def _recovery(self) -> Callable[[], bool]:
        """Delays the first fault until training is under way, in most histories."""
        return lambda: self._is_complete() and (self._under_way or not self.simulation.seed % 4)


def history(seed: int) -> tuple[Simulation, GraphCopiesHistory]:
    """Creates, but does not run, a history drawn from ``seed``."""
    simulation = Simulation(seed, horizon_s=900.0)
    return simulation, GraphCopiesHistory(simulation, drawn(random.Random(f"graph copies {seed}")))


def history_with_moves(seed: int) -> tuple[Simulation, GraphCopiesHistory]:
    """Creates, but does not run, a history in which processes join and drain, drawn from ``seed``."""
    simulation = Simulation(seed, horizon_s=900.0)
    chance = random.Random(f"graph copies that move {seed}")
    extra = chance.choice((1, 1, 2))
    setting = replace(drawn(chance, extra), steps=chance.randint(40, 120))
    return simulation, GraphCopiesHistory(simulation, setting, extra)


def history_of_examples(seed: int) -> tuple[Simulation, ExampleCopiesHistory]:
    """Creates, but does not run, a history with accounting of examples, drawn from ``seed``."""
    simulation = Simulation(seed, horizon_s=900.0)
    chance = random.Random(f"graph copies of examples {seed}")
    setting = drawn(chance, messages=900)
    faults = tuple(
        replace(fault, task="ps0") if fault.other != "ps0" and chance.random() < 0.5 else fault
        for fault in setting.faults
    )
    setting = replace(setting, mode=chance.choice(get_args(Mode)), faults=faults)
    return simulation, ExampleCopiesHistory(simulation, setting)


def history_of_rounds(seed: int) -> tuple[Simulation, GraphCopiesHistory]:
    """Creates, but does not run, a history with updates in rounds of several workers, drawn from ``seed``."""
    simulation = Simulation(seed, horizon_s=900.0)
    chance = random.Random(f"graph copies in rounds {seed}")
    mode = chance.choice(ROUNDS)
    return simulation, GraphCopiesHistory(simulation, replace(drawn(chance), mode=mode, steps=chance.randint(3, 15)))


def drawn(chance: random.Random, extra: int = 0, messages: int = 300) -> Setting:
    """Returns a random setting of a history with two replicas of each ``ps`` task.

    Args:
      chance: generator of the random choices.
      extra: number of ``ps`` processes besides the initial ones, which faults may affect, too.
      messages: the first fault happens within this number of messages.
    """
    found = Setting.draw(chance)
    servers = max(2, found.servers)
    tasks = [f"ps{index}" for index in range(servers + extra)] + [f"worker{index}" for index in range(found.workers)]
    return replace(
        found,
        servers=servers,
        mode="asynchronous",
        steps=chance.randint(5, 40),
        saves=False,
        faults=Fault.draw_some(chance, tasks, messages),
        stale=None,
        absent=None,
    )
