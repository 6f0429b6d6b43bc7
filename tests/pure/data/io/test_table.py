"""Sorted tables: written entries are read, and damaged tables are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.data.io import varint
from headwater.data.io.table import build_table, read_table
from headwater.errors import DataLossError, OpError


def test_a_table_of_tensorflow_is_reproduced(data: Path) -> None:
    path = data / "tf1" / "single-7.index"
    assert build_table(dict(read_table(path))) == path.read_bytes()


def test_many_blocks(tmp_path: Path) -> None:
    entries = {b"name/%06d" % n: bytes([n % 256]) * (n % 90) for n in range(20_000)}
    path = tmp_path / "t"
    path.write_bytes(build_table(entries))
    assert path.stat().st_size > 2 * (256 << 10)
    assert read_table(path) == sorted(entries.items())


@given(st.dictionaries(st.binary(max_size=20), st.binary(max_size=300), max_size=60))
def test_entries_survive_encoding(tmp_path_factory: pytest.TempPathFactory, entries: dict[bytes, bytes]) -> None:
    path = tmp_path_factory.mktemp("table") / "t"
    path.write_bytes(build_table(entries))
    assert read_table(path) == sorted(entries.items())


def test_every_flipped_bit_and_every_cut_is_found(tmp_path: Path) -> None:
    whole = build_table({b"a": b"1", b"ab": b"22", b"b": b""})
    path = tmp_path / "t"
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(DataLossError, match=f"{path}.*offset"):
            read_table(path)
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(DataLossError, match=f"{path}.*offset"):
            read_table(path)


@given(st.binary(max_size=200))
def test_any_other_file_is_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("table") / "t"
    path.write_bytes(data + (0xDB4775248B80FB57).to_bytes(8, "little"))
    with pytest.raises(OpError, match=str(path)):
        read_table(path)


@given(st.lists(st.integers(0, (1 << 64) - 1)))
def test_varints(numbers: list[int]) -> None:
    import numpy as np

    data = b"".join(map(varint.encode, numbers))
    assert varint.decode_all(np.frombuffer(data, np.uint8)).tolist() == numbers
    position = 0
    for number in numbers:
        found, position = varint.decode(data, position, len(data))
        assert found == number
    assert position == len(data)


def test_endless_varints() -> None:
    import numpy as np

    for data in (b"\x80", b"\x01\x80", b"\x80" * 10 + b"\x01"):
        with pytest.raises(ValueError, match="number"):
            varint.decode_all(np.frombuffer(data, np.uint8))
    for data in (b"", b"\x80", b"\x80" * 10 + b"\x01"):
        with pytest.raises(ValueError, match="number"):
            varint.decode(data, 0, len(data))
