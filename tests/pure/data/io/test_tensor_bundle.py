"""Checkpoints in TensorFlow's format: read as TensorFlow wrote them, written alike, refused when damaged."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from headwater import dtypes, errors
from headwater.data.io.bundle_writer import BundleWriter, merge_bundles
from headwater.data.io.protos.tensor_bundle_pb2 import BundleEntryProto, BundleHeaderProto
from headwater.data.io.table import build_table, read_table
from headwater.data.io.tensor_bundle import BundleReader
from headwater.data.io.tensor_slice import TensorSlice

FileSizeLimit = Callable[[int], AbstractContextManager[None]]
ROWS = np.arange(20, dtype=np.float32).reshape(10, 2)
EXPECTED: dict[str, Any] = {
    "weights": np.arange(12, dtype=np.float32).reshape(3, 4) / 8,
    "scope/scalar": np.float64(3.5),
    "int64": np.arange(5, dtype=np.int64),
    "global_step": np.int64(7),
    "strings": np.array([[b"a", b"bb"], [b"", "dé".encode() * 100]], object),
    "bfloat16": np.array([1.5, -2.0, 3.25], ml_dtypes.bfloat16),
    "bool": np.array([True, False]),
    "complex64": np.array([1 + 2j], np.complex64),
    "empty": np.zeros((0, 3), np.float32),
    **{t: np.array([1, 2, 100], t) for t in ("float16", "uint8", "int8", "int16", "uint16", "int32")},
    "rows/part": ROWS,
    "columns/part": np.arange(600, dtype=np.float32).reshape(3, 200),
}


def write(prefix: Path, tensors: dict[str, Any]) -> Path:
    with BundleWriter(prefix) as writer:
        for name, value in tensors.items():
            writer.add(name, value)
    return prefix


def read(prefix: Path) -> dict[str, Any]:
    with BundleReader(prefix) as reader:
        return {name: reader.read(name) for name in reader.keys()}  # noqa: SIM118


def check_equal(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        np.testing.assert_array_equal(found[name], value)


class TestTensorFlowsFiles:
    def test_every_element_type_is_read(self, data: Path) -> None:
        check_equal(read(data / "tf1" / "single-7"), EXPECTED)

    def test_shards_are_read(self, data: Path) -> None:
        expected = {"a": np.arange(3, dtype=np.float32), "b": np.array([b"x", b"yy"], object), "rows/part": ROWS}
        check_equal(read(data / "tf1" / "sharded"), expected)

    def test_types_shapes_and_slices(self, data: Path) -> None:
        with BundleReader(data / "tf1" / "sharded") as reader:
            assert dict(reader.dtypes) == {"a": dtypes.float32, "b": dtypes.string, "rows/part": dtypes.float32}
            assert dict(reader.shapes) == {"a": (3,), "b": (2,), "rows/part": (10, 2)}
            assert [str(part) for part in reader.slices("rows/part")] == ["0,4:0,2", "7,3:0,2", "4,3:0,2"]
            assert "a" in reader
            assert "c" not in reader
            with pytest.raises(errors.NotFoundError, match="Key c not found"):
                reader.read("c")

    @pytest.mark.parametrize("text", ["-:-", "0,4:-", "3,2:-", "2,8:1,1", "9,1:0,1"])
    def test_slices_however_they_were_cut(self, data: Path, text: str) -> None:
        part = TensorSlice.parse(text)
        for prefix in ("single-7", "sharded"):
            with BundleReader(data / "tf1" / prefix) as reader:
                np.testing.assert_array_equal(reader.read_slice("rows/part", part), ROWS[part.resolve((10, 2))])

    def test_the_same_tensors_are_written_alike(self, data: Path, tmp_path: Path) -> None:
        with BundleReader(data / "tf1" / "single-7") as reader, BundleWriter(tmp_path / "single-7") as writer:
            for name, shape in reader.shapes.items():
                for part in reader.slices(name):
                    writer.add_slice(name, shape, part, reader.read_slice(name, part))
                if not reader.slices(name):
                    writer.add(name, reader.read(name))
        for file in ("single-7.index", "single-7.data-00000-of-00001"):
            assert (tmp_path / file).read_bytes() == (data / "tf1" / file).read_bytes()


class TestWriting:
    def test_checkpoint_is_invisible_until_it_is_complete(self, tmp_path: Path) -> None:
        with BundleWriter(tmp_path / "new" / "c") as writer:
            writer.add("a", np.ones(1 << 20))
            assert list((tmp_path / "new").iterdir()) == []
        assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["c.data-00000-of-00001", "c.index"]

    def test_second_write_replaces_the_first(self, tmp_path: Path) -> None:
        for value in range(4):
            check_equal(read(write(tmp_path / "c", {"a": np.array(value)})), {"a": np.array(value)})
            assert len(list(tmp_path.iterdir())) in (2, 3)

    def test_leftovers_of_a_killed_process_go(self, tmp_path: Path) -> None:
        (tmp_path / "c.data-00000-of-00001").write_bytes(b"left over")
        write(tmp_path / "c", {"a": np.ones(3)})
        names = sorted(path.name for path in tmp_path.iterdir())
        assert names == ["c.data-00000-of-00002", "c.data-00001-of-00002", "c.index"]

    def test_arrays_of_other_layouts(self, tmp_path: Path) -> None:
        array = np.arange(12, dtype=np.int32).reshape(3, 4)
        big_endian = array.astype(">i4")
        check_equal(
            read(write(tmp_path / "c", {"t": array.T, "s": array[:, ::2], "b": big_endian})),
            {"t": array.T, "s": array[:, ::2], "b": array},
        )

    def test_an_element_type_that_the_array_does_not_tell(self, tmp_path: Path) -> None:
        with BundleWriter(tmp_path / "c") as writer:
            writer.add("q", np.array([1], np.int8), dtypes.qint8)
        with BundleReader(tmp_path / "c") as reader:
            assert reader.dtypes["q"] == dtypes.qint8
            assert reader.read("q").tolist() == [1]

    def test_wrong_arguments(self, tmp_path: Path) -> None:
        part = TensorSlice.parse("0,1")
        with BundleWriter(tmp_path / "c") as writer:
            writer.add("a", np.ones(2))
            writer.add_slice("p", [2], part, np.ones(1))
            for name in ("", "\0x"):
                with pytest.raises(errors.InvalidArgumentError, match="cannot be the name"):
                    writer.add(name, np.ones(2))
            for name in ("a", "p"):
                with pytest.raises(errors.InvalidArgumentError, match="already"):
                    writer.add(name, np.ones(2))
            with pytest.raises(errors.InvalidArgumentError, match="already"):
                writer.add_slice("a", [2], part, np.ones(1))
            with pytest.raises(errors.InvalidArgumentError, match="already"):
                writer.add_slice("p", [2], part, np.ones(1))
            with pytest.raises(errors.InvalidArgumentError, match="differ"):
                writer.add_slice("p", [3], TensorSlice.parse("1,1"), np.ones(1))
            with pytest.raises(errors.InvalidArgumentError, match="differ"):
                writer.add_slice("p", [2], TensorSlice.parse("1,1"), np.ones(1, np.float32))
            with pytest.raises(errors.InvalidArgumentError, match="got a value of shape"):
                writer.add_slice("p", [2], TensorSlice.parse("1,1"), np.ones(2))
            with pytest.raises(TypeError):
                writer.add("o", np.array([object()]))
            writer.add_slice("p", [2], TensorSlice.parse("1,1"), np.ones(1))
            writer.discard()
            writer.discard()
            with pytest.raises(errors.FailedPreconditionError, match="discarded"):
                writer.finish()
        assert not (tmp_path / "c.index").exists()

    @pytest.mark.parametrize("limit", [10, 200_000])
    def test_a_full_disk_leaves_the_old_checkpoint(
        self, tmp_path: Path, file_size_limit: FileSizeLimit, limit: int
    ) -> None:
        prefix = write(tmp_path / "c", {"a": np.ones(2)})
        with file_size_limit(limit), pytest.raises(errors.ResourceExhaustedError, match=str(prefix)):
            write(prefix, {"a": np.ones(10_000), "b": np.ones(1_000_000)})
        assert sorted(path.name for path in tmp_path.iterdir()) == ["c.data-00000-of-00001", "c.index"]
        check_equal(read(prefix), {"a": np.ones(2)})

    def test_a_full_disk_for_the_index_leaves_the_old_checkpoint(
        self, tmp_path: Path, file_size_limit: FileSizeLimit
    ) -> None:
        prefix = write(tmp_path / "c", {"a": np.ones(2)})
        with file_size_limit(1000), pytest.raises(errors.ResourceExhaustedError, match="index"):
            write(prefix, {f"name{n}": np.int8(n) for n in range(100)})
        assert sorted(path.name for path in tmp_path.iterdir()) == ["c.data-00000-of-00001", "c.index"]
        check_equal(read(prefix), {"a": np.ones(2)})

    @given(
        st.dictionaries(
            st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8),
            hnp.arrays(
                st.sampled_from([np.float32, np.int64, np.bool_, np.uint8, np.complex64, np.float16]),
                hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
            )
            | st.lists(st.binary(max_size=300), max_size=5).map(lambda items: np.array([*items, b""], object)[:-1]),
            max_size=6,
        )
    )
    def test_tensors_survive_encoding(self, tmp_path_factory: pytest.TempPathFactory, tensors: dict[str, Any]) -> None:
        check_equal(read(write(tmp_path_factory.mktemp("bundle") / "c", tensors)), tensors)


class TestMerging:
    def parts(self, folder: Path) -> list[Path]:
        prefixes = [folder / "c_temp" / f"part-{n:05d}-of-00003" for n in range(3)]
        pieces = ("0,4:-", "4,3:-", "7,3:-")
        for n, (prefix, piece) in enumerate(zip(prefixes, pieces, strict=True)):
            part = TensorSlice.parse(piece)
            with BundleWriter(prefix) as writer:
                writer.add(f"v{n}", np.full(3, n))
                writer.add_slice("rows", (10, 2), part, ROWS[part.resolve((10, 2))])
        return prefixes

    def test_shards_become_one_checkpoint(self, tmp_path: Path) -> None:
        merge_bundles(self.parts(tmp_path), tmp_path / "c")
        check_equal(read(tmp_path / "c"), {"rows": ROWS, **{f"v{n}": np.full(3, n) for n in range(3)}})
        names = sorted(path.name for path in tmp_path.iterdir())
        assert names == [*(f"c.data-{n:05d}-of-00003" for n in range(3)), "c.index"]

    def test_second_merge_replaces_the_first(self, tmp_path: Path) -> None:
        for _ in range(3):
            merge_bundles(self.parts(tmp_path), tmp_path / "c")
            assert len(read(tmp_path / "c")) == 4
        merge_bundles(self.parts(tmp_path)[:1], tmp_path / "d", delete_old_folders=False)
        assert (tmp_path / "c_temp").is_dir()

    def test_the_same_tensor_twice(self, tmp_path: Path) -> None:
        prefixes = [write(tmp_path / name, {"a": np.ones(1)}) for name in ("x", "y")]
        with pytest.raises(errors.InvalidArgumentError, match="'a' is in two"):
            merge_bundles(prefixes, tmp_path / "c")
        check_equal(read(prefixes[0]), {"a": np.ones(1)})
        merge_bundles([], tmp_path / "none")
        assert read(tmp_path / "none") == {}

    def test_slices_that_differ(self, tmp_path: Path) -> None:
        prefixes = [tmp_path / "x", tmp_path / "y", tmp_path / "z"]
        for prefix, size, start in zip(prefixes, (2, 3, 2), (0, 1, 0), strict=True):
            with BundleWriter(prefix) as writer:
                writer.add_slice("a", [size], TensorSlice(starts=(start,), lengths=(1,)), np.ones(1))
        with pytest.raises(errors.InvalidArgumentError, match="differ"):
            merge_bundles(prefixes[:2], tmp_path / "c")
        with pytest.raises(errors.InvalidArgumentError, match="another checkpoint"):
            merge_bundles(prefixes[::2], tmp_path / "c")

    def test_a_missing_shard(self, tmp_path: Path) -> None:
        prefixes = self.parts(tmp_path)
        with pytest.raises(errors.NotFoundError, match="nothing"):
            merge_bundles([*prefixes, tmp_path / "nothing"], tmp_path / "c")
        with BundleReader(prefixes[0]) as reader:
            assert reader.read("v0").tolist() == [0, 0, 0]


class TestDamage:
    TENSORS = {"floats": np.ones(3, np.float32), "text": np.array([b"one", b"two"], object)}

    @pytest.mark.parametrize("file", ["c.index", "c.data-00000-of-00001"])
    def test_every_flipped_bit_and_every_cut_is_found(self, tmp_path: Path, file: str) -> None:
        prefix = write(tmp_path / "c", self.TENSORS)
        whole = (tmp_path / file).read_bytes()
        for bit in range(8 * len(whole)):
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << bit % 8
            (tmp_path / file).write_bytes(damaged)
            with pytest.raises(errors.DataLossError, match=f"{tmp_path / file}.*offset"):
                read(prefix)
        for size in range(len(whole)):
            (tmp_path / file).write_bytes(whole[:size])
            with pytest.raises(errors.DataLossError, match="offset"):
                read(prefix)

    def test_missing_files(self, tmp_path: Path) -> None:
        with pytest.raises(errors.NotFoundError, match=r"c\.index"):
            BundleReader(tmp_path / "c")
        prefix = write(tmp_path / "c", self.TENSORS)
        (tmp_path / "c.data-00000-of-00001").unlink()
        with BundleReader(prefix) as reader, pytest.raises(errors.NotFoundError, match="data-00000"):
            reader.read("floats")

    def rewrite(self, prefix: Path, change: Callable[[dict[bytes, Any]], None]) -> None:
        path = Path(f"{prefix}.index")
        table: dict[bytes, Any] = {
            key: (BundleEntryProto if key else BundleHeaderProto).FromString(packed) for key, packed in read_table(path)
        }
        change(table)
        path.write_bytes(
            build_table({k: v if isinstance(v, bytes) else v.SerializeToString() for k, v in table.items()})
        )

    @pytest.mark.parametrize(
        ("change", "error"),
        [
            (lambda t: t.pop(b""), errors.DataLossError),
            (lambda t: t[b""].ClearField("num_shards"), errors.DataLossError),
            (lambda t: t.update({b"": b"\xff"}), errors.DataLossError),
            (lambda t: t.update({b"floats": b"\xff"}), errors.DataLossError),
            (lambda t: t.update({b"\xff": t[b"floats"]}), errors.DataLossError),
            (lambda t: setattr(t[b""], "endianness", 1), errors.UnimplementedError),
            (lambda t: setattr(t[b""].version, "min_consumer", 2), errors.InvalidArgumentError),
            (lambda t: t[b""].version.bad_consumers.append(1), errors.InvalidArgumentError),
            (lambda t: setattr(t[b"floats"], "shard_id", 1), errors.DataLossError),
            (lambda t: setattr(t[b"floats"], "shard_id", -1), errors.DataLossError),
            (lambda t: setattr(t[b"floats"], "offset", 1 << 60), errors.DataLossError),
            (lambda t: setattr(t[b"floats"], "offset", -1), errors.DataLossError),
            (lambda t: setattr(t[b"floats"], "size", 1 << 60), errors.DataLossError),
            (lambda t: setattr(t[b"floats"], "size", -12), errors.DataLossError),
            (lambda t: setattr(t[b"floats"], "crc32c", 1), errors.DataLossError),
            (lambda t: setattr(t[b"floats"], "dtype", 2), errors.DataLossError),
            (lambda t: setattr(t[b"floats"], "dtype", 7), errors.DataLossError),
            (lambda t: setattr(t[b"floats"], "dtype", 20), errors.UnimplementedError),
            (lambda t: setattr(t[b"floats"], "dtype", 77), errors.UnimplementedError),
            (lambda t: setattr(t[b"floats"], "dtype", 101), errors.UnimplementedError),
            (lambda t: setattr(t[b"floats"].shape.dim[0], "size", 1 << 60), errors.DataLossError),
            (lambda t: setattr(t[b"floats"].shape.dim[0], "size", -1), errors.DataLossError),
            (lambda t: setattr(t[b"floats"].shape, "unknown_rank", True), errors.DataLossError),
            (lambda t: [t[b"floats"].shape.dim.add(size=1 << 60) for _ in range(300)], errors.DataLossError),
            (lambda t: setattr(t[b"text"].shape.dim[0], "size", 1 << 60), errors.DataLossError),
            (lambda t: setattr(t[b"text"].shape.dim[0], "size", 3), errors.DataLossError),
            (lambda t: setattr(t[b"text"].shape.dim[0], "size", 1), errors.DataLossError),
            (lambda t: setattr(t[b"text"].shape.dim[0], "size", 0), errors.DataLossError),
            (lambda t: t[b"floats"].slices.add().extent.add(start=1), errors.DataLossError),
            (lambda t: t[b"floats"].slices.add().extent.add(start=0, length=2), errors.DataLossError),
            (lambda t: t[b"floats"].slices.add(), errors.DataLossError),
        ],
    )
    def test_an_index_that_lies(self, tmp_path: Path, change: Any, error: type[errors.OpError]) -> None:
        prefix = write(tmp_path / "c", self.TENSORS)
        self.rewrite(prefix, change)
        with pytest.raises(error, match=str(prefix)):
            read(prefix)

    def test_an_empty_tensor_of_giant_dimensions(self, tmp_path: Path) -> None:
        prefix = write(tmp_path / "c", {"a": np.zeros((0, 1), np.float32)})
        self.rewrite(prefix, lambda table: setattr(table[b"a"].shape.dim[1], "size", 1 << 62))
        with pytest.raises(errors.DataLossError, match=str(prefix)):
            read(prefix)

    @pytest.mark.parametrize(
        "change",
        [
            lambda t, key: t.pop(key),
            lambda t, key: t[b"rows"].slices.pop(),
            lambda t, key: t[b"rows"].slices.add().CopyFrom(t[b"rows"].slices[0]),
            lambda t, key: setattr(t[b"rows"].slices[1].extent[0], "start", 3),
            lambda t, key: setattr(t[key], "dtype", 3),
            lambda t, key: setattr(t[key].shape.dim[0], "size", 4),
            lambda t, key: setattr(t[b"rows"].shape.dim[0], "size", 1 << 60),
            lambda t, key: (setattr(t[b"rows"].shape.dim[0], "size", 1 << 60), _stretch(t, key)),
        ],
    )
    def test_slices_that_lie(self, tmp_path: Path, change: Any) -> None:
        parts = [TensorSlice.parse(text) for text in ("0,5:-", "5,5:-")]
        with BundleWriter(tmp_path / "c") as writer:
            for part in parts:
                writer.add_slice("rows", (10, 2), part, ROWS[part.resolve((10, 2))])
        self.rewrite(tmp_path / "c", lambda table: change(table, parts[1].key("rows")))
        with pytest.raises(errors.DataLossError, match="rows"):
            read(tmp_path / "c")


def _stretch(table: dict[bytes, Any], key: bytes) -> None:
    """Makes the second slice as large as a giant tensor needs, in the index alone."""
    length = (1 << 60) - 5
    table[b"rows"].slices[1].extent[0].length = length
    entry = table.pop(key)
    entry.shape.dim[0].size = length
    table[TensorSlice(starts=(5, 0), lengths=(length, -1)).key("rows")] = entry
