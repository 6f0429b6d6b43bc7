"""Files of a state: damage of any byte is detected, and loses only later saves."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.data.io import state_files
from headwater.data.io.disk import mounted
from headwater.data.io.state_files import Header, Spec, StateReader, StateWriter, bytes_of, find_chain
from headwater.errors import DataLossError
from tests.support.faulty_disk import FaultyDisk, Killed

ARRAYS = [np.arange(6, dtype=np.float32).reshape(2, 3), np.array(7, np.int64), np.zeros((0, 4), np.float16)]


def write(folder: Path, number: int, base: int = 0, arrays: list[np.ndarray] | None = None) -> int:
    """A file with all of some arrays, and rows of a table; its id."""
    arrays = ARRAYS if arrays is None else arrays
    specs = [Spec.of(str(at), array) for at, array in enumerate(arrays)]
    header = Header(
        number=number, id=100 + number, base=base, at=5.0, signature="s", facts={"version": number}, arrays=specs
    )
    with StateWriter(str(folder), header) as writer:
        for at, array in enumerate(arrays):
            writer.chunk(at, 0, bytes_of(array))
        writer.rows(0, np.array([number, 9]), [np.full((2, 2), number, np.float32)])
    assert writer.nbytes == os.path.getsize(writer.path)
    return header.id


def version(folder: Path) -> int:
    chain = find_chain(str(folder))
    return chain.last.facts["version"] if chain is not None and chain.paths else 0


def test_reads_the_written_state(tmp_path: Path) -> None:
    first = write(tmp_path, 1)
    write(tmp_path, 2, first, [ARRAYS[0] + 1, ARRAYS[1], np.ones((2, 4), np.float16)])
    chain = find_chain(str(tmp_path))
    assert chain is not None
    for array, expected in zip(chain.arrays(), [ARRAYS[0] + 1, ARRAYS[1], np.ones((2, 4))], strict=True):
        np.testing.assert_array_equal(array, expected)
    found = [(rows.numbers.tolist(), rows.split([("float32", (2,))])[0].tolist()) for rows in chain.rows()]
    assert found == [([1, 9], [[1, 1], [1, 1]]), ([2, 9], [[2, 2], [2, 2]])]


def test_bytes_that_a_delta_does_not_have_are_those_of_the_file_before(tmp_path: Path) -> None:
    first = write(tmp_path, 1)
    specs = [Spec.of(str(at), array) for at, array in enumerate(ARRAYS)]
    header = Header(number=2, id=8, base=first, at=6.0, signature="s", facts={}, arrays=specs)
    with StateWriter(str(tmp_path), header) as writer:
        writer.chunk(0, 8, bytes_of(np.array([50, 60], np.float32)))
    chain = find_chain(str(tmp_path))
    assert chain is not None
    assert chain.arrays()[0].tolist() == [[0, 1, 50], [60, 4, 5]]


@settings(max_examples=60)
@given(data=st.data())
def test_damage_of_any_byte_and_any_cut_is_noticed(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("states")
    write(folder, 2, write(folder, 1))
    path = folder / data.draw(st.sampled_from(["00000001.full", "00000002.delta"]))
    whole = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        whole[at] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del whole[at:]
    path.write_bytes(whole)
    with pytest.raises(DataLossError, match=str(path)), StateReader(str(path)) as reader:
        list(reader.pieces())
    chain = find_chain(str(folder))
    assert chain is not None
    assert str(path) in chain.problems[0]
    assert version(folder) == (1 if path.suffix == ".delta" else 0)


def test_a_delta_without_its_file_before_does_not_count(tmp_path: Path) -> None:
    first = write(tmp_path, 1)
    write(tmp_path, 2, first)
    write(tmp_path, 3, 102)
    (tmp_path / "00000002.delta").unlink()
    chain = find_chain(str(tmp_path))
    assert chain is not None
    assert chain.last.number == 1
    assert "00000003.delta: the file that it changes is not there" in chain.problems[0]


def test_a_damaged_whole_state_falls_back_to_the_chain_before(tmp_path: Path) -> None:
    write(tmp_path, 2, write(tmp_path, 1))
    write(tmp_path, 4, write(tmp_path, 3))
    (tmp_path / "00000003.full").write_bytes(b"")
    assert version(tmp_path) == 2


def test_a_process_that_is_killed_at_any_moment_leaves_the_state_before_or_the_new_one(tmp_path: Path) -> None:
    kill_at, found = 1, 0
    while found < 2:
        folder = tmp_path / str(kill_at)
        folder.mkdir()
        first = write(folder, 1)
        disk = FaultyDisk(kill_at=kill_at)
        with mounted(str(folder), disk):
            try:
                write(folder, 2, first)
            except Killed:
                assert version(folder) in (1, 2)
            else:
                found = version(folder)
        state_files.remove_unfinished(str(folder))
        assert {name for name in os.listdir(folder) if name.startswith(".")} == set()
        kill_at += 1
    assert kill_at > 5
