"""Detection of a lost task from heartbeats, on a clock of the test."""

from __future__ import annotations

import math
import os
import signal
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cluster.transport.heartbeat_process import ALIVE, BEAT_S, STOPPED, sign_of
from headwater.cluster.transport.lifeline import NO_HEARTBEAT_S, SILENCE_S, STOPPED_S, FailureDetector


class Task:
    """The messages received from a task, second by second."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.detector = FailureDetector(SILENCE_S, STOPPED_S, self.now)

    def second(self, beats: bytes = b"") -> str:
        """Advances the clock by one second, in which ``beats`` were received; returns why the task is lost then."""
        self.now += BEAT_S
        if beats:
            self.detector.record(beats, self.now)
        return self.detector.loss_reason(self.now)

    def seconds_until_lost(self, beats: bytes) -> float:
        began = self.now
        while not self.second(beats):
            assert self.now - began < 1000
        return self.now - began


def test_a_task_with_heartbeats_is_never_lost() -> None:
    task = Task()
    assert not any(task.second(ALIVE) for _ in range(600))
    assert task.detector.is_alive()


def test_a_stopped_task_is_lost_within_five_seconds_and_reconnects() -> None:
    task = Task()
    task.second(ALIVE)
    assert task.seconds_until_lost(STOPPED) <= 5 - BEAT_S  # it may be stopped just after a beat
    assert "is stopped" in task.second(STOPPED)
    assert not task.detector.is_alive()
    assert task.second(STOPPED + ALIVE) == ""
    assert task.detector.is_alive()


def test_a_task_stopped_again_between_two_heartbeats_is_lost_again() -> None:
    task = Task()
    task.second(ALIVE)
    task.seconds_until_lost(STOPPED)
    task.detector.answer(task.now)
    assert task.detector.loss_reason(task.now) == ""
    assert 0 < task.seconds_until_lost(STOPPED) <= 5 - BEAT_S


def test_an_answer_is_no_beat() -> None:
    """If no lifeline can be opened, calls may still succeed; silence is then no evidence of a loss."""
    detector = FailureDetector(SILENCE_S, STOPPED_S, 0.0, math.inf)
    detector.answer(1.0)
    assert detector.loss_reason(1000.0, 1000.0) == ""


def test_a_short_pause_is_no_loss() -> None:
    task = Task()
    for _ in range(10):
        assert task.second(ALIVE) == ""
        assert task.second(STOPPED) == ""
        assert task.second(STOPPED) == ""


def test_silence_is_a_loss_within_thirty_seconds_and_not_at_once() -> None:
    task = Task()
    task.second(ALIVE)
    assert 10 < task.seconds_until_lost(b"") <= 20
    assert "machine or network has failed" in task.second()
    assert task.second(ALIVE) == ""


@given(st.lists(st.floats(0.1, SILENCE_S - 1), max_size=30))
def test_late_heartbeats_are_sufficient(gaps: list[float]) -> None:
    """A loaded machine: the helper process waits for a core."""
    task = Task()
    task.second(ALIVE)
    for gap in gaps:
        for _ in range(int(gap)):
            assert task.second() == ""
        assert task.second(ALIVE) == ""


@given(st.floats(0, 10_000))
def test_time_while_the_listener_was_stopped_does_not_count(stood_still_s: float) -> None:
    """It was stopped itself, or held its own lock: nothing has come, and it looks late."""
    task = Task()
    task.second(ALIVE)
    task.now += stood_still_s
    assert task.second() == ""
    assert task.second() == ""
    assert task.seconds_until_lost(b"") <= 2 * SILENCE_S


def test_a_task_without_any_heartbeat_gets_longer() -> None:
    assert SILENCE_S < Task().seconds_until_lost(b"") <= NO_HEARTBEAT_S + BEAT_S


def test_without_lifelines_a_task_without_heartbeats_is_not_lost() -> None:
    task = Task()
    task.detector = FailureDetector(SILENCE_S, STOPPED_S, task.now, unknown_s=math.inf)
    assert not any(task.second() for _ in range(1000))
    assert not task.detector.is_alive()


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="the system does not tell how a process fares")
def test_the_kernel_says_whether_a_process_is_stopped() -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        assert sign_of(process.pid) == ALIVE
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        assert sign_of(process.pid) == STOPPED
        process.send_signal(signal.SIGCONT)
        os.waitpid(process.pid, os.WCONTINUED)
        assert sign_of(process.pid) == ALIVE
        process.kill()
