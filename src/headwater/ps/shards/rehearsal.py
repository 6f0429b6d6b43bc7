"""Compiles a shard's update before workers wait for it."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from headwater.ps.layout import Layout, block_shape
from headwater.ps.updater import Updater

_log = logging.getLogger("headwater")


def rehearse(layout: Layout, updater: Updater, shard: int, hyperparameters: Sequence[float]) -> None:
    """Compiles the update of a shard, by an update of zeros. The caller sets the values of the shard afterwards.

    Args:
      layout: the placement of all shards.
      updater: the shard's updater.
      shard: the number of the shard.
      hyperparameters: the hyperparameters of the latest update. Empty before the first update, which then compiles the
        function itself.
    """
    specs = [(layout.variables[block.variable], block) for block in layout.blocks[shard]]
    zeros = [np.zeros(block_shape(spec, block), spec.dtype) for spec, block in specs if not spec.table]
    gradients = [np.zeros(block_shape(spec, block), spec.dtype) for spec, block in specs if spec.optimized]
    # The shard is frozen only after this, so its workers do not wait for the compilation.
    try:
        updater.fill(zeros, None)
        updater.apply(gradients, {}, (), hyperparameters)
        updater.values(None)
    except Exception as error:  # noqa: BLE001 - the first update of a worker will report the same error
        _log.debug("shard %d was not rehearsed: %s", shard, error)
