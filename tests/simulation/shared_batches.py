"""Histories of synchronous workers that share each batch, as in Keras's `fit`, with faults.

At the positions of its examples, a worker's gradient is the reciprocal of its fraction of the batch. An update is the
weighted mean of these gradients, so on the first server it is 1 at each position of one whole batch and 0 elsewhere,
whichever workers were lost, restarted or disconnected during the update.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from headwater.ps import protocol
from headwater.ps.accounting.ledger import Plan
from headwater.ps.consistency import Part
from headwater.ps.step_requests import StepRequest, request_fields
from headwater.ps.updater import Array
from tests.simulation.account import UNITS
from tests.simulation.examples import ExampleHistory
from tests.simulation.parameters import CountingUpdater, Setting
from tests.simulation.scheduler import HistoryError, Simulation, running


class BatchUpdater(CountingUpdater):
    """Counts the updates that contain each position, and requires that each update is one batch.

    Args:
      rows: number of rows of each variable.
      plan: the division of an epoch; None for a server on which an update may lack a part of the batch.
    """

    def __init__(self, rows: int, plan: Plan | None) -> None:
        super().__init__(rows, strict=False)
        self._plan = plan

    def apply(
        self,
        gradients: Sequence[Array],
        changes: Mapping[int, Array],
        tables: Sequence[tuple[Array, Array]],
        hyperparameters: Sequence[float],
        scale: float = 1.0,
    ) -> None:
        super().apply(gradients, changes, tables, hyperparameters, scale)
        plan = self._plan
        if plan is None:
            return
        for gradient in gradients:
            (places,) = np.nonzero(gradient[0])
            epoch, start = divmod(int(places[0]), plan.size)
            stop = min(start + plan.batch, plan.size)
            expected = np.zeros(UNITS, np.float32)
            expected[epoch * plan.size + start : epoch * plan.size + stop] = 1
            if start % plan.batch or not np.allclose(gradient, expected, atol=1e-5):
                raise HistoryError(f"an update is no batch: {dict(zip(places, gradient[0, places], strict=True))}")


class SharedBatchHistory(ExampleHistory):
    """A history of workers that share each batch of a few epochs."""

    def _is_strict(self, server: int) -> bool:
        # If a worker is killed while it sends a gradient, only some servers may have received that gradient.
        return server == 0 or not self.setting.faults

    def _updater(self, server: int) -> CountingUpdater:
        return BatchUpdater(self.setting.servers, self._plan if self._is_strict(server) else None)

    def _train(self, index: int) -> None:
        client = self._client(index)
        for epoch in range(self._epochs):
            wish: StepRequest = (0, epoch, -1, -1, request_fields(epoch, self._plan, (index, self.setting.workers)))
            ticket = client.next_step(wish)
            while ticket not in (protocol.EPOCH_OVER, protocol.TRAINING_OVER):
                assert isinstance(client.assigned_work, tuple)
                work, _ = client.assigned_work
                batch = self._plan.batch_of(work)
                part = Part(*client.round, work.stop - work.start, batch.stop - batch.start)
                self._look(client.values())
                running().sleep(running().random.expovariate(1.0) * self.setting.work_s)
                gradient = np.zeros((self.parts, UNITS), np.float32)
                first = work.epoch * self._plan.size
                if part.size:
                    gradient[:, first + work.start : first + work.stop] = part.whole / part.size
                ticket, applied = client.push(
                    [gradient, gradient], weight=part.size, step_request=wish, works=[work][: part.size], part=part
                )
                running().note(f"{work} of worker{index} is {'acknowledged' if applied else 'dropped'}")
            if index == 0 and self.setting.snapshots:
                client.snapshot()
        self._none_left = True
        client.finish(0)
        self._on_finish(index, client)


def history(seed: int) -> tuple[Simulation, SharedBatchHistory]:
    """Creates, but does not run, a history drawn from ``seed``."""
    simulation = Simulation(seed, horizon_s=900.0)
    chance = random.Random(f"shared batches {seed}")
    setting = Setting.draw(chance)
    # The chief has the snapshot from which the first server is restored, so at most one of the two may be lost.
    lost = chance.choice(("ps0", "worker0"))
    faults = [fault for fault in setting.faults if fault.task != lost] if chance.random() < 0.8 else []
    setting = replace(setting, consistency="sync", faults=tuple(faults))
    plan = Plan(size=chance.randint(1, 30), batch=chance.randint(1, 8), tries=1000, in_turn=True)
    return simulation, SharedBatchHistory(simulation, setting, plan, chance.randint(1, 3))
