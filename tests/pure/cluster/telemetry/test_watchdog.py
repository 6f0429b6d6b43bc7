"""Detection of workers that are behind, on a clock of the test."""

from __future__ import annotations

import pytest

from headwater.cluster.telemetry.watchdog import ProgressWatchdog, WorkerProgress

ONE, TWO = "/job:worker/task:0", "/job:worker/task:1"


class Clock:
    """Moved by the test."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Step:
    waits_for: tuple[str, float] | None = None


class Task:
    """A task whose workers make steps when the test says so; each has one session, of its own name."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.open = {ONE, TWO}
        self.watchdog = ProgressWatchdog(self.open.__contains__, least_s=10.0, clock=self.clock)

    def begin(self, worker: str) -> Step:
        step = Step()
        self.watchdog.record_start(worker, worker, step)
        return step

    def end(self, worker: str, step: Step, plan: int = 1, *, done: bool = True) -> None:
        self.watchdog.record_end(worker, worker, plan, step, done=done)

    def step(self, *workers: str, seconds: float = 0.1) -> None:
        """A step of each, which takes ``seconds`` in all."""
        steps = [self.begin(worker) for worker in workers]
        self.clock.now += seconds
        for worker, step in zip(workers, steps, strict=True):
            self.end(worker, step)

    def both_train(self, seconds: float = 0.1) -> None:
        for worker in (ONE, TWO):
            self.watchdog.record_open(worker, worker)
        for _ in range(20):
            self.step(ONE, TWO, seconds=seconds)
        assert self.watchdog.sentences() == []

    def behind(self) -> list[str]:
        return [one.worker for one in self.watchdog.progress() if one.behind]


@pytest.fixture
def task() -> Task:
    return Task()


def test_a_worker_that_hangs_between_two_steps(task: Task) -> None:
    task.both_train()
    for _ in range(12):
        assert task.behind() == []
        task.step(ONE, seconds=0.8)
    task.step(ONE, seconds=0.9)
    assert task.behind() == [TWO]
    assert task.watchdog.progress()[1] == WorkerProgress(worker=TWO, steps=20, idle_s=10.5, behind=True)
    assert task.watchdog.sentences() == [
        f"{TWO} is behind: it has been between two steps for 10 s, after 20 steps, and connected; {ONE} continues"
    ]
    # Said again only after as long again; and when it continues.
    task.step(ONE, seconds=9.0)
    assert task.watchdog.sentences() == []
    task.step(ONE, seconds=2.0)
    assert "for 22 s" in task.watchdog.sentences()[0]
    task.step(ONE, TWO)
    assert task.watchdog.sentences() == [f"{TWO} makes steps again"]
    assert task.behind() == []
    assert task.watchdog.sentences() == []


def test_a_worker_that_hangs_in_a_step(task: Task) -> None:
    task.both_train()
    stuck = task.begin(TWO)
    for _ in range(11):
        task.step(ONE, seconds=1.0)
    assert [(one.in_step, one.behind) for one in task.watchdog.progress()] == [(False, False), (True, True)]
    assert "it has been in a step for 11 s" in task.watchdog.sentences()[0]
    task.end(TWO, stuck)
    assert task.watchdog.sentences() == [f"{TWO} makes steps again"]


def test_a_worker_that_hangs_in_its_first_step(task: Task) -> None:
    task.watchdog.record_open(TWO, TWO)
    task.begin(TWO)
    task.clock.now += 11
    assert task.behind() == [TWO]


def test_the_awaited_worker_is_behind_and_the_waiting_one_is_not(task: Task) -> None:
    task.both_train()
    waits = task.begin(ONE)
    waits.waits_for = "the gradients of other replicas", task.clock.now
    task.clock.now += 11
    assert task.behind() == [TWO]
    assert task.watchdog.progress()[0].waiting == "the gradients of other replicas"
    assert task.watchdog.sentences()[0].endswith(f"; {ONE} waits")


def test_slow_steps_are_not_late(task: Task) -> None:
    task.both_train(seconds=4.0)
    for _ in range(30):
        task.step(ONE, seconds=1.0)
    assert task.behind() == []
    for _ in range(11):
        task.step(ONE, seconds=1.0)
    assert task.behind() == [TWO]


def test_no_worker_makes_steps(task: Task) -> None:
    # Two that wait for a third one elsewhere look the same from here: none is to blame.
    task.both_train()
    task.clock.now += 11
    assert task.behind() == []
    (said,) = task.watchdog.sentences()
    assert said.startswith(f"no worker makes steps: {ONE}: it has been between two steps for 11 s")
    assert TWO in said
    assert task.watchdog.sentences() == []


def test_a_single_worker_is_not_behind(task: Task) -> None:
    task.watchdog.record_open(ONE, ONE)
    task.step(ONE)
    task.step(ONE)
    task.clock.now += 11
    assert task.behind() == [ONE]


def test_plans_that_run_once_are_no_training(task: Task) -> None:
    task.watchdog.record_open(ONE, ONE)
    for plan in range(5):
        task.end(ONE, task.begin(ONE), plan)
    task.clock.now += 100
    assert task.watchdog.progress() == ()
    assert task.watchdog.sentences() == []


def test_a_step_that_fails_does_not_count(task: Task) -> None:
    task.both_train()
    task.end(ONE, task.begin(ONE), done=False)
    assert [one.steps for one in task.watchdog.progress()] == [20, 20]


def test_a_worker_that_leaves_is_forgotten(task: Task) -> None:
    task.both_train()
    task.watchdog.record_open(TWO, TWO)
    task.watchdog.record_close(TWO, TWO)
    assert len(task.watchdog.progress()) == 2  # it has another channel
    task.watchdog.record_close(TWO, TWO)
    assert [one.worker for one in task.watchdog.progress()] == [ONE]
    # A session that is closed in order keeps its channels for the next one.
    task.open.discard(ONE)
    task.clock.now += 100
    assert task.watchdog.sentences() == []
    assert task.watchdog.progress() == ()
    task.watchdog.record_close(ONE, ONE)
    task.step(ONE)  # of a session that is gone
    assert task.watchdog.progress() == ()
