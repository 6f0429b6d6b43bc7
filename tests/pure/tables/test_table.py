"""A table of rows, as one process uses it."""

import itertools
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import FailedPreconditionError, InvalidArgumentError, ResourceExhaustedError
from headwater.tables import (
    SGD,
    Adagrad,
    Admission,
    Age,
    GeneralOptimizer,
    Initializer,
    LeastFrequent,
    LeastRecent,
    Table,
    TableConfig,
    together,
)
from headwater.tables.table import Keys

pytestmark = pytest.mark.slow  # numba compiles what they call


def table_of(**fields):
    asked: dict[str, Any] = {"dim": 4, "optimizer": SGD(1.0), **fields}
    return Table("users", TableConfig(**asked), task="/job:ps/task:1")


ZEROS = Initializer(kind="constant", a=0.0)


def test_a_row_depends_on_seed_and_key_only():
    ids = np.array([3, -1, 2**62, 7])
    rows = table_of(shards=1).look_up(ids)
    others = table_of(shards=5)
    others.look_up(np.arange(1000))
    assert np.array_equal(others.look_up(ids[::-1])[::-1], rows)
    assert not np.array_equal(table_of(seed=1).look_up(ids), rows)
    assert len(np.unique(rows)) == 16


@pytest.mark.parametrize(
    ("kind", "a", "b", "mean", "deviation", "low", "high"),
    [
        ("constant", 2.0, 0.0, 2.0, 0.0, 2.0, 2.0),
        ("uniform", -1.0, 3.0, 1.0, 4 / 12**0.5, -1.0, 3.0),
        ("normal", 1.0, 0.5, 1.0, 0.5, -2.0, 4.0),
        ("truncated_normal", 1.0, 0.5, 1.0, 0.5 * 0.8796, 0.0, 2.0),
    ],
)
def test_initializers(kind, a, b, mean, deviation, low, high):
    rows = table_of(initializer=Initializer(kind=kind, a=a, b=b)).look_up(np.arange(20_000))
    assert rows.mean() == pytest.approx(mean, abs=0.01)
    assert rows.std() == pytest.approx(deviation, abs=0.01)
    assert low <= rows.min() <= rows.max() <= high


def test_without_training_nothing_is_made():
    table = table_of()
    rows = table.look_up([5, 6], training=False)
    assert len(table) == 0
    assert np.array_equal(table.look_up([5, 6]), rows)
    assert len(table) == 2


def test_gradients_of_one_key_are_added():
    table = table_of(initializer=ZEROS, optimizer=Adagrad(1.0, 0.0, 0.0))
    table.update([9, 8, 9], [[1.0] * 4, [3.0] * 4, [2.0] * 4])
    assert table.look_up([8, 9]).tolist() == [[-1.0] * 4] * 2  # one step of the sum, not two
    assert table.step == 1


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from(["look", "update", "remove", "assign"]), st.lists(st.integers(-40, 40), max_size=30)),
        max_size=12,
    ),
    st.integers(1, 4),
)
def test_a_table_holds_the_rows_of_a_dictionary(calls, shards):
    table = table_of(initializer=ZEROS, shards=shards)
    model: dict[int, float] = {}
    for call, ids in calls:
        if call == "look":
            for key in ids:
                model.setdefault(key, 0.0)
            assert table.look_up(np.array(ids, np.int64))[:, 0].tolist() == [model[key] for key in ids]
        elif call == "update":
            for key in ids:
                model[key] = model.get(key, 0.0) - 1.0
            table.update(np.array(ids, np.int64), np.ones((len(ids), 4)))
        elif call == "assign":
            distinct = list(dict.fromkeys(ids))
            model.update({key: float(at) for at, key in enumerate(distinct)})
            table.assign(np.array(distinct, np.int64), np.repeat(np.arange(len(distinct)), 4).reshape(-1, 4))
        else:
            distinct = list(dict.fromkeys(ids))
            assert table.remove(np.array(distinct, np.int64)) == sum(key in model for key in distinct)
            for key in distinct:
                model.pop(key, None)
        assert len(table) == len(model)
    known = np.array(sorted(model), np.int64)
    assert table.look_up(known, training=False)[:, 0].tolist() == [model[key] for key in known.tolist()]


def test_strings_are_keys():
    table = table_of(strings=True)
    rows = table.look_up(["ann", "bob", "ann"])
    assert len(table) == 2
    assert np.array_equal(rows[0], rows[2])
    assert np.array_equal(table.look_up([b"bob"])[0], rows[1])


