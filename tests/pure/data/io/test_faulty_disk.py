"""Every writer, killed at each of its steps, on a disk that is full at each, or that flips a bit at each."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from headwater import errors
from headwater.data.dataset import Dataset
from headwater.data.io import files
from headwater.data.io.bundle_writer import BundleWriter, merge_bundles
from headwater.data.io.disk import mounted
from headwater.data.io.event_file import EventFile, summary_iterator
from headwater.platform.host.records import AttemptFolder
from headwater.tensorboard_protos import event_pb2
from headwater.tf1.training.checkpoint_reader import load_checkpoint
from headwater.tf1.training.checkpoint_state import latest_checkpoint, remove_checkpoint, update_checkpoint_state
from tests.support.faulty_disk import FaultyDisk, Killed

pytestmark = pytest.mark.slow

SIZE = 3000


def save_checkpoint(folder: Path, number: int) -> None:
    """As a saver does with two shards: all values are ``number``; the one before the last is deleted."""
    parts = [str(folder / f"m-{number}_temp" / f"part-{shard}") for shard in range(2)]
    for name, part in zip("ab", parts, strict=True):
        with BundleWriter(part) as writer:
            writer.add(name, np.full(SIZE, number, np.int64))
    merge_bundles(parts, folder / f"m-{number}")
    kept = [str(folder / f"m-{one}") for one in (number - 1, number)]
    update_checkpoint_state(folder, kept[-1], kept)
    remove_checkpoint(folder / f"m-{number - 2}")


def load_checkpoint_number(folder: Path) -> int:
    newest = latest_checkpoint(folder)
    assert newest is not None
    reader = load_checkpoint(newest)
    (number,) = {int(value) for name in "ab" for value in reader.get_tensor(name)}
    return number


def save_file(folder: Path, number: int) -> None:
    with files.atomic_write(folder / "state") as file:
        file.write(f"{number:08d}".encode() * SIZE)


def load_file(folder: Path) -> int:
    content = (folder / "state").read_text()
    assert content == content[:8] * SIZE
    return int(content[:8])


def save_record(folder: Path, number: int) -> None:
    AttemptFolder(folder).write("exit", {"code": number, "lines": ["x" * SIZE]})


def load_record(folder: Path) -> int:
    found = AttemptFolder(folder).read("exit")
    assert found is not None
    assert found["lines"] == ["x" * SIZE]
    return int(found["code"])


WRITERS = pytest.mark.parametrize(
    ("save", "load"),
    [(save_checkpoint, load_checkpoint_number), (save_file, load_file), (save_record, load_record)],
    ids=["checkpoint", "file", "record"],
)
Save = Callable[[Path, int], None]
Load = Callable[[Path], int]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return tmp_path / "saved"


def fresh(folder: Path, save: Save) -> FaultyDisk:
    """A folder in which 1 and then 2 were saved, and the disk that counted the steps of the latter."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    save(folder, 1)
    disk = FaultyDisk()
    with mounted(folder, disk):
        save(folder, 2)
    return disk


@WRITERS
def test_killed_at_each_step(saved: Path, save: Save, load: Load) -> None:
    steps = fresh(saved, save).steps
    assert steps >= 4
    found: list[int] = []
    for step in range(1, steps + 2):
        fresh(saved, save)
        try:
            with mounted(saved, FaultyDisk(kill_at=step)):
                save(saved, 3)
        except Killed:
            found.append(load(saved))
        save(saved, 4)
        assert load(saved) == 4
    assert found == sorted(found)
    assert set(found) <= {2, 3}
    assert found[0] == 2


@WRITERS
def test_a_full_disk_at_each_amount(saved: Path, save: Save, load: Load) -> None:
    for room in range(0, 60_000, 2311):
        fresh(saved, save)
        disk = FaultyDisk(room=room)
        with mounted(saved, disk):
            try:
                save(saved, 3)
            except errors.ResourceExhaustedError as error:
                told = str(saved) in error.message
                assert told
                assert load(saved) == 2
            else:
                assert load(saved) == 3
            disk.room = None
            save(saved, 4)
        assert load(saved) == 4


@WRITERS
def test_a_flipped_bit_at_each_step(saved: Path, save: Save, load: Load) -> None:
    if load is load_file:
        pytest.skip("the plain text of this writer has no checksum")
    for step in range(1, fresh(saved, save).steps + 1):
        fresh(saved, save)
        done = False
        try:
            with mounted(saved, FaultyDisk(flip_at=step)):
                save(saved, 3)
            done = True
            fine = load(saved) == 3
        except errors.DataLossError as error:
            fine = str(saved) in error.message
        assert fine
        if not done:  # it was noticed while the shards were merged
            assert load(saved) == 2


def test_events_before_a_kill_are_whole(tmp_path: Path) -> None:
    def write(folder: Path, kill_at: int = 0) -> tuple[int, int]:
        disk, flushed = FaultyDisk(kill_at=kill_at), 0
        with mounted(folder, disk):
            try:
                file = EventFile(folder)
                for step in range(1, 10):
                    file.write(event_pb2.Event(step=step).SerializeToString())
                    file.flush()
                    flushed = step
                file.close()
            except Killed:
                pass
        return disk.steps, flushed

    steps, _ = write(tmp_path / "all")
    for kill_at in range(1, steps + 1):
        folder = tmp_path / str(kill_at)
        _, flushed = write(folder, kill_at)
        read: list[int] = []
        for path in folder.iterdir() if folder.exists() else ():
            with contextlib.suppress(errors.DataLossError):  # of the torn end
                read.extend(event.step for event in summary_iterator(path))
        read = [step for step in read if step]  # without the first, which tells of the format
        assert read == list(range(1, flushed + 1))


def test_an_incomplete_cache_is_ignored(tmp_path: Path) -> None:
    def elements(folder: Path) -> list[int]:
        return [int(value) for value in Dataset.range(2000).cache(str(folder / "cache"))]

    (tmp_path / "all").mkdir()
    disk = FaultyDisk()
    with mounted(tmp_path / "all", disk):
        wanted = elements(tmp_path / "all")
    for kill_at in range(1, disk.steps + 1):
        folder = tmp_path / str(kill_at)
        folder.mkdir()
        with mounted(folder, FaultyDisk(kill_at=kill_at)), pytest.raises(Killed):
            elements(folder)
        assert elements(folder) == wanted
