"""TFRecord files: written records are read, and damaged files are refused."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.data.io import crc32c
from headwater.data.io.tfrecord import (
    TFRecordCompressionType,
    TFRecordOptions,
    TFRecordReader,
    TFRecordWriter,
    tf_record_iterator,
)
from headwater.errors import DataLossError, FailedPreconditionError, NotFoundError

RECORDS = [b"abc", b"", b"x" * 10]
# What TensorFlow 1.15 writes for RECORDS.
GOLDEN = (
    b"\x03\x00\x00\x00\x00\x00\x00\x00\xb0\x99I\x0eabcnW\xf1!\x00\x00\x00\x00\x00\x00\x00\x00)\x03\x98\x07\xd8\xea"
    b"\x82\xa2\n\x00\x00\x00\x00\x00\x00\x00\xae\xa3\xbf:xxxxxxxxxx\xcf+\xb7\xd1"
)
COMPRESSIONS = ["", "GZIP", "ZLIB"]


def write(path: Path, records: list[bytes], options: object = None) -> Path:
    with TFRecordWriter(path, options) as writer:
        writer.write_all(records)
    return path


def test_checksum_of_the_standard_string() -> None:
    assert crc32c.value(b"123456789") == 0xE3069283
    assert crc32c.unmask(crc32c.mask(0xE3069283)) == 0xE3069283
    assert crc32c.extend(crc32c.value(b"1234"), b"56789") == 0xE3069283


def test_bytes_are_tensorflows(tmp_path: Path) -> None:
    assert write(tmp_path / "r", RECORDS).read_bytes() == GOLDEN


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_round_trip(tmp_path: Path, compression: str) -> None:
    records = [bytes([n % 256]) * (n * 37 % 5000) for n in range(2000)]
    path = write(tmp_path / "r", records, compression)
    assert list(tf_record_iterator(path, compression)) == records
    with TFRecordReader(path, TFRecordOptions(compression, input_buffer_size=7)) as reader:
        assert reader.read_block(3) == records[:3]
        assert reader.read_block(5000) == records[3:]
        assert reader.read_block(1) == []
        assert reader.offset == sum(16 + len(record) for record in records)


def test_compression_is_real(tmp_path: Path) -> None:
    path = write(tmp_path / "r", RECORDS, TFRecordOptions(TFRecordCompressionType.GZIP, compression_level=9))
    assert gzip.decompress(path.read_bytes()) == GOLDEN
    path = write(tmp_path / "r", RECORDS, TFRecordOptions("ZLIB", window_bits=9, mem_level=1))
    assert zlib.decompress(path.read_bytes()) == GOLDEN


def test_compressed_streams_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.write_bytes(gzip.compress(GOLDEN) + gzip.compress(GOLDEN))
    assert list(tf_record_iterator(path, "GZIP")) == RECORDS * 2


def test_flushed_records_can_be_read_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "r"
    for compression in ("", "GZIP"):
        with TFRecordWriter(path, compression) as writer:
            writer.write(b"first")
            writer.flush()
            with TFRecordReader(path, compression) as reader:
                assert reader.read_block(1) == [b"first"]


@pytest.mark.parametrize("size", [None, 5])
def test_a_growing_file_is_read_on(tmp_path: Path, size: int | None) -> None:
    path = tmp_path / "r"
    path.write_bytes(GOLDEN[:31])
    with TFRecordReader(path, TFRecordOptions(input_buffer_size=size)) as reader:
        assert reader.read_block(10) == [b"abc"]
        with pytest.raises(DataLossError, match="cut off at offset 19"):
            reader.read_block(10)
        path.write_bytes(GOLDEN)
        assert reader.read_block(10) == RECORDS[1:]


def test_closed_writer_refuses(tmp_path: Path) -> None:
    writer = TFRecordWriter(tmp_path / "r")
    writer.close()
    writer.close()
    with pytest.raises(FailedPreconditionError, match="closed"):
        writer.write(b"a")
    with pytest.raises(FailedPreconditionError, match="closed"):
        writer.flush()


def test_a_forgotten_writer_ends_its_file(tmp_path: Path) -> None:
    writer = TFRecordWriter(tmp_path / "r", "GZIP")
    writer.write(b"a")
    del writer
    assert list(tf_record_iterator(tmp_path / "r", "GZIP")) == [b"a"]


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ZIP"):
        TFRecordOptions("ZIP")
    with pytest.raises(ValueError, match="7"):
        TFRecordOptions(7)
    with pytest.raises(NotFoundError, match="missing"):
        TFRecordReader(tmp_path / "missing")
    with pytest.raises(NotFoundError, match="missing"):
        TFRecordWriter(tmp_path / "missing" / "r")
    with TFRecordWriter(tmp_path / "r") as writer, pytest.raises(TypeError, match="expected bytes, str found"):
        writer.write("text")  # type: ignore[arg-type]


def test_a_giant_length_allocates_nothing(tmp_path: Path) -> None:
    length = (1 << 60).to_bytes(8, "little")
    path = tmp_path / "r"
    path.write_bytes(length + crc32c.masked(length).to_bytes(4, "little") + b"abc")
    with TFRecordReader(path) as reader, pytest.raises(DataLossError, match="cut off at offset 0"):
        reader.read_block(1)


BUFFERS = [None, TFRecordOptions(input_buffer_size=5)]  # records within the buffer, and larger than it


@pytest.mark.parametrize("options", BUFFERS)
def test_every_flipped_bit_is_found(tmp_path: Path, options: TFRecordOptions | None) -> None:
    path = tmp_path / "r"
    for bit in range(len(GOLDEN) * 8):
        damaged = bytearray(GOLDEN)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        read: list[bytes] = []
        with pytest.raises(DataLossError, match=rf"{path}.* at offset (0|19|35)$"):
            read.extend(tf_record_iterator(path, options))
        assert read == RECORDS[: len(read)]


@pytest.mark.parametrize("options", BUFFERS)
def test_every_truncation_is_found(tmp_path: Path, options: TFRecordOptions | None) -> None:
    path = tmp_path / "r"
    for size in range(len(GOLDEN)):
        path.write_bytes(GOLDEN[:size])
        whole = [start for start in (0, 19, 35) if size - 12 < start <= size]
        if whole:  # the end of a record, or the file is cut within the next header, as while it is written
            assert len(list(tf_record_iterator(path, options))) == (0, 19, 35).index(whole[0])
        else:
            with pytest.raises(DataLossError, match="cut off at offset"):
                list(tf_record_iterator(path, options))


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_damage_to_compressed_files_is_found(tmp_path: Path, compression: str) -> None:
    records = [b"some text", b"more text" * 20]
    whole = write(tmp_path / "r", records, compression).read_bytes()
    path = tmp_path / "d"
    for size in range(1, len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(DataLossError, match=str(path)):
            list(tf_record_iterator(path, compression))
    unnoticed = 0
    for bit in range(len(whole) * 8):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            assert list(tf_record_iterator(path, compression)) == records
        except DataLossError as error:
            assert str(path) in str(error)  # noqa: PT017
        else:
            unnoticed += 1
    # Bits that carry nothing: time and system in gzip's header, what fills the last byte of compressed data.
    assert unnoticed < (70 if compression == "GZIP" else 8)


@given(records=st.lists(st.binary(max_size=200), max_size=20), chunk=st.integers(1, 64), block=st.integers(1, 8))
def test_records_survive_encoding(
    tmp_path_factory: pytest.TempPathFactory, records: list[bytes], chunk: int, block: int
) -> None:
    path = write(tmp_path_factory.mktemp("records") / "r", records)
    read: list[bytes] = []
    with TFRecordReader(path, TFRecordOptions(input_buffer_size=chunk)) as reader:
        while found := reader.read_block(block):
            read += found
    assert read == records


@given(data=st.binary(max_size=300))
def test_any_other_file_is_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("records") / "r"
    path.write_bytes(data)
    for compression in COMPRESSIONS:
        try:
            read = list(tf_record_iterator(path, compression))
        except DataLossError as error:
            assert str(path) in str(error)  # noqa: PT017
        else:
            assert sum(map(len, read)) < max(len(data), 1)
