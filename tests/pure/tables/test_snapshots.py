"""Tables on disk: consistent while training continues, in deltas, for any number of tasks."""

import threading
from typing import Any

import numpy as np
import pytest

from headwater.data.io import files
from headwater.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
)
from headwater.tables import SGD, Adagrad, Adam, Initializer, LeastRecent, Table, TableConfig
from headwater.tables.hashing import owners, string_keys
from headwater.tables.snapshots import (
    FrozenTable,
    TableSnapshot,
    chain,
    commit,
    export,
    part_path,
    restore,
    save,
    saves,
)

pytestmark = pytest.mark.slow  # numba compiles what they call

ZEROS = Initializer(kind="constant", a=0.0)


def table_of(**fields):
    asked: dict[str, Any] = {"dim": 4, "optimizer": SGD(1.0), **fields}
    return Table("users/a", TableConfig(**asked), task="/job:ps/task:1")


def contents(table, ids):
    records, known = table.read_records(table.keys(ids))
    return records, known


def test_a_saved_table_is_restored_with_its_state(tmp_path):
    table = table_of(optimizer=Adagrad(0.5))
    ids = np.arange(5000) * 977
    table.update(ids, np.random.default_rng(0).normal(size=(5000, 4)))
    made = save(table, tmp_path)
    assert (made.number, made.base, made.step, made.parts[0].rows) == (1, None, (1,), 5000)
    assert (tmp_path / made.parts[0].file).stat().st_size == made.parts[0].nbytes
    other = table_of(optimizer=Adagrad(0.5))
    other.look_up([1])
    restore(other, tmp_path)
    assert (len(other), other.step) == (5000, 1)
    assert np.array_equal(contents(other, ids)[0], contents(table, ids)[0])
    gradients = np.ones((5000, 4))
    table.update(ids, gradients)
    other.update(ids, gradients)
    assert np.array_equal(other.look_up(ids), table.look_up(ids))


def test_a_save_excludes_later_training(tmp_path):
    # Every update adds 1 to all rows, so a snapshot is of one moment if its rows are equal.
    table = table_of(initializer=ZEROS, shards=4)
    ids = np.arange(3000)
    ones = np.full((3000, 4), -1.0)
    table.update(ids, ones)
    stop, ready = threading.Event(), threading.Event()

    def train():
        new = 3000
        while not stop.is_set():
            table.update(ids, ones)
            table.look_up(np.arange(new, new + 50))  # made after the snapshot began, or before the next one
            new += 50
            ready.set()

    thread = threading.Thread(target=train)
    thread.start()
    moments = []
    try:
        for number in range(1, 6):
            last = table.step
            while table.step == last:  # the thread may set the event for an update before the last snapshot
                ready.clear()
                assert ready.wait(60)
            snapshot = TableSnapshot(table)
            part = snapshot.write(part_path(tmp_path, table.name, number, 0, 1), piece_rows=64)
            commit(tmp_path, table, number, [part], steps=[snapshot.step], base=None)
            moments.append(snapshot.step)
    finally:
        stop.set()
        thread.join()
    assert len(set(moments)) == 5
    for number, moment in enumerate(moments, 1):
        other = table_of(initializer=ZEROS, shards=3)
        restore(other, tmp_path, number=number)
        rows = other.look_up(ids, training=False)
        assert rows.min() == rows.max() == moment == other.step


def test_rows_that_change_or_go_before_their_turn_are_saved_as_they_were(tmp_path):
    table = table_of(initializer=ZEROS, shards=2, max_rows=600, eviction=LeastRecent())
    table.update(np.arange(600), np.full((600, 4), -1.0))
    snapshot = TableSnapshot(table)
    table.update(np.arange(0, 300), np.full((300, 4), -1.0))
    table.remove(np.arange(200, 400))
    table.look_up(np.arange(1000, 1300))
    table.assign(np.arange(250, 260), np.full((10, 4), 9.0))
    part = snapshot.write(part_path(tmp_path, table.name, 1, 0, 1), piece_rows=7)
    commit(tmp_path, table, 1, [part], steps=[snapshot.step], base=None)
    other = table_of(initializer=ZEROS)
    restore(other, tmp_path)
    assert len(other) == part.rows == 600
    assert (other.look_up(np.arange(600)) == 1.0).all()
    assert len(other) == 600


