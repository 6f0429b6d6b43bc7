"""Managers that are killed and replaced by others, and jobs that engines run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.progress import Progress
from headwater.platform.backends.base import Backend, BackendError, Exited, JobReport, Running
from headwater.platform.manager import Manager, ManagerSettings
from headwater.platform.policy import NotPossible
from headwater.platform.records import JobRecord
from headwater.platform.spec import parse_job
from headwater.platform.states import AskRestart, AskScale, AskStop, JobPhase, TaskPhase
from headwater.platform.store import Store
from tests.support.scripted import Killed, ScriptedEngine, ScriptedTasks

PS = "ps: 1\n"
SMALL = "restart: {limit: 1, backoff: 10s}\ndeadlines: {grace: 1s}\n"
WORKER = TaskName("worker", 0)
SILENT = BackendError("host h does not answer", temporary=True)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Server:
    """A manager whose turns the test performs, and that can be killed and replaced by another."""

    def __init__(self, folder: Path, *backends: Backend) -> None:
        self.folder = folder
        self.backends = backends
        self.clock = Clock()
        self.start()

    def start(self, **settings: Any) -> None:
        self.store = Store(f"sqlite:///{self.folder}/jobs.db")
        self.store.open()
        wanted = ManagerSettings(data_dir=self.folder, **{"max_running": 3, **settings})
        self.manager = Manager(self.store, self.backends, wanted, clock=self.clock)
        self.manager.resume_jobs()

    def kill_and_start(self, **settings: Any) -> None:
        self.store.close()
        self.start(**settings)

    def submit(self, text: str = "", *, name: str = "a", rules: str = SMALL) -> str:
        return self.manager.submit(parse_job(f"name: {name}\nprogram: b\n{rules}{text}"), owner="eve").id

    def turn(self, *, after: float = 0.0) -> None:
        self.clock.now += after
        self.manager.process_jobs()

    def job(self, job_id: str) -> JobRecord:
        return self.manager.job(job_id)

    def phase(self, job_id: str) -> JobPhase:
        return self.job(job_id).state.phase


@pytest.fixture
def tasks() -> ScriptedTasks:
    return ScriptedTasks()


@pytest.fixture
def server(tmp_path: Path, tasks: ScriptedTasks) -> Iterator[Server]:
    server = Server(tmp_path, tasks)
    yield server
    server.store.close()


@pytest.fixture
def engine() -> ScriptedEngine:
    return ScriptedEngine()


@pytest.fixture
def engine_server(tmp_path: Path, engine: ScriptedEngine) -> Iterator[Server]:
    server = Server(tmp_path, engine)
    yield server
    server.store.close()


def test_arguments_and_environment_of_a_task(server: Server, tasks: ScriptedTasks) -> None:
    job_id = server.submit(
        PS + "workers: {count: 2, env: {A: b}}\nchief: true\nevaluator: true\nargs: [x]\ndata_dir: /d"
    )
    server.turn()
    order = tasks.orders["worker-1#0"]
    config = json.loads(order.env["TF_CONFIG"])
    assert config["cluster"] == {"ps": ["h:ps0"], "chief": ["h:chief0"], "worker": ["h:worker0", "h:worker1"]}
    assert config["task"] == {"type": "worker", "index": 1}
    assert (order.env["A"], order.env["HEADWATER_DATA_DIR"], order.env["HEADWATER_JOB_ID"]) == ("b", "/d", job_id)
    assert list(order.argv[-3:]) == ["exec", "b", "x"]
    assert order.log_path == server.folder / "jobs" / job_id / "worker-1.log"
    assert "A" not in tasks.orders["ps-0#0"].env


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns the phase of the job in each write to the store, in order."""
    phases: list[str] = []
    save = Store.save

    def counted(store: Store, record: JobRecord, **values: Any) -> None:
        phases.append(str(record.state.phase))
        save(store, record, **values)

    monkeypatch.setattr(Store, "save", counted)
    return phases


@pytest.mark.parametrize("workers", [1, 10])
def test_starting_a_job_is_stored_once_when_it_is_queued_placed_and_started(
    server: Server, tasks: ScriptedTasks, writes: list[str], workers: int
) -> None:
    job_id = server.submit(f"workers: {workers}")
    server.turn()
    assert len(tasks.starts) == len(server.job(job_id).handles) == workers
    assert writes == ["queued", "running", "running"]
    assert len(server.store.attempts(job_id)) == workers
    # Nothing has changed since, and a job that waits for resources is stored once, not in every turn.
    server.turn()
    assert len(writes) == 3
    tasks.room = workers
    server.submit(name="waits")
    for _ in range(3):
        server.turn()
    assert writes[3:] == ["queued", "queued"]


