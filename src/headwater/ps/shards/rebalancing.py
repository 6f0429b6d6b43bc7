"""Automatic rebalancing of shards, if the environment enables it: the chief checks the loads periodically."""

from __future__ import annotations

import atexit
import logging
import math
import os
from collections.abc import Callable, Sequence
from typing import Final

from headwater.cluster.transport.waiting import positive_seconds_from
from headwater.cluster.variables import REBALANCE_S
from headwater.errors import OpError
from headwater.ps.shards.moves import Moved
from headwater.state.periodic import Periodic

_log = logging.getLogger("headwater")

#: Excess of the largest load, as a fraction of the mean, above which shards move.
UNEVEN: Final = 0.2


class Rebalancing:
    """Rebalances shards periodically.

    Args:
      spread: moves shards so that the loads of ``ps`` become more equal; returns the moves.
    """

    def __init__(self, spread: Callable[[], Sequence[Moved]]) -> None:
        self._spread = spread
        self._begun = False

    def start(self) -> None:
        """Starts with the interval of ``HEADWATER_REBALANCE_S``, if that is set and rebalancing has not started.

        Raises:
          InvalidArgumentError: the interval is not a number above 0.
        """
        every_s = positive_seconds_from(os.environ, REBALANCE_S, math.inf)
        if self._begun or every_s == math.inf:
            return
        self._begun = True
        periodic = Periodic("rebalances shards", every_s, self._rebalance)
        periodic.start()
        atexit.register(periodic.stop)

    def _rebalance(self) -> None:
        try:
            for (shard, source, target), seconds, nbytes in self._spread():
                _log.warning(
                    "automatic rebalancing has moved shard %d from %s to %s: %.1f MB; workers waited for %.2f s",
                    shard,
                    source,
                    target,
                    nbytes / 1e6,
                    seconds,
                )
        except OpError as error:
            _log.info("automatic rebalancing has failed: %s", error.message)
