"""A parameter server that saves its embedding tables restores them; the others keep theirs."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.data.io.disk import mounted
from headwater.errors import FailedPreconditionError
from headwater.ps.tables.client import TableClient
from headwater.ps.tables.cluster import LocalTables
from headwater.state.state_saver import Saves
from headwater.tables import SGD, Adagrad, TableConfig
from headwater.tables.hashing import owners
from tests.support.faulty_disk import FaultyDisk

USERS = TableConfig(dim=4, optimizer=Adagrad(0.5), seed=3)
ITEMS = TableConfig(dim=2, optimizer=SGD(1.0), strings=True)
IDS = np.arange(200)
MINE = [IDS[owners(IDS, 2) == task] for task in range(2)]


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[LocalTables]:
    found = LocalTables(2, saves=Saves(folder=str(tmp_path)))
    yield found
    found.stop()


def client_of(tables: LocalTables, worker: int = 0) -> TableClient:
    client = tables.client(worker)
    client.open("users", USERS)
    client.open("items", ITEMS)
    return client


def update(client: TableClient, ids: Any = IDS, times: int = 1) -> None:
    for _ in range(times):
        client.update(
            {"users": ids, "items": [str(one) for one in ids]},
            {"users": np.ones((len(ids), 4)), "items": np.ones((len(ids), 2))},
        )


def rows(client: TableClient, ids: Any = IDS) -> list[np.ndarray]:
    found = client.look_up({"users": ids, "items": [str(one) for one in ids]}, training=False)
    return [found["users"], found["items"]]


def save(tables: LocalTables) -> None:
    for saver in tables.savers.values():
        assert saver.save()


def test_ps_restores_its_own_state_and_reports_the_loss(tables: LocalTables, caplog: pytest.LogCaptureFixture) -> None:
    first, second = client_of(tables, 0), client_of(tables, 1)
    update(first, times=3)
    save(tables)
    before = rows(first, MINE[1])[0]
    update(first, times=2)
    update(second, times=4)
    kept = rows(first, MINE[0])[0]
    caplog.set_level(logging.WARNING, "headwater")
    tables.restart(1)
    assert np.array_equal(rows(first, MINE[1])[0], before)
    assert np.array_equal(rows(first, MINE[0])[0], kept)
    update(first)
    update(second)
    assert "/job:ps/task:1 continues with its own rows of table 'users'" in caplog.text
    assert "lost updates 4 to 5 of " in caplog.text
    assert "lost updates 1 to 4 of " in caplog.text
    loads = {load.name: load for load in tables.services[1].loads()}
    assert loads["users"].lost_updates == 6
    assert tables.services[0].loads()[0].lost_updates == 0
    assert [told.step for told in first.statistics("users").values()] == [11, 5]


def test_a_repeated_update_is_applied_only_where_it_was_lost(tables: LocalTables) -> None:
    client = client_of(tables)
    update(client)
    save(tables)
    update(client, [5, 6, 7, 8])
    assert tables.savers[0].save()
    wanted = rows(client)
    for index in range(2):
        tables.restart(index)
    client._updates -= 1  # the worker retries, since it got no answer
    update(client, [5, 6, 7, 8])
    for found, expected in zip(rows(client), wanted, strict=True):
        assert np.array_equal(found, expected)


def test_only_rows_that_changed_are_written_and_old_files_go(tables: LocalTables) -> None:
    client = client_of(tables)
    update(client)
    save(tables)
    saver = tables.savers[0]
    whole = saver.written_bytes
    assert not saver.save()
    sizes: list[int] = []
    for _ in range(2):
        before = saver.written_bytes
        update(client, MINE[0][:1])
        assert saver.save()
        sizes.append(saver.written_bytes - before)
    assert max(sizes) < whole / 4
    for _ in range(12):
        update(client)
        assert saver.save()
    together = [name for name in os.listdir(saver.folder) if name.startswith("all.")]
    assert len(together) <= 4
    assert len(os.listdir(saver.folder)) <= 4 * 5
    wanted = rows(client)
    tables.restart(0)
    for found, expected in zip(rows(client), wanted, strict=True):
        assert np.array_equal(found, expected)


def test_a_damaged_save_loses_only_changes_since_the_previous_save(
    tables: LocalTables, caplog: pytest.LogCaptureFixture
) -> None:
    client = client_of(tables)
    update(client)
    save(tables)
    before = rows(client)
    update(client, MINE[0][:3])
    assert tables.savers[0].save()
    folder = Path(tables.savers[0].folder)
    part = sorted(folder.glob("items.000002.*.rows"))[0]
    packed = bytearray(part.read_bytes())
    packed[-30] ^= 1
    part.write_bytes(packed)
    tables.restart(0)
    assert "cannot use tables that it has saved" in caplog.text
    assert part.name in caplog.text
    # Both tables are restored to an earlier save, though only one is damaged: they must be of the same moment.
    for found, expected in zip(rows(client), before, strict=True):
        assert np.array_equal(found, expected)


def test_a_workers_own_saves_take_nothing_from_those_of_the_ps(tables: LocalTables, tmp_path: Path) -> None:
    client = client_of(tables)
    update(client)
    save(tables)
    update(client, [1, 2, 3])
    client.save("users", tmp_path / "mine")
    update(client, [4])
    save(tables)
    with pytest.raises(FailedPreconditionError, match=r"was saved in .* a delta would lack earlier changes"):
        client.save("users", tmp_path / "mine", delta=True)
    wanted = rows(client)
    for index in range(2):
        tables.restart(index)
    for found, expected in zip(rows(client), wanted, strict=True):
        assert np.array_equal(found, expected)


def test_a_full_disk_is_reported_and_nothing_is_missing_afterwards(
    tables: LocalTables, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = client_of(tables)
    update(client)
    save(tables)
    update(client, [1, 2, 3])
    with mounted(str(tmp_path), FaultyDisk(room=100)):
        assert not tables.savers[0].save()
    assert "No space left on device" in caplog.text
    update(client, [4])
    save(tables)
    wanted = rows(client)
    for index in range(2):
        tables.restart(index)
    for found, expected in zip(rows(client), wanted, strict=True):
        assert np.array_equal(found, expected)


def test_stopped_ps_saves_last(tables: LocalTables) -> None:
    client = client_of(tables)
    update(client)
    tables.services[1].close(over=False)
    waiting = threading.Thread(target=update, args=(client,))
    waiting.start()
    tables.restart(1)
    waiting.join()
    assert [told.step for told in client.statistics("users").values()] == [2, 2]
    assert tables.services[1].lost_updates == 0


def test_saves_go_when_the_job_is_over(tables: LocalTables) -> None:
    client = client_of(tables)
    update(client)
    save(tables)
    tables.services[1].close(over=True)
    assert not os.path.exists(tables.savers[1].folder)
    assert os.path.exists(tables.savers[0].folder)
