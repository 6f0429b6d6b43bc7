"""A ``ps`` that drains waits until others have its state, but only while that is possible."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.cluster.task import waiting
from headwater.state import leaving


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Time passes with pauses alone."""
    found = SimpleNamespace(now=0.0)

    def pause(seconds: float) -> None:
        found.now += seconds

    monkeypatch.setattr(leaving, "pause", pause)
    for module in (leaving, waiting):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: found.now))
    return found


def copy(left: list[str], *, reached: bool = True) -> Any:
    """A copy; ``left`` gets its name when it leaves."""

    def shut_down() -> bool:
        left.append("shard 0")
        return reached

    return SimpleNamespace(status_text=lambda: "primary of shard 0, NO BACKUP", shut_down=shut_down)


def test_leaving_ends_immediately_when_no_replica_is_missing(clock: SimpleNamespace) -> None:
    """Each copy says that it does: it may be the last."""
    left: list[str] = []
    leaving.shut_down_after_transfer("ps", [copy(left), copy(left)], list, lambda: 20.0)
    assert (clock.now, left) == (0.0, ["shard 0", "shard 0"])


def test_leaving_waits_for_other_replicas_and_logs_the_reason(
    clock: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    left: list[str] = []
    copies = [copy(left)]
    with caplog.at_level(logging.WARNING):
        leaving.shut_down_after_transfer("ps", copies, lambda: copies if clock.now < 10.0 else [], lambda: 20.0)
    assert clock.now == pytest.approx(10.0, abs=0.1)
    assert (
        caplog.messages == ["ps waits to shut down until another ps has taken over: primary of shard 0, NO BACKUP"] * 2
    )
    assert left == ["shard 0"]


def test_the_last_replica_is_deposited_with_the_chief(clock: SimpleNamespace, caplog: pytest.LogCaptureFixture) -> None:
    left: list[str] = []
    copies = [copy(left)]
    leaving.shut_down_after_transfer("ps", copies, lambda: copies, lambda: 20.0 if clock.now < 1.0 else 0.0)
    assert clock.now == pytest.approx(1.0, abs=0.1)
    assert caplog.messages == ["ps shuts down, and no other ps has taken over: primary of shard 0, NO BACKUP"]
    assert left == ["shard 0"]


def test_leaving_waits_a_limited_time(clock: SimpleNamespace, caplog: pytest.LogCaptureFixture) -> None:
    left: list[str] = []
    copies = [copy(left)]
    leaving.shut_down_after_transfer("ps", copies, lambda: copies, lambda: leaving.LOST_TIMEOUT_S)
    assert clock.now == pytest.approx(leaving.LOST_TIMEOUT_S, abs=0.1)
    assert caplog.messages[-1].startswith("ps shuts down, and no other ps has taken over within 20 s: ")
    assert left == ["shard 0"]


@pytest.mark.usefixtures("clock")
def test_a_chief_that_cannot_be_reached_is_awaited_once() -> None:
    left: list[str] = []
    leaving.shut_down_after_transfer("ps", [copy(left, reached=False) for _ in range(3)], list, lambda: 0.0)
    assert left == ["shard 0"]
