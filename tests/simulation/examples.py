"""Histories of parameter servers with accounting of examples, with faults.

A batch adds 1 at the position of each of its examples, in rows on different parameter servers. On the first server,
each example of each epoch is counted exactly once in the end, whichever tasks were killed, stopped, disconnected or
restarted, because the values and the ledger of a server always belong to the same update.
"""

from __future__ import annotations

import random

import numpy as np

from headwater.ps.accounting.ledger import Plan
from headwater.ps.batches import Examples
from tests.simulation.account import UNITS
from tests.simulation.parameters import ParameterHistory, Setting
from tests.simulation.scheduler import HistoryError, Simulation, running


class ExampleHistory(ParameterHistory):
    """A history of workers that iterate over epochs.

    Args:
      simulation: the history.
      setting: the history's setting.
      plan: the division of an epoch.
      epochs: number of epochs.
    """

    def __init__(self, simulation: Simulation, setting: Setting, plan: Plan, epochs: int) -> None:
        super().__init__(simulation, setting)
        self._plan = plan
        self._epochs = epochs
        self._acknowledged: set[int] = set()
        self._none_left = False
        self._lost_late = False

    def run(self) -> None:
        self.simulation.note(f"{self._epochs} epochs of {self._plan}")
        super().run()

    def _is_strict(self, server: int) -> bool:
        # If the first server drops a gradient, its examples are assigned again, although another server may have
        # applied the gradient.
        return server == 0

    def _serve(self, index: int) -> None:
        # If this server restarts after workers have learnt that no work is left, the chief may restore older values,
        # and no worker repeats the lost examples.
        self._lost_late = self._lost_late or (index == 0 and (self._none_left or self._all_are_applied()))
        super()._serve(index)

    def _all_are_applied(self) -> bool:
        """Returns whether the last incarnation of the first parameter server had applied all examples.

        In this case, that incarnation may have announced the end to a worker that still waits for the other servers.
        """
        last = self._updaters.get(0)
        values = last.values(None) if last is not None else []
        return bool(values) and bool(values[0][0, : self._epochs * self._plan.size].all())

    def _train(self, index: int) -> None:
        setting, plan = self.setting, self._plan
        client = self._client(index)
        examples = Examples(client)
        for steps, (work, _) in enumerate(examples.ranges(examples.step_request(0, self._epochs, plan)), 1):
            self._look(client.values())
            running().sleep(running().random.expovariate(1.0) * setting.work_s)
            gradient = np.zeros((self.parts, UNITS), np.float32)
            places = range(work.epoch * plan.size + work.start, work.epoch * plan.size + work.stop)
            gradient[:, places] = 1
            applied = examples.push([gradient, gradient])
            if applied:
                self._acknowledged.update(places)
            running().note(f"{work} of worker{index} is {'acknowledged' if applied else 'dropped'}")
            if setting.snapshots and index == 0 and steps % setting.snapshots == 0:
                client.snapshot()
        self._none_left = True
        client.finish(0)
        self._on_finish(index, client)

    def _check(self) -> None:
        if self._lost_late:
            self.simulation.note(
                "the first parameter server was lost after a worker had heard that all examples are applied"
            )
            return
        for name, values in zip("ab", self._updaters[0].values(None), strict=False):
            (applied,) = values
            all_of_them = self._epochs * self._plan.size
            wrong = {at: count for at, count in enumerate(applied.tolist()) if count != (at < all_of_them)}
            if wrong:
                raise HistoryError(f"{name} of ps0 has not counted these examples exactly once: {wrong}")


def history(seed: int) -> tuple[Simulation, ExampleHistory]:
    """Creates, but does not run, a history drawn from ``seed``."""
    simulation = Simulation(seed, horizon_s=900.0)
    chance = random.Random(f"examples {seed}")
    setting = Setting.draw(chance)
    plan = Plan(size=chance.randint(1, 30), batch=chance.randint(1, 4), tries=1000)
    return simulation, ExampleHistory(simulation, setting, plan, chance.randint(1, 3))