def test_rows_that_change_places_with_the_file_are_saved_once(tmp_path):
    rows = tmp_path / "rows"
    rows.mkdir()
    table = table_of(memory_rows=100, folder=str(rows), shards=2)
    rng = np.random.default_rng(3)
    for _ in range(20):
        table.update(rng.integers(0, 400, 100), rng.normal(size=(100, 4)))
    table.look_up(np.arange(400))
    expected = table.look_up(np.arange(400), training=False)
    swaps = table.statistics().misses
    snapshot = TableSnapshot(table)
    for _ in range(20):
        hot = rng.integers(0, 100, 50) * 4 % 400
        table.look_up(hot)
        table.update(hot, np.ones((50, 4)))
    assert table.statistics().misses > swaps
    part = snapshot.write(part_path(tmp_path, table.name, 1, 0, 1), piece_rows=5)
    commit(tmp_path, table, 1, [part], steps=[snapshot.step], base=None)
    assert part.rows == 400
    other = table_of()
    restore(other, tmp_path)
    assert np.array_equal(other.look_up(np.arange(400)), expected)


def test_a_delta_has_changed_and_deleted_rows(tmp_path):
    table = table_of(initializer=ZEROS)
    table.update(np.arange(1000), np.ones((1000, 4)))
    save(table, tmp_path)
    table.look_up(np.arange(500))  # reading is not a change
    table.update([1, 2, 2000], np.ones((3, 4)))
    table.remove([7, 8])
    table.update([8], np.ones((1, 4)))
    second = save(table, tmp_path, delta=True)
    assert (second.base, second.parts[0].rows, second.parts[0].gone) == (1, 4, 2)
    third = save(table, tmp_path, delta=True)
    assert (third.parts[0].rows, third.parts[0].gone) == (0, 0)
    table.update([3], np.ones((1, 4)))
    save(table, tmp_path, delta=True)
    assert [one.number for one in chain(tmp_path, "users/a")] == [1, 2, 3, 4]
    for number, known in ((1, 1000), (3, 1000), (4, 1000)):
        other = table_of(initializer=ZEROS)
        restore(other, tmp_path, number=number)
        assert len(other) == known
    assert contents(other, [7])[1].tolist() == [False]
    ids = [*range(7), *range(8, 1000), 2000]
    assert np.array_equal(contents(other, ids)[0], contents(table, ids)[0])


def test_a_delta_needs_a_save_before(tmp_path):
    table = table_of()
    with pytest.raises(FailedPreconditionError, match="'users/a' on /job:ps/task:1: save all"):
        save(table, tmp_path, delta=True)
    save(table, tmp_path)
    table.clear()
    with pytest.raises(FailedPreconditionError, match="save all"):
        save(table, tmp_path, delta=True)


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_a_table_is_restored_to_any_number_of_tasks(tmp_path, tasks):
    ids = np.arange(2000) * 31
    whole = table_of(optimizer=Adagrad(0.1))
    whole.update(ids, np.random.default_rng(1).normal(size=(2000, 4)))
    parts = []
    for task in range(2):
        mine = ids[owners(ids, 2) == task]
        half = table_of(optimizer=Adagrad(0.1))
        half.write_records(half.keys(mine), contents(whole, mine)[0])
        parts.append(TableSnapshot(half).write(part_path(tmp_path, half.name, 1, task, 2)))
    commit(tmp_path, whole, 1, parts, steps=[4, 5], base=None)
    got = 0
    for task in range(tasks):
        table = table_of(optimizer=Adagrad(0.1))
        restore(table, tmp_path, task=task, tasks=tasks)
        mine = ids[owners(ids, tasks) == task]
        assert np.array_equal(contents(table, mine)[0], contents(whole, mine)[0])
        got += len(table)
    assert got == 2000


def test_strings_are_restored_and_exported(tmp_path):
    table = table_of(strings=True)
    names = [f"user {n}" for n in range(300)]
    rows = table.look_up(names)
    save(table, tmp_path)
    table.update(["user 5"], np.ones((1, 4)))
    table.remove(["user 6"])
    save(table, tmp_path, delta=True)
    other = table_of(strings=True)
    restore(other, tmp_path)
    assert np.array_equal(other.look_up(["user 5", "user 7"]), table.look_up(["user 5", "user 7"]))
    assert len(other) == export(tmp_path, tmp_path / "serving", "users/a") == 299
    frozen, known = FrozenTable(tmp_path / "serving").look_up(string_keys(["user 5", "user 6", "user 7", "nobody"]))
    assert known.tolist() == [True, False, True, False]
    assert np.array_equal(frozen[[0, 2]], [rows[5] - 1, rows[7]])
    assert not frozen[[1, 3]].any()