def test_strings_with_the_same_first_word_have_separate_rows():
    table = table_of(strings=True)
    rows = table.look_up(Keys(np.array([1, 1]), np.array([2, 3])))
    assert len(table) == 2
    assert not np.array_equal(rows[0], rows[1])
    table.update(Keys(np.array([1]), np.array([2])), np.ones((1, 4)))
    assert np.array_equal(table.look_up(Keys(np.array([1]), np.array([3])))[0], rows[1])


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("weighted", [False, True])
def test_pooling(combiner, weighted):
    table = table_of()
    ids, offsets = np.array([1, 2, 1, 5, 6]), np.array([0, 3, 3, 5])
    weights = np.array([1.0, 2.0, 0.5, 3.0, 1.0], np.float32) if weighted else None
    rows = table.look_up(ids)
    used = np.ones(5) if weights is None else weights
    scale = {"sum": lambda w: 1.0, "mean": lambda w: w.sum(), "sqrtn": lambda w: np.sqrt((w**2).sum())}[combiner]
    bags = [
        (used[a:b, None] * rows[a:b]).sum(0) / (scale(used[a:b]) if b > a else 1)
        for a, b in itertools.pairwise(offsets)
    ]
    got = table.pool(ids, offsets, combiner=combiner, weights=weights)
    np.testing.assert_allclose(got, bags, rtol=1e-6)
    gradients = np.arange(12, dtype=np.float32).reshape(3, 4)
    table.update_pooled(ids, offsets, gradients, combiner=combiner, weights=weights)
    expected = {int(key): row.copy() for key, row in zip(ids, rows, strict=True)}
    for bag, (a, b) in enumerate(itertools.pairwise(offsets)):
        for i in range(a, b):
            expected[int(ids[i])] -= used[i] / scale(used[a:b]) * gradients[bag]
    for key, row in expected.items():
        np.testing.assert_allclose(table.look_up([key])[0], row, rtol=1e-5, atol=1e-6)


def test_a_key_is_admitted_after_so_many_sightings():
    table = table_of(admission=Admission(sightings=3))
    first = table.look_up([1])
    table.update([1], np.ones((1, 4)))
    assert np.array_equal(table.look_up([1]), first)  # still its initial row: the gradient was dropped
    assert (len(table), table.statistics().dropped, table.statistics().refused) == (0, 1, 2)
    table.look_up([1])
    table.update([1], np.ones((1, 4)))
    assert len(table) == 1
    np.testing.assert_allclose(table.look_up([1]), first - 1)


def test_lookups_without_training_are_no_sightings():
    table = table_of(admission=Admission(sightings=2))
    for _ in range(3):
        table.look_up([1], training=False)
    table.look_up([1])
    assert len(table) == 0


def test_counting_keys_without_a_row_takes_bounded_memory():
    table = table_of(admission=Admission(sightings=3, candidates=1024), shards=1)
    for _ in range(2):
        table.look_up([-5])
    table.look_up(np.arange(100_000))
    assert len(table) == 0


def test_a_key_is_admitted_by_chance():
    table = table_of(admission=Admission(probability=0.25))
    table.look_up(np.arange(4000))
    assert 900 < len(table) < 1100
    assert len(table) + table.statistics().refused == 4000


def test_a_full_table_is_an_error_that_names_table_task_and_key():
    table = table_of(max_rows=100)
    table.look_up(np.arange(100))
    with pytest.raises(ResourceExhaustedError, match=r"'users' on /job:ps/task:1 .* 100 rows .* key 777 "):
        table.look_up([777])
    table.look_up(np.arange(100))
    assert len(table) == 100
    table.remove([5])
    table.look_up([777])


def test_the_least_recent_rows_go():
    table = table_of(max_rows=64, eviction=LeastRecent(), shards=1)
    table.look_up(np.arange(64))
    table.update(np.arange(32), np.ones((32, 4)))
    table.look_up(np.arange(100, 116))
    assert len(table) == 64
    kept = {key for key, _ in table.hottest(1000)}
    assert set(range(32)) <= kept
    assert set(range(100, 116)) <= kept


def test_the_least_frequent_rows_go():
    table = table_of(max_rows=64, eviction=LeastFrequent(), shards=1)
    table.look_up(np.repeat(np.arange(32), 3))
    table.look_up(np.arange(32, 64))
    table.look_up(np.arange(100, 130))
    assert set(range(32)) <= {key for key, _ in table.hottest(1000)}


