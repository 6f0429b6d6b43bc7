"""Retention of checkpoints: the recent ones, and one per interval for good."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headwater.cluster.telemetry.clocks import SteadyClock
from headwater.tf1.training.checkpoint_state import get_checkpoint_mtimes

_HOUR_S = 3600


class KeptCheckpoints:
    """The last checkpoints of a run; selects the ones to delete.

    Args:
      max_to_keep: number of checkpoints to keep; 0: all, without recording them.
      keep_every_n_hours: besides, one in each interval of this number of hours is kept for good.
      clock: returns seconds since 1970, which never decrease.
    """

    def __init__(
        self, max_to_keep: int, keep_every_n_hours: float, *, clock: Callable[[], float] | None = None
    ) -> None:
        self._max_to_keep = max_to_keep
        self._interval_s = keep_every_n_hours * _HOUR_S
        self._clock = clock or SteadyClock()
        self._next_preserved = self._clock() + self._interval_s
        self._entries: list[tuple[str, float]] = []

    @property
    def paths(self) -> list[str]:
        """Paths of the kept checkpoints, oldest first."""
        return [path for path, _ in self._entries]

    def set(self, entries: Iterable[tuple[str, float]]) -> None:
        """Sets the kept checkpoints: pairs of path and time saved, in seconds since 1970, oldest first."""
        self._entries = list(entries)

    def find(self, paths: Iterable[str]) -> None:
        """Sets the kept checkpoints with the times of their files; omits missing checkpoints."""
        found = [(path, get_checkpoint_mtimes([path])) for path in paths]
        self.set((path, times[0]) for path, times in found if times)

    def add(self, path: str) -> str | None:
        """Records a new checkpoint; returns the checkpoint to delete, or None."""
        self._entries = [entry for entry in self._entries if entry[0] != path]
        if not self._max_to_keep:
            return None
        self._entries.append((path, self._clock()))
        if len(self._entries) <= self._max_to_keep:
            return None
        old, saved_at = self._entries.pop(0)
        if saved_at > self._next_preserved:
            self._next_preserved += self._interval_s
            return None
        return old
