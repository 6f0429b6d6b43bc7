"""Backends that do not answer: which operations wait for them, and which do not."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from headwater.platform.backends.base import Backend, BackendError, Capacity, NotEnough, TaskPlace, TaskRequest
from headwater.platform.lanes import BackendSource, Lane
from headwater.platform.manager import Manager, ManagerSettings
from headwater.platform.spec import parse_job
from headwater.platform.states import AskStop, JobPhase
from headwater.platform.store import Store
from tests.support.scripted import ScriptedTasks


class Deaf(ScriptedTasks):
    """A backend that does not answer until the test allows it."""

    name: ClassVar[str] = "ssh"

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()
        self.answers = threading.Event()

    def reserve(self, job_id: str, requests: Sequence[TaskRequest]) -> tuple[TaskPlace, ...]:
        self.asked.set()
        self.answers.wait()
        return super().reserve(job_id, requests)

    def capacity(self) -> Capacity:
        self.answers.wait()
        return super().capacity()


class Running:
    """A manager with its threads, which change jobs concurrently with the test."""

    def __init__(self, folder: Path, *backends: Backend | BackendSource) -> None:
        self.store = Store(f"sqlite:///{folder}/jobs.db")
        self.store.open()
        self.manager = Manager(self.store, backends, ManagerSettings(data_dir=folder, poll_s=0.01))
        self.manager.start()

    def submit(self, text: str = "", name: str = "a") -> str:
        return self.manager.submit(parse_job(f"name: {name}\nprogram: b\n{text}"), owner="eve").id

    def until(self, job_id: str, *phases: JobPhase) -> str:
        change = 0
        while self.manager.job(job_id).state.phase not in phases:
            change = self.store.wait_change(change, 1.0)
        return self.manager.job(job_id).state.reason

    def close(self) -> None:
        self.manager.close()
        self.store.close()


@pytest.fixture
def deaf() -> Iterator[Deaf]:
    deaf = Deaf()
    yield deaf
    deaf.answers.set()


def test_a_silent_backend_does_not_block_others(tmp_path: Path, deaf: Deaf) -> None:
    tasks = ScriptedTasks()
    running = Running(tmp_path, tasks, deaf)
    waiting = running.submit("backend: ssh")
    deaf.asked.wait()
    # All of this happens while a call to the other backend is in progress.
    job_id = running.submit()
    running.until(job_id, JobPhase.RUNNING)
    tasks.ends("worker-0#0")
    running.until(job_id, JobPhase.SUCCEEDED)
    second = running.submit("backend: ssh")
    assert running.manager.apply_request(second, AskStop("eve")).state.phase is JobPhase.STOPPED
    assert running.manager.apply_request(waiting, AskStop("eve")).state.phase is JobPhase.STOPPED
    running.manager.delete(job_id)
    # Resources that it allocated to a job that was stopped meanwhile are released.
    deaf.answers.set()
    last = running.submit("backend: ssh")
    running.until(last, JobPhase.RUNNING)
    assert not deaf.reserved.get(waiting)
    assert [order.job_id for order in deaf.orders.values()] == [last]
    deaf.ends("worker-0#0")
    running.until(last, JobPhase.SUCCEEDED)
    running.close()


def test_an_unreachable_backend_is_retried(tmp_path: Path) -> None:
    tasks, unreachable = ScriptedTasks(), ["the head does not answer"]

    def connect() -> Backend:
        if unreachable:
            raise BackendError(unreachable[0], temporary=True)
        return tasks

    now = [0.0]
    lane = Lane(BackendSource(name="local", kind=ScriptedTasks, connect=connect), clock=lambda: now[0])
    assert not lane.reach()
    assert lane.problem() == "the head does not answer"
    with pytest.raises(BackendError, match="backend local cannot be used now: the head does not answer"):
        lane.capacity(1.0)
    unreachable.clear()
    assert not lane.reach()  # it is not retried for a while
    now[0] += 5.0
    assert lane.reach()
    assert (lane.problem(), lane.capacity(60.0)) == ("", Capacity(hosts=()))


def test_jobs_say_that_their_backend_cannot_be_used(tmp_path: Path) -> None:
    def connect() -> Backend:
        raise BackendError("nobody listens at head:6379", temporary=True)

    running = Running(tmp_path, BackendSource(name="ray", kind=ScriptedTasks, connect=connect))
    job_id = running.submit("deadlines: {pending: 1s}")
    reason = running.until(job_id, JobPhase.FAILED)
    assert "backend ray cannot be used now, and will be retried: nobody listens at head:6379" in reason
    running.close()


def test_machines_that_are_not_reported_in_time(deaf: Deaf) -> None:
    lane = Lane(deaf)
    with pytest.raises(BackendError, match=r"has not answered in 0\.01 s"):
        lane.capacity(0.01)
    deaf.answers.set()
    assert lane.capacity(60.0) == Capacity(hosts=())


def test_a_long_query_of_a_backend_is_reported(deaf: Deaf) -> None:
    now = [0.0]
    lane = Lane(deaf, clock=lambda: now[0])
    with lane.call_in_progress():
        assert lane.problem() == ""
        now[0] += 60.0
        assert lane.problem() == "it has not answered for 60 s"
    assert lane.problem() == ""


def test_a_job_larger_than_any_host_fails_immediately(tmp_path: Path) -> None:
    class Small(ScriptedTasks):
        def reserve(self, job_id: str, requests: Sequence[TaskRequest]) -> tuple[TaskPlace, ...]:
            raise NotEnough("worker 0 asks for 500 CPUs: local has 2 CPUs", temporary=False)

    running = Running(tmp_path, Small())
    reason = running.until(running.submit("workers: {cpus: 500}"), JobPhase.FAILED)
    assert reason == "no host of this server is large enough: worker 0 asks for 500 CPUs: local has 2 CPUs"
    running.close()
