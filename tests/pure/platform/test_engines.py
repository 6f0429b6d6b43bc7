"""States of jobs after reports of an engine."""

from __future__ import annotations

from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.progress import Progress
from headwater.platform import policy
from headwater.platform.backends.base import Exited, JobReport, Running, TaskState
from headwater.platform.engines import handle_report
from headwater.platform.spec import parse_job
from headwater.platform.states import JobPhase, TaskPhase

PS, WORKER, EVALUATOR = TaskName("ps", 0), TaskName("worker", 0), TaskName("evaluator", 0)


def test_an_engine_runs_an_evaluator_until_its_deadline() -> None:
    job = "name: a\nprogram: b\nps: 1\nevaluator: true\ndeadlines: {evaluator: 1m}\nbackend: kubernetes"
    state = policy.initial_state(parse_job(job), 1000.0)
    tasks: dict[TaskName, TaskState] = {name: Running(started_at=1000.0) for name in state.tasks}

    def report(phase: str, now: float) -> None:
        nonlocal state
        state = handle_report(state, JobReport(phase=phase, tasks=tasks), now).state  # type: ignore[arg-type]

    report("running", 1000.0)
    tasks[WORKER] = Exited(code=0, reason="exit code 0", at=1010.0)
    report("succeeded", 1011.0)
    assert (state.phase, state.reason) == (JobPhase.RUNNING, "all workers are done; waits for the evaluator")
    assert state.tasks[EVALUATOR].phase is TaskPhase.RUNNING
    late = state
    tasks[EVALUATOR] = Exited(code=0, reason="exit code 0", at=1020.0)
    report("succeeded", 1021.0)
    assert state.phase is JobPhase.SUCCEEDED
    state = late
    tasks[EVALUATOR] = Running(started_at=1000.0)
    report("succeeded", 1070.0)
    assert state.phase is JobPhase.SUCCEEDED


def test_a_report_without_some_values_keeps_the_earlier_ones() -> None:
    state = policy.initial_state(parse_job("name: a\nprogram: b\nbackend: kubernetes"), 1000.0)
    seen = Progress(task="", step=5, steps_per_s=2.0, loss=0.5, metrics={"accuracy": 0.9}, together=True)
    later = Progress(task="", step=5)
    last = Progress(task="", loss=0.25)
    for progress, now in ((seen, 1010.0), (later, 1020.0)):
        found = Running(started_at=1000.0, progress=progress)
        state = handle_report(state, JobReport(phase="running", tasks={WORKER: found}), now).state
    task = state.tasks[WORKER]
    assert (task.step, task.steps_per_s, task.loss, task.metrics) == (5, None, 0.5, {"accuracy": 0.9})
    assert (task.together, task.progress_at) == (True, 1010.0)
    ended = Exited(code=0, reason="exit code 0", at=1030.0, progress=last)
    task = handle_report(state, JobReport(phase="running", tasks={WORKER: ended}), 1031.0).state.tasks[WORKER]
    assert (task.phase, task.step, task.loss, task.ended_at) == (TaskPhase.SUCCEEDED, 5, 0.25, 1030.0)
