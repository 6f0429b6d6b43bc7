"""Recovery of a ``ps`` that is lost and restarted: the choice of the source of its values, and a report.

``"copy"``: the chief sends the values that it read last. ``"own"``: each ``ps`` saves its own state every few seconds
and recovers it; see `headwater.ps.state_saver`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from headwater.ps.consistency import Consistency, KOfN, Synchronous
from headwater.state.state_saver import Saves

Recovery = Literal["copy", "own"]

#: Maximum number of variables that a report names.
_SHOWN: Final = 5


def saves_of(
    recovery: str | None, saves: str | os.PathLike[str] | None, every_s: float, choice: Consistency
) -> Saves | None:
    """Checks a program's recovery settings; returns the settings for saving state, or None for ``"copy"``.

    Args:
      recovery: ``"copy"`` or ``"own"``; None is ``"own"`` if a folder is given, else ``"copy"``.
      saves: the folder for ``"own"``.
      every_s: seconds between two saves.
      choice: the consistency between workers.

    Raises:
      ValueError: the arguments cannot be combined.
    """
    if recovery not in (None, "copy", "own"):
        raise ValueError(f"recovery must be 'copy' or 'own', not {recovery!r}")
    if not every_s > 0:
        raise ValueError(f"save_every_s must be more than 0 seconds, not {every_s!r}")
    if recovery == "own" and saves is None:
        raise ValueError("recovery='own' needs saves=..., a folder that each ps can read after a restart")
    if recovery == "copy" and saves is not None:
        raise ValueError("saves=... requires recovery='own'; with recovery='copy' no ps writes its state")
    if saves is None:
        return None
    if isinstance(choice, Synchronous | KOfN):
        raise ValueError(
            f"recovery='own' supports consistency 'async' and 'staleness=...', not {str(choice)!r}: with it, each "
            "update is the mean of gradients computed from the same version on all ps, but a restored ps has an "
            "earlier version"
        )
    return Saves(folder=os.fspath(saves), every_s=float(every_s))


@dataclass(kw_only=True, slots=True)
class RecoveryReport:
    """Report of the recovery of a ``ps`` from its own saved state.

    Attributes:
      incarnation: the incarnation that saved the state.
      version: the version of the state.
      at: time of the save, in seconds since 1970.
      names: the names of its variables. If the ``ps`` has only some rows of a variable, the name includes their range.
      seen: the latest version of that incarnation that a worker has read.
    """

    incarnation: int
    version: int
    at: float
    names: Sequence[str]
    seen: int = field(default=-1)

    def record_read(self, incarnation: int, version: int) -> bool:
        """Records a version that a worker has read from an incarnation.

        Returns:
          Whether this version increases the number of updates known to be lost.
        """
        if incarnation != self.incarnation or version <= max(self.seen, self.version):
            return False
        self.seen = version
        return True

    @property
    def lost(self) -> int:
        """Number of updates known to be lost: those between the saved version and the latest that a worker has read."""
        return max(0, self.seen - self.version)

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.at))
        shown = ", ".join(self.names[:_SHOWN]) + ", ..." * (len(self.names) > _SHOWN)
        if not self.lost:
            return f"restored version {self.version} of {since}; no worker has read a later version"
        of = f"of {len(self.names)} variables ({shown})"
        if self.lost == 1:
            return f"update {self.seen} {of} is lost; it was applied after the save of {since}"
        return f"updates {self.version + 1} to {self.seen} {of} are lost; they were applied after the save of {since}"
