"""Gradients of rows in rounds: one update for all workers, and no worker reads a row of an incomplete round."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.ps.tables.client import TableClient
from headwater.ps.tables.cluster import LocalTables
from headwater.ps.tables.rounds import Round
from headwater.tables import SGD, Initializer, TableConfig
from headwater.tables.optimizers import Adam

ZERO = Initializer(kind="constant", a=0.0)
CONFIGS = {
    "plain": TableConfig(dim=2, optimizer=SGD(1.0), initializer=ZERO),
    "adam": TableConfig(dim=2, optimizer=Adam(0.1), initializer=ZERO, strings=True),
}
KEYS = np.arange(12)


class Worker:
    """A worker with its round, and both tables."""

    def __init__(self, servers: LocalTables, rank: int) -> None:
        self.client: TableClient = servers.client(rank)
        for name, config in CONFIGS.items():
            self.client.open(name, config)
        self.at = Round(1, 0)
        self.client.gather(lambda: self.at, rank)

    def push(self, amount: float, keys: Any = KEYS) -> None:
        """Pushes equal gradients of both tables' rows."""
        gradients = np.full((len(keys), 2), amount, np.float32)
        self.client.update({"plain": keys, "adam": keys.astype(str)}, {"plain": gradients, "adam": gradients})

    def rows(self) -> list[Any]:
        """Returns the first number of each row of both tables."""
        found = self.client.look_up({"plain": KEYS, "adam": KEYS.astype(str)})
        return [found["plain"][:, 0], found["adam"][:, 0]]


def assert_rows(worker: Worker, plain: float, adam: float) -> None:
    found = worker.rows()
    np.testing.assert_allclose(found[0], np.full(len(KEYS), plain), rtol=1e-5)
    np.testing.assert_allclose(found[1], np.full(len(KEYS), adam), rtol=1e-5)


@pytest.fixture
def servers() -> Iterator[LocalTables]:
    found = LocalTables(2)
    yield found
    found.stop()


@pytest.fixture
def workers(servers: LocalTables) -> list[Worker]:
    return [Worker(servers, rank) for rank in range(3)]


def test_gradients_of_all_workers_are_one_update_once_a_later_round_is_named(workers: list[Worker]) -> None:
    first, second, third = workers
    first.push(-1)
    assert_rows(second, 0, 0)
    second.push(-2)
    third.push(-3)
    assert_rows(third, 0, 0)
    first.at = Round(1, 1)
    assert_rows(first, 6, 0.1)
    assert_rows(third, 6, 0.1)  # a worker of the previous round sees them, since that round cannot complete any more
    assert {told.step for told in first.client.statistics("adam").values()} == {1}


def test_only_some_rows_of_each_worker(workers: list[Worker]) -> None:
    first, second, _ = workers
    first.push(-1, KEYS[:8])
    second.push(-1, KEYS[4:])
    second.at = Round(1, 1)
    np.testing.assert_array_equal(second.rows()[0], [1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1])


def test_a_step_that_a_worker_repeats_counts_once(servers: LocalTables, workers: list[Worker]) -> None:
    first, second, _ = workers
    first.push(-1)
    restarted = Worker(servers, 0)
    restarted.push(-5)
    second.push(-1)
    second.at = Round(1, 1)
    assert_rows(second, 6, 0.1)


def test_gradients_of_an_earlier_round_are_dropped(workers: list[Worker]) -> None:
    first, second, _ = workers
    first.push(-1)
    first.at = Round(1, 1)
    assert_rows(first, 1, 0.1)
    second.push(-1)
    first.push(-1)
    first.at = Round(1, 2)
    assert_rows(first, 2, 0.2)


def test_a_round_that_a_restarted_ps_repeats_is_dropped(workers: list[Worker]) -> None:
    first, second, _ = workers
    for worker in (first, second):
        worker.at = Round(1, 7)
        worker.push(-1)
    first.at = Round(2, 5)  # the values were restored to an earlier state
    first.push(-1)
    second.push(-9)  # not yet aware of it
    second.at = Round(2, 5)
    second.push(-1)
    first.at = Round(2, 6)
    assert_rows(first, 2, 0.1)


@pytest.mark.parametrize("kind", ["save", "all rows", "statistics"])
def test_other_requests_find_a_round_that_is_over_applied(kind: str, workers: list[Worker], tmp_path: Path) -> None:
    first, second, third = workers
    first.push(-1)
    second.push(-1)
    third.at = Round(1, 1)
    if kind == "save":
        third.client.save("plain", tmp_path)
        again = LocalTables(2)
        client = again.client()
        client.open("plain", CONFIGS["plain"], str(tmp_path))
        np.testing.assert_array_equal(client.look_up({"plain": KEYS}, training=False)["plain"], 2)
        again.stop()
    elif kind == "all rows":
        values = np.concatenate([values for _, _, values in third.client.all_rows("plain")])
        np.testing.assert_array_equal(values, np.full((len(KEYS), 2), 2))
    else:
        assert {told.step for told in third.client.statistics("plain").values()} == {1}


def test_a_table_that_no_round_was_named_for_is_updated_at_once(servers: LocalTables) -> None:
    client = servers.client()
    client.open("plain", CONFIGS["plain"])
    client.update({"plain": KEYS}, {"plain": np.full((len(KEYS), 2), -1, np.float32)})
    np.testing.assert_array_equal(client.look_up({"plain": KEYS})["plain"], 1)
