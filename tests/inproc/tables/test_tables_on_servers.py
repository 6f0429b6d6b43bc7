"""Embedding tables on servers within this process: reads, changes and saves of a worker."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
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
from headwater.ps.row_table import RowTable
from headwater.ps.tables.cluster import LocalTables
from headwater.ps.tables.protocol import arrived_keys, pack, smallest, unpack
from headwater.ps.tables.requests import decode_bags
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
    together,
)
from headwater.tables.flat import pack_keys
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


def test_one_frame_has_tables_of_every_kind() -> None:
    servers = LocalTables(3)
    client = servers.client()
    configs = {
        "users": TableConfig(dim=4, optimizer=Adagrad(0.5), seed=3),
        "none": TableConfig(dim=5),
        "items": TableConfig(dim=2, optimizer=SGD(1.0), strings=True, shards=3),
        "shops": TableConfig(dim=19, optimizer=Adam(0.1), seed=5, shards=40),
    }
    alone = {name: Table(name, config) for name, config in configs.items()}
    for name, config in configs.items():
        client.open(name, config)
    rng = np.random.default_rng(0)
    words = np.array([f"item {number}" for number in range(40)])
    for _ in range(4):
        ids = {
            "users": rng.integers(-5, 40, (6, 5)),
            "none": np.empty((0, 3), np.int32),
            "items": rng.choice(words, 30),
            "shops": rng.integers(-(2**62), 2**62, 50) % 70,
        }
        rows = client.look_up(ids)
        gradients = {name: rng.normal(size=found.shape).astype(np.float32) for name, found in rows.items()}
        client.update(ids, gradients)
        for name, table in alone.items():
            dim, wanted = configs[name].dim, ids[name].reshape(-1)
            assert rows[name].shape == (*ids[name].shape, dim)
            assert np.array_equal(rows[name].reshape(-1, dim), table.look_up(wanted))
            table.update(wanted, gradients[name].reshape(-1, dim))
    with pytest.raises(InvalidArgumentError, match=r"'shops', .*the gradient of key 7 is not finite"):
        client.update(
            {"users": [1], "shops": [3, 7, 7]},
            {"users": np.ones((1, 4)), "shops": np.array([[0.0] * 19, [np.inf] * 19, [0.0] * 19])},
        )
    assert client.look_up({}) == {}
    servers.stop()


def test_a_key_is_sent_once_and_only_to_its_own_server(servers: LocalTables, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, np.ndarray]] = []
    look_up = together.look_up

    def noting(tables: Sequence[Table], words: Any, *arguments: Any, training: bool) -> Any:
        asked.append((int(tables[0].task[-1]), words))
        return look_up(tables, words, *arguments, training=training)

    monkeypatch.setattr(together, "look_up", noting)
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


def test_an_update_is_not_applied_twice_after_a_lost_answer(
    servers: LocalTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = servers.client()
    client.open("users", TableConfig(dim=4, optimizer=SGD(1.0)))
    before = client.look_up({"users": [5]})["users"]
    task = int(owners(np.array([5]), 2)[0])
    apply = together.apply

    def applied_and_cut_off(tables: Sequence[Table], *arguments: Any) -> None:
        apply(tables, *arguments)
        if int(tables[0].task[-1]) == task:
            monkeypatch.setattr(together, "apply", apply)
            servers.disconnect(task)

    monkeypatch.setattr(together, "apply", applied_and_cut_off)
    client.update({"users": [5]}, {"users": np.ones((1, 4))})
    np.testing.assert_allclose(client.look_up({"users": [5]})["users"], before - 1, rtol=1e-6)


def test_a_restarted_server_reads_its_rows_of_the_last_save(servers: LocalTables, tmp_path: Path) -> None:
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
    assert [one.number for one in kept] == [4, 5, 6, 7, 8, 9]  # two full saves, each with its deltas
    named = {part.file for one in kept for part in one.parts}
    assert {path.name for path in tmp_path.iterdir() if path.suffix == ".rows"} == named
    saved = client.look_up({"users": ids})["users"]
    servers.restart(0)
    servers.restart(1)
    assert np.array_equal(client.look_up({"users": ids})["users"], saved)
    servers.restart(1)
    assert client.save_again("users", tmp_path).base is None  # a server has no save that a delta could extend


def test_transferred_bytes_are_counted(servers: LocalTables) -> None:
    client = servers.client()
    client.open("users", USERS)
    before = client.traffic()
    client.look_up({"users": [1, 2, 2, 3]})
    after = client.traffic()
    assert after.round_trips == before.round_trips + 1
    assert after.rows == before.rows + 3
    assert after.received_bytes == before.received_bytes + 3 * 4 * 4
    assert after.sent_bytes - before.sent_bytes == 16  # a byte for each key, in whole words for each ps


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        ([], "uint8"),
        ([0, 255], "uint8"),
        ([256], "uint16"),
        ([65_536], "int32"),
        ([-1], "int32"),
        ([-(2**31), 2**31 - 1], "int32"),
        ([2**31], "int64"),
        ([-(2**31) - 1], "int64"),
    ],
)
def test_keys_travel_in_as_few_bytes_as_they_fit_into(numbers: list[int], kind: str) -> None:
    keys = np.array([*numbers, 1000, -1], np.int64)
    bounds = np.array([[0, 0, len(numbers)], [len(numbers)] * 2 + [len(keys)]])
    packed, sizes = pack_keys(keys, bounds, 1)
    assert sizes.tolist() == [np.dtype(kind).itemsize, 4]
    counts = [len(numbers), 2]
    assert packed.nbytes == sum(-(-count * size // 8) * 8 for count, size in zip(counts, sizes.tolist(), strict=True))
    assert np.array_equal(arrived_keys(packed, counts, sizes.tolist(), 2), keys)
    assert smallest(keys[: len(numbers)]).dtype == kind


@pytest.mark.parametrize(
    ("counts", "sizes"),
    [([3], [8]), ([1], [8]), ([-1], [8]), ([2], [3]), ([2, 0], [8]), ([1 << 61], [8]), (["2"], [8]), ([2], ["8"])],
)
def test_keys_that_cannot_be_are_refused_where_they_arrive(counts: list[Any], sizes: list[Any]) -> None:
    packed = np.array([1, 2], np.int64)
    assert arrived_keys(packed, [2], [8], 1).tolist() == [1, 2]
    with pytest.raises(InvalidArgumentError, match="is inconsistent"):
        arrived_keys(packed, counts, sizes, 1)
    with pytest.raises(InvalidArgumentError, match="is inconsistent"):
        arrived_keys(packed.astype(np.float32), [2], [8], 1)


def bags_of(rng: np.random.Generator, keys: int, bags: int) -> tuple[Any, Any]:
    """Returns ids in bags, some of which are empty."""
    sizes = rng.integers(0, 30, bags)
    sizes[3] = 0
    return rng.integers(0, keys, int(sizes.sum())) * (1 << 40) - 5, np.concatenate([[0], np.cumsum(sizes)])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("keys", [30, 1_000_000])
def test_bags_are_pooled_wherever_it_is_less_to_send(
    servers: LocalTables, keys: int, combiner: str, weighted: bool
) -> None:
    config = TableConfig(dim=16, optimizer=Adagrad(0.5), seed=3)
    client, alone = servers.client(), Table("users", config)
    client.open("users", config)
    users = RowTable("users", config, lambda: client)
    rng = np.random.default_rng(0)
    for _ in range(4):
        ids, offsets = bags_of(rng, keys, 50)
        weights = rng.uniform(0.5, 2.0, len(ids)).astype(np.float32) if weighted else None
        expected = alone.pool(ids, offsets, combiner=combiner, weights=weights)
        before = client.traffic()
        found = users.pool(ids, offsets, combiner=combiner, weights=weights)
        moved = client.traffic()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        assert not found[3].any()
        gradients = rng.normal(size=found.shape).astype(np.float32)
        users.push_pooled(ids, offsets, gradients, combiner=combiner, weights=weights)
        alone.update_pooled(ids, offsets, gradients, combiner=combiner, weights=weights)
        distinct = np.unique(ids)
        if keys > 1000:  # sums from two servers, instead of rows
            assert moved.rows - before.rows < 100 < len(distinct)
            assert client.traffic().sent_bytes - before.sent_bytes < 30 * len(distinct) + 50 * 16 * 4 * 2
        else:  # there are more bags than rows
            assert moved.rows - before.rows == len(distinct)
    np.testing.assert_allclose(users.lookup(distinct), alone.look_up(distinct), rtol=1e-4, atol=1e-5)


def test_pooled_strings_and_rows_travel_together(servers: LocalTables) -> None:
    client = servers.client()
    client.open("users", USERS)
    client.open("items", ITEMS)
    names = np.array([f"item {n}" for n in range(60)])
    users, items = client.divide("users", [1, 2, 2]), client.bags("items", names, [0, 20, 60], "mean")
    rows = client.pool({"users": users, "items": items})
    every = client.look_up({"items": names})["items"]
    np.testing.assert_allclose(rows["items"], [every[:20].mean(0), every[20:].mean(0)], rtol=1e-5, atol=1e-7)
    assert rows["users"].shape == (2, 4)
    ones = {"users": np.ones((2, 4), np.float32), "items": np.ones((2, 2), np.float32)}
    client.push({"users": users, "items": items}, ones)
    after = client.look_up({"items": names})["items"]
    np.testing.assert_allclose(after, every - np.repeat([[1 / 20], [1 / 40]], [20, 40], axis=0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"offsets": [0, 2]}, "offsets"),
        ({"offsets": [0, 2, 1, 3]}, "offsets"),
        ({"offsets": [1, 3]}, "offsets"),
        ({"combiner": "max"}, "combiner"),
        ({"weights": [1.0, 2.0]}, "weights"),
        ({"weights": [1.0, np.nan, 1.0]}, "weight"),
    ],
)
def test_bags_that_do_not_fit(servers: LocalTables, arguments: dict[str, Any], named: str) -> None:
    client = servers.client()
    client.open("users", USERS)
    users = RowTable("users", USERS, lambda: client)
    with pytest.raises(InvalidArgumentError, match=f"'users', .*worker.*{named}"):
        users.pool([1, 2, 3], **dict[str, Any](offsets=[0, 3]) | arguments)
    with pytest.raises(InvalidArgumentError, match="bag 1 is not finite"):
        users.push_pooled([1, 2, 3], [0, 2, 3], np.array([[0.0] * 4, [np.nan] * 4]))


@pytest.mark.parametrize(
    ("how", "counts", "numbers"),
    [
        (1, [2, 2], [0, 1, 2]),
        (1, [3], [0, 1, 9]),
        (1, [3], [0, -1, 2]),
        (1, [3], []),
        (2, [3], [0, 1, 1]),
        (7, [1], [0]),
    ],
)
def test_bags_that_cannot_be_are_refused_where_they_arrive(how: int, counts: list[int], numbers: list[int]) -> None:
    arrays: list[Any] = [np.array(counts), np.array(numbers, np.int64), np.ones(2, np.float32)]
    with pytest.raises(InvalidArgumentError, match="here: bags"):
        decode_bags(arrays, how, 2 if numbers else 7, "here")


@pytest.mark.parametrize(("wire", "bits"), [("bfloat16", 2**-8), ("int8", 1 / 254)])
def test_rows_travel_in_fewer_bytes_with_a_bounded_error(wire: Any, bits: float) -> None:
    ids = np.arange(1000)
    rng = np.random.default_rng(1)
    gradients = [rng.normal(size=(1000, 32)).astype(np.float32) for _ in range(3)]
    rows: dict[str, Any] = {}
    received: dict[str, int] = {}
    for form in ("float32", wire):
        tables = LocalTables(2)
        client = tables.client()
        config = TableConfig(dim=32, optimizer=SGD(0.1), seed=1)
        client.open("t", config, wire=form)
        for each in gradients:
            client.update({"t": ids}, {"t": each})
        before = client.traffic().received_bytes
        rows[form] = client.look_up({"t": ids})["t"]
        received[form] = client.traffic().received_bytes - before
        client.close()
        tables.stop()
    assert received["float32"] == 1000 * 32 * 4
    assert received[wire] == 1000 * (32 * 2 if wire == "bfloat16" else 32 + 4)
    error = np.abs(rows[wire] - rows["float32"])
    scale = np.abs(rows["float32"]) if wire == "bfloat16" else np.abs(rows["float32"]).max(axis=1, keepdims=True)
    of_gradients = 0.1 * sum(np.abs(each) for each in gradients) * 2**-8
    assert (error <= scale * bits * 1.02 + of_gradients * 1.02 + 1e-6).all()
    assert error.max() > 1e-4  # some values were rounded


def test_no_form_of_that_name(servers: LocalTables) -> None:
    with pytest.raises(ValueError, match="wire is 'float8', not one of float32, bfloat16, int8"):
        servers.client().open("t", USERS, wire="float8")  # pyright: ignore[reportArgumentType]


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
    with pytest.raises(FailedPreconditionError, match="table 'users' on /job:ps/task:0 has another configuration"):
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
def test_table_configurations_survive_packing(config: TableConfig) -> None:
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
def test_invalid_table_configurations_are_refused_by_the_receiver(field: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be made"):
        unpack({**pack(USERS), field: value})


def test_a_function_cannot_travel() -> None:
    with pytest.raises(ValueError, match="cannot be sent"):
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
