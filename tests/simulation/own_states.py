"""Histories of parameter servers that save their own states and resume from them.

A ``ps`` that was lost may lack updates that were acknowledged before its restart; the other ``ps`` lack none. No unit
is applied more than once on any ``ps``, even if its push is retried.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from dataclasses import replace

from headwater.ps.consistency import from_text
from headwater.state.state_saver import Saves
from tests.simulation.account import NO_UNIT
from tests.simulation.parameters import CountingUpdater, ParameterHistory, Setting
from tests.simulation.scheduler import HistoryError, Simulation

#: Seconds between two saves.
_EVERY_S = 0.01


class OwnStates(ParameterHistory):
    """A history; see `ParameterHistory`."""

    def __init__(self, simulation: Simulation, setting: Setting) -> None:
        super().__init__(simulation, setting)
        self._folder = tempfile.mkdtemp(prefix="headwater-states-")
        self._void: dict[int, set[int]] = {index: set() for index in range(setting.servers)}

    def _serve(self, index: int) -> None:
        # A restart may lose any unit that was pushed before it, as the state that is restored may be older.
        self._void[index] |= self.account.acknowledged | self.account.open
        task = self._task("ps", index)

        def make(number: int) -> CountingUpdater:
            updater = self._updaters[number] = CountingUpdater(self.setting.servers)
            return updater

        choice = from_text(self.setting.consistency, self.setting.workers)
        task.host("set", self._layout, make, choice, saves=Saves(folder=self._folder, every_s=_EVERY_S))
        task.shell.wait_until_over()

    def close(self) -> None:
        """Removes the states."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _check(self) -> None:
        for server, updater in sorted(self._updaters.items()):
            lossless = sorted(self.account.acknowledged - self._void[server] - {NO_UNIT})
            for name, values in zip("ab", updater.values(None), strict=False):
                (applied,) = values
                if not len(applied):
                    raise HistoryError(f"ps{server} has no values")
                self.account.check(f"{name} of ps{server}", applied, lossless)


def history(seed: int) -> tuple[Simulation, OwnStates]:
    """Creates, but does not run, a history drawn from ``seed``."""
    simulation = Simulation(seed, horizon_s=900.0)
    chance = random.Random(f"own states {seed}")
    setting, choice = Setting.draw(chance), chance.choice(("async", "staleness=2"))
    return simulation, OwnStates(simulation, replace(setting, consistency=choice, delay_s=0.02))
