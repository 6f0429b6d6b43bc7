"""Histories of parameter servers as Keras and JAX programs use them, with faults.

Each push has a gradient with a unique *unit*: 1 at one position of each row of two variables, with rows on different
parameter servers. The values show which pushes were applied, and how often.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.cluster.task.members import Members
from headwater.ps.client import ParameterClient
from headwater.ps.consistency import Consistency, from_text
from headwater.ps.layout import FixedShardsPartitioner, Layout, VariableSpec, make_layout
from headwater.ps.process import ParameterTask
from headwater.ps.updater import Array
from tests.simulation.account import LAUNCHER_S, NO_UNIT, UNITS, Account
from tests.simulation.cluster import Cluster, Task
from tests.simulation.faults import Fault, Faults
from tests.simulation.scheduler import HistoryError, Simulation, running


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The setting of a history.

    Attributes:
      servers: number of parameter servers.
      workers: number of workers.
      consistency: the consistency of updates; see `headwater.ps.consistency.from_text`.
      steps: number of steps of each worker.
      snapshots: interval at which the chief reads everything, in its steps; 0 for never.
      faults: the faults.
      delay_s: mean latency of a message, in seconds.
      work_s: mean computation time of a worker's step, in seconds.
    """

    servers: int
    workers: int
    consistency: str
    steps: int
    snapshots: int
    faults: tuple[Fault, ...]
    delay_s: float
    work_s: float

    @staticmethod
    def draw(chance: random.Random) -> Setting:
        """Returns a random setting."""
        servers, workers = chance.choice((1, 2, 2, 3)), chance.choice((1, 2, 3, 4))
        tasks = [f"ps{index}" for index in range(servers)] + [f"worker{index}" for index in range(workers)]
        return Setting(
            servers=servers,
            workers=workers,
            consistency=chance.choice(("async", "sync", f"k={max(1, workers - 1)}", "staleness=2")),
            steps=chance.randint(2, 6),
            snapshots=chance.choice((0, 2)),
            faults=Fault.draw_some(chance, tasks, messages=300),
            delay_s=chance.choice((0.0002, 0.001, 0.01)),
            work_s=chance.choice((0.0, 0.005, 0.1)),
        )


class CountingUpdater:
    """Replaces an optimizer: counts the updates that contain each unit.

    Args:
      rows: number of rows of each variable.
      strict: whether to raise an error if an update contains a unit more than once.
    """

    optimizer = "counts"
    tables = ()

    def __init__(self, rows: int, *, strict: bool = True) -> None:
        self._rows = rows
        self._strict = strict
        self._values: list[Array] = []

    def fill(self, values: Sequence[Array], state: Sequence[Array] | None) -> None:
        del state
        self._values = [np.array(value) for value in values]

    def assign(self, values: Sequence[Array]) -> None:
        self.fill(values, None)

    def values(self, extras: Sequence[int] | None) -> list[Array]:
        del extras
        return list(self._values)

    def state_sizes(self) -> list[tuple[str, tuple[int, ...], str]]:
        return []

    def state(self) -> dict[str, Array]:
        return {}

    def apply(
        self,
        gradients: Sequence[Array],
        changes: Mapping[int, Array],
        tables: Sequence[tuple[Array, Array]],
        hyperparameters: Sequence[float],
        scale: float = 1.0,
    ) -> None:
        del changes, tables, hyperparameters, scale
        for at, gradient in enumerate(gradients):
            there = np.unique(np.round(gradient[gradient > 0], 5))
            if self._strict and len(there) > 1:
                raise HistoryError(f"units of one update have weights {there}: one is in it more than once")
            self._values[at] = self._values[at] + (gradient > 0)

    def rows(self, numbers: Sequence[Array]) -> list[Array]:
        return [np.empty(0) for _ in numbers]


