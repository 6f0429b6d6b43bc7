from __future__ import annotations

from headwater.platform.host.pod_task import PROGRESS_PREFIX, Marker

MARKED = PROGRESS_PREFIX.encode()
TASK = b'{"task": "/job:worker/task:0", "step": %d}'


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def marker() -> tuple[Marker, bytearray, Clock]:
    log, clock = bytearray(), Clock()
    return Marker(log.extend, clock=clock), log, clock


def test_progress_stands_between_lines() -> None:
    marks, log, _ = marker()
    marks.output(b"one\ntw")
    marks.report(TASK % 1)
    assert marks.write_if_due() is None
    assert log == b"one\ntw"
    marks.output(b"o\nth")
    assert log == b"one\ntwo\n" + MARKED + TASK % 1 + b"\nth"


def test_the_latest_is_written_every_other_second() -> None:
    marks, log, clock = marker()
    for step in (1, 2, 3):
        marks.report(TASK % step)
    assert marks.write_if_due() == 2.0
    assert log == MARKED + TASK % 1 + b"\n"
    clock.now = 2.0
    assert marks.write_if_due() is None
    assert log.endswith(MARKED + TASK % 3 + b"\n")
    assert log.count(MARKED) == 2


def test_the_end_is_reported_immediately() -> None:
    marks, log, _ = marker()
    marks.report(TASK % 1)
    marks.report(TASK % 2)
    marks.output(b"no end of the line")
    marks.close()
    marks.close()
    assert log.endswith(b"no end of the line\n" + MARKED + TASK % 2 + b"\n")


def test_invalid_progress_is_not_forwarded() -> None:
    marks, log, _ = marker()
    marks.report(b"nonsense")
    marks.close()
    assert log == b""


def test_progress_is_one_line() -> None:
    marks, log, _ = marker()
    marks.report(b'{"task": "a",\n "step": 1}')
    assert log == MARKED + b'{"task": "a", "step": 1}\n'
