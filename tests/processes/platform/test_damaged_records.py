"""A bit of a platform record flips, or the record is lost: an error names the file, or nothing changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.cluster.names import TaskName
from headwater.errors import DataLossError
from headwater.platform.backends.base import BackendError, Lost, Running
from headwater.platform.backends.local import LocalBackend, LocalSettings
from headwater.platform.host.records import AttemptFolder, HostFolder
from tests.support.tasks import ValuePipe, ends, order

PAUSE = "tell(os.getpid()); signal.pause()"


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[LocalBackend]:
    backend = LocalBackend(LocalSettings(state_dir=tmp_path / "state"))
    yield backend
    for folder in (tmp_path / "state" / "jobs").glob("*"):
        backend.release(folder.name)


@pytest.fixture
def told(tmp_path: Path) -> Iterator[ValuePipe]:
    told = ValuePipe(tmp_path)
    yield told
    told.close()


def records(tmp_path: Path) -> AttemptFolder:
    """Returns the records of the only attempt."""
    (path,) = (tmp_path / "state" / "jobs").glob("*/*/0")
    return AttemptFolder(path)


def with_each_byte_damaged(path: Path, check: Callable[[], None]) -> None:
    """Calls ``check`` with a bit flipped in every byte, then with the file truncated at some positions."""
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :])
        check()
    for length in range(0, len(content), 16):
        path.write_bytes(content[:length])
        check()
    path.write_bytes(content)


def test_how_a_task_ended(backend: LocalBackend, tmp_path: Path) -> None:
    handle = backend.start(order(backend, tmp_path, "sys.exit(3)"))
    ended = ends(backend, handle)
    path = records(tmp_path).path / "exit.json"

    def check() -> None:
        state = backend.poll(handle)
        assert state == ended or (isinstance(state, Lost) and str(path) in state.reason)

    with_each_byte_damaged(path, check)
    path.unlink()
    state = backend.poll(handle)
    assert isinstance(state, Lost)
    assert "its keeper" in state.reason


def test_a_damaged_keeper_record(backend: LocalBackend, tmp_path: Path, told: ValuePipe) -> None:
    ordered = order(backend, tmp_path, PAUSE)
    handle = backend.start(ordered)
    pid = told()
    path = records(tmp_path).path / "keeper.json"

    def check() -> None:
        state = backend.poll(handle)
        assert isinstance(state, Running) or (isinstance(state, Lost) and str(path) in state.reason)

    with_each_byte_damaged(path, check)
    path.write_bytes(b"?")
    # It counts as lost and is restarted; before that, all its processes must have ended.
    backend.release(ordered.job_id)
    assert not Path(f"/proc/{pid}").exists() or Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"


def test_a_damaged_order_record(backend: LocalBackend, tmp_path: Path) -> None:
    ordered = order(backend, tmp_path, "pass")
    ends(backend, backend.start(ordered))
    path = records(tmp_path).path / "order.json"
    content = path.read_bytes()
    for damaged in (content[:-20] + b"0" + content[-19:], content[:40], None):
        if damaged is None:
            path.unlink()
        else:
            path.write_bytes(damaged)
        with pytest.raises(BackendError, match=str(path)):
            backend.start(ordered)


def test_the_name_of_a_root(tmp_path: Path) -> None:
    folder = HostFolder(tmp_path)
    folder.prepare()
    name = folder.name
    path = tmp_path / "id"

    def check() -> None:
        try:
            assert folder.name == name
        except DataLossError as error:
            found = error.message
        else:
            found = str(path)
        assert str(path) in found
        try:
            folder.prepare()
        except DataLossError as error:
            found = error.message
        assert str(path) in found

    with_each_byte_damaged(path, check)
    mark = folder.task_marker("job", TaskName("worker", 0))
    folder.make_attempt("job", TaskName("worker", 0), 0).write("order", {"mark": mark})
    for damage in (path.unlink, lambda: os.truncate(path, 5)):
        damage()
        folder.prepare()
        assert folder.name == name


def test_a_server_without_a_readable_id_does_not_start(tmp_path: Path) -> None:
    LocalBackend(LocalSettings(state_dir=tmp_path / "state"))
    (tmp_path / "state" / "id").write_text("?")
    with pytest.raises(BackendError, match=f"{tmp_path}/state/id is damaged"):
        LocalBackend(LocalSettings(state_dir=tmp_path / "state"))