class ParameterHistory:
    """A history of parameter servers.

    Args:
      simulation: the history.
      setting: the history's setting.
    """

    def __init__(self, simulation: Simulation, setting: Setting) -> None:
        self.simulation = simulation
        self.setting = setting
        self.cluster = Cluster(simulation, setting.delay_s, lambda: self.cluster.tasks["worker0"].returned)
        self.account = Account()
        self._layout: Layout = make_layout(
            [
                VariableSpec(name=name, shape=(self.parts, UNITS), dtype="float32", optimized=True)
                for name in ("a", "b")
            ],
            self.parts,
            FixedShardsPartitioner(self.parts),
        )
        self._spec = ClusterSpec(
            {
                "ps": [f"ps{index}:1" for index in range(setting.servers)],
                "worker": [f"worker{index}:1" for index in range(setting.workers)],
            }
        )
        self._updaters: dict[int, CountingUpdater] = {}
        self._left = [setting.steps] * setting.workers
        for index in range(setting.servers):
            self.cluster.add(f"ps{index}", functools.partial(self._serve, index))
        for index in range(setting.workers):
            self.cluster.add(f"worker{index}", functools.partial(self._train, index))

    @property
    def parts(self) -> int:
        """The number of parts of the variables: one on each parameter server."""
        return self.setting.servers

    def run(self) -> None:
        """Runs the whole history; raises HistoryError if a rule is broken."""
        simulation, cluster = self.simulation, self.cluster
        simulation.note(str(self.setting))
        faults = Faults(cluster, self.setting.faults, self._may_fail, self._may_restart, whole=self._recovery())
        cluster.start(within_s=0.1)
        faults.begin()
        workers = [task for name, task in cluster.tasks.items() if name.startswith("worker")]
        cluster.wait_until(lambda: all(task.done for task in workers))
        simulation.note("all workers are done")
        faults.end()
        self._on_training_end()
        cluster.wait_for_ends(LAUNCHER_S)
        self._check()

    def close(self) -> None:
        """Does nothing: the history has no files."""

    def _recovery(self) -> Callable[[], bool] | None:
        """Returns a function that checks whether the system has recovered from the last fault; None if faults may
        overlap."""
        return None

    def _on_training_end(self) -> None:
        """Hook: called when all workers are done; no more faults are injected."""

    def _may_fail(self, task: Task) -> bool:
        del task
        return not self.cluster.tasks["worker0"].returned

    def _may_restart(self, task: Task) -> bool:
        return self.cluster.may_restart(task, self.cluster.tasks["worker0"])

    # Programs ---------------------------------------------------------------------------------------------------------

    def _task(self, job: str, index: int) -> ParameterTask:
        return ParameterTask(Members(self._spec, TaskName(job, index)))

    def _workers_with_unknown_end(self) -> list[Task]:
        """Returns workers that have ended, if no running parameter server can know of their end."""
        tasks = self.cluster.tasks
        if tasks["worker0"].returned or sum(not tasks[f"ps{n}"].process.dead for n in range(self.setting.servers)) > 1:
            return []
        others = (task for name, task in tasks.items() if name.startswith("worker") and name != "worker0")
        return [task for task in others if task.returned and task.done]

    def _before_serving(self) -> None:
        """Restarts workers whose end no server knows of, as a launcher does before it restarts the last server."""
        for task in self._workers_with_unknown_end():
            task.done = False
            task.start()

    def _serve(self, index: int) -> None:
        self.account.lose()
        self._before_serving()
        task = self._task("ps", index)

        def make(number: int) -> CountingUpdater:
            updater = self._updaters[number] = self._updater(number)
            return updater

        task.host("set", self._layout, make, from_text(self.setting.consistency, self.setting.workers))
        task.shell.wait_until_over()

    def _updater(self, server: int) -> CountingUpdater:
        """Returns the updater of a parameter server."""
        return CountingUpdater(self.setting.servers, strict=self._is_strict(server))

    def _is_strict(self, server: int) -> bool:
        """Returns whether every update on parameter server ``server`` must contain a unit at most once."""
        del server
        return True

    def _client(self, index: int) -> ParameterClient:
        """Returns a worker's client, connected and with the current parameters."""
        setting = self.setting
        zeros = np.zeros((self.parts, UNITS), np.float32)
        choice = from_text(setting.consistency, setting.workers)
        client = self._access(self._task("worker", index), choice, [zeros, zeros])
        client.connect()
        client.pull()
        return client

    def _access(self, task: ParameterTask, choice: Consistency, initial: Sequence[Any]) -> ParameterClient:
        return task.client("set", self._layout, choice, initial)

    def _train(self, index: int) -> None:
        setting, account = self.setting, self.account
        client = self._client(index)
        while self._left[index]:
            self._look(client.values())
            running().sleep(running().random.expovariate(1.0) * setting.work_s)
            unit = account.give()
            gradient = np.repeat((np.arange(UNITS) == unit)[None], self.parts, 0).astype(np.float32)
            account.open.add(unit)
            applied = self._push(client, [gradient, gradient], unit)
            account.open.discard(unit)
            self._left[index] -= 1
            if applied:
                account.acknowledged.add(unit)
            running().note(f"unit {unit} of worker{index} is {'acknowledged' if applied else 'dropped'}")
            self._after_step(index)
            if setting.snapshots and index == 0 and self._left[index] % setting.snapshots == 0:
                client.snapshot()
        client.finish(client.trainings)
        self._on_finish(index, client)

    def _push(self, client: ParameterClient, gradients: Sequence[Array], unit: int) -> bool:
        """Pushes the gradient of a unit; returns whether it was accepted."""
        del unit
        return client.push(gradients)[1]

    def _on_finish(self, index: int, client: ParameterClient) -> None:
        """Hook: called in a worker when all workers have finished."""

    def _after_step(self, index: int) -> None:
        """Hook: called in a worker after each step."""

    def _look(self, values: Sequence[Any]) -> None:
        """Checks that no reader sees a partial update."""
        one, other = values
        for server in range(self.parts):
            if not np.array_equal(one[server], other[server]):
                raise HistoryError(f"a reader of ps{server} saw half an update: {one[server]} and {other[server]}")

    # Rules ------------------------------------------------------------------------------------------------------------

    def _lossless(self) -> list[int]:
        """Units that must be in the values, whatever faults happened."""
        # With k of n gradients, stale gradients are dropped, and fewer than k at the end make no update.
        partly = self.setting.consistency.startswith("k")
        return sorted(self.account.acknowledged - self.account.void - {NO_UNIT}) if not partly else []

    def _check(self) -> None:
        account, lossless = self.account, self._lossless()
        for server, updater in sorted(self._updaters.items()):
            for name, values in zip("ab", updater.values(None), strict=False):
                (applied,) = values
                account.check(f"{name} of ps{server}", applied, lossless)


def history(seed: int) -> tuple[Simulation, ParameterHistory]:
    """Creates, but does not run, a history drawn from ``seed``."""
    simulation = Simulation(seed, horizon_s=900.0)
    return simulation, ParameterHistory(simulation, Setting.draw(random.Random(f"parameters {seed}")))
