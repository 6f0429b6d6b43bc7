from __future__ import annotations

import math

import pytest

from headwater.cluster.telemetry.printed import (
    PATTERN_VARIABLE,
    PrintedProgress,
    TaskProgress,
    compile_pattern,
    read_with,
)
from headwater.cluster.telemetry.progress import Progress
from headwater.cluster.telemetry.task_activity import TaskActivity


def test_reported_progress_prevails_over_printed_progress() -> None:
    told = TaskProgress({})
    assert told.line("Step: 10, loss: 0.5")
    assert (told.progress.step, told.progress.loss) == (10, 0.5)
    # A session reports its steps, and the program prints the loss.
    assert told.report(Progress(task="/job:worker/task:0", step=20, steps_per_s=3.0).encode())
    assert told.line("Step: 15, loss: 0.25")
    assert (told.progress.step, told.progress.loss, told.progress.steps_per_s) == (20, 0.25, 3.0)
    assert told.report(Progress(task="/job:worker/task:0", loss=0.1).encode())
    assert not told.line("Step: 25, loss: 0.05")
    assert (told.progress.step, told.progress.loss) == (20, 0.1)


def test_lines_that_tell_nothing() -> None:
    told = TaskProgress({})
    assert not told.line("nothing")
    assert not told.report(b"nonsense")
    assert told.progress == Progress(task="")


def test_a_pattern_of_the_jobs_own() -> None:
    told = TaskProgress({PATTERN_VARIABLE: r"it (?P<step>[\d,]+) .* err (?P<loss>\S+)"})
    assert told.line("it 1,200 of 5,000 err 3.5e-2")
    assert (told.progress.step, told.progress.loss) == (1200, 0.035)
    assert not told.line("Step: 5, loss: 1")
    only_loss = compile_pattern("err=(?P<loss>.*)")
    assert read_with(only_loss, "err=0.5") == PrintedProgress(None, 0.5)
    assert read_with(only_loss, "err=many") is None
    found = read_with(only_loss, "err=nan")
    assert found is not None
    assert found.loss is not None
    assert math.isnan(found.loss)


@pytest.mark.parametrize(("pattern", "why"), [("(", "not a regular expression"), ("a(.*)", "must have a group")])
def test_a_pattern_that_cannot_be_right(pattern: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        compile_pattern(pattern)
    assert TaskProgress({PATTERN_VARIABLE: pattern}).line("Step: 5")


def test_metrics_and_talk_travel_with_progress() -> None:
    activity = TaskActivity(bytes_per_s={"ps-0": (10.0, 20.0)}, staleness=1.5, staleness_max=3, waiting="for ps 0")
    sent = Progress(task="a", step=1, metrics={"accuracy": 0.5}, activity=activity)
    assert Progress.decode(sent.encode()) == sent
    told = TaskProgress({})
    told.report(sent.encode())
    told.report(Progress(task="a", metrics={"f1": 0.25}).encode())
    assert told.progress.metrics == {"accuracy": 0.5, "f1": 0.25}
    assert told.progress.activity == activity
    for wrong in (
        b'{"task": "a", "activity": 3, "metrics": []}',
        b'{"task": "a", "activity": {"bytes_per_s": {"ps-0": 1}}}',
    ):
        decoded = Progress.decode(wrong)
        assert decoded is not None
        assert (decoded.activity, decoded.metrics) == (None, {})


def test_talk_leaves_the_speed_as_it_is() -> None:
    told = TaskProgress({})
    told.report(Progress(task="a", step=1, steps_per_s=5.0).encode())
    told.report(Progress(task="a", activity=TaskActivity()).encode())
    assert told.progress.steps_per_s == 5.0
