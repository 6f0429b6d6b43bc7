"""Compiles a shard's update before workers wait for it."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from headwater.ps.layout import Layout, block_shape
from headwater.ps.updater import Updater

_log = logging.getLogger("headwater")


def rehearse(layout: Layout, updater: Updater, shard: int, hyperparameters: Sequence[float]) -> None:
    """Makes an update of zeros with the updater of a shard, so that the update is compiled. Its values are filled
    afterwards.

    Args:
      layout: the placement of all shards.
      updater: the shard's updater.
      shard: its number.
      hyperparameters: the hyperparameters of the latest update. Empty before the first update, which then compiles the
        function itself.
    """
    specs = [(layout.variables[block.variable], block) for block in layout.blocks[shard]]
    zeros = [np.zeros(block_shape(spec, block), spec.dtype) for spec, block in specs if not spec.table]
    gradients = [np.zeros(block_shape(spec, block), spec.dtype) for spec, block in specs if spec.optimized]
    # The shard is frozen only after this, so the time of the compilation is not part of the pause of its workers.
    try:
        updater.fill(zeros, None)
        updater.apply(gradients, {}, (), hyperparameters)
        updater.values(None)
    except Exception as error:  # noqa: BLE001 - the first update of a worker will report the same error
        _log.debug("shard %d was not rehearsed: %s", shard, error)