def test_evicted_row_starts_with_initial_values():
    table = table_of(max_rows=1, eviction=LeastRecent(), optimizer=Adagrad(1.0))
    first = table.look_up([1])
    table.update([1], np.ones((1, 4)))
    assert not np.array_equal(table.look_up([1]), first)
    table.look_up([2])
    assert table.statistics().evicted == 1
    assert np.array_equal(table.look_up([1]), first)
    records, _ = table.read_records(table.keys([1]))
    np.testing.assert_allclose(records[0, 4:], 0.1)


def test_old_rows_are_swept():
    table = table_of(eviction=Age(2))
    table.look_up([1, 2])
    for _ in range(3):
        table.update([2], np.ones((1, 4)))
    assert table.sweep() == 1
    assert [key for key, _ in table.hottest(5)] == [2]


def test_a_limit_of_bytes_is_one_of_rows():
    config = TableConfig(dim=4, optimizer=Adagrad(), max_bytes=64_000)
    table = Table("t", TableConfig(dim=4, optimizer=Adagrad(), max_bytes=64_000, eviction=LeastRecent()))
    table.look_up(np.arange(10_000))
    assert len(table) == config.row_limit == 64_000 // (4 * 8 + 24)
    with pytest.raises(ValueError, match="max_bytes"):
        TableConfig(dim=400, max_bytes=64)


def test_a_row_takes_at_most_24_bytes_more_than_its_values():
    table = table_of(dim=8, optimizer=Adagrad(), shards=4)
    most = 0.0
    for start in range(0, 200_000, 4000):
        table.look_up(np.arange(start, start + 4000))
        if start >= 40_000:
            most = max(most, table.statistics().nbytes / len(table) - 64)
    assert most <= 24


def test_hottest():
    table = table_of()
    table.look_up([1, 2, 2, 3, 3, 3])
    assert table.hottest(2) == [(3, 3), (2, 2)]


def test_threads_lose_no_update():
    table = table_of(initializer=ZEROS, optimizer=SGD(1.0), shards=3)
    barrier = threading.Barrier(4)
    failed: list[BaseException] = []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            barrier.wait()
            for _ in range(200):
                ids = rng.permutation(500)[:100]
                table.look_up(ids)
                table.update(ids, np.full((100, 4), -1.0))
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert len(table) == 500
    assert table.look_up(np.arange(500))[:, 0].sum() == 4 * 200 * 100
    assert table.step == 800


def test_threads_evict_and_make_rows_at_the_same_time():
    table = table_of(max_rows=200, eviction=LeastRecent(), shards=4)
    failed: list[BaseException] = []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(100):
                ids = rng.integers(0, 2000, 64)
                table.look_up(ids)
                table.update(ids, np.zeros((64, 4)))
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert len(table) <= 200
    fresh = table_of().look_up(np.arange(2000))
    assert np.array_equal(table.look_up(np.arange(2000), training=False), fresh)


def test_any_optimizer_by_the_general_way():
    def halve(rows, state, gradients, step, rate):
        return rows / 2 - rate * gradients, [state[0] + step]

    table = table_of(optimizer=GeneralOptimizer(apply=halve, slots=(10.0,), learning_rate=1.0))
    first = table.look_up([1, 2])
    table.update([2, 2, 3], np.ones((3, 4)))
    np.testing.assert_allclose(table.look_up([2]), first[1:] / 2 - 2)
    records, known = table.read_records(table.keys([1, 2, 3, 4]))
    assert known.tolist() == [True, True, True, False]
    assert records[:3, 4].tolist() == [10.0, 11.0, 11.0]


@pytest.mark.parametrize(
    ("ids", "named"), [([[1]], "rank 2"), ([1.5], "float64"), (["a"], "whole numbers"), (3, "rank 0")]
)
def test_ids_of_a_wrong_kind(ids, named):
    with pytest.raises(InvalidArgumentError, match=f"'users' on /job:ps/task:1.*{named}"):
        table_of().look_up(ids)


def test_integers_where_keys_are_strings():
    with pytest.raises(InvalidArgumentError, match="strings for keys"):
        table_of(strings=True).look_up([1, 2])


