from __future__ import annotations

import math
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cluster.telemetry.progress import MAX_DATAGRAM, STATUS_VARIABLE, Progress, ProgressReporter

TASK = "/job:worker/task:0"


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.setblocking(False)
        listener.bind(str(tmp_path / "status"))
        yield listener


def received(listener: socket.socket) -> list[Progress | None]:
    reports: list[Progress | None] = []
    while True:
        try:
            reports.append(Progress.decode(listener.recv(MAX_DATAGRAM)))
        except BlockingIOError:
            return reports


def test_steps_are_counted_and_sent_once_an_interval(listener: socket.socket) -> None:
    clock = Clock()
    reporter = ProgressReporter(task=TASK, address=listener.getsockname(), interval_s=0.5, clock=clock)
    for step in range(1, 9):
        clock.now += 0.125
        reporter.step(step, loss=1.0 / step)
    reports = [report for report in received(listener) if report]
    assert [report.step for report in reports] == [4, 8]
    assert [report.steps_per_s for report in reports] == [pytest.approx(8.0)] * 2
    clock.now += 0.125
    reporter.step(13, steps=3)
    assert received(listener) == []
    reporter.close()
    (report,) = received(listener)
    assert report is not None
    assert (report.task, report.step, report.loss) == (TASK, 13, 0.125)
    assert report.steps_per_s is None  # an eighth of a second tells nothing
    reporter.step(14)
    reporter.close()
    assert received(listener) == []


def test_metrics_without_a_listener_cost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    reporter = ProgressReporter(task=TASK, address=str(tmp_path / "absent"), clock=clock)
    clock.now += 1
    reporter.step(1)
    reporter.close()
    monkeypatch.delenv(STATUS_VARIABLE, raising=False)
    silent = ProgressReporter.from_environment(TASK)
    assert not silent.listening
    silent.step(1)
    silent.close()


def test_a_listener_that_does_not_read_blocks_no_other(listener: socket.socket) -> None:
    clock = Clock()
    reporter = ProgressReporter(task=TASK, address=listener.getsockname(), clock=clock)
    for step in range(5000):
        clock.now += 1
        reporter.step(step)
    reporter.close()
    assert received(listener)


@given(
    st.builds(
        Progress,
        task=st.text(max_size=50),
        step=st.none() | st.integers(0, 2**63),
        steps_per_s=st.none() | st.floats(allow_nan=False),
        loss=st.none() | st.floats(),
    )
)
def test_a_report_reads_back(progress: Progress) -> None:
    decoded = Progress.decode(progress.encode())
    assert decoded is not None
    if progress.loss is not None and math.isnan(progress.loss):
        assert decoded.loss is not None
        assert math.isnan(decoded.loss)
    else:
        assert decoded == progress


@pytest.mark.parametrize(
    "datagram", [b"", b"{", b"[]", b"{}", b'{"task": 3}', b"\xff", b"1" * 1000, b'{"task": null}', b"[" * 1000]
)
def test_a_malformed_report_is_ignored(datagram: bytes) -> None:
    assert Progress.decode(datagram) is None


def test_fields_of_a_wrong_type_are_left_out() -> None:
    huge = b"9" * 400
    datagram = b'{"task": "t", "step": "5", "steps_per_s": true, "loss": ' + huge + b"}"
    assert Progress.decode(datagram) == Progress(task="t")


@given(st.binary(max_size=200))
def test_no_datagram_raises(datagram: bytes) -> None:
    Progress.decode(datagram)
