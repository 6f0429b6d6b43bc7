"""An updater makes an update before workers wait for one, so that its program is compiled by then."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from headwater.ps.layout import Layout, block_shape
from headwater.ps.updater import Updater

_log = logging.getLogger("headwater")


def rehearse(layout: Layout, updater: Updater, shard: int, knobs: Sequence[float]) -> None:
    """Has the updater of a shard make an update of zeros. Its values are filled afterwards.

    Args:
      layout: of all shards.
      updater: of this one.
      shard: its number.
      knobs: those of the latest update; without any there was none, and the first one compiles as it always does.
    """
    specs = [(layout.variables[block.variable], block) for block in layout.blocks[shard]]
    zeros = [np.zeros(block_shape(spec, block), spec.dtype) for spec, block in specs if not spec.table]
    gradients = [np.zeros(block_shape(spec, block), spec.dtype) for spec, block in specs if spec.optimized]
    try:
        updater.fill(zeros, None)
        updater.apply(gradients, {}, (), knobs)
        updater.values(None)
    except Exception as error:  # noqa: BLE001 - whatever it is, the first update of a worker tells of it, too
        _log.debug("shard %d was not rehearsed: %s", shard, error)
