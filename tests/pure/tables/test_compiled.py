"""Calls of machine code, its compilation by another process, and its cache."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.compilation_cache import Entries
from headwater.tables import bag_loops, compiled, ctc_loops, hashing, machine_code, pooling, routing, row_loops
from headwater.tables.compiled import Compiled, Matrix, Words

pytestmark = pytest.mark.slow  # functions are compiled if the cache does not have them


@Compiled
def _halve(numbers: Words, rows: Matrix[np.float32], factor: np.float32, negative: bool) -> tuple[Words, float, bool]:
    """Returns half of each number, the sum of the rows times a factor, and the opposite of a boolean."""
    halves = np.empty(len(numbers), np.int64)
    for i in range(len(numbers)):
        halves[i] = numbers[i] // 2
    total = 0.0
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            total += np.float64(rows[i, j] * factor)
    return halves, total, not negative


@Compiled
def _first(numbers: Words) -> Words:
    return numbers


@Compiled
def _wrong(numbers: Words) -> Words:
    halves: Any = numbers + 0.5
    return halves


def _key_of_another_version(name: str) -> str:
    return "0" * len(machine_code.symbol_of(name))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Entries]:
    """An empty cache, and functions that are not loaded."""
    entries = Entries(tmp_path)
    monkeypatch.setattr(machine_code, "_entries", lambda: entries)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))  # the compiling process imports this module
    compiler = machine_code._Compiler()
    monkeypatch.setattr(machine_code, "_compiler", compiler)
    monkeypatch.setattr(compiled, "_INTERPRETED_ELEMENTS", -1)
    yield entries
    compiler.end()


def _fresh(loop: Compiled) -> Compiled:
    return Compiled(loop.function)


ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_results_have_the_types_of_the_annotations(cache: Entries) -> None:
    halves, total, opposite = _fresh(_halve)(np.array([7, -3]), ROWS, np.float32(0.5), np.True_)
    np.testing.assert_array_equal(halves, np.array([3, -2]), strict=True)
    assert (total, opposite) == (7.5, False)
    assert cache.has(machine_code.key_of(_halve.name))


def test_arguments_may_be_read_only_but_not_of_another_type(cache: Entries) -> None:
    halve = _fresh(_halve)
    numbers = np.array([4, 6])
    numbers.flags.writeable = False
    assert halve(numbers, ROWS, 1, False)[0].tolist() == [2, 3]
    assert halve([4], ROWS, 1, False)[0].tolist() == [2]
    wrong: list[tuple[Any, Any, str]] = [
        (numbers.astype(np.int32), ROWS, "argument numbers of _halve has type int32"),
        (numbers.astype(">i8"), ROWS, "argument numbers of _halve has type >i8"),
        (np.arange(4)[::2], ROWS, "argument numbers of _halve has type int64 and shape (2,), not contiguous"),
        (numbers, ROWS[0], "argument rows of _halve has type float32 and shape (3,)"),
        (numbers, ROWS[:, ::2], "not contiguous"),
        (numbers, None, "argument rows of _halve has type object"),
    ]
    for first, second, message in wrong:
        with pytest.raises(TypeError) as error:
            halve(first, second, 1, False)
        assert message in str(error.value)


def test_an_argument_that_is_returned_is_copied(cache: Entries) -> None:
    numbers = np.array([1, 2])
    result = _fresh(_first)(numbers)
    assert result.tolist() == [1, 2]
    assert not np.shares_memory(result, numbers)


def test_memory_of_results_is_released_after_the_last_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_INTERPRETED_ELEMENTS", -1)
    released: list[int] = []
    release = machine_code.release

    def record(block: int) -> None:
        released.append(block)
        release(block)

    monkeypatch.setattr(machine_code, "release", record)
    first, inverse = hashing.distinct(np.array([5, 5, 7]), np.empty(0, np.int64))
    view = first[1:]
    del first
    gc.collect()
    assert not released
    assert view.tolist() == [2]
    del view, inverse
    gc.collect()
    assert len(released) == 2


def test_a_result_of_another_type_is_an_error(cache: Entries, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(RuntimeError, match=r"_wrong failed: TypeError: .*_wrong returns .*float64.*not .*int64"):
        _fresh(_wrong)(np.array([1]))


def test_a_damaged_entry_is_compiled_again(cache: Entries, caplog: pytest.LogCaptureFixture) -> None:
    _fresh(_first)(np.array([1]))
    key = machine_code.key_of(_first.name)
    stored = cache.get(key)
    assert stored is not None
    damaged = stored[:-1] + b"x"
    cache.put(key, damaged)
    machine_code._compiler._requested.clear()
    assert _fresh(_first)(np.array([2])).tolist() == [2]
    assert cache.get(key) not in {None, damaged}
    assert caplog.text.count("is damaged: it is compiled again") == 1


def test_signals_to_all_processes_of_a_task_do_not_end_the_compilation(cache: Entries) -> None:
    first = _fresh(_first)
    first(np.array([1]))
    process = machine_code._compiler._process
    assert process is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        process.send_signal(number)
    assert _fresh(_halve)(np.array([7]), ROWS, 1, False)[0].tolist() == [3]
    assert machine_code._compiler._process is process


def test_a_package_that_changed_meanwhile_is_named(cache: Entries, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_code, "key_of", _key_of_another_version)
    with pytest.raises(RuntimeError, match="another version of the package has been installed meanwhile"):
        _fresh(_first)(np.array([1]))


def test_a_failed_compilation_leaves_the_other_way(cache: Entries, caplog: pytest.LogCaptureFixture) -> None:
    wrong = _fresh(_wrong)
    while wrong.name not in machine_code._failed:
        assert not wrong.pays(1 << 40)
        machine_code._compiler.wait()
    machine_code._failed.discard(wrong.name)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "a slower way is used" in caplog.text


def test_a_loop_pays_when_its_work_has_taken_as_long_as_loading_it(
    cache: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("has_begun", False), ("done_ns", 0)):
        monkeypatch.setattr(compiled._Use, name, value)
    first = _fresh(_first)
    assert not first.pays(compiled._START_NS - 1)
    assert machine_code._compiler._process is None
    while not first.pays(100_000):  # compiled meanwhile
        machine_code._compiler.wait()
    assert not first.pays(1_000)
    assert _fresh(_first).pays(100_000)
    for name, value in (("has_begun", False), ("done_ns", 0)):
        monkeypatch.setattr(compiled._Use, name, value)
    again = _fresh(_first)
    assert [again.pays(40_000_000) for _ in range(3)] == [False, False, True]


def test_python_interprets_small_calls_until_the_machine_code_is_ready(
    cache: Entries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "_INTERPRETED_ELEMENTS", 10)
    route = _fresh(hashing.distinct)
    keys = np.array([3, -3, 3])
    assert [each.tolist() for each in route(keys, np.empty(0, np.int64))] == [[0, 1], [0, 1, 0]]
    assert not route._is_loaded
    many = np.arange(100)
    np.testing.assert_array_equal(route(many, np.empty(0, np.int64))[0], many)
    assert route._is_loaded


def _bags(weighted: bool, safe: bool, parts: int, rng: np.random.Generator) -> tuple[Any, ...]:
    bags = np.sort(rng.integers(0, 5, 40))
    indices = np.stack([bags, np.arange(40)], 1).reshape(-1)
    ids = rng.integers(-3 if safe else 0, 30, 40)
    weights = rng.normal(size=40 if weighted else 0).astype(np.float32)
    sizes = np.full(parts, 30)
    rooms = np.zeros((bag_loops.ORDERS, 2 * parts + 1), np.int64)
    flags = (False, weighted, weighted, safe, safe)
    return ids, indices, 2, 6, weights, sizes, *flags, 2, 64, rooms, 1.25, -1


def _calls() -> list[tuple[Compiled, tuple[Any, ...]]]:
    """Functions that Python may interpret, with arguments."""
    rng = np.random.default_rng(0)
    calls: list[tuple[Compiled, tuple[Any, ...]]] = []
    for weighted in (False, True):
        for safe in (False, True):
            for parts in (1, 3):
                arguments = _bags(weighted, safe, parts, rng)
                calls.append((bag_loops.route_bags, arguments))
                _, _, routed, places, of, factors, in_bag, numbers, counts, shares, layout = bag_loops.route_bags(
                    *arguments
                )
                rows = rng.normal(size=(len(routed), 8)).astype(np.float32)
                grad = rng.normal(size=(len(in_bag), 8)).astype(np.float32)
                divisors = bag_loops.divisors_of(of, factors, in_bag, bag_loops.MEAN, safe)
                calls += [(bag_loops.divisors_of, (of, factors, in_bag, kind, safe)) for kind in (bag_loops.SUM, 1, 2)]
                calls.append((bag_loops.join_bags, (rows.reshape(-1), places, of, factors, divisors, 8)))
                calls.append((bag_loops.split_bags, (grad.reshape(-1), places, of, factors, divisors, len(rows), 8)))
                if len(counts) and parts == 1:
                    widths = layout[0, [2, 4]]
                    table = rng.normal(size=30 * 8).astype(np.float32)
                    calls.append((bag_loops.gather_bags, (table, routed, numbers, counts, widths, shares, 8)))
                    calls.append(
                        (bag_loops.spread_bags, (grad.reshape(-1), len(routed), numbers, counts, widths, shares, 8))
                    )
    keys = rng.integers(-(2**63), 2**63 - 1, 50)
    keys[10:20] = keys[:10]
    calls += [(hashing.distinct, (keys, np.empty(0, np.int64))), (hashing.distinct, (keys, keys[::-1].copy()))]
    calls += [(hashing.owners, (keys, 7)), (hashing.extent, (keys,))]
    sizes, room = np.full((2, 3), 20), np.full((2, 3), 30)
    ends, ways = np.array([25, 50]), np.array([True, False])
    calls.append((routing.route, (rng.integers(0, 60, 50), ends, sizes, ways, room, -1)))
    offsets, few = np.array([0, 20, 20, 50]), rng.normal(size=(9, 4)).astype(np.float32)
    weights = rng.normal(size=50).astype(np.float32)
    calls += [(pooling.bag_divisors, (offsets, weights, kind)) for kind in range(3)]
    places = rng.integers(0, 9, 50)
    segments = np.sort(rng.integers(0, 6, 50))
    for power in (0.0, 0.5, 1.0):
        calls.append((row_loops.sum_segments, (few.reshape(-1), 9, 4, places, segments, -1, power)))
        calls.append((row_loops.share_segments, (few.reshape(-1), 9, 4, places, segments, 9, power)))
    calls.append(
        (row_loops.distinct_bags, (rng.integers(-2, 9, 50), np.stack([segments, places], 1).ravel(), 8, 0, True))
    )
    return calls


def test_python_and_machine_code_have_the_same_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_INTERPRETED_ELEMENTS", -1)
    calls = _calls()
    assert {bag_loops.gather_bags, bag_loops.spread_bags} <= {loop for loop, _ in calls}
    for loop, arguments in calls:
        assert loop._interpreted is not None
        # A call may change its arguments.
        ways = [[each.copy() if isinstance(each, np.ndarray) else each for each in arguments] for _ in range(2)]
        with np.errstate(all="ignore"):
            interpreted = loop._interpreted(*ways[0])
        results = loop(*ways[1])
        for one, other in zip(_flat(interpreted), _flat(results), strict=True):
            np.testing.assert_array_equal(one, other, loop.name)
            assert not isinstance(other, np.ndarray) or one.dtype == other.dtype, loop.name
        for one, other in zip(*ways, strict=True):
            np.testing.assert_array_equal(one, other, loop.name)


def _flat(results: object) -> list[Any]:
    return list(results) if isinstance(results, tuple) else [results]


def test_functions_of_addresses_are_not_interpreted() -> None:
    assert pooling.pool._interpreted is None
    assert ctc_loops.paths._interpreted is not None
