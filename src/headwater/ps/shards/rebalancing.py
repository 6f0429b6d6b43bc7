"""Shards move by themselves, where the environment allows that: the chief looks at times how even their loads are."""

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

#: Shards move where the busiest ``ps`` has more to do than the mean, by more than this share of it.
UNEVEN: Final = 0.2


class Rebalancing:
    """See above.

    Args:
      spread: moves what makes the loads of ``ps`` more even.
    """

    def __init__(self, spread: Callable[[], Sequence[Moved]]) -> None:
        self._spread = spread
        self._begun = False

    def start(self) -> None:
        """Begins, where ``HEADWATER_REBALANCE_S`` says how often, and it has not begun.

        Raises:
          InvalidArgumentError: that is no number above 0.
        """
        every_s = positive_seconds_from(os.environ, REBALANCE_S, math.inf)
        if self._begun or every_s == math.inf:
            return
        self._begun = True
        periodic = Periodic("rebalances shards", every_s, self._look)
        periodic.start()
        atexit.register(periodic.stop)

    def _look(self) -> None:
        try:
            for (shard, source, target), seconds, nbytes in self._spread():
                _log.warning(
                    "shard %d has moved by itself from %s to %s: %.1f MB, held up for %.2f s",
                    shard,
                    source,
                    target,
                    nbytes / 1e6,
                    seconds,
                )
        except OpError as error:
            _log.info("no shards have moved by themselves: %s", error.message)
