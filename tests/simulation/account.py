"""Records the acknowledgements of a history, and checks that the final values agree with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.simulation.scheduler import HistoryError

#: The number of units, and therefore of steps that the values can distinguish. Further steps get `NO_UNIT`, and are not
#: checked.
UNITS = 256
NO_UNIT = UNITS
#: How long after the end of the job the launcher ends the remaining tasks, in seconds.
LAUNCHER_S = 60.0


@dataclass(kw_only=True)
class Account:
    """The units of a history, by the state of their steps as seen by the tasks.

    Attributes:
      given: number of units assigned to steps so far.
      acknowledged: units of steps that have returned.
      void: units of steps that were acknowledged, or in progress, when the state was lost.
      open: units of steps in progress.
      again: units of steps that were in progress when a checkpoint was restored: the checkpoint may contain these
          units, and the steps are repeated.
    """

    given: int = 0
    acknowledged: set[int] = field(default_factory=set[int])
    void: set[int] = field(default_factory=set[int])
    open: set[int] = field(default_factory=set[int])
    again: set[int] = field(default_factory=set[int])

    def give(self) -> int:
        """Returns an unused unit for a step."""
        unit, self.given = self.given, self.given + 1
        return unit if unit < UNITS else NO_UNIT

    def lose(self) -> None:
        """Records a loss of state: units acknowledged until now may be missing."""
        self.void |= self.acknowledged | self.open

    def check(
        self, what: str, applied: np.ndarray[Any, Any], acknowledged: Sequence[int], slack: float = 0.001
    ) -> None:
        """Raises HistoryError unless each unit was applied at most once, and each of ``acknowledged`` exactly once.

        Units in ``again`` may be applied twice.
        """
        twice = [unit for unit, count in enumerate(applied) if count > 1 + (unit in self.again) + slack]
        if twice:
            raise HistoryError(f"{what} has units {twice} more than once: {applied[twice]}")
        missing = [unit for unit in acknowledged if applied[unit] < 1.0 - slack]
        if missing:
            raise HistoryError(f"{what} lacks units {missing}, which were acknowledged")
