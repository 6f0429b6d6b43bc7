"""Histories of synchronous rounds over several parameter servers, with faults during rounds and after the end of a
worker's program.

The histories are those of `tests.simulation.parameters`, with settings that are rare there.
"""

from __future__ import annotations

import os
import random

from headwater.cluster.variables import ENDED
from tests.simulation.account import LAUNCHER_S
from tests.simulation.faults import Fault
from tests.simulation.parameters import ParameterHistory, Setting
from tests.simulation.scheduler import Simulation


def history(seed: int) -> tuple[Simulation, ParameterHistory]:
    """Creates, but does not run, a history drawn from ``seed``.

    Parameter servers are killed, and lose connections, at short intervals.
    """
    chance = random.Random(f"rounds {seed}")
    servers, workers = chance.choice((2, 3)), chance.choice((2, 2, 3))

    def fault() -> Fault:
        return Fault(
            kind=chance.choice(("kill", "vanish", "lose connections", "lose connections")),
            task=f"ps{chance.randrange(servers)}",
            other=f"worker{chance.randrange(workers)}",
            message=chance.randint(1, 100),
            after_s=10.0 ** chance.uniform(-2.0, 0.5),
            seconds=10.0 ** chance.uniform(-2.0, 0.0),
        )

    setting = Setting(
        servers=servers,
        workers=workers,
        consistency="sync",
        steps=chance.randint(3, 6),
        snapshots=chance.choice((0, 2)),
        faults=tuple(fault() for _ in range(chance.randint(2, 4))),
        delay_s=chance.choice((0.0002, 0.001, 0.01)),
        work_s=chance.choice((0.0, 0.0, 0.005)),
    )
    simulation = Simulation(seed, horizon_s=900.0)
    return simulation, ParameterHistory(simulation, setting)


class EndedHistory(ParameterHistory):
    """A history in which a worker ends while the chief is dead; then a parameter server and the chief are restarted.

    The new incarnations of both were never connected to that worker, and must not wait for it: another parameter
    server, or the launcher, informs them of the worker's end.
    """

    def run(self) -> None:
        """See `ParameterHistory.run`."""
        simulation, cluster, chance = self.simulation, self.cluster, self.simulation.random
        chief = cluster.tasks["worker0"]
        others = [task for name, task in cluster.tasks.items() if name.startswith("worker") and task is not chief]
        cluster.start(within_s=0.1)
        cluster.wait_until(lambda: chief.process.dead)
        cluster.wait_until(lambda: all(task.done for task in others))
        server = cluster.tasks[f"ps{chance.randrange(self.setting.servers)}"]
        server.end(silently=chance.random() < 0.5)
        simulation.sleep(chance.random())
        for task in chance.sample([server, chief], 2):
            task.start()
            simulation.sleep(chance.choice((0.0, 0.1, 1.0)))
        cluster.wait_until(lambda: chief.done)
        cluster.wait_for_ends(LAUNCHER_S)
        self._check()

    def close(self) -> None:
        """See `ParameterHistory.close`."""
        os.environ.pop(ENDED, None)

    def _before_serving(self) -> None:
        # A launcher sets this for each process. Tasks of a simulation share os.environ, and the value is valid for all
        # tasks that start from now on.
        os.environ[ENDED] = ",".join(f"/job:worker/task:{task.name[6:]}" for task in self._workers_with_unknown_end())

    def _after_step(self, index: int) -> None:
        if index == 0 and not self.cluster.killed:
            self.cluster.tasks["worker0"].end()


def ended_history(seed: int) -> tuple[Simulation, ParameterHistory]:
    """Creates, but does not run, a history drawn from ``seed``."""
    chance, simulation = random.Random(f"ended {seed}"), Simulation(seed, horizon_s=900.0)
    setting = Setting(
        servers=chance.choice((1, 2, 3)),
        workers=chance.choice((2, 3)),
        consistency="sync",
        steps=chance.randint(2, 4),
        snapshots=0,
        faults=(),
        delay_s=chance.choice((0.0002, 0.001, 0.01)),
        work_s=chance.choice((0.0, 0.005)),
    )
    return simulation, EndedHistory(simulation, setting)
