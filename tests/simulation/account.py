"""What the tasks of a history were told, and whether the values agree with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.simulation.scheduler import HistoryError

#: How many steps can be told apart.
UNITS = 256
NO_UNIT = UNITS
#: What a launcher waits after the job is over before it ends tasks, in seconds.
LAUNCHER_S = 60.0


@dataclass(kw_only=True)
class Account:
    """What was done, by what the tasks were told.

    Attributes:
      given: units that were given to a step so far.
      acknowledged: units whose step has returned.
      void: units whose step was acknowledged, or begun, before the state was lost.
      open: units whose step has begun and not returned.
      again: units whose step was open when a checkpoint was restored: that may hold it, and it is run again.
    """

    given: int = 0
    acknowledged: set[int] = field(default_factory=set[int])
    void: set[int] = field(default_factory=set[int])
    open: set[int] = field(default_factory=set[int])
    again: set[int] = field(default_factory=set[int])

    def give(self) -> int:
        """A unit for a step."""
        unit, self.given = self.given, self.given + 1
        return unit if unit < UNITS else NO_UNIT

    def lose(self) -> None:
        """State is lost: what was acknowledged until now need not be there."""
        self.void |= self.acknowledged | self.open

    def check(
        self, what: str, applied: np.ndarray[Any, Any], acknowledged: Sequence[int], slack: float = 0.001
    ) -> None:
        """Raises HistoryError unless each unit was applied at most once, and each of ``acknowledged`` once; those that
        are run ``again`` may count twice."""
        twice = [unit for unit, count in enumerate(applied) if count > 1 + (unit in self.again) + slack]
        if twice:
            raise HistoryError(f"{what} has units {twice} more than once: {applied[twice]}")
        missing = [unit for unit in acknowledged if applied[unit] < 1.0 - slack]
        if missing:
            raise HistoryError(f"{what} lacks units {missing}, which were acknowledged")
