"""Cyclic garbage collection of a process that only serves.

A full collection traverses every object of the process and stops all of its threads meanwhile, for 70 to 100 ms with
the 150,000 objects of a parameter server. Most objects belong to modules and compiled functions, and never become
garbage. So this module freezes the objects that have survived a full collection, and later collections skip them. Once
the number of frozen objects has doubled, the next full collection traverses all of them again.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping


def keep_survivors() -> None:
    """Runs a full collection, and makes later ones skip the objects that have survived; see the module."""
    if not any(isinstance(each, _Survivors) for each in gc.callbacks):
        gc.callbacks.append(_Survivors())
        gc.collect()


class _Survivors:
    """Callback of the collector: freezes survivors after a full collection."""

    def __init__(self) -> None:
        #: The number of objects that survived the last collection that traversed all of them.
        self._alive = 0
        self._looks_at_all = True

    def __call__(self, phase: str, info: Mapping[str, int]) -> None:
        if info["generation"] < 2:
            return
        if phase == "start":
            if gc.get_freeze_count() > 2 * self._alive:
                gc.unfreeze()
                self._looks_at_all = True
        else:
            gc.freeze()
            if self._looks_at_all:
                self._alive = gc.get_freeze_count()
                self._looks_at_all = False
