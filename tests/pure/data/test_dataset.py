"""Datasets of arrays, iterated with ``for``."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.data.dataset import Dataset
from headwater.data.experimental import parallel_interleave
from headwater.data.io.tfrecord import TFRecordWriter
from headwater.data.node import Context
from headwater.data.options import AutoShardPolicy, Options
from headwater.data.prefetch import AUTOTUNE
from headwater.data.readers import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from headwater.dtypes import int64
from headwater.errors import DataLossError, InvalidArgumentError, NotFoundError


def numbers(dataset: Any) -> list[Any]:
    return [element.tolist() for element in dataset]


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("headwater-data")]


def test_structures_go_through() -> None:
    dataset = Dataset.from_tensor_slices({"x": np.arange(4.0), "y": (np.arange(4), ["a", "b", "c", "d"])}).batch(3)
    first, last = list(dataset)
    assert first["x"].tolist() == [0, 1, 2]
    assert first["y"][1].tolist() == [b"a", b"b", b"c"]
    assert last["y"][0].tolist() == [3]
    assert dataset.element_spec["y"][0].shape.as_list() == [None]


def test_batches_have_memory_of_their_own() -> None:
    data = np.zeros((4, 2))
    for batch in Dataset.from_tensor_slices(data).batch(2):
        batch += 1
    assert (data == 0).all()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("rows", [0, 1, 6, 7, 1000])
def test_batches_of_any_size(size: int, rows: int) -> None:
    parts = numbers(Dataset.range(rows).batch(size))
    assert [n for part in parts for n in part] == list(range(rows))
    assert all(len(part) == size for part in parts[:-1])
    assert len(Dataset.range(rows).batch(size)) == len(parts)
    whole = numbers(Dataset.range(rows).batch(size, drop_remainder=True))
    assert whole == [part for part in parts if len(part) == size]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_shards_are_all_elements_once(count: int) -> None:
    for dataset in (Dataset.range(11), Dataset.range(11).map(lambda n: n)):
        parts = [numbers(dataset.shard(count, index)) for index in range(count)]
        assert parts == [list(range(11))[index::count] for index in range(count)]


@pytest.mark.parametrize("size", [1, 7, 100, 150, 3000])
def test_shuffle_draws_elements_of_blocks_one_after_the_other(size: int) -> None:
    in_blocks = [n for batch in Dataset.range(2000).shuffle(size, seed=5).batch(100) for n in batch.tolist()]
    one_by_one = Dataset.from_generator(lambda: iter(range(2000)), int64, [])
    assert in_blocks == numbers(one_by_one.shuffle(size, seed=5))
    waited = max(place - number for place, number in enumerate(in_blocks))
    assert waited > 2 * size or size in (1, 3000), "an element may stay in the buffer for long"


def test_shuffle_is_seeded_and_stays_within_its_buffer() -> None:
    dataset = Dataset.range(200).shuffle(20, seed=5)
    first, second = numbers(dataset), numbers(dataset)
    assert sorted(first) == list(range(200))
    assert first != second, "another order each time"
    assert all(value < place + 20 for place, value in enumerate(first))
    assert numbers(Dataset.range(200).shuffle(20, seed=5)) == first
    again = Dataset.range(200).shuffle(20, seed=5, reshuffle_each_iteration=False)
    assert numbers(again) == numbers(again)
    assert numbers(Dataset.range(200).shuffle(20)) != numbers(Dataset.range(200).shuffle(20))
    one_by_one = numbers(Dataset.range(200).map(lambda n: n).shuffle(20, seed=5))
    assert sorted(one_by_one) == list(range(200))
    assert all(value < place + 20 for place, value in enumerate(one_by_one))


def test_functions() -> None:
    dataset = Dataset.from_tensor_slices((np.arange(5), np.arange(5) * 2)).map(lambda a, b: {"sum": a + b})
    assert [element["sum"].item() for element in dataset] == [0, 3, 6, 9, 12]
    assert numbers(Dataset.range(6).filter(lambda n: n % 2 == 1)) == [1, 3, 5]
    assert numbers(Dataset.range(4).flat_map(lambda n: Dataset.range(n))) == [0, 0, 1, 0, 1, 2]
    assert numbers(Dataset.range(20).map(lambda n: n * n, num_parallel_calls=4)) == [n * n for n in range(20)]
    assert Dataset.range(5).reduce(np.int64(0), lambda total, n: total + n) == 10
    assert numbers(Dataset.range(5).scan(np.int64(0), lambda total, n: (total + n, total + n))) == [0, 1, 3, 6, 10]


def test_an_error_names_the_element() -> None:
    def fail(value: Any) -> Any:
        if value == 3:
            raise KeyError("bad")
        return value

    for calls in (None, 3):
        found: list[int] = []
        iterator: Any = iter(Dataset.range(6).map(fail, num_parallel_calls=calls))
        with closing(iterator):
            with pytest.raises(KeyError) as raised:
                found.extend(element.item() for element in iterator)
            assert found == [0, 1, 2]
            assert "of element 3" in raised.value.__notes__[0]
            assert [element.item() for element in iterator] == [4, 5]
    assert not workers()


def test_threads_end_with_the_iterator() -> None:
    def endless() -> Any:
        while True:
            yield 1

    dataset = Dataset.from_generator(endless, "int32", []).map(lambda n: n, num_parallel_calls=2).prefetch(4)
    iterator: Any = iter(dataset.repeat())
    assert next(iterator) == 1
    assert workers()
    iterator.close()
    assert not workers()
    for _ in dataset.take(3):
        break
    assert not workers()


def test_generators_are_closed() -> None:
    ended = threading.Event()

    def values() -> Any:
        try:
            yield from range(100)
        finally:
            ended.set()

    for _ in Dataset.from_generator(values, "int32", []):
        break
    assert ended.wait(60)


@pytest.mark.parametrize(
    ("values", "types", "shapes", "match"),
    [
        ([1, "x"], "int32", [], "converted"),
        ([[1, 2]], "int32", [3], "shape"),
        ([(1, 2)], ("int32", "int32", "int32"), None, "structure"),
    ],
)
def test_a_generator_that_breaks_its_promise(values: Any, types: Any, shapes: Any, match: str) -> None:
    with pytest.raises(TypeError, match=match):
        list(Dataset.from_generator(lambda: iter(values), types, shapes))


def test_cache_reads_once() -> None:
    calls: list[int] = []

    def note(value: Any) -> Any:
        calls.append(int(value))
        return value

    dataset = Dataset.range(3).map(note).cache()
    calls.clear()
    assert numbers(dataset.repeat(3)) == [0, 1, 2] * 3
    assert calls == [0, 1, 2]


def test_windows_and_zips() -> None:
    windows = Dataset.range(5).window(2, drop_remainder=True)
    assert [[n.item() for n in window] for window in windows] == [[0, 1], [2, 3]]
    pairs = Dataset.zip((Dataset.range(3), Dataset.range(10).batch(4)))
    assert [(a.item(), b.tolist()) for a, b in pairs] == [(0, [0, 1, 2, 3]), (1, [4, 5, 6, 7]), (2, [8, 9])]
    assert len(pairs) == 3
    assert [index.item() for index, _ in Dataset.range(3).enumerate(7)] == [7, 8, 9]


def test_cardinality() -> None:
    assert Dataset.range(3).repeat().cardinality() == -1
    assert Dataset.range(3).filter(lambda n: n > 1).cardinality() == -2
    assert Dataset.range(0).repeat().cardinality() == 0
    with pytest.raises(TypeError, match="infinite"):
        len(Dataset.range(3).repeat())


# Files ----------------------------------------------------------------------------------------------------------------


def records(folder: Path, count: int) -> list[str]:
    names: list[str] = []
    for index in range(count):
        names.append(str(folder / f"part-{index}"))
        with TFRecordWriter(names[-1]) as writer:
            writer.write_all([b"%d.%d" % (index, record) for record in range(6)])
    return names


def test_files(tmp_path: Path) -> None:
    names = records(tmp_path, 2)
    found = [element.item() for element in TFRecordDataset(names)]
    assert found == [b"%d.%d" % (index, record) for index in range(2) for record in range(6)]
    assert sorted(element.item() for element in TFRecordDataset(names, num_parallel_reads=2)) == found
    (tmp_path / "text").write_bytes(b"one\r\ntwo\n\nlast")
    assert [line.item() for line in TextLineDataset(str(tmp_path / "text"))] == [b"one", b"two", b"", b"last"]
    (tmp_path / "fixed").write_bytes(b"Habcdef")
    fixed = FixedLengthRecordDataset(str(tmp_path / "fixed"), 2, header_bytes=1)
    assert [record.item() for record in fixed] == [b"ab", b"cd", b"ef"]
    with pytest.raises(NotFoundError, match="none"):
        list(TextLineDataset(str(tmp_path / "none")))


def test_a_flipped_bit_is_found_with_file_and_place(tmp_path: Path) -> None:
    (name,) = records(tmp_path, 1)
    data = bytearray(Path(name).read_bytes())
    data[2 * 19 + 13] ^= 4
    Path(name).write_bytes(data)
    found: list[bytes] = []
    with pytest.raises(DataLossError, match=rf"{name}: .* at offset 38"):
        found.extend(element.item() for element in TFRecordDataset(name).map(lambda record: record))
    assert found == [b"0.0", b"0.1"]


# Several workers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3])
def test_parts_of_batches_are_together_the_batches(count: int) -> None:
    dataset = Dataset.range(17).shuffle(17).batch(5).repeat(2)
    parts = [list(dataset.distributed(count, index, seed=3)) for index in range(count)]
    together = [np.concatenate(step).tolist() for step in zip(*parts, strict=True)]
    assert [len(batch) for batch in together] == [5, 5, 5, 2] * 2
    assert sorted(n for batch in together[:4] for n in batch) == list(range(17))
    sizes = [[len(part) for part in step] for step in zip(*parts, strict=True)]
    assert all(max(step) - min(step) <= 1 for step in sizes)


def test_by_file_by_element_and_not_at_all(tmp_path: Path) -> None:
    names = records(tmp_path, 4)
    for dataset in (
        TFRecordDataset(names).batch(4),
        Dataset.list_files(str(tmp_path / "part-*"), shuffle=False).interleave(TFRecordDataset).batch(4),
    ):
        parts = [[r for batch in dataset.distributed(2, index) for r in batch] for index in range(2)]
        assert sorted({r[:1] for r in parts[0]}) == [b"0", b"2"]
        assert sorted({r[:1] for r in parts[1]}) == [b"1", b"3"]
        assert all(len(batch) == 2 for batch in dataset.distributed(2, 0))
    off = Options()
    off.experimental_distribute.auto_shard_policy = AutoShardPolicy.OFF
    everything = TFRecordDataset(names).batch(4).with_options(off).distributed(2, 1)
    assert sum(len(batch) for batch in everything) == 24
    with pytest.raises(NotFoundError, match="4 file"):
        TFRecordDataset(names).batch(4).distributed(5, 0, AutoShardPolicy.FILE)
    hinted = Dataset.range(8).shard(-1, -1).batch(4).distributed(2, 1, AutoShardPolicy.HINT)
    assert [n for batch in numbers(hinted) for n in batch] == [1, 3, 5, 7]


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("policy", [AutoShardPolicy.FILE, AutoShardPolicy.HINT, AutoShardPolicy.DATA])
@pytest.mark.parametrize("interleaved", [False, True])
def test_every_record_of_files_is_read_by_one_worker(
    tmp_path: Path, policy: AutoShardPolicy, count: int, interleaved: bool
) -> None:
    names = records(tmp_path, 5)
    if interleaved:
        dataset = Dataset.from_tensor_slices(names)
        dataset = dataset.shard(-1, -1) if policy is AutoShardPolicy.HINT else dataset
        dataset = dataset.interleave(TFRecordDataset, cycle_length=2, block_length=3)
    else:
        dataset = TFRecordDataset(names)
        dataset = dataset.shard(-1, -1) if policy is AutoShardPolicy.HINT else dataset
    dataset = dataset.map(lambda record: record).batch(4).prefetch(1)
    parts = [dataset.distributed(count, index, policy) for index in range(count)]
    found = [[record for batch in part for record in batch.tolist()] for part in parts]
    assert sorted(record for part in found for record in part) == sorted(
        record.item() for record in TFRecordDataset(names)
    )
    files = [{record[:1] for record in part} for part in found]
    if policy is AutoShardPolicy.FILE or (policy is AutoShardPolicy.HINT and interleaved):
        assert sum(map(len, files)) == 5
    else:
        assert sum(map(len, files)) > 5


@pytest.mark.parametrize("name", ["batch", "drop", "repeated", "shuffled", "ahead", "filtered", "twice", "small"])
@pytest.mark.parametrize("parallel", [None, 2])
def test_own_rows_are_those_of_whole_batches(name: str, parallel: int | None) -> None:
    def double(x: Any) -> Any:
        return {"x": x, "half": x / 2}

    source = Dataset.range(23)
    elements = source.map(double, num_parallel_calls=parallel)
    dataset = {
        "batch": elements.batch(5),
        "drop": elements.batch(5, drop_remainder=True),
        "repeated": elements.batch(5).repeat(2).take(8).prefetch(1),
        "shuffled": source.shuffle(7, seed=1, reshuffle_each_iteration=False)
        .map(double, num_parallel_calls=parallel)
        .batch(5),
        "ahead": elements.prefetch(3).batch(5),
        "filtered": elements.filter(lambda both: both["x"] % 3 != 0).map(lambda both: both).batch(5),
        "twice": source.map(lambda x: x + 1).map(double, num_parallel_calls=parallel).batch(5),
        "small": elements.batch(2),  # for three workers
    }[name]
    whole = list(dataset)
    for count in (2, 3):
        parts = [list(dataset.distributed(count, index)) for index in range(count)]
        assert [len(part) for part in parts] == [len(whole)] * count
        for step, batch in enumerate(whole):
            for key in ("x", "half"):
                together = np.concatenate([part[step][key] for part in parts])
                assert together.dtype == batch[key].dtype
                assert together.tolist() == batch[key].tolist()


def test_functions_are_called_for_own_rows_only(tmp_path: Path) -> None:
    called: list[list[bytes]] = []

    def parse(record: Any) -> Any:
        called[-1].append(record.item())
        return np.frombuffer(record.item(), np.uint8)

    names = records(tmp_path, 2)
    everything = [record.item() for record in TFRecordDataset(names)]
    for index in range(3):
        called.append([])
        dataset = TFRecordDataset(names).map(parse).batch(5).distributed(3, index, AutoShardPolicy.DATA)
        assert [len(batch) for batch in dataset] == [[2, 2, 1], [2, 2, 1], [1, 1, 0]][index]
        called[-1].remove(everything[0])  # which tells what the function gives
    assert sorted(record for records in called for record in records) == sorted(everything)


def test_options() -> None:
    options = Options()
    options.experimental_distribute.auto_shard = False
    assert Dataset.range(3).with_options(options).batch(2).options().experimental_distribute.policy == -1
    with pytest.raises(AttributeError, match="experimental_nonsense"):
        options.experimental_nonsense = True  # pyright: ignore[reportAttributeAccessIssue]


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="index must be between"):
        Dataset.range(3).shard(2, 2)
    with pytest.raises(ValueError, match="scalars"):
        Dataset.from_tensor_slices(3)
    with pytest.raises(TypeError, match="different types"):
        Dataset.range(2).concatenate(Dataset.from_tensors("a"))
    with pytest.raises(InvalidArgumentError, match="Cannot batch"):
        list(Dataset.range(1, 3).map(lambda n: np.zeros(int(n))).batch(2))
    with pytest.raises(InvalidArgumentError, match="batch_size"):
        list(Dataset.range(3).batch(0))


class TestDatasetsAtTheSameTime:
    def test_each_has_a_thread(self) -> None:
        both = threading.Barrier(2)

        def meet(n: Any) -> Iterator[Any]:
            both.wait()  # for ever, where one is gone over after the other
            yield n

        def child(n: Any) -> Any:
            return Dataset.from_generator(meet, "int64", [], args=(n,))

        assert numbers(Dataset.range(2).interleave(child, 2, num_parallel_calls=2)) == [0, 1]

    @pytest.mark.parametrize("calls", [None, 2, 3, AUTOTUNE])
    def test_the_order_is_that_of_turns(self, calls: int | None) -> None:
        dataset = Dataset.range(7).interleave(lambda n: Dataset.range(n * 9), 3, 4, num_parallel_calls=calls)
        assert numbers(dataset) == numbers(Dataset.range(7).interleave(lambda n: Dataset.range(n * 9), 3, 4))

    def test_sloppy_interleave_skips_elements_that_are_not_ready(self) -> None:
        go = threading.Event()

        def wait(n: Any) -> Iterator[Any]:
            if n == 0:
                go.wait()
            yield n

        def child(n: Any) -> Any:
            return Dataset.from_generator(wait, "int64", [], args=(n,))

        elements = iter(Dataset.range(2).apply(parallel_interleave(child, 2, sloppy=True)))
        assert next(elements) == 1
        go.set()
        assert next(elements) == 0

    def test_an_error_follows_the_elements_before_it(self) -> None:
        def fail() -> Iterator[int]:
            yield from range(2)
            raise ValueError("no")

        found: list[int] = []
        child = Dataset.from_generator(fail, "int64", [])
        turns = Dataset.range(1).interleave(lambda _: child, 2, num_parallel_calls=2)
        with pytest.raises(ValueError, match="no"):
            found.extend(element.item() for element in turns)
        assert found == [0, 1]

    def test_threads_end_with_the_iterator(self) -> None:
        endless: Any = Dataset.range(3).interleave(lambda _: Dataset.range(9).repeat(), 3, num_parallel_calls=3)
        with closing(endless.node.elements(Context())) as elements:
            assert [part.item() for part in next(elements)] == [0]
        assert workers() == []


def test_files_one_after_the_other_are_read_in_blocks(tmp_path: Path) -> None:
    names = [str(tmp_path / f"{index}.tfrecord") for index in range(3)]
    for index, name in enumerate(names):
        with TFRecordWriter(name) as writer:
            for row in range(5):
                writer.write(b"%d %d" % (index, row))

    def read(cycle: int, calls: int | None = None) -> Dataset:
        sources = Dataset.from_tensor_slices(names)
        return sources.interleave(lambda name: TFRecordDataset(name), cycle, num_parallel_calls=calls)

    assert read(1).node.columnar
    assert not read(2).node.columnar
    assert not read(1, calls=AUTOTUNE).node.columnar
    assert not Dataset.range(3).flat_map(lambda n: Dataset.range(n + 1)).node.columnar
    expected = [b"%d %d" % (index, row) for index in range(3) for row in range(5)]
    assert numbers(read(1)) == expected
    assert numbers(read(1).batch(4)) == [expected[at : at + 4] for at in range(0, 15, 4)]
    some = numbers(Dataset.from_tensor_slices(names).flat_map(lambda name: TFRecordDataset(name).take(2)).batch(4))
    assert some == [[b"0 0", b"0 1", b"1 0", b"1 1"], [b"2 0", b"2 1"]]
