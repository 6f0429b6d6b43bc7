"""Backups of tables that stay on the ``ps`` in rows: bitwise equal, and filled while training continues."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
import pytest

from headwater.cluster.task import kinds
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.keras.parameter_server.model import serve_model, served_model
from headwater.ps.client import ParameterClient
from headwater.ps.consistency import from_text
from headwater.ps.replicas import shard
from headwater.ps.updater import Array
from tests.inproc.keras.test_parameter_server_strategy import Place, embedding
from tests.inproc.ps.replicated import TwoServers
from tests.support.cuts import Cuts

import keras  # isort: skip - the package before it chooses the backend

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy:DeprecationWarning")

ROWS, DIM = 50, 5
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: keras.optimizers.SGD(1.0),
    "adam": lambda: keras.optimizers.Adam(0.05),
    "nadam": lambda: keras.optimizers.Nadam(0.05),
    "rmsprop": lambda: keras.optimizers.RMSprop(0.05, momentum=0.9, centered=True),
}


class Tables(TwoServers):
    """Two servers with two replicas of each part of a model that has a table.

    Args:
      optimizer: the model's optimizer.
      exact: whether an update changes all rows.
      cuts: see `TwoServers`.
    """

    def __init__(self, optimizer: str, *, exact: bool = False, cuts: Cuts | None = None) -> None:
        model = embedding(OPTIMIZERS[optimizer])
        serve_model(model, cast(Any, Place(0, 1, from_text("async", 1), None, 0, exact, "ps")))
        served = served_model(model)
        assert served is not None
        served.servers = 2
        served._build_optimizer()
        layout, variables = served.layout(), served.variables
        (self.table,) = served.table_numbers()
        initial = [
            None if spec.table else np.asarray(variable.value)
            for spec, variable in zip(layout.variables, variables, strict=True)
        ]
        self.shapes = [variable.shape for variable in variables]
        super().__init__(layout, partial(served._updater, layout), initial, cuts=cuts)

    def push(self, client: ParameterClient, step: int) -> None:
        """Pushes random gradients of all variables and of some rows of the table."""
        random = np.random.default_rng(step)
        dense = [random.normal(size=shape).astype(np.float32) for shape in self.shapes[: self.table]]
        numbers = np.sort(random.choice(ROWS, random.integers(0, 12), replace=False))
        rows = random.normal(size=(len(numbers), DIM)).astype(np.float32)
        assert client.push([*dense, None], rows={self.table: (numbers, rows)})[1]

    def held(self, index: int, shard: int) -> list[Array]:
        """Returns the contents of a replica: values, the optimizer's state, and rows with their state."""
        updater = self.copies[index][shard]._updater
        (table,) = updater.tables
        found = [*updater.values(None), *updater.state().values(), *table.read(0, ROWS // 2, ())]
        return [np.array(array) for array in found]

    def taken_over(self) -> list[tuple[list[Array], list[Array]]]:
        """Returns for each shard the contents of its primary, and of the backup after its promotion; afterwards all
        shards are on one server.
        """
        self.paired()
        found: list[tuple[list[Array], list[Array]]] = []
        for number in (0, 1):
            self.paired()
            before = self.primary(number)
            had = self.held(before, number)
            self.kill(before)
            after = self.primary(number)
            assert after != before
            found.append((had, self.held(after, number)))
            self.start(before)
        self.paired()
        return found


def assert_alike(servers: Tables) -> None:
    for had, has in servers.taken_over():
        for one, other in zip(had, has, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_table_is_handed_over() -> None:
    servers = Tables("adam")
    client = servers.client()
    servers.paired()
    for step in range(12):
        servers.push(client, step)
        if step % 4 == 1:
            servers.hand_off(0)
    assert_alike(servers)
    client.close()
    servers.stop()


@pytest.mark.parametrize(
    ("optimizer", "exact"), [("sgd", False), ("adam", False), ("adam", True), ("nadam", False), ("rmsprop", False)]
)
def test_the_backup_has_the_same_bits(optimizer: str, exact: bool) -> None:
    servers = Tables(optimizer, exact=exact)
    client = servers.client()
    servers.paired()
    for step in range(12):
        servers.push(client, step)
    assert_alike(servers)
    client.pull()
    servers.push(client, 12)
    client.close()
    servers.stop()


@pytest.mark.parametrize("optimizer", ["adam", "nadam", "rmsprop"])
def test_a_copy_is_filled_up_while_rows_change(optimizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An update is made after each piece of the snapshot; all pieces have the state at the first one."""
    monkeypatch.setattr(shard, "ROWS_AT_ONCE", 4)
    cuts = Cuts()
    servers = Tables(optimizer, cuts=cuts)
    client = servers.client()
    servers.paired()
    for step in range(5):
        servers.push(client, step)
    servers.kill(1)
    servers.push(client, 5)
    send, pieces, one_at_a_time = cuts.pass_on, 0, threading.Lock()

    def pass_on(frame: Frame, channel: Channel) -> None:
        nonlocal pieces
        send(frame, channel)
        if frame.kind == kinds.ROWS and len(frame.header) == 2:
            with one_at_a_time:  # both parts are filled up
                pieces += 1
                servers.push(client, 100 + pieces)

    cuts.pass_on = pass_on
    servers.start(1)
    servers.paired()
    cuts.pass_on = send
    assert pieces >= 2 * (ROWS // 2 // 4)
    servers.push(client, 6)
    assert_alike(servers)
    client.close()
    servers.stop()


def test_rows_that_the_program_replaces_are_replaced_in_both() -> None:
    servers = Tables("adam")
    client = servers.client()
    servers.paired()
    servers.push(client, 0)
    rows = np.arange(ROWS * DIM, dtype=np.float32).reshape(ROWS, DIM)
    client.tables.set_initial(lambda _: [rows])
    client.assign([*client.values()[: servers.table], None])
    np.testing.assert_array_equal(client.tables.read(servers.table), rows)
    servers.push(client, 1)
    assert_alike(servers)
    client.close()
    servers.stop()


def test_a_cut_at_every_frame() -> None:
    """Each push counts once in the rows, at whichever frame the channel is cut, and whichever replica serves."""
    cuts = Cuts()
    servers = Tables("sgd", cuts=cuts)
    client = servers.client()
    numbers = np.array([0, ROWS // 2, ROWS - 1])
    before = client.tables.read(servers.table)
    dense = [np.zeros(shape, np.float32) for shape in servers.shapes[: servers.table]]
    pushed = 0
    for frame in range(12):
        for arrives in (False, True):
            servers.paired()
            cuts.plan(before=() if arrives else {frame}, after={frame} if arrives else ())
            for _ in range(3):
                row = -np.ones((len(numbers), DIM), np.float32)
                assert client.push([*dense, None], rows={servers.table: (numbers, row)})[1]
                pushed += 1
            cuts.plan()
    servers.paired()
    expected = before.copy()
    expected[numbers] += pushed
    np.testing.assert_allclose(client.tables.read(servers.table), expected, rtol=1e-5)
    servers.taken_over()
    np.testing.assert_allclose(client.tables.read(servers.table), expected, rtol=1e-5)
    client.close()
    servers.stop()
