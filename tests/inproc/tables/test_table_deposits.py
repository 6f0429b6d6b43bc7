"""A parameter server that shuts down deposits its embedding tables with the chief, and continues with them later."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.cluster.task.deposited_states import DepositedStates, StateAtChief
from headwater.ps.protocol import TABLES
from headwater.ps.tables import deposits
from headwater.ps.tables.client import TableClient
from headwater.ps.tables.cluster import LocalTables
from headwater.ps.tables.deposits import TableDeposit
from headwater.ps.tables.host import TableService
from headwater.ps.tables.rounds import Round
from headwater.tables import Adagrad, LeastRecent, Table, TableConfig
from headwater.tables.optimizers import Adam
from tests.support.deposits import CHIEF, Link

USERS = TableConfig(dim=4, optimizer=Adagrad(0.5), seed=3)
ITEMS = TableConfig(dim=2, optimizer=Adam(0.1, exact=True), strings=True)
IDS = np.arange(200)


class Servers(LocalTables):
    """Two servers that deposit their tables with a chief. Incarnations of each are numbered from 1."""

    def __init__(self) -> None:
        self.chief = DepositedStates()
        self.incarnations = [0, 0]
        super().__init__(2)

    def kept(self, index: int) -> StateAtChief:
        return StateAtChief(TABLES, index, CHIEF, Link(self.chief, incarnation=self.incarnations[index]))

    def _service(self, index: int) -> TableService:
        made = super()._service(index)
        self.incarnations[index] += 1
        made.deposit = TableDeposit(made, f"/job:ps/task:{index}", self.kept(index))
        return made


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    monkeypatch.setattr(deposits, "PART_BYTES", 1000)  # many parts
    found = Servers()
    yield found
    found.stop()


def client_of(servers: LocalTables, worker: int = 0, users: TableConfig = USERS) -> TableClient:
    client = servers.client(worker)
    client.open("users", users)
    client.open("items", ITEMS)
    return client


def update(client: TableClient, ids: Any = IDS) -> None:
    client.update(
        {"users": ids, "items": [str(one) for one in ids]},
        {"users": np.ones((len(ids), 4)), "items": np.ones((len(ids), 2))},
    )


def rows(client: TableClient, ids: Any = IDS) -> list[list[Any]]:
    found = client.look_up({"users": ids, "items": [str(one) for one in ids]}, training=False)
    return [found["users"].tolist(), found["items"].tolist()]


def test_each_ps_continues_with_its_own_tables(servers: Servers, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "headwater")
    undisturbed = LocalTables(2)
    for index in range(2):
        both = [client_of(tables, worker) for worker, tables in enumerate((servers, undisturbed))]
        for client in both:
            update(client)
            update(client, IDS[::3])
        servers.services[index].before_end()
        servers.restart(index)
        for client in both:
            update(client)
        assert rows(both[0]) == rows(both[1])
        assert (
            f"/job:ps/task:{index} continues with its table 'users', which was deposited with {CHIEF}: " in caplog.text
        )
        assert servers.kept(index).fetch() is None
        assert [load.lost_updates for load in servers.services[index].loads()] == [0, 0]
    undisturbed.stop()


def test_an_update_waits_for_the_next_incarnation_and_is_applied_once(servers: Servers) -> None:
    first, second = client_of(servers, 0), client_of(servers, 1)
    update(first)
    step = first.statistics("users")["/job:ps/task:1"].step
    servers.services[1].before_end()
    waits = threading.Thread(target=update, args=[second])
    waits.start()
    servers.restart(1)
    waits.join()
    assert first.statistics("users")["/job:ps/task:1"].step == step + 1


def test_a_table_with_a_changed_configuration_starts_empty(servers: Servers, caplog: pytest.LogCaptureFixture) -> None:
    client = client_of(servers)
    update(client)
    servers.services[1].before_end()
    servers.restart(1)
    client.close()
    other = servers.client(1)
    for index in range(2):
        servers.services[index].make("users", replace(USERS, seed=4) if index else USERS)
    other.open("items", ITEMS)
    assert "/job:ps/task:1 discards deposited table 'users': its configuration has changed" in caplog.text
    assert other.statistics("items")["/job:ps/task:1"].rows > 0


@pytest.mark.parametrize("lost", [range(3), range(9, 12)])
def test_a_chief_that_is_lost_while_it_gives_or_is_asked_has_none(lost: range, servers: Servers) -> None:
    """The next incarnation begins without rows, and no later one gets the earlier rows."""
    client = client_of(servers)
    update(client)
    service = servers.services[1]
    service.before_end()
    kept = StateAtChief(TABLES, 1, CHIEF, Link(servers.chief, *lost, incarnation=7))
    after = TableService("/job:ps/task:1", 1, 2)
    left = TableDeposit(after, "/job:ps/task:1", kept)
    assert not left.restore(Table("users", USERS))
    servers.chief.discard_outdated(TABLES, 1, 7)
    assert servers.kept(1).fetch() is None


def test_rows_beyond_memory_and_rows_that_leave(tmp_path: Path, servers: Servers) -> None:
    config = replace(USERS, memory_rows=8, folder=str(tmp_path), shards=2)
    few = replace(USERS, max_rows=20, eviction=LeastRecent())
    client = servers.client()
    client.open("many", config)
    client.open("few", few)
    for name, count in (("many", 200), ("few", 30)):
        client.update({name: IDS[:count]}, {name: np.ones((count, 4))})
    before = client.look_up({"many": IDS, "few": IDS}, training=False)
    for index in range(2):
        servers.services[index].before_end()
        servers.restart(index)
    after = client.look_up({"many": IDS, "few": IDS}, training=False)
    for name, found in before.items():
        np.testing.assert_array_equal(after[name], found)


def test_a_task_without_tables_leaves_nothing(servers: Servers) -> None:
    servers.services[0].before_end()
    assert servers.kept(0).fetch() is None


def test_a_round_that_is_not_over_continues(servers: Servers) -> None:
    undisturbed = LocalTables(2)
    now = Round(1, 0)
    both = [[client_of(tables, worker) for worker in range(2)] for tables in (servers, undisturbed)]
    for pair in both:
        for rank, client in enumerate(pair):
            client.gather(lambda: now, rank)
        update(pair[0])
    servers.services[0].before_end()
    servers.restart(0)
    for pair in both:
        update(pair[1], IDS[::3])
    now = Round(1, 1)
    assert rows(both[0][0]) == rows(both[1][0])
    undisturbed.stop()
