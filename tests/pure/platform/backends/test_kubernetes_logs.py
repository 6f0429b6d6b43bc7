"""Logs of pods are fetched without a gap, whatever the clocks say."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.platform.backends import kubernetes_logs
from headwater.platform.backends.kubernetes_logs import fetch_log
from headwater.platform.logfiles import all_lines


class Pod:
    """The log of a pod whose machine's clock shows ``now``, in seconds since 1970; a line is printed each second."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.lines: list[tuple[int, str]] = []

    def print(self, count: int) -> None:
        for _ in range(count):
            self.now += 1
            self.lines.append((self.now, f"line {len(self.lines)}"))

    def read_namespaced_pod_log(self, *_: object, since_seconds: int | None = None, **__: object) -> Any:
        begin = 0 if since_seconds is None else self.now - since_seconds
        shown = [(datetime.fromtimestamp(at, UTC).isoformat(), text) for at, text in self.lines if at >= begin]
        return SimpleNamespace(data="".join(f"{at} {text}\n" for at, text in shown).encode())


@pytest.mark.parametrize("ahead_s", [0, 3600, -3600, 86_400, -86_400])
def test_no_line_is_lost_or_shown_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead_s: int) -> None:
    pod = Pod(1_700_000_000)
    monkeypatch.setattr(kubernetes_logs.time, "time", lambda: pod.now + ahead_s)
    path = tmp_path / "worker-0.log"
    for count in (30, 0, 50, 1, 7300):
        pod.print(count)
        fetch_log(pod, "pod", "default", path)
    assert [line.text for line in all_lines(path)] == [text for _, text in pod.lines]


class Log:
    """A log as a real cluster gives it."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read_namespaced_pod_log(self, *_: object, **__: object) -> Log:
        return self


def test_a_last_partial_line_is_read_once_its_pod_has_ended(tmp_path: Path) -> None:
    log, path = Log(b"2026-01-01T00:00:00.000000001Z one\n2026-01-01T00:00:01.000000001Z two"), tmp_path / "log"
    fetch_log(log, "pod", "default", path)
    assert [line.text for line in all_lines(path)] == ["one"]
    fetch_log(log, "pod", "default", path, ended=True)
    fetch_log(log, "pod", "default", path, ended=True)
    assert [line.text for line in all_lines(path)] == ["one", "two"]


def test_error_texts_of_the_node_are_no_log_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    said = Log(b"unable to retrieve container logs for containerd://0123")
    fetch_log(said, "pod", "default", path, ended=True)
    fetch_log(Log(b"2026-01-01T00:00:00.000000001Z one\n2026-01-01T00:00:01Z \n"), "pod", "default", path)
    fetch_log(said, "pod", "default", path, ended=True)
    assert [line.text for line in all_lines(path)] == ["one", ""]


def test_a_long_line_has_no_times_within(tmp_path: Path) -> None:
    at = b"2026-01-01T00:00:00.000000001Z "
    pieces = [b"a" * 16384, b"b" * 16384, b"c" * 10]
    path = tmp_path / "log"
    fetch_log(Log(b"".join(at + piece for piece in pieces) + b"\n"), "pod", "default", path)
    assert [line.text for line in all_lines(path)] == [b"".join(pieces).decode()]


def test_a_damaged_position(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pod = Pod(1_700_000_000)
    path = tmp_path / "worker-0.log"
    pod.print(3)
    fetch_log(pod, "pod", "default", path)
    position = tmp_path / "worker-0.position"
    position.write_bytes(position.read_bytes().replace(b"1", b"2", 1))
    fetch_log(pod, "pod", "default", path)
    assert str(position) in caplog.text
    assert json.loads(position.read_text().splitlines()[0])["pod"]["at"].endswith("+00:00")
