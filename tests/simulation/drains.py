"""Histories in which all replicated parameter servers drain at nearly the same time, repeatedly.

There are no failures. Each server restarts some time after its end. By then, the other servers may have ended, or may
serve its parts. No acknowledged update is lost, and none is applied twice; the chief never initializes a graph a second
time.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from headwater.ps.process import ParameterTask
from headwater.state.copy import Replica
from headwater.tf1.compat import tf
from tests.simulation.cluster import Cluster
from tests.simulation.copies import (
    CopiesHistory,
    CopiesOfExamples,
    CopiesOfRows,
    CopiesOfTables,
    draw_history,
    draw_setting,
)
from tests.simulation.graph_copies import ROUNDS, GraphCopiesHistory, drawn
from tests.simulation.parameters import Setting
from tests.simulation.scheduler import Simulation

#: Interval of checks that each part has two replicas, in seconds.
_LOOK_S = 0.1
#: Number of shards of variables that move.
_SHARDS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Notice:
    """A request to all parameter servers to drain.

    Attributes:
      after_s: minimum time since the previous notice, in seconds. The notice also waits until all parts have two
        replicas again.
      delays_s: delay until each server receives it, in seconds.
      away_s: time until the restart of each server, in seconds.
    """

    after_s: float
    delays_s: Sequence[float]
    away_s: Sequence[float]

    @staticmethod
    def draw_some(chance: random.Random, servers: int) -> list[Notice]:
        """Returns one to three random notices."""
        return [
            Notice(
                after_s=chance.expovariate(1.0),
                delays_s=[chance.choice((0.0, 0.0, 0.01, 2.0)) * chance.random() for _ in range(servers)],
                away_s=[chance.choice((0.1, 1.0, 30.0)) * chance.random() for _ in range(servers)],
            )
            for _ in range(chance.randint(1, 3))
        ]


class Notices:
    """Drains the parameter servers of a history.

    Args:
      cluster: the tasks.
      notices: the notices, in their order.
      whole: whether each part has two replicas.
      end: drains a parameter server, by its number; to be called in its process.
    """

    def __init__(
        self, cluster: Cluster, notices: Sequence[Notice], whole: Callable[[], bool], end: Callable[[int], None]
    ) -> None:
        self._cluster = cluster
        self._left = list(notices)
        self._whole = whole
        self._end = end
        self._away: dict[int, float] = {}
        cluster.simulation.note(f"asked to end: {notices}")
        self._wait()

    def _wait(self) -> None:
        if self._left:
            self._cluster.simulation.after(self._left[0].after_s, self._notify_all)

    def _notify_all(self) -> None:
        simulation = self._cluster.simulation
        if self._cluster.over():
            return
        if not self._whole():
            simulation.after(_LOOK_S, self._notify_all)
            return
        notice = self._left.pop(0)
        for index, delay_s in enumerate(notice.delays_s):
            self._away[index] = notice.away_s[index]
            simulation.after(delay_s, partial(self._notify_server, index))
        self._wait()

    def _notify_server(self, index: int) -> None:
        process = self._cluster.tasks[f"ps{index}"].process
        if not process.dead:
            self._cluster.simulation.note(f"{process} is asked to end")
            self._cluster.simulation.thread(process, "SIGTERM", partial(self._end, index)).start()

    def drains(self, index: int) -> bool:
        """Returns whether a parameter server drains or has drained, so that others may serve its parts."""
        return index in self._away

    def schedule_restart(self, index: int) -> None:
        """Schedules the restart of a parameter server that has ended, unless the job is over."""
        self._cluster.tasks[f"ps{index}"].restart_after(self._away.pop(index, 0.1))


class DrainedCopies(CopiesHistory):
    """A history; see `CopiesHistory`. For odd seeds, parts may move."""

    notices: Notices

    def __init__(self, simulation: Simulation, setting: Setting, *others: Any) -> None:
        self.shards = _SHARDS if simulation.seed % 2 else None
        super().__init__(simulation, replace(setting, faults=()), *others)

    @property
    def parts(self) -> int:
        return self.shards or self.setting.servers

    def begin_with(self, notices: Sequence[Notice]) -> None:
        """Schedules the notices to all parameter servers."""
        self.notices = Notices(self.cluster, notices, self._is_complete, self._end)

    def _end(self, index: int) -> None:
        if index in self._served:
            self._served[index].shell.end()

    def _on_end(self, index: int) -> None:
        self.notices.schedule_restart(index)

    def _is_complete(self) -> bool:
        if any(task.process.dead for name, task in self.cluster.tasks.items() if name.startswith("ps")):
            return False
        return self._are_complete(copy for task in self._served.values() for copy in _copies(task, "set", task.copies))


def _copies(task: ParameterTask, name: str, stay: Any) -> Iterator[Replica]:
    """Returns a task's replicas of a set of variables: movable ones from its holder, or else fixed ones."""
    holder = task.copy_holders.get(name)
    copies = stay if holder is None else holder.copies
    return (copy for copy in copies.values() if isinstance(copy, Replica))


class DrainedRows(DrainedCopies, CopiesOfRows):
    """See `CopiesOfRows`."""


class DrainedTables(DrainedCopies, CopiesOfTables):
    """See `CopiesOfTables`."""

    def _is_complete(self) -> bool:
        if not DrainedCopies._is_complete(self):
            return False
        services = [(task, getattr(task.table_service, "copies", {})) for task in self._served.values()]
        return self._are_complete(copy for task, stay in services for copy in _copies(task, "+tables", stay))


class DrainedExamples(DrainedCopies, CopiesOfExamples):
    """See `CopiesOfExamples`."""


class DrainedGraphs(GraphCopiesHistory):
    """A history; see `GraphCopiesHistory`."""

    notices: Notices

    def begin_with(self, notices: Sequence[Notice]) -> None:
        """Schedules the notices to all parameter servers."""
        self.notices = Notices(self.cluster, notices, self._is_complete, self._end)

    def _end(self, index: int) -> None:
        if index in self._running:
            self._running[index].shell.end()

    def _serve(self, index: int) -> None:
        self._running.pop(index, None)
        server = tf.train.Server(self._spec, job_name="ps", task_index=index)
        self._on_start(index, server)
        with contextlib.suppress(SystemExit):
            server.join()
        if not self.notices.drains(index):
            self._on_end(index, server)
        self._running.pop(index, None)
        self.notices.schedule_restart(index)

    def _is_complete(self) -> bool:
        return len(self._running) == self.setting.servers and super()._is_complete()


def history(seed: int) -> tuple[Simulation, DrainedCopies]:
    """Creates, but does not run, a history with parameters, drawn from ``seed``."""
    simulation = Simulation(seed, horizon_s=900.0)
    setting, chance = draw_setting(seed, "told to end", ("async", "async", "sync", "staleness=2"))
    made = draw_history(simulation, setting, chance, (DrainedCopies, DrainedRows, DrainedTables, DrainedExamples))
    assert isinstance(made, DrainedCopies)
    made.begin_with(Notice.draw_some(chance, setting.servers))
    return simulation, made


def history_of_graphs(seed: int) -> tuple[Simulation, DrainedGraphs]:
    """Creates, but does not run, a history with a graph, drawn from ``seed``."""
    simulation = Simulation(seed, horizon_s=900.0)
    chance = random.Random(f"graphs told to end {seed}")
    setting = replace(drawn(chance), mode=chance.choice(("asynchronous", *ROUNDS)), faults=())
    made = DrainedGraphs(simulation, setting)
    made.begin_with(Notice.draw_some(chance, setting.servers))
    return simulation, made
