"""Embedding tables on servers within this process: what a worker reads, changes and saves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optax
import pytest

from headwater import ParameterServer
from headwater.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
)
from headwater.parameters.table_cluster import LocalTables
from headwater.parameters.table_protocol import pack, unpack
from headwater.tables import (
    FTRL,
    SGD,
    Adagrad,
    Adam,
    Admission,
    Age,
    GeneralOptimizer,
    LeastFrequent,
    LeastRecent,
    Momentum,
    RMSProp,
    Table,
    TableConfig,
)
from headwater.tables.hashing import owners
from headwater.tables.snapshots import saves

USERS = TableConfig(dim=4, optimizer=Adagrad(0.5), seed=3)
ITEMS = TableConfig(dim=2, optimizer=SGD(1.0), strings=True)


@pytest.fixture
def servers() -> Iterator[LocalTables]:
    tables = LocalTables(2)
    yield tables
    tables.stop()


def test_rows_on_two_servers_are_those_of_one_table(servers: LocalTables) -> None:
    client = servers.client()
    client.open("users", USERS)
    alone = Table("users", USERS)
    rng = np.random.default_rng(0)
    for _ in range(5):
        ids = rng.integers(-(2**62), 2**62, 40).reshape(8, 5)
        ids[0] = 7
        gradients = rng.normal(size=(8, 5, 4)).astype(np.float32)
        assert np.array_equal(client.look_up({"users": ids})["users"], alone.look_up(ids.reshape(-1)).reshape(8, 5, 4))
        client.update({"users": ids}, {"users": gradients})
        alone.update(ids.reshape(-1), gradients.reshape(-1, 4))
        assert np.array_equal(client.look_up({"users": ids})["users"].reshape(-1, 4), alone.look_up(ids.reshape(-1)))
    rows = {task: told.rows for task, told in client.statistics("users").items()}
    assert sum(rows.values()) == len(alone)
    assert min(rows.values()) > 0
    assert client.hottest("users", 1)[0][0] == 7


def test_several_tables_travel_together(servers: LocalTables) -> None:
    client = servers.client()
    client.open("users", USERS)
    client.open("items", ITEMS)
    ids: dict[str, Any] = {"users": [1, 2], "items": np.array([["a", "b"], ["a", "c"]])}
    rows = client.look_up(ids)
    assert rows["users"].shape == (2, 4)
    assert rows["items"].shape == (2, 2, 2)
    assert np.array_equal(rows["items"][0, 0], rows["items"][1, 0])
    client.update(ids, {"users": np.ones((2, 4)), "items": np.ones((2, 2, 2))})
    after = client.look_up(ids)["items"]
    np.testing.assert_allclose(after[0, 0], rows["items"][0, 0] - 2, rtol=1e-6)
    np.testing.assert_allclose(after[0, 1], rows["items"][0, 1] - 1, rtol=1e-6)


def test_a_key_goes_once_and_to_its_own_server_only(servers: LocalTables, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, np.ndarray]] = []
    look_up = Table.look_up

    def noting(self: Table, ids: Any, *, training: bool = True) -> Any:
        asked.append((int(self.task[-1]), ids.words))
        return look_up(self, ids, training=training)

    monkeypatch.setattr(Table, "look_up", noting)
    client = servers.client()
    client.open("users", USERS)
    client.look_up({"users": np.repeat(np.arange(50), 3)})
    assert sorted(np.concatenate([words for _, words in asked]).tolist()) == list(range(50))
    for task, words in asked:
        assert (owners(words, 2) == task).all()


def test_two_workers_share_a_table(servers: LocalTables) -> None:
    clients = [servers.client(0), servers.client(1)]
    failed: list[BaseException] = []

    def work(client: Any) -> None:
        try:
            client.open("users", TableConfig(dim=4, optimizer=SGD(1.0)))
            for _ in range(50):
                client.update({"users": np.arange(20)}, {"users": np.full((20, 4), -1.0)})
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=work, args=(client,)) for client in clients]
    before = Table("t", TableConfig(dim=4)).look_up(np.arange(20))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    np.testing.assert_allclose(clients[0].look_up({"users": np.arange(20)})["users"], before + 100, rtol=1e-5)


def test_an_update_whose_answer_is_lost_is_not_applied_twice(
    servers: LocalTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = servers.client()
    client.open("users", TableConfig(dim=4, optimizer=SGD(1.0)))
    before = client.look_up({"users": [5]})["users"]
    task = int(owners(np.array([5]), 2)[0])
    apply = Table.apply

    def applied_and_cut_off(self: Table, *arguments: Any) -> None:
        apply(self, *arguments)
        if int(self.task[-1]) == task:
            monkeypatch.setattr(Table, "apply", apply)
            servers.disconnect(task)

    monkeypatch.setattr(Table, "apply", applied_and_cut_off)
    client.update({"users": [5]}, {"users": np.ones((1, 4))})
    np.testing.assert_allclose(client.look_up({"users": [5]})["users"], before - 1, rtol=1e-6)


def test_a_server_that_is_started_anew_takes_its_rows_of_the_last_save(servers: LocalTables, tmp_path: Path) -> None:
    client = servers.client()
    client.open("users", USERS, str(tmp_path))
    ids = np.arange(100)
    client.update({"users": ids}, {"users": np.ones((100, 4))})
    made = client.save("users", tmp_path)
    assert sum(part.rows for part in made.parts) == 100
    saved = client.look_up({"users": ids})["users"]
    servers.restart(0)
    servers.restart(1)
    assert np.array_equal(client.look_up({"users": ids})["users"], saved)


def test_a_delta_changes_the_last_save_of_its_folder(servers: LocalTables, tmp_path: Path) -> None:
    client = servers.client()
    client.open("users", USERS)
    ids = {"users": np.arange(10)}
    for folder in ("first", "second"):
        client.update(ids, {"users": np.ones((10, 4))})
        client.save("users", tmp_path / folder)
    with pytest.raises(FailedPreconditionError, match=r"save all of it into .*first"):
        client.save("users", tmp_path / "first", delta=True)


def test_saves_that_follow_each_other_are_deltas_while_these_are_small(servers: LocalTables, tmp_path: Path) -> None:
    client = servers.client()
    client.open("users", USERS, str(tmp_path))
    ids = np.arange(1000)
    some = ids[:250]
    client.update({"users": ids}, {"users": np.ones((1000, 4))})
    rows: list[int] = []
    for _ in range(9):
        client.update({"users": some}, {"users": np.ones((250, 4))})
        rows.append(sum(part.rows for part in client.save_again("users", tmp_path).parts))
    assert rows == [1000, 250, 250] * 3
    kept = saves(tmp_path, "users")
    assert [one.number for one in kept] == [4, 5, 6, 7, 8, 9]  # two whole ones, each with its deltas
    named = {part.file for one in kept for part in one.parts}
    assert {path.name for path in tmp_path.iterdir() if path.suffix == ".rows"} == named
    saved = client.look_up({"users": ids})["users"]
    servers.restart(0)
    servers.restart(1)
    assert np.array_equal(client.look_up({"users": ids})["users"], saved)
    servers.restart(1)
    assert client.save_again("users", tmp_path).base is None  # a server has no save that a delta could change


def test_what_travels_is_counted(servers: LocalTables) -> None:
    client = servers.client()
    client.open("users", USERS)
    before = client.traffic()
    client.look_up({"users": [1, 2, 2, 3]})
    after = client.traffic()
    assert after.round_trips == before.round_trips + 1
    assert after.rows == before.rows + 3
    assert after.received_bytes == before.received_bytes + 3 * 4 * 4
    assert 3 <= after.sent_bytes - before.sent_bytes <= 3 * 8


def test_deltas_and_another_number_of_servers(servers: LocalTables, tmp_path: Path) -> None:
    client = servers.client()
    client.open("users", USERS)
    with pytest.raises(FailedPreconditionError, match="save all of it"):
        client.save("users", tmp_path, delta=True)
    client.update({"users": np.arange(100)}, {"users": np.ones((100, 4))})
    client.save("users", tmp_path)
    client.update({"users": [1, 2]}, {"users": np.ones((2, 4))})
    assert sum(part.rows for part in client.save("users", tmp_path, delta=True).parts) == 2
    three = LocalTables(3)
    other = three.client()
    other.open("users", USERS, str(tmp_path))
    assert sum(told.rows for told in other.statistics("users").values()) == 100
    ids = {"users": np.arange(100)}
    assert np.array_equal(other.look_up(ids)["users"], client.look_up(ids)["users"])
    three.stop()


def test_a_learning_rate_reaches_the_servers(servers: LocalTables) -> None:
    client = servers.client()
    client.open("users", TableConfig(dim=4, optimizer=SGD(1.0)))
    before = client.look_up({"users": [1]})["users"]
    client.set_rate("users", 0.25)
    client.update({"users": [1]}, {"users": np.ones((1, 4))})
    np.testing.assert_allclose(client.look_up({"users": [1]})["users"], before - 0.25, rtol=1e-6)


def test_another_table_of_the_same_name(servers: LocalTables) -> None:
    servers.client().open("users", USERS)
    with pytest.raises(FailedPreconditionError, match="table 'users' on /job:ps/task:0 is another one"):
        servers.client(1).open("users", TableConfig(dim=8))


def test_a_save_of_another_dimension(servers: LocalTables, tmp_path: Path) -> None:
    client = servers.client()
    client.open("users", USERS)
    client.save("users", tmp_path)
    other = LocalTables(1)
    with pytest.raises(InvalidArgumentError, match="table 'users' on /job:ps/task:0 has dim 9"):
        other.client().open("users", TableConfig(dim=9, optimizer=Adagrad(0.5)), str(tmp_path))
    other.stop()


def test_errors_name_table_task_and_key_and_leave_the_conversation_usable(servers: LocalTables) -> None:
    client = servers.client()
    client.open("users", TableConfig(dim=4, max_rows=10))
    with pytest.raises(ResourceExhaustedError, match=r"table 'users' on /job:ps/task:\d is full: .* key \d+ "):
        client.look_up({"users": np.arange(1000)})
    bad = np.ones((2, 4))
    bad[1, 1] = np.nan
    with pytest.raises(InvalidArgumentError, match="'users', /job:worker/task:0: the gradient of key 2 is not finite"):
        client.update({"users": [1, 2]}, {"users": bad})
    with pytest.raises(InvalidArgumentError, match="'users', /job:worker/task:0: ids must be whole numbers"):
        client.look_up({"users": [0.5]})
    with pytest.raises(InvalidArgumentError, match="gradients have shape"):
        client.update({"users": [1, 2]}, {"users": np.ones((2, 3))})
    with pytest.raises(NotFoundError, match="no table 'products'"):
        client.look_up({"products": [1]})
    assert client.look_up({"users": [1]}, training=False)["users"].shape == (1, 4)


@pytest.mark.parametrize(
    "config",
    [
        TableConfig(dim=4, optimizer=optimizer, eviction=eviction, admission=admission)
        for optimizer, eviction, admission in (
            (SGD(), None, Admission()),
            (Momentum(nesterov=True), LeastRecent(), Admission(sightings=3)),
            (Adagrad(), LeastFrequent(), Admission(probability=0.5)),
            (RMSProp(), Age(5), Admission()),
            (RMSProp(momentum=0.5, exact=True), None, Admission()),
            (Adam(exact=True), None, Admission()),
            (FTRL(), None, Admission()),
        )
    ],
)
def test_what_a_table_is_travels(config: TableConfig) -> None:
    assert unpack(pack(config)) == config


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("dim", 0),
        ("dim", "4"),
        ("dim", 4.5),
        ("eviction", ("random", 1)),
        ("optimizer", {**pack(USERS)["optimizer"], "kind": 99}),
        ("optimizer", {**pack(USERS)["optimizer"], "slots": ()}),
        ("optimizer", {**pack(USERS)["optimizer"], "hyper": (float("nan"),)}),
        ("optimizer", {"kind": 3, "slots": (0.0,), "learning_rate": 1.0, "hyper": (0.9, 0.5, 0.0), "exact": False}),
        ("initializer", {"kind": "magic"}),
        ("admission", None),
    ],
)
def test_what_no_table_can_be_is_refused_where_it_arrives(field: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be made"):
        unpack({**pack(USERS), field: value})


def test_a_function_cannot_travel() -> None:
    with pytest.raises(ValueError, match="cannot travel"):
        pack(TableConfig(dim=4, optimizer=GeneralOptimizer(apply=lambda rows, *_: (rows, []))))


def test_a_jax_program_without_a_cluster() -> None:
    server = ParameterServer({"bias": np.zeros(1, np.float32)}, optax.sgd(0.1))
    users = server.table("users", dim=4, optimizer=SGD(1.0))
    items = server.table("items", dim=2, strings=True)
    rows = users.lookup([[3, 4], [3, 5]])
    assert rows.shape == (2, 2, 4)
    users.push([[3, 4], [3, 5]], np.ones((2, 2, 4)))
    np.testing.assert_allclose(users.lookup([3, 4]), rows[0] - [[2.0], [1.0]], rtol=1e-6)
    both = server.lookup({"users": [3], "items": ["a"]})
    server.push_rows({"users": [3], "items": ["a"]}, {name: np.ones_like(found) for name, found in both.items()})
    assert (len(users), len(items)) == (3, 1)
    assert users.hottest(1)[0][0] == 3
