"""Histories of graphs with parameter servers that drain: they save their state, end, and resume after a restart.

Connections are lost meanwhile, tasks are stopped, and workers other than the chief are killed. No state is lost: each
acknowledged step is in the values of every parameter server, no step is applied twice, and the chief never initializes
the model a second time.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import get_args

from headwater.tf1.compat import tf
from tests.simulation.faults import Fault
from tests.simulation.graph_copies import ROUNDS
from tests.simulation.graph_examples import GraphExamplesHistory
from tests.simulation.graphs import GraphHistory, Mode, Setting
from tests.simulation.scheduler import HistoryError, Simulation, me, running

#: Probability that an incarnation of a parameter server drains.
_LEAVES = 0.8
#: Mean time from the start of a parameter server to its drain, in seconds.
_STAYS_S = 2.0
#: Longest pause before a drained parameter server restarts, in seconds.
_AWAY_S = 2.0
#: Interval of the checks whether all parameter servers are running again, in seconds.
_LOOK_S = 0.1
#: Further faults that may affect any task.
_HARMLESS = {"stop", "lose connections"}
#: Further faults of workers other than the chief, which holds state that must not be lost.
_ENDS = {"kill", "vanish"}


class DepositsHistory(GraphHistory):
    """A history; see `GraphHistory`."""

    def __init__(self, simulation: Simulation, setting: Setting) -> None:
        super().__init__(simulation, setting)
        self._away: set[int] = set()

    def _serve(self, index: int) -> None:
        server = tf.train.Server(self._spec, job_name="ps", task_index=index)
        running_server = server._running
        assert running_server is not None
        self._away.discard(index)
        self._values.pop(f"ps{index}", None)  # values of the previous incarnation
        leaves = running().random.random() < _LEAVES

        def end() -> None:
            running().sleep(running().random.expovariate(1.0) * _STAYS_S)
            while not self._is_complete():  # only one server drains at a time
                running().sleep(_LOOK_S)
            if not self._chief.returned:
                self._away.add(index)
                running().note(f"ps{index} is asked to end")
                running_server.shell.end()

        if leaves:
            running().thread(me(), "SIGTERM", end).start()
        with contextlib.suppress(SystemExit):
            server.join()
        self._on_end(index, server)
        if index in self._away and not self._chief.returned:
            running().after(running().random.random() * _AWAY_S, lambda: self._restart_task(index))

    def _restart_task(self, index: int) -> None:
        task = self.cluster.tasks[f"ps{index}"]
        task.done = False
        task.start()

    def _recovery(self) -> Callable[[], bool]:
        return self._is_complete

    def _is_complete(self) -> bool:
        """Returns whether no parameter server drains, and all tasks are running."""
        tasks = self.cluster.tasks.values()
        return not self._away and not any(
            task.process.stopped or (task.process.dead and not task.done) for task in tasks
        )

    def _record_new_state(self) -> None:
        if self._prepared:
            raise HistoryError("the chief discarded the state, though nothing of it is lost")
        self.account.lose()


class DepositExamplesHistory(DepositsHistory, GraphExamplesHistory):
    """A history of a graph with accounting of examples on the first ``ps``: each example must count once per epoch."""

    epochs = 8


def history(seed: int) -> tuple[Simulation, DepositsHistory]:
    """Creates, but does not run, a history with asynchronous training, drawn from ``seed``."""
    return _drawn(seed, random.Random(f"left states {seed}"), ("asynchronous",))


def history_of_rounds(seed: int) -> tuple[Simulation, DepositsHistory]:
    """Creates, but does not run, a history with gathered gradients, drawn from ``seed``."""
    return _drawn(seed, random.Random(f"left states of rounds {seed}"), ROUNDS)


def history_of_examples(seed: int) -> tuple[Simulation, DepositsHistory]:
    """Creates, but does not run, a history with accounting of examples, drawn from ``seed``."""
    return _drawn(seed, random.Random(f"left states of examples {seed}"), get_args(Mode), DepositExamplesHistory)


def _drawn(
    seed: int, chance: random.Random, modes: Sequence[Mode], kind: type[DepositsHistory] = DepositsHistory
) -> tuple[Simulation, DepositsHistory]:
    simulation = Simulation(seed, horizon_s=900.0)
    found = Setting.draw(chance)
    servers = max(2, found.servers)
    workers = [f"worker{index}" for index in range(found.workers)]
    others = set(workers[1:])
    faults = Fault.draw_some(chance, [*(f"ps{index}" for index in range(servers)), *workers], messages=300)
    setting = replace(
        found,
        servers=servers,
        mode=modes[seed % len(modes)],
        steps=chance.randint(20, 80 if modes == ("asynchronous",) else 40),
        saves=False,
        faults=tuple(
            fault for fault in faults if fault.kind in _HARMLESS or (fault.kind in _ENDS and fault.task in others)
        ),
        stale=None,
        absent=None,
    )
    return simulation, kind(simulation, setting)
