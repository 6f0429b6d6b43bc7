"""Retries of saves while the disk is full; training continues meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from headwater.cluster.telemetry.troubles import TROUBLES, Troubles, is_full_disk

FIRST_PAUSE_S: Final = 5.0
LONGEST_PAUSE_S: Final = 300.0


class SavingAttempts:
    """Retries saves that fail because the disk is full. Earlier saved files stay intact.

    The pause before a retry doubles after each failure, from 5 to 300 seconds.

    Args:
      what: describes the saved object and its place, for messages.
      clock: returns seconds since any origin.
      troubles: records failures and recoveries.
    """

    def __init__(
        self, what: str, *, clock: Callable[[], float] = time.monotonic, troubles: Troubles = TROUBLES
    ) -> None:
        self._what = what
        self._clock = clock
        self._troubles = troubles
        self._pause_s = 0.0
        self._again_at: float | None = None

    @property
    def failing(self) -> bool:
        """Whether the latest attempt failed."""
        return self._again_at is not None

    @property
    def due(self) -> bool:
        """Returns whether a failed save is to be retried now."""
        return self._again_at is not None and self._clock() >= self._again_at

    def pause_s(self, otherwise: float) -> float:
        """Returns the seconds until the next attempt; ``otherwise`` if the latest attempt did not fail."""
        return otherwise if self._again_at is None else max(0.0, self._again_at - self._clock())

    def attempt(self, save: Callable[[], object]) -> bool:
        """Calls ``save`` and returns whether it succeeded; raises its errors other than a full disk."""
        try:
            save()
        except Exception as error:
            if not is_full_disk(error):
                raise
            self._pause_s = min(max(2 * self._pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
            self._again_at = self._clock() + self._pause_s
            self._troubles.record_failure(
                self._what,
                error,
                f"Training continues; the previous checkpoint is intact; the next attempt is in {self._pause_s:.0f} s",
            )
            return False
        self._pause_s, self._again_at = 0.0, None
        self._troubles.record_success(self._what)
        return True
