"""A gradient that a parameter server has accepted is applied once, at whichever frame the connection is cut."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.cluster.transport.channel import Channel
from headwater.ps.client import ParameterClient
from headwater.ps.local_servers import LocalServers
from headwater.ps.rounds import Round, Total
from headwater.ps.updater import Updater
from tests.inproc.keras.test_parameter_server import LEAVES, alone, close, connected, gradients, servers
from tests.support.cuts import Cuts

STEPS = 5


def cut(local: LocalServers, cuts: Cuts) -> None:
    """Cuts the connections to the servers at the places in ``cuts``."""
    open_channel = local._open_pair

    def open_pair(index: int) -> tuple[Channel, Channel]:
        return cuts.between(*open_channel(index))

    local._open_pair = open_pair


class _Noted(Round):
    """Records the number of each gradient that becomes part of an update."""

    def __init__(self, applied: Counter[int]) -> None:
        super().__init__()
        self._applied = applied

    def apply(self, updater: Updater, scale: float = 1.0, total: Total | None = None) -> None:
        self._applied.update(int(given[0].flat[0]) for given in self._gradients)
        super().apply(updater, scale, total)


def noted(local: LocalServers) -> list[Counter[int]]:
    """Returns for every server how often it has applied the gradient of each number."""
    found: list[Counter[int]] = []
    for host in local.hosts:
        found.append(Counter())
        host.updates.round = _Noted(found[-1])
    return found


def numbered(number: int) -> list[Any]:
    return [np.full(np.shape(leaf), number, np.float32) for leaf in LEAVES]


def _count() -> int:
    cuts = Cuts()
    local = servers(optax.adam(0.1))
    cut(local, cuts)
    client = connected(local)
    cuts.plan()
    client.push(gradients(0))
    client.close()
    local.stop()
    return cuts.frames


def test_a_push_takes_two_frames_for_each_server() -> None:
    assert _count() == 4


@pytest.mark.parametrize("arrives", [False, True])
@pytest.mark.parametrize("frame", range(12))
def test_a_cut_at_every_frame(frame: int, arrives: bool) -> None:
    cuts = Cuts()
    local = servers(optax.adam(0.1))
    cut(local, cuts)
    client = connected(local)
    cuts.plan(before=() if arrives else {frame}, after={frame} if arrives else ())
    acknowledged = [client.push(gradients(step))[1] for step in range(STEPS)]
    assert cuts.made == 1
    cuts.plan()
    client.pull()
    assert acknowledged == [True] * STEPS
    assert [host.version for host in local.hosts] == [STEPS, STEPS]
    close(client.values(), alone(optax.adam(0.1), [gradients(step) for step in range(STEPS)]))
    client.close()
    local.stop()


@pytest.mark.parametrize("consistency", ["async", "sync", "k=1", "staleness=1"])
@settings(max_examples=12, deadline=None)
@given(st.sets(st.integers(0, 60), max_size=12), st.sets(st.integers(0, 60), max_size=12))
def test_two_workers_and_cuts_anywhere(consistency: str, before: set[int], after: set[int]) -> None:
    cuts = Cuts()
    local = servers(optax.sgd(0.1), consistency, workers=2)
    applied = noted(local)
    cut(local, cuts)
    clients = [connected(local, 0), connected(local, 1)]
    cuts.plan(before=before, after=after)
    acknowledged: list[set[int]] = [set(), set()]

    def train(worker: int, client: ParameterClient) -> None:
        for step in range(STEPS):
            number = 100 * worker + step + 1
            if client.push(numbered(number))[1]:
                acknowledged[worker].add(number)
        client.finish(0)

    threads = [threading.Thread(target=train, args=(worker, client)) for worker, client in enumerate(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients:
        client.close()
    local.stop()
    for counts in applied:
        assert all(counts[number] == 1 for number in acknowledged[0] | acknowledged[1])
        assert set(counts.values()) <= {1}


def test_a_step_is_handed_out_once() -> None:
    """If the answer with a step number was lost, a repeated request gets the same number."""
    cuts = Cuts()
    local = servers(optax.sgd(0.1))
    cut(local, cuts)
    client = connected(local)
    cuts.plan(before=range(1, 60, 5))
    tickets = [client.next_step((0, 0, 6, -1))]
    while tickets[-1] >= 0:
        tickets.append(client.push(gradients(0), step_request=(0, 0, 6, -1))[0])
    assert tickets == [0, 1, 2, 3, 4, 5, -1]
    assert cuts.made
    client.close()
    local.stop()