def test_starting_a_job_of_an_engine_is_stored_once_when_it_is_queued_and_handed_over(
    engine_server: Server, engine: ScriptedEngine, writes: list[str]
) -> None:
    job_id = engine_server.submit()
    engine_server.turn()
    assert engine_server.job(job_id).handle is not None
    assert writes == ["queued", "queued"]


def test_tasks_started_before_a_failed_start_are_recorded(server: Server, tasks: ScriptedTasks) -> None:
    job_id = server.submit(PS + "workers: 2", rules="restart: {scope: job}\n")
    tasks.unstartable = {WORKER}
    server.turn()
    job = server.job(job_id)
    assert tasks.starts == ["ps-0#0"]
    assert job.handles == {TaskName("ps", 0): "ps-0#0"}
    # The failure ends the whole job, so the second worker is not even started.
    assert job.state.phase is JobPhase.ENDING
    server.turn()
    assert (tasks.starts, tasks.stops) == (["ps-0#0"], ["ps-0#0"])


def test_server_killed_before_it_recorded_a_start_starts_no_task_twice(server: Server, tasks: ScriptedTasks) -> None:
    job_id = server.submit(PS)
    tasks.die_after_start = True
    with pytest.raises(Killed):
        server.turn()
    assert tasks.starts == ["ps-0#0"]
    server.kill_and_start()
    assert tasks.starts == ["ps-0#0", "worker-0#0"]
    assert tasks.reserved == {job_id: {TaskName("ps", 0), WORKER}}
    server.turn()
    assert {task.phase for task in server.job(job_id).state.tasks.values()} == {TaskPhase.RUNNING}
    tasks.ends("worker-0#0")
    server.turn()
    assert tasks.stops == ["ps-0#0"]
    # The next server does not know whether the engine got the request, and repeats it.
    server.kill_and_start()
    server.turn()
    tasks.all_asked_end()
    server.turn()
    assert server.phase(job_id) is JobPhase.SUCCEEDED
    assert tasks.reserved == {}
    assert [(life.task, life.code) for life in server.store.attempts(job_id)] == [("ps-0", -15), ("worker-0", 0)]


def test_next_server_releases_places_of_a_killed_server(server: Server, tasks: ScriptedTasks) -> None:
    job_id = server.submit()
    server.turn()
    tasks.ends("worker-0#0")
    tasks.die_before_release = True
    with pytest.raises(Killed):
        server.turn()
    assert (server.phase(job_id), tasks.reserved) == (JobPhase.SUCCEEDED, {job_id: {WORKER}})
    server.kill_and_start()
    server.turn()
    assert (server.phase(job_id), tasks.reserved, server.job(job_id).places) == (JobPhase.SUCCEEDED, {}, {})
    assert server.manager.live() == []


@pytest.mark.parametrize("killed", [False, True])
def test_places_reserved_during_a_stop_are_released_once_their_host_answers(
    server: Server, tasks: ScriptedTasks, killed: bool
) -> None:
    job_id = server.submit()
    tasks.meanwhile = lambda: server.manager.apply_request(job_id, AskStop("eve"))
    tasks.cannot_release = SILENT
    for _ in range(2):
        server.turn()
    assert server.phase(job_id) is JobPhase.STOPPED
    assert tasks.reserved == {job_id: {WORKER}}
    if killed:
        server.kill_and_start()
    tasks.cannot_release = None
    server.turn()
    assert tasks.reserved == {}
    assert (server.job(job_id).places, server.manager.live()) == ({}, [])


@pytest.mark.parametrize("stopped", ["", "before", "after"])
def test_places_that_a_server_was_killed_before_it_heard_of_are_given_back_by_the_next(
    server: Server, tasks: ScriptedTasks, stopped: str
) -> None:
    tasks.room = 1
    job_id = server.submit()

    def dies() -> None:
        if stopped == "before":
            server.manager.apply_request(job_id, AskStop("eve"))
        raise Killed

    tasks.meanwhile = dies
    with pytest.raises(Killed):
        server.turn()
    assert tasks.reserved == {job_id: {WORKER}}
    server.kill_and_start()
    if stopped == "after":
        server.manager.apply_request(job_id, AskStop("eve"))
    server.turn()
    if stopped:
        assert (server.phase(job_id), tasks.reserved, server.manager.live()) == (JobPhase.STOPPED, {}, [])
    else:
        assert (server.phase(job_id), tasks.starts) == (JobPhase.RUNNING, ["worker-0#0"])


