"""A shard with one replica moves to another ``ps`` by a change of views."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import optax
import pytest

from headwater.cluster.transport.channel import memory_pair
from headwater.ps.consistency import Contributed, Joined, from_text
from headwater.ps.replicas import shard as shards
from headwater.ps.worker_connections import Request
from tests.inproc.ps.replicated import Replicated, ones

PARAMS = {"a": np.zeros((2, 3), np.float32), "b": np.zeros((2, 2), np.float32)}
LOOKS = threading.Event()


def move(servers: Replicated, shard: int, to: int) -> None:
    """Moves a shard, and waits until the other server has dropped it."""
    servers.copies[1 - to][shard].request_placement(to, None)
    while not (servers.copies[to][shard].has_desired_placement and servers.copies[1 - to][shard].is_spare):
        LOOKS.wait(0.01)


def test_a_shard_moves_with_the_optimizers_state_and_is_dropped_by_its_previous_ps() -> None:
    servers = Replicated(PARAMS, optax.sgd(1.0, momentum=0.5), replicas=1)
    client = servers.client()
    client.push(ones(PARAMS))
    move(servers, 0, to=1)
    moved = servers.copies[1][0]
    update = moved._updater.inner._update._run
    assert update._cache_size() == 1  # no worker waits for the compilation
    assert (moved.view.backup, moved.lacks_backup, moved.load().backup) == (None, False, None)
    client.push(ones(PARAMS))
    assert update._cache_size() == 1
    move(servers, 0, to=0)
    client.push(ones(PARAMS))
    client.pull()
    # Momentum: 1, then 1.5, then 1.75.
    for leaf in client.values():
        assert np.all(np.asarray(leaf) == 4.25)
    servers.stop()


def test_a_shard_stays_while_the_receiver_cannot_be_reached() -> None:
    servers = Replicated(PARAMS, optax.sgd(1.0), replicas=1)
    client = servers.client()
    move(servers, 1, to=0)
    servers.kill(1)
    servers.copies[0][0].request_placement(1, None)
    client.push(ones(PARAMS))
    assert servers.primary(0) == 0
    assert servers.copies[0][0].view.backup is None
    servers.start(1)
    while not servers.copies[1][0].has_desired_placement:
        LOOKS.wait(0.01)
    client.push(ones(PARAMS))
    client.pull()
    for leaf in client.values():
        assert np.all(np.asarray(leaf) == 2)
    servers.stop()


def test_a_shard_does_not_move_while_a_gradient_would_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """With k of n gradients a worker may continue before the update, and would not push its gradient again."""
    monkeypatch.setattr(shards, "ROUND_S", 0.0)
    servers = Replicated(PARAMS, optax.sgd(1.0), replicas=1, choice=from_text("k=2", 2))
    servers.primary(0)
    copy: Any = servers.copies[0][0]
    host, worker = copy._host, "/job:worker/task:0"
    with host.lock:
        host.workers.connect_worker(worker, memory_pair((worker, host.name))[0], 1, 0)
        host.updates.event(Joined(worker))
        host.updates.latest[worker] = Request(number=5, version=0, applied=True)
        host.updates.event(Contributed(worker, 0))
    waits = host.updates.connections.pop(worker)
    assert not copy._end_rounds()
    host.updates.connections[worker] = waits
    assert copy._end_rounds()
    assert host.waiting.frozen_until == "another ps to serve shard 0 of 'params'"
    servers.stop()
