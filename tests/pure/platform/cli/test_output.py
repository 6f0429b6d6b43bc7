from __future__ import annotations

from pathlib import Path

import pytest

from headwater.cluster.names import TaskName
from headwater.platform.cli.launcher.output import PlainView, TaskLog, make_view
from tests.support.small_disk import small_disk

WORKER = TaskName("worker", 0)


def test_a_log_keeps_the_last_lines_and_writes_all(tmp_path: Path) -> None:
    log = TaskLog(WORKER, tmp_path)
    for number in range(100):
        log.write(b"%d\n" % number)
        log.add(str(number))
    log.close()
    assert log.last_lines()[-1] == "99"
    assert len(log.last_lines()) < 100
    assert (tmp_path / "worker-0.log").read_bytes().split() == [b"%d" % number for number in range(100)]


def test_a_log_continues_when_there_is_room_again(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "1m") as disk:
        log = TaskLog(WORKER, disk.path)
        log.write(b"before\n")
        disk.fill()
        with pytest.raises(OSError, match="No space left"):
            log.write(b"x" * 8192)
        log.write(b"y" * 100)
        disk.free()
        log.write(b"after\n")
        log.close()
        text = (disk.path / "worker-0.log").read_text()
    first, _, rest = text.partition("\n[headwater: ")
    told, _, last = rest.partition("\n")
    assert first.startswith("before\nxxx")
    missing = int(told.split()[0])
    assert len(first) + missing == len("before\n") + 8192 + 100
    assert told == f"{missing} bytes are missing here: the disk was full]"
    assert last == "after\n"


def test_without_a_terminal_lines_are_plain(capsys: pytest.CaptureFixture[str]) -> None:
    view = make_view([WORKER])
    assert type(view) is PlainView
    view.line(WORKER, "stdout", "out [red]text[/red]")
    view.line(WORKER, "stderr", "err")
    view.status("step 1")
    view.show_message("a note")
    view.close()
    captured = capsys.readouterr()
    assert captured.out == "[worker 0] out [red]text[/red]\n"
    assert captured.err == "[worker 0] err\nheadwater run: a note\n"
