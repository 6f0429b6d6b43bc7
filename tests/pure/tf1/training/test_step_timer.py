"""When hooks are due."""

from __future__ import annotations

from headwater.tf1.training.step_timer import NeverTriggerTimer, SecondOrStepTimer


def test_steps() -> None:
    timer = SecondOrStepTimer(every_steps=3)
    due: list[int] = []
    elapsed: list[int | None] = []
    for step in range(1, 9):
        if timer.should_trigger_for_step(step):
            due.append(step)
            elapsed.append(timer.update_last_triggered_step(step)[1])
    assert due == [1, 4, 7]
    assert elapsed == [None, 3, 3]
    assert timer.last_triggered_step() == 7
    timer.reset()
    assert timer.should_trigger_for_step(8)


def test_seconds() -> None:
    now = 5.0
    timer = SecondOrStepTimer(every_secs=2.0, clock=lambda: now)
    assert timer.should_trigger_for_step(0)
    assert timer.update_last_triggered_step(0) == (None, None)
    now = 6.9
    assert not timer.should_trigger_for_step(1)
    now = 7.0
    assert timer.should_trigger_for_step(1)
    assert not timer.should_trigger_for_step(0)  # the step it was due at
    assert timer.update_last_triggered_step(4) == (2.0, 4)


def test_never() -> None:
    timer = NeverTriggerTimer()
    assert not timer.should_trigger_for_step(1)
    assert timer.update_last_triggered_step(1) == (None, None)
