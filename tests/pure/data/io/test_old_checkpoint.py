"""Checkpoints of format V1: files of TensorFlow are read, and damaged files are refused."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import dtypes, errors
from headwater.data.io import crc32c, snappy, varint
from headwater.data.io.old_checkpoint import OldReader, open_checkpoint, write_old_checkpoint
from headwater.data.io.table import read_table
from headwater.data.io.tensor_bundle import BundleReader
from headwater.data.io.tensor_slice import TensorSlice

ROWS = np.arange(20, dtype=np.float32).reshape(10, 2)
PATTERN = "old-?????-of-00002"


@pytest.fixture
def old(data: Path) -> OldReader:
    return OldReader(data / "tf1" / PATTERN)


def test_a_checkpoint_of_tensorflow_is_read(old: OldReader) -> None:
    numbers = [1, 2, 100]
    for name, dtype in (
        ("bool", dtypes.bool_),
        ("uint8", dtypes.uint8),
        ("int64", dtypes.int64),
        ("float16", dtypes.float16),
        ("float64", dtypes.float64),
    ):
        assert old.dtypes[name] == dtype
        np.testing.assert_array_equal(old.read(name), np.array(numbers, dtype.numpy_dtype))
    assert old.read("b").tolist() == [b"x", b"yy"]
    assert old.read("empty").shape == old.shapes["empty"] == (0, 3)
    np.testing.assert_array_equal(old.read("rows/part"), ROWS)
    assert "a" in old
    with pytest.raises(errors.NotFoundError, match="Key c not found"):
        old.read("c")


@pytest.mark.parametrize("text", ["-:-", "0,4:-", "3,2:-", "2,8:1,1", "9,1:0,1"])
def test_slices_however_they_were_cut(old: OldReader, text: str) -> None:
    part = TensorSlice.parse(text)
    np.testing.assert_array_equal(old.read_slice("rows/part", part), ROWS[part.resolve((10, 2))])


def test_each_format_has_its_reader(data: Path, tmp_path: Path) -> None:
    assert isinstance(open_checkpoint(data / "tf1" / PATTERN), OldReader)
    assert isinstance(open_checkpoint(data / "tf1" / "single-7"), BundleReader)
    with pytest.raises(errors.NotFoundError):
        open_checkpoint(tmp_path / "none")
    with pytest.raises(errors.NotFoundError):
        OldReader(tmp_path / "none")


def test_a_missing_file_is_found(data: Path, tmp_path: Path) -> None:
    shutil.copy(data / "tf1" / "old-00000-of-00002", tmp_path)
    with pytest.raises(errors.DataLossError, match="do not cover"):
        OldReader(tmp_path / PATTERN).read("rows/part")


def test_damage_is_found(data: Path, tmp_path: Path) -> None:
    whole = (data / "tf1" / "old-00000-of-00002").read_bytes()
    path = tmp_path / "m"
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(errors.DataLossError, match=f"{path}.*offset"):
            OldReader(path)


# Compressed tables ----------------------------------------------------------------------------------------------


def block(content: bytes, kind: int) -> bytes:
    return content + bytes([kind]) + crc32c.masked(content + bytes([kind])).to_bytes(4, "little")


def compressed_table(content: bytes, kind: int = 1) -> bytes:
    """A table of one data block that holds ``content`` as it is, with ``kind`` for its compression."""
    data = block(content, kind)
    empty = block(b"\0" * 4 + b"\1\0\0\0", 0)
    handle = varint.encode(0) + varint.encode(len(content))
    entries = b"\0\1" + bytes([len(handle)]) + b"z" + handle
    index = entries + b"\0" * 4 + b"\1\0\0\0"
    places = (len(data), 8, len(data) + len(empty), len(index))
    footer = b"".join(map(varint.encode, places)).ljust(40, b"\0") + (0xDB4775248B80FB57).to_bytes(8, "little")
    return data + empty + block(index, 0) + footer


def test_a_compressed_table_is_read(tmp_path: Path) -> None:
    # The entry y = 64 times "ab": a literal of its head and "ab", a copy of 60 from 2 bytes before, another, the rest.
    head = b"\0\1" + varint.encode(128) + b"y" + b"ab"
    tail = b"\0" * 4 + b"\1\0\0\0"
    packed = varint.encode(len(head) + 126 + len(tail)) + bytes([len(head) - 1 << 2]) + head
    packed += bytes([59 << 2 | 2, 2, 0]) * 2 + bytes([2 << 2 | 1, 2]) + bytes([len(tail) - 1 << 2]) + tail
    path = tmp_path / "t"
    path.write_bytes(compressed_table(packed))
    assert read_table(path) == [(b"y", b"ab" * 64)]
    path.write_bytes(compressed_table(packed[:-1]))
    with pytest.raises(errors.DataLossError, match=f"{path}: a compressed block .* offset 0"):
        read_table(path)
    path.write_bytes(compressed_table(packed, kind=2))
    with pytest.raises(errors.UnimplementedError, match="compressed"):
        read_table(path)


def test_reads_snappy_compression() -> None:
    text = b"the quick fox, the quick dog, " * 4 + bytes(100)
    written = b"\xdc\x018the quick fox, \x19\x0f\x08dog.\x0f\x00\xfe\x1e\x00>\x1e\x00\x00\x00\xfe\x01\x00\x8a\x01\x00"
    assert snappy.decompress(written) == text


@given(st.binary(max_size=70_000), st.integers(0, 3))
def test_literals_of_any_length(data: bytes, more: int) -> None:
    size = len(data) - 1
    if size >= 0:
        tag = bytes([size << 2]) if size < 60 else bytes([62 << 2]) + size.to_bytes(3, "little")
        assert snappy.decompress(varint.encode(len(data)) + tag + data) == data
        with pytest.raises(ValueError, match=r"past the end|in place of"):
            snappy.decompress(varint.encode(len(data) + more + 1) + tag + data)


@given(st.binary(max_size=60))
def test_malformed_data_is_rejected_or_decompressed(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert len(snappy.decompress(data)) == varint.decode(data, 0, len(data))[0]


def test_written_slices_are_read_as_a_whole(tmp_path: Path) -> None:
    values = {
        "bool": np.array([True, False]),
        "int8": np.array([-1, 3], np.int8),
        "float16": np.array([1.0, -2.0], np.float16),
        "complex": np.array([1 + 2j], np.complex64),
        "text": np.array([b"x", b""], object),
        "none": np.zeros((0, 3), np.int32),
        "one": np.array(5, np.int64),
    }
    parts = [(name, value.shape, TensorSlice.whole(value.ndim), value) for name, value in values.items()]
    rows = [TensorSlice.parse(text) for text in ("0,4:-", "4,6:-")]
    write_old_checkpoint(tmp_path / "old", [*parts, *(("rows", (10, 2), at, ROWS[at.resolve((10, 2))]) for at in rows)])
    with open_checkpoint(tmp_path / "old") as reader:
        assert isinstance(reader, OldReader)
        for name, value in values.items():
            found = reader.read(name)
            assert found.dtype == value.dtype
            assert found.tolist() == value.tolist()
        np.testing.assert_array_equal(reader.read("rows"), ROWS)
