"""A ``ps`` that is told to end waits until others have what it has, no longer than that can help."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.replicas import leaving


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Time passes with pauses alone."""
    found = SimpleNamespace(now=0.0)

    def pause(seconds: float) -> None:
        found.now += seconds

    monkeypatch.setattr(leaving, "pause", pause)
    monkeypatch.setattr(leaving, "time", SimpleNamespace(monotonic=lambda: found.now))
    return found


COPY: Any = SimpleNamespace(described=lambda: "primary of shard 0, NO SECOND COPY")


def test_it_ends_at_once_when_nothing_is_missed(clock: SimpleNamespace) -> None:
    leaving.await_others("ps", list, lambda: True)
    assert clock.now == 0.0


def test_it_waits_until_others_have_it_and_says_for_what(
    clock: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        leaving.await_others("ps", lambda: [COPY] if clock.now < 10.0 else [], lambda: True)
    assert clock.now == pytest.approx(10.0, abs=0.1)
    assert caplog.messages == ["ps waits to end until another ps has taken: primary of shard 0, NO SECOND COPY"] * 2


def test_it_ends_when_no_other_one_may_come(clock: SimpleNamespace, caplog: pytest.LogCaptureFixture) -> None:
    leaving.await_others("ps", lambda: [COPY], lambda: clock.now < 1.0)
    assert clock.now == pytest.approx(1.0, abs=0.1)
    assert caplog.messages == ["ps ends with what no other ps can take: primary of shard 0, NO SECOND COPY"]


def test_it_does_not_wait_for_ever(clock: SimpleNamespace, caplog: pytest.LogCaptureFixture) -> None:
    leaving.await_others("ps", lambda: [COPY], lambda: True)
    assert clock.now == pytest.approx(leaving.LEAVE_S, abs=0.1)
    assert caplog.messages[-1].startswith("ps ends, though in 60 s no other ps has taken: ")
