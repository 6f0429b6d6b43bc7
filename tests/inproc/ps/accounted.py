"""Workers with accounting of examples, on parameter servers within one process.

The parameters are counters: the gradient of a batch is 1 at the positions of its examples. Half of the positions are on
each ``ps``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax

from headwater import ParameterServer
from headwater.ps.accounting.audit import Audit, audit
from headwater.ps.batches import Examples
from headwater.ps.consistency import from_text
from headwater.ps.layout import FixedShardsPartitioner, make_layout
from headwater.ps.local_servers import LocalServers
from headwater.ps.optax_updates import OptaxUpdater, leaf_specs
from headwater.ps.rounds import Round, Total
from headwater.ps.updater import Array, Updater
from headwater.state.state_saver import Saves

_tree: Any = jax.tree
SIZE = 40
BATCH = 3
PARAMS: dict[str, Any] = {"counts": np.zeros((SIZE, 2), np.float32)}


class CountingRound(Round):
    """Adds up all gradients that became part of an update, instead of averaging them."""

    def __init__(self) -> None:
        super().__init__()
        self.total: Array = np.zeros(0)

    def apply(self, updater: Updater, scale: float = 1.0, total: Total | None = None) -> None:
        given = [np.asarray(gradients[0]) for gradients in self._gradients]
        super().apply(updater, scale, total)
        self.total = sum(given, self.total if len(self.total) else np.zeros_like(given[0]))


def servers(
    folder: Path, consistency: str = "async", *, tasks: int = 2, workers: int = 1, saves: Saves | None = None
) -> LocalServers:
    layout, structure = (
        make_layout(leaf_specs(PARAMS), tasks, FixedShardsPartitioner(tasks)),
        _tree.structure(PARAMS),
    )
    local = LocalServers(
        "params",
        layout,
        lambda index: OptaxUpdater(layout, index, structure, optax.sgd(1.0)),
        from_text(consistency, workers),
        log_dir=str(folder),
        saves=saves,
    )
    for host in local.hosts:
        host.updates.round = CountingRound()
    return local


def worker(local: LocalServers, number: int = 0, **settings: Any) -> ParameterServer:
    """Returns the client of a new worker."""
    ps = ParameterServer(PARAMS, optax.sgd(1.0), **settings)
    client = local.client(_tree.leaves(PARAMS), number)
    client.connect()
    client.pull()
    ps._client, ps.is_chief = client, number == 0
    ps._examples = Examples(client)
    return ps


def gradients(examples: Iterable[int]) -> dict[str, Any]:
    found = np.zeros((SIZE, 2), np.float32)
    found[list(examples)] = 1
    return {"counts": found}


def train(ps: ParameterServer, *, epochs: int = 1, **settings: Any) -> list[bool]:
    """Iterates over all batches; returns whether each gradient was accepted."""
    batches = ps.batches(np.arange(SIZE), batch_size=BATCH, epochs=epochs, **settings)
    taken = [ps.push(gradients(batch)) for batch in batches]
    ps.finish()
    return taken


def together(works: Sequence[Callable[[], object]]) -> None:
    """Runs all actions at the same time; raises the first error."""
    errors: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - it is raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def counts(local: LocalServers, index: int) -> list[int]:
    """Returns how often each example was applied on a ``ps``, for the examples with positions there."""
    adds_up = local.hosts[index].updates.round
    assert isinstance(adds_up, CountingRound)
    return [int(count) for count in adds_up.total[:, 0].tolist()]


def ledger_text(local: LocalServers) -> str:
    return local.hosts[0].group().examples


def stop(local: LocalServers, *workers: ParameterServer) -> None:
    for ps in workers:
        ps._client.close()
    local.stop()


def exact(folder: Path, epochs: int) -> Audit:
    """Audits a folder, which must have this number of epochs, each exact."""
    found = audit(str(folder))
    assert found.exact, found
    over = [epoch for run in found.runs.values() for epoch in run.epochs.values() if epoch.over]
    assert len(over) == epochs, found
    return found