def test_calls_for_several_tables_wait_for_no_circle() -> None:
    tables = [Table(f"t{number}", TableConfig(dim=4)) for number in range(3)]
    words = np.arange(60, dtype=np.int64)
    no = words[:0]

    def read(order: list[int]) -> None:
        for _ in range(200):
            together.look_up([tables[number] for number in order], words, no, [20, 20, 20], training=True)

    def shut(number: int) -> None:
        for _ in range(200):
            with tables[number].gate.alone():
                pass

    threads = [threading.Thread(target=read, args=(order,)) for order in ([0, 1, 2], [2, 1, 0], [1, 1, 0])]
    threads += [threading.Thread(target=shut, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert [len(table) for table in tables] == [40, 40, 40]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_gradient_that_is_not_finite_changes_nothing(bad):
    table = table_of()
    before = table.look_up([5, 6])
    gradients = np.ones((2, 4))
    gradients[1, 2] = bad
    with pytest.raises(InvalidArgumentError, match="'users' on /job:ps/task:1: the gradient of key 6 is not finite"):
        table.update([5, 6], gradients)
    assert np.array_equal(table.look_up([5, 6]), before)
    assert table.step == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda table: table.update([1], np.ones((1, 3))),
        lambda table: table.assign([1], np.ones((2, 4))),
        lambda table: table.pool([1], [0, 2]),
        lambda table: table.pool([1], [0, 1], combiner="max"),
        lambda table: table.pool([1], [0, 1], weights=np.ones(2)),
        lambda table: setattr(table, "learning_rate", float("nan")),
    ],
)
def test_arguments_that_do_not_fit(call):
    with pytest.raises(InvalidArgumentError, match="users"):
        call(table_of())


def test_a_closed_table():
    table = table_of()
    table.close()
    with pytest.raises(FailedPreconditionError, match="closed"):
        table.look_up([1])


def test_rows_beyond_a_limit_go_to_a_file_and_hot_ones_stay(tmp_path):
    table = table_of(dim=16, memory_rows=1000, folder=str(tmp_path), shards=4)
    everything = table_of(dim=16, shards=4)
    rng = np.random.default_rng(0)
    for _ in range(60):
        ids = np.concatenate([rng.integers(0, 200, 200) * 20, rng.integers(0, 4000, 40)])
        assert np.array_equal(table.look_up(ids), everything.look_up(ids))
        gradients = rng.normal(size=(240, 16))
        table.update(ids, gradients)
        everything.update(ids, gradients)
    table.look_up(np.arange(4000))
    everything.look_up(np.arange(4000))
    statistics = table.statistics()
    assert len(table) == 4000
    assert statistics.file_bytes >= 3000 * 64
    assert statistics.nbytes <= 1000 * 64 + 4000 * 40
    before = statistics.hits, statistics.misses
    table.look_up(np.arange(0, 4000, 20))  # these are used often
    after = table.statistics()
    assert (after.hits - before[0]) / 200 > 0.8
    assert 0 < after.hit_rate < 1
    assert np.array_equal(table.look_up(np.arange(4000)), everything.look_up(np.arange(4000)))
    assert not any(tmp_path.iterdir())


def test_a_folder_that_is_not_there():
    with pytest.raises(InvalidArgumentError, match="'users' on /job:ps/task:1: there is no folder '/nowhere/at/all'"):
        table_of(memory_rows=5, folder="/nowhere/at/all")
    with pytest.raises(ValueError, match="must be given together"):
        TableConfig(dim=4, memory_rows=5)


@pytest.mark.parametrize("eviction", [LeastRecent(), LeastFrequent()])
def test_a_row_takes_no_more_bytes_while_others_leave(eviction):
    table = table_of(dim=8, optimizer=Adagrad(), shards=4, max_rows=100_000, eviction=eviction)
    most = 0.0
    for start in range(0, 400_000, 1000):
        table.look_up(np.arange(start, start + 1000))
        if start >= 40_000:
            most = max(most, table.statistics().nbytes / len(table) - 64)
    assert table.statistics().evicted >= 300_000
    assert most <= 24


def test_row_used_after_ranking_is_not_evicted():
    table = table_of(shards=1, max_rows=640, eviction=LeastRecent())
    ids = np.arange(640)
    for step in range(0, 640, 10):
        table.look_up(ids[step : step + 10])
        table.update(ids[step : step + 10], np.zeros((10, 4)))
    table.look_up([1000])  # ranks the 40 least recently used rows and evicts one of them
    table.look_up(ids[1:40])
    table.look_up(np.arange(2000, 2010))
    left = {key for key, _ in table.hottest(1000)}
    assert left >= set(range(1, 40))
    assert not left & set(range(40, 50))


def test_rows_leave_in_their_order():
    counts, steps = np.array([3, 1, 2, 1, 9, 1]), np.array([5, 7, 6, 2, 1, 2])
    for policy, expected in ((LeastRecent(), [4, 3, 5, 0, 2, 1]), (LeastFrequent(), [3, 5, 1, 2, 0, 4])):
        for count in range(1, 7):
            assert policy.victims(counts, steps, count).tolist() == expected[:count]