def test_integers_are_exported(tmp_path):
    table = table_of()
    ids = np.array([-(2**63), -1, 5, 2**63 - 1])
    rows = table.look_up(ids)
    save(table, tmp_path)
    export(tmp_path, tmp_path / "serving", "users/a")
    frozen = FrozenTable(tmp_path / "serving")
    got, known = frozen.look_up(np.append(ids[::-1], [6, -2]))
    assert known.tolist() == [True] * 4 + [False] * 2
    assert np.array_equal(got[:4], rows[::-1])
    with pytest.raises(InvalidArgumentError, match="2 words"):
        frozen.look_up(string_keys(["a"]))


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"dim": 8}, "has dim 8; .* 4 numbers"),
        ({"strings": True}, "strings for keys; .* integers"),
        ({"optimizer": Adam()}, "keeps 2 values of state"),
    ],
)
def test_a_table_with_another_configuration(tmp_path, fields, named):
    save(table_of(), tmp_path)
    other = table_of(**fields)
    with pytest.raises(InvalidArgumentError, match=f"'users/a' on /job:ps/task:1.*{named}"):
        restore(other, tmp_path)


def test_missing_saves_are_reported(tmp_path):
    with pytest.raises(NotFoundError, match="no save of table 'users/a'"):
        restore(table_of(), tmp_path / "none")
    made = save(table_of(), tmp_path)
    with pytest.raises(NotFoundError, match="no save 9"):
        restore(table_of(), tmp_path, number=9)
    (tmp_path / made.parts[0].file).unlink()
    with pytest.raises(NotFoundError):
        restore(table_of(), tmp_path)


def test_every_damaged_byte_is_noticed(tmp_path):
    table = table_of(shards=1)
    table.look_up([1, 2])
    made = save(table, tmp_path)
    for path in (tmp_path / made.parts[0].file, tmp_path / "users%2fa.000001.json"):
        whole = path.read_bytes()
        for at in range(len(whole)):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            other = table_of(shards=1)
            with pytest.raises(DataLossError):
                restore(other, tmp_path)
            assert len(other) == 0
        for length in range(0, len(whole), 3):
            path.write_bytes(whole[:length])
            with pytest.raises(DataLossError):
                restore(table_of(shards=1), tmp_path)
        path.write_bytes(whole)
    assert restore(table_of(shards=1), tmp_path).number == 1


class _FullDisk(files.AtomicFile):
    def write(self, data):
        if self.stream.tell() > 20_000:
            raise ResourceExhaustedError(None, None, f"{self.path}: no space left on device")
        super().write(data)


def test_a_save_that_fails_leaves_the_previous_one_and_the_next_is_whole(tmp_path, monkeypatch):
    table = table_of(initializer=ZEROS)
    table.update(np.arange(2000), np.ones((2000, 4)))
    save(table, tmp_path)
    table.update(np.arange(2000), np.ones((2000, 4)))
    with monkeypatch.context() as patch:
        patch.setattr(files, "AtomicFile", _FullDisk)
        with pytest.raises(ResourceExhaustedError, match="no space"):
            save(table, tmp_path, delta=True)
    assert [one.number for one in saves(tmp_path)] == [1]
    with pytest.raises(FailedPreconditionError, match="save all"):
        save(table, tmp_path, delta=True)
    table.update(np.arange(5), np.ones((5, 4)))
    save(table, tmp_path)
    other = table_of(initializer=ZEROS)
    restore(other, tmp_path)
    assert np.array_equal(other.look_up(np.arange(2000)), table.look_up(np.arange(2000)))


def test_one_snapshot_at_a_time(tmp_path):
    table = table_of()
    table.look_up(np.arange(10))
    snapshot = TableSnapshot(table)
    with pytest.raises(FailedPreconditionError, match="is being saved"):
        TableSnapshot(table)
    snapshot.abandon()
    assert save(table, tmp_path).parts[0].rows == 10


def test_a_folder_that_cannot_be_written():
    with pytest.raises((PermissionDeniedError, FailedPreconditionError, NotFoundError)):
        save(table_of(), "/proc/nothing")
