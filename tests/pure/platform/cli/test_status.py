from __future__ import annotations

import math

import pytest

from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.printed import PrintedProgress, read_line
from headwater.cluster.telemetry.progress import Progress
from headwater.platform.cli.launcher.status import StatusBoard

TASKS = (TaskName("worker", 0), TaskName("worker", 1))


@pytest.mark.parametrize(
    ("line", "step", "loss"),
    [
        ("Step: 1200, loss: 0.25", 1200, 0.25),
        ("Step: 100, loss: [0.0312]", 100, 0.0312),
        ("INFO:tensorflow:loss = 1.5e-3, step = 300 (2 sec)", 300, 1.5e-3),
        ("global step 17 (12.1 sec/step) loss: 3", 17, 3.0),
        ("global_step=5", 5, None),
        ("Worker 1: training step 30 done (global step: 44)", 30, None),
        ('{"step": 7, "loss": -.5}', 7, -0.5),
        ("step 8 loss inf", 8, math.inf),
    ],
)
def test_parses_printed_progress(line: str, step: int, loss: float | None) -> None:
    assert read_line(line) == PrintedProgress(step, loss)


@pytest.mark.parametrize("line", ["", "loss: 3", "stepping stones 5", "steps_per_s 300", "footstep: 9", "Step: many"])
def test_other_lines_are_no_progress_reports(line: str) -> None:
    assert read_line(line) is None


def test_reports_make_one_line() -> None:
    board = StatusBoard(TASKS, started=0.0)
    assert board.render(0.5) == "0:00"
    board.report(Progress(task="/job:worker/task:0", step=1000, steps_per_s=800.0, loss=0.5), 1.0)
    assert board.render(1.0) == "step 1,000 · 800 steps/s · loss 0.5 · 0:01"
    board.report(Progress(task="/job:worker/task:1", step=1200, steps_per_s=700.4), 1.5)
    assert board.render(62.0 - 55) == "step 1,200 · 1,500 steps/s (worker 0 800, worker 1 700) · loss 0.5 · 0:07"


def test_the_step_never_decreases_and_old_speeds_expire() -> None:
    board = StatusBoard(TASKS, started=0.0)
    board.report(Progress(task="/job:worker/task:0", step=50, steps_per_s=10.0), 1.0)
    board.report(Progress(task="/job:worker/task:1", step=40), 1.1)
    assert board.render(2.0) == "step 50 · 10 steps/s · 0:02"
    assert board.render(20.0) == "step 50 · 0:20"


def test_a_report_from_elsewhere_is_ignored() -> None:
    board = StatusBoard(TASKS, started=0.0)
    board.report(Progress(task="/job:worker/task:9", step=1), 0.0)
    assert board.render(0.0) == "0:00"


def test_printed_lines_serve_until_steps_are_reported() -> None:
    board = StatusBoard(TASKS, started=0.0)
    board.add_line("Step: 100, loss: 2", 1.0)
    board.add_line("Step: 300, loss: 1", 2.0)
    assert board.render(2.0) == "step 300 · 200 steps/s · loss 1 · 0:02"
    board.report(Progress(task="/job:worker/task:0", step=400), 3.0)
    board.add_line("Step: 9000", 4.0)
    assert board.render(4.0).startswith("step 400 ")