def test_a_job_is_not_deleted_while_it_is_given_places(
    server: Server, tasks: ScriptedTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.platform.manager._CALL_TIMEOUT_S", 0.0)
    job_id = server.submit()

    def stops_and_deletes() -> None:
        server.manager.apply_request(job_id, AskStop("eve"))
        with pytest.raises(BackendError, match="has not answered"):
            server.manager.delete(job_id)

    tasks.meanwhile = stops_and_deletes
    tasks.cannot_release = SILENT
    server.turn()
    assert tasks.reserved == {job_id: {WORKER}}
    tasks.cannot_release = None
    server.manager.delete(job_id)
    assert (tasks.reserved, server.store.jobs(), server.manager.live()) == ({}, [], [])


def test_unneeded_place_is_released_once_its_host_answers(server: Server, tasks: ScriptedTasks) -> None:
    tasks.room = 3
    job_id = server.submit(PS + "workers: {count: '1:4', cpus: 1}\npreemptible: true")
    server.turn()
    assert server.job(job_id).state.workers == 2
    tasks.room = 10
    tasks.meanwhile = lambda: server.manager.apply_request(job_id, AskScale("eve", 1))
    tasks.cannot_release = SILENT
    server.turn(after=60.0)
    assert TaskName("worker", 2) in tasks.reserved[job_id]
    tasks.cannot_release = None
    server.turn()
    assert tasks.reserved[job_id] == {TaskName("ps", 0), WORKER, TaskName("worker", 1)}
    assert server.phase(job_id) is JobPhase.RUNNING


def test_a_requeued_job_releases_its_other_places_first(server: Server, tasks: ScriptedTasks) -> None:
    job_id = server.submit("workers: 2", rules="restart: {scope: task, backoff: 1s}\n")
    server.turn()
    tasks.ends("worker-0#0")
    tasks.is_lost("worker-1#0")
    tasks.meanwhile = lambda: server.manager.apply_request(job_id, AskStop("eve", requeue=True))
    server.turn()
    assert tasks.starts[2:] == ["worker-0#1", "worker-1#1"]


def test_preemptible_job_uses_available_places_when_the_rest_cannot_be_reserved(
    server: Server, tasks: ScriptedTasks
) -> None:
    tasks.room = 2
    job_id = server.submit(PS + "workers: {count: '1:3', cpus: 1}\npreemptible: true")
    server.turn()
    tasks.room = 10
    server.manager.apply_request(job_id, AskScale("eve", 3))
    tasks.no_place = {TaskName("worker", 2)}
    for _ in range(2):
        server.turn()
    assert tasks.starts == ["ps-0#0", "worker-0#0", "worker-1#0"]
    assert set(server.job(job_id).places) == tasks.reserved[job_id]


def test_pauses_continue_after_a_restart_of_the_server(server: Server, tasks: ScriptedTasks) -> None:
    job_id = server.submit()
    server.turn()
    tasks.ends("worker-0#0", 1)
    server.turn()
    assert server.phase(job_id) is JobPhase.RESTARTING
    server.kill_and_start()
    server.turn(after=9.0)
    assert tasks.starts == ["worker-0#0"]
    server.turn(after=1.0)
    assert tasks.starts == ["worker-0#0", "worker-0#1"]


def test_a_restarted_task_learns_the_finished_workers(server: Server, tasks: ScriptedTasks) -> None:
    server.submit(PS + "workers: 3")
    server.turn()
    for worker in (0, 2):  # worker 0 acts as chief: its exit completes the job, which waits here for worker 1 only
        tasks.ends(f"worker-{worker}#0")
    tasks.ends("ps-0#0", 1)
    server.turn()
    server.turn(after=10.0)
    assert tasks.orders["ps-0#1"].env["HEADWATER_ENDED"] == "/job:worker/task:2"
    assert all("HEADWATER_ENDED" not in tasks.orders[name].env for name in ("ps-0#0", "worker-1#0"))


def test_the_first_failure_is_the_earliest(server: Server, tasks: ScriptedTasks) -> None:
    job_id = server.submit("workers: 2")
    server.turn()
    tasks.ends("worker-0#0", 134, at=20.0)
    tasks.ends("worker-1#0", 3, at=10.0)
    server.turn()
    first = server.job(job_id).state.first
    assert first is not None
    assert (first.task, first.code) == ("worker-1", 3)


def test_resources_are_freed_when_a_job_is_requeued(server: Server, tasks: ScriptedTasks) -> None:
    job_id = server.submit("workers: 2")
    server.turn()
    tasks.ends("worker-0#0", 143)
    server.turn()
    tasks.all_asked_end()
    tasks.room = 1
    server.turn()
    server.turn()
    assert (server.phase(job_id), tasks.reserved) == (JobPhase.QUEUED, {})
    assert server.job(job_id).state.reason == "2 tasks do not fit"
    tasks.room = 2
    server.turn()
    assert tasks.starts[2:] == ["worker-0#1", "worker-1#1"]


def test_small_jobs_overtake_but_not_for_ever(server: Server, tasks: ScriptedTasks) -> None:
    tasks.room = 3
    server.submit("workers: 2", name="runs")
    server.turn()
    big = server.submit("workers: 3", name="big")
    server.turn(after=1.0)
    small = server.submit(name="small")
    server.turn()
    assert (server.phase(big), server.phase(small)) == (JobPhase.QUEUED, JobPhase.RUNNING)
    tasks.ends("worker-0#0")
    server.manager.apply_request(small, AskStop("eve"))
    server.turn(after=601.0)
    last = server.submit(name="last")
    server.turn()
    assert f"{big} has waited" in server.job(last).state.reason


def test_priorities_and_the_most_jobs_at_once(server: Server, tasks: ScriptedTasks) -> None:
    jobs = [server.submit(f"priority: {number}") for number in range(4)]
    server.turn()
    assert [server.phase(job) for job in jobs] == [JobPhase.QUEUED] + [JobPhase.RUNNING] * 3
    assert "3 jobs run already" in server.job(jobs[0]).state.reason


def test_a_range_of_workers_uses_the_free_resources(server: Server, tasks: ScriptedTasks) -> None:
    tasks.room = 3
    job_id = server.submit("workers: {count: 2:8, cpus: 1}")
    server.turn()
    assert server.job(job_id).state.workers == 3


def test_workers_of_a_preemptible_job_follow_the_room_there_is(server: Server, tasks: ScriptedTasks) -> None:
    tasks.room = 2
    job_id = server.submit(PS + "workers: {count: '1:3', cpus: 1}\npreemptible: true")
    for _ in range(2):
        server.turn(after=60.0)
    assert server.job(job_id).state.workers == 1
    tasks.room = 10
    for _ in range(4):
        server.turn(after=60.0)
    state = server.job(job_id).state
    assert (state.workers, state.fixed, state.phase) == (3, False, JobPhase.RUNNING)
    assert [task.phase for task in state.tasks.values()] == [TaskPhase.RUNNING] * 4
    # A number that a user chose is not changed.
    server.manager.apply_request(job_id, AskScale("eve", 2))
    server.turn()
    tasks.all_asked_end()
    for _ in range(3):
        server.turn(after=60.0)
    assert server.job(job_id).state.workers == 2


def test_a_task_on_an_unreachable_host(server: Server, tasks: ScriptedTasks) -> None:
    job_id = server.submit(PS)
    tasks.unreachable = "host h does not answer"
    server.turn()
    tasks.unreachable = ""
    for _ in range(3):
        server.turn()
    # All other tasks have the address of a ps, so all of them get new places. A server that had ended here would not
    # know whether the worker was started as well.
    assert (server.phase(job_id), tasks.starts) == (JobPhase.RUNNING, ["ps-0#1", "worker-0#1"])
    tasks.is_lost("worker-0#1")
    server.turn()
    assert tasks.reserved == {job_id: {TaskName("ps", 0)}}
    server.turn(after=10.0)
    assert tasks.starts[2:] == ["worker-0#2"]


def test_progress_is_sampled(server: Server, tasks: ScriptedTasks) -> None:
    job_id = server.submit()
    server.turn()
    for step in range(10):
        progress = Progress(task="/job:worker/task:0", step=step, steps_per_s=2.0, loss=1.0 / (step + 1))
        tasks.tasks["worker-0#0"] = Running(progress=progress)
        server.turn(after=1.0)
    assert server.job(job_id).state.tasks[WORKER].step == 9
    assert [sample.step for sample in server.store.samples(job_id)] == [0, 5]
    server.kill_and_start()
    step = server.job(job_id).state.tasks[WORKER].step
    assert step is not None
    assert step >= 7


def test_a_backend_that_is_not_there(server: Server) -> None:
    with pytest.raises(NotPossible, match="this server has local, but not slurm"):
        server.submit("backend: slurm")


def test_ps_tasks_are_asked_to_end_when_no_worker_is_left(server: Server, tasks: ScriptedTasks) -> None:
    job_id = server.submit(PS + "workers: 2\nevaluator: true")
    server.turn()
    server.manager.apply_request(job_id, AskStop("eve"))
    server.turn()
    asked = ["worker-0#0", "worker-1#0", "evaluator-0#0"]
    assert tasks.stops == asked
    tasks.ends("worker-0#0", stopped=True)
    server.turn()
    assert tasks.stops == asked
    tasks.ends("worker-1#0", stopped=True)
    server.turn()
    assert tasks.stops == [*asked, "ps-0#0"]
    tasks.all_asked_end()
    server.turn()
    assert server.phase(job_id) is JobPhase.STOPPED


def test_an_engine_runs_a_job(engine_server: Server, engine: ScriptedEngine) -> None:
    job_id = engine_server.submit(PS + "workers: 2:4")
    engine_server.turn()
    assert engine.orders["#0"].spec.workers.count.most == 2
    engine_server.turn()
    assert (engine_server.phase(job_id), engine_server.job(job_id).state.reason) == (JobPhase.QUEUED, "Priority")
    running = {name: Running() for name in engine_server.job(job_id).state.tasks}
    engine.reports["#0"] = JobReport(phase="running", tasks=running, restarts={WORKER: 2})
    engine_server.turn()
    assert engine_server.phase(job_id) is JobPhase.RUNNING
    assert engine_server.job(job_id).state.tasks[WORKER].attempt == 2
    engine_server.kill_and_start()
    done = {**running, WORKER: Exited(code=0, reason="exit code 0")}
    engine.reports["#0"] = JobReport(phase="succeeded", tasks=done)
    engine_server.turn()
    state = engine_server.job(job_id).state
    assert (state.phase, state.tasks[WORKER].phase, state.tasks[TaskName("ps", 0)].phase) == (
        JobPhase.SUCCEEDED,
        TaskPhase.SUCCEEDED,
        TaskPhase.STOPPED,
    )
    assert engine.deleted == []
    engine_server.manager.delete(job_id)
    assert engine.deleted == ["#0"]


def test_an_engine_that_fails_stops_loses_and_refuses_jobs(engine_server: Server, engine: ScriptedEngine) -> None:
    failed = engine_server.submit()
    engine_server.turn()
    engine.reports["#0"] = JobReport(phase="failed", reason="worker-0: exit code 3")
    engine_server.turn()
    assert (engine_server.phase(failed), engine_server.job(failed).state.reason) == (
        JobPhase.FAILED,
        "worker-0: exit code 3",
    )

    engine.reports.clear()
    stopped = engine_server.submit()
    engine_server.turn()
    engine_server.manager.apply_request(stopped, AskStop("eve"))
    engine_server.turn()
    assert (engine_server.phase(stopped), engine.stopped[-1]) == (JobPhase.ENDING, "#0")
    engine.reports["#0"] = JobReport(phase="lost", reason="cancelled")
    engine_server.turn()
    assert engine_server.phase(stopped) is JobPhase.STOPPED

    engine.reports.clear()
    lost = engine_server.submit()
    engine_server.turn()
    engine.reports["#0"] = JobReport(phase="lost", reason="no such job")
    engine_server.turn()
    engine_server.turn(after=9.0)
    assert (engine_server.phase(lost), engine_server.job(lost).handle) == (JobPhase.QUEUED, None)
    engine_server.turn(after=1.0)
    assert (engine_server.phase(lost), engine_server.job(lost).handle) == (JobPhase.QUEUED, "#1")
    engine_server.manager.apply_request(lost, AskStop("eve"))
    engine.reports["#1"] = JobReport(phase="failed")
    engine_server.turn()

    engine.refuses = BackendError("the controller does not answer", temporary=True)
    waits = engine_server.submit()
    engine_server.turn()
    assert engine_server.job(waits).state.reason == "the controller does not answer"
    engine.refuses = BackendError("invalid partition")
    engine_server.turn()
    assert (engine_server.phase(waits), engine_server.job(waits).state.reason) == (
        JobPhase.FAILED,
        "invalid partition",
    )


def test_a_job_stopped_during_submission_is_removed_once_the_engine_answers(
    engine_server: Server, engine: ScriptedEngine
) -> None:
    job_id = engine_server.submit()
    engine.meanwhile = lambda: engine_server.manager.apply_request(job_id, AskStop("eve"))
    engine.cannot_delete = SILENT
    for _ in range(2):
        engine_server.turn()
    assert (engine_server.phase(job_id), engine.removed) == (JobPhase.STOPPED, [])
    engine.cannot_delete = None
    engine_server.turn()
    assert (engine.removed, engine_server.manager.live()) == ([job_id], [])


@pytest.mark.parametrize("stopped", ["before", "after"])
def test_a_stopped_job_is_removed_from_the_engine_after_a_server_restart(
    engine_server: Server, engine: ScriptedEngine, stopped: str
) -> None:
    job_id = engine_server.submit()

    def dies() -> None:
        if stopped == "before":
            engine_server.manager.apply_request(job_id, AskStop("eve"))
        raise Killed

    engine.meanwhile = dies
    with pytest.raises(Killed):
        engine_server.turn()
    engine_server.kill_and_start()
    if stopped == "after":
        engine_server.manager.apply_request(job_id, AskStop("eve"))
    engine_server.turn()
    assert (engine.removed, engine_server.manager.live()) == ([job_id], [])


def test_a_job_that_fails_on_an_engine_leads_with_the_task_that_failed_first(
    engine_server: Server, engine: ScriptedEngine
) -> None:
    job_id = engine_server.submit("workers: 2")
    engine_server.turn()
    first, second = engine_server.job(job_id).state.tasks
    ends = {
        first: Exited(code=1, reason="exit code 1", at=1002.0, last_lines=("Connection lost",)),
        second: Exited(code=3, reason="exit code 3", at=1001.0, last_lines=("Traceback", "ValueError: no labels")),
    }
    reason = "worker 1 failed: exit code 3 (after 2 restarts)"
    engine.reports["#0"] = JobReport(phase="failed", reason=reason, tasks=ends)
    engine_server.turn()
    state = engine_server.job(job_id).state
    assert state.first is not None
    assert (state.first.task, state.first.last_lines) == ("worker-1", ("Traceback", "ValueError: no labels"))
    assert state.reason == "worker-1 failed: exit code 3: ValueError: no labels (after 2 restarts)"
    notes = [event.note.text for event in engine_server.store.events(job_id=job_id)]
    assert [note for note in notes if "no labels" in note] == ["worker-1 failed: exit code 3: ValueError: no labels"]
    assert "the job has failed (after 2 restarts)" in notes


def test_a_job_that_an_engine_loses_is_resubmitted_up_to_its_limit(
    engine_server: Server, engine: ScriptedEngine
) -> None:
    job_id = engine_server.submit()
    for number in range(2):
        engine_server.turn(after=10.0)
        engine.reports[f"#{number}"] = JobReport(phase="lost", reason="a node failed")
        engine_server.turn()
    state = engine_server.job(job_id).state
    assert (state.phase, state.reason, state.restarts) == (JobPhase.FAILED, "a node failed (after 1 restarts)", 1)
    notes = [(event.note.kind, event.note.text) for event in engine_server.store.events(job_id=job_id)]
    assert ("lost", "a node failed") in notes
    assert ("queued", "a node failed; restart 1 of 1, after 10 s") in notes


def test_a_job_without_room_in_the_engine_is_released_and_retried(
    engine_server: Server, engine: ScriptedEngine
) -> None:
    job_id = engine_server.submit("requeue: false")
    engine_server.turn()
    engine.reports["#0"] = JobReport(phase="crowded", reason="worker-1 was not placed within 300 s", pause_s=60.0)
    engine_server.turn()
    state = engine_server.job(job_id).state
    assert (state.phase, state.restarts, state.requeues, engine.deleted) == (JobPhase.QUEUED, 0, 0, ["#0"])
    assert (
        state.reason == "worker-1 was not placed within 300 s; its resources are released, and it is retried after 60 s"
    )
    engine_server.turn(after=59.0)
    assert "#1" not in engine.orders
    engine_server.turn(after=1.0)
    assert "#1" in engine.orders


@pytest.mark.parametrize("requeue", [True, False])
def test_a_preempted_job_returns_to_the_queue_unless_disabled(
    engine_server: Server, engine: ScriptedEngine, requeue: bool
) -> None:
    job_id = engine_server.submit(f"requeue: {str(requeue).lower()}\n")
    engine_server.turn()
    engine.reports["#0"] = JobReport(phase="preempted", reason="it was preempted")
    engine_server.turn()
    state = engine_server.job(job_id).state
    if requeue:
        assert (state.phase, state.requeues, state.restarts) == (JobPhase.QUEUED, 1, 0)
        engine_server.turn()
        assert engine_server.job(job_id).handle == "#1"
    else:
        assert (state.phase, state.reason) == (JobPhase.FAILED, "it was preempted")


def test_tasks_that_an_engine_takes_away_are_counted_once(engine_server: Server, engine: ScriptedEngine) -> None:
    job_id = engine_server.submit(PS + "workers: 2\npreemptible: true")
    engine_server.turn()
    ps, second = TaskName("ps", 0), TaskName("worker", 1)
    running = {ps: Running(started_at=900.0), WORKER: Running(started_at=900.0), second: Running(started_at=900.0)}
    taken = Exited(code=-15, reason="killed by SIGTERM", preempted=True)
    reports = [
        running,
        {**running, second: taken},
        {**running, second: Running(waiting="no room")},
        {**running, second: Running(waiting="no room")},
        {**running, second: Running(started_at=990.0)},
        {**running, second: Running(started_at=999.0)},  # between two polls
        {**running, second: Running(started_at=999.0)},
    ]
    for tasks in reports:
        engine.reports["#0"] = JobReport(phase="running", tasks=tasks)
        engine_server.turn(after=1.0)
    state = engine_server.job(job_id).state
    assert (state.preemptions, state.restarts, state.tasks[second].attempt) == (2, 0, 2)
    # Simultaneous changes are stored together.
    engine.reports["#0"] = JobReport(phase="running", tasks=dict.fromkeys(running, taken))
    engine_server.turn()
    engine.reports["#0"] = JobReport(phase="preempted", reason="it was preempted", tasks=dict.fromkeys(running, taken))
    engine_server.turn()
    notes = [event.note for event in engine_server.store.events(job_id=job_id)]
    assert engine_server.job(job_id).state.preemptions == 3
    assert [note.text for note in notes if note.kind == "preempted"][:1] == [
        "worker-1 was preempted and will restart",
    ]
    assert "failed" not in [note.kind for note in notes]


def test_an_engine_takes_a_job_back_by_itself(engine_server: Server, engine: ScriptedEngine) -> None:
    job_id = engine_server.submit()
    engine_server.turn()
    engine.reports["#0"] = JobReport(phase="running")
    engine_server.turn(after=50.0)
    engine.reports["#0"] = JobReport(phase="waiting", reason="Slurm: BeginTime")
    engine_server.turn(after=50.0)
    state = engine_server.job(job_id).state
    assert (state.phase, state.reason, state.queued_at) == (JobPhase.QUEUED, "Slurm: BeginTime", 1100.0)
    engine.reports["#0"] = JobReport(phase="running")
    engine_server.turn()
    assert (engine_server.phase(job_id), engine_server.job(job_id).handle) == (JobPhase.RUNNING, "#0")


def test_a_job_cancelled_in_the_engine_is_stopped(engine_server: Server, engine: ScriptedEngine) -> None:
    job_id = engine_server.submit()
    engine_server.turn()
    engine.reports["#0"] = JobReport(phase="cancelled", reason="it was cancelled", tasks={WORKER: Running()})
    engine_server.turn()
    state = engine_server.job(job_id).state
    assert (state.phase, state.reason) == (JobPhase.STOPPED, "it was cancelled")
    assert (state.tasks[WORKER].phase, state.tasks[WORKER].reason) == (TaskPhase.STOPPED, "it was cancelled")


def test_scaling_a_job_of_an_engine_resubmits_it(engine_server: Server, engine: ScriptedEngine) -> None:
    job_id = engine_server.submit(PS + "workers: 1:4")
    engine_server.turn()
    engine.reports["#0"] = JobReport(phase="running")
    engine_server.turn()
    engine_server.manager.apply_request(job_id, AskScale("eve", 3))
    engine_server.turn()
    assert engine.stopped == ["#0"]
    engine.reports["#0"] = JobReport(phase="failed")
    for _ in range(3):
        engine_server.turn()
    assert engine.deleted == ["#0"]
    assert [order.spec.workers.count.most for order in engine.orders.values()] == [1, 3]
    assert len(engine_server.job(job_id).state.tasks) == 4
    with pytest.raises(NotPossible, match="within 1:4"):
        engine_server.manager.apply_request(job_id, AskScale("eve", 9))
    engine_server.manager.apply_request(job_id, AskRestart("eve"))


def ended(server: Server, engine: ScriptedEngine, at: float, archive: str | None = None) -> str:
    """Returns a job that ended at a time, with a log."""
    server.clock.now = at
    spec = parse_job(f"name: a\nprogram: b\n{SMALL}")
    job_id = server.manager.submit(spec, owner="eve", archive=archive).id
    server.turn()
    engine.reports["#0"] = JobReport(phase="succeeded")
    server.turn()
    engine.reports.clear()
    assert server.phase(job_id) is JobPhase.SUCCEEDED
    (server.manager.settings.job_dir(job_id) / "worker-0.log").write_text("done")
    return job_id


def kept(server: Server) -> set[str]:
    """Returns the jobs that are kept; of others nothing must be left."""
    jobs = {record.id for record in server.store.jobs()}
    assert {path.name for path in (server.folder / "jobs").iterdir()} == jobs
    assert {event.job_id for event in server.store.events()} == jobs
    return jobs


DAY = 86400.0


def test_jobs_that_ended_long_ago_are_forgotten_whole(engine_server: Server, engine: ScriptedEngine) -> None:
    server = engine_server
    server.kill_and_start(keep_s=10 * DAY, keep_jobs=None)
    first, second = ended(server, engine, 1 * DAY), ended(server, engine, 2 * DAY)
    server.clock.now = 3 * DAY
    running = server.submit()
    server.turn()
    engine.reports["#0"] = JobReport(phase="running")
    server.turn()
    server.clock.now = 11 * DAY
    server.manager.trim()
    assert kept(server) == {first, second, running}
    server.clock.now += 1.0
    server.manager.trim()  # the next trim is not due yet
    assert kept(server) == {first, second, running}
    server.clock.now = 11.5 * DAY
    server.manager.trim()
    assert kept(server) == {second, running}
    server.clock.now = 100 * DAY
    server.manager.trim()
    assert kept(server) == {running}
    engine.reports["#0"] = JobReport(phase="succeeded")
    server.turn()
    server.clock.now += 1000.0
    server.manager.trim()
    assert (kept(server), server.phase(running)) == ({running}, JobPhase.SUCCEEDED)


def test_a_limited_number_of_finished_jobs_is_kept(engine_server: Server, engine: ScriptedEngine) -> None:
    server = engine_server
    server.kill_and_start(keep_s=None, keep_jobs=2)
    jobs = [ended(server, engine, 100.0 * number) for number in range(1, 5)]
    server.clock.now = 500.0
    server.manager.apply_request(jobs[0], AskRestart("eve"))
    server.turn()
    server.manager.trim()
    # The oldest job has been restarted.
    assert kept(server) == {jobs[0], jobs[2], jobs[3]}


def test_server_without_retention_limit_keeps_all_jobs(engine_server: Server, engine: ScriptedEngine) -> None:
    server = engine_server
    server.kill_and_start(keep_s=None, keep_jobs=None)
    job_id = ended(server, engine, 100.0)
    server.clock.now = 1e12
    server.manager.trim()
    assert kept(server) == {job_id}


def test_archives_that_no_job_needs_are_removed(engine_server: Server, engine: ScriptedEngine) -> None:
    server = engine_server
    server.kill_and_start(keep_s=10 * DAY)
    names = [letter * 64 for letter in "abc"]
    server.manager.settings.archives_dir.mkdir()
    paths = [server.manager.settings.archive_path(name) for name in names]
    for path in paths:
        path.write_bytes(b"")
    job_id = ended(server, engine, 2 * DAY, archive=names[0])
    server.clock.now = 11 * DAY
    server.manager.trim()
    assert [path.exists() for path in paths] == [True, True, True]
    os.utime(paths[2], (1, 1))  # looked up recently, regardless of the file's time
    server.clock.now = 11 * DAY + 3600
    server.manager.trim()
    # One archive belongs to a job, and the other to a job that may be about to be submitted.
    assert [path.exists() for path in paths] == [True, False, True]
    for server.clock.now in (13 * DAY, 13 * DAY + 3600):
        server.manager.trim()
    assert kept(server) == set()
    assert [path.exists() for path in paths] == [False, False, False], job_id


def test_a_failed_removal_of_a_job_is_retried(engine_server: Server, engine: ScriptedEngine) -> None:
    server = engine_server
    server.kill_and_start(keep_s=10 * DAY)
    job_id = ended(server, engine, 1 * DAY)
    server.clock.now = 20 * DAY
    engine.cannot_delete = BackendError("the controller does not answer", temporary=True)
    server.manager.trim()
    assert kept(server) == {job_id}
    engine.cannot_delete = None
    server.clock.now = 21 * DAY
    server.manager.trim()
    assert kept(server) == set()


def test_a_restarted_job_of_an_engine_keeps_no_earlier_state(engine_server: Server, engine: ScriptedEngine) -> None:
    job_id = engine_server.submit()
    engine_server.turn()
    engine.reports["#0"] = JobReport(phase="failed", reason="worker-0: exit code 3")
    engine_server.turn()
    assert engine_server.phase(job_id) is JobPhase.FAILED
    engine_server.manager.apply_request(job_id, AskRestart("eve"))
    engine_server.turn()
    assert (engine.deleted, list(engine.orders)) == (["#0"], ["#0", "#1"])
    assert (engine_server.phase(job_id), engine_server.job(job_id).handle) == (JobPhase.QUEUED, "#1")
    engine.reports["#1"] = JobReport(phase="running", tasks={WORKER: Running(host="a")}, restarts={WORKER: 1})
    engine_server.turn()
    task = engine_server.job(job_id).state.tasks[WORKER]
    assert (task.attempt, task.restarts, task.host) == (1, 1, "a")


def test_a_stalled_task_of_an_engine_restarts_the_job(engine_server: Server, engine: ScriptedEngine) -> None:
    spec = "name: a\nprogram: b\nrestart: {limit: 1, backoff: 10s}\ndeadlines: {progress: 60s}"
    job_id = engine_server.manager.submit(parse_job(spec), owner="eve").id
    engine_server.turn()
    for step in (1, 2, 2):
        told = Progress(task="", step=step)
        engine.reports["#0"] = JobReport(phase="running", tasks={WORKER: Running(progress=told)})
        engine_server.turn(after=50.0)
    assert engine_server.phase(job_id) is JobPhase.RUNNING
    engine_server.turn(after=50.0)
    assert engine.stopped == ["#0"]
    engine.reports["#0"] = JobReport(phase="lost")
    engine_server.turn()
    engine_server.turn(after=10.0)
    assert engine_server.job(job_id).handle == "#1"
    notes = [(event.note.kind, event.note.text) for event in engine_server.store.events(job_id=job_id)]
    assert ("stalled", "worker-0: no progress for 60 s, since step 2") in notes


def test_progress_of_an_engines_tasks_is_sampled(engine_server: Server, engine: ScriptedEngine) -> None:
    job_id = engine_server.submit()
    engine_server.turn()
    told = Progress(task="", step=5, loss=0.5, metrics={"accuracy": 0.75})
    engine.reports["#0"] = JobReport(phase="running", tasks={WORKER: Running(progress=told)})
    for _ in range(2):
        engine_server.turn(after=10.0)
    samples = engine_server.store.samples(job_id)
    assert [(sample.step, sample.loss, sample.metrics) for sample in samples] == [(5, 0.5, {"accuracy": 0.75})] * 2
