"""Costs of jobs, and losses by preemption, on a clock of the test."""

from __future__ import annotations

from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.progress import Progress
from headwater.platform import policy
from headwater.platform.backends.base import Exited, Lost
from headwater.platform.costs import account, cost, cost_in_words
from headwater.platform.spec import parse_job
from headwater.platform.states import AskScale, Ended, Event, JobPhase, JobTick, Placed, Progressed, Started, TaskPhase

PS, FIRST, SECOND = TaskName("ps", 0), TaskName("worker", 0), TaskName("worker", 1)
TAKEN = Exited(code=-15, reason="its machine was taken away", preempted=True)


def at_step(task: TaskName, step: int) -> Progressed:
    return Progressed(task, Progress(task=str(task), step=step))


class Job:
    """A job of which each decision is accounted for, as `LiveJobs` does it."""

    def __init__(self, text: str) -> None:
        self.now = 1000.0
        self.state = policy.initial_state(parse_job("name: a\nprogram: b\n" + text), self.now)
        self.place()

    def happens(self, *events: Event, after: float = 0.0) -> None:
        self.now += after
        for event in events:
            decision = policy.decide(self.state, event, self.now)
            self.state = account(self.state, decision.state, decision.notes, self.now)

    def place(self) -> None:
        """All that wait for places get them, and start."""
        self.happens(Placed(policy.needs_place(self.state, self.now)))
        self.happens(*(Started(name) for name, task in self.state.tasks.items() if task.phase is TaskPhase.STARTING))

    def phase(self, task: TaskName) -> TaskPhase:
        return self.state.tasks[task].phase


def test_task_hours_count_each_incarnation_once() -> None:
    job = Job("ps: 1\nworkers: {count: '1:3', cpus: 2, gpus: 1}\nrestart: {backoff: 50s}\n")
    job.happens(Ended(FIRST, Exited(code=3, reason="exit code 3")), after=1800.0)
    job.happens(JobTick(), after=100.0)
    job.happens(Started(FIRST))
    job.happens(AskScale("eve", 2))
    job.place()
    job.happens(JobTick(), after=3500.0)
    told = cost(job.state, job.now)
    assert told.task_hours == {"ps": 1.5, "worker": (1800 + 3500 + 3500) / 3600}
    assert (told.cpu_hours, told.gpu_hours) == (2 * 8800 / 3600, 8800 / 3600)
    job.happens(*(Ended(name, Exited(code=0, reason="")) for name in (FIRST, SECOND)))
    job.happens(Ended(PS, Exited(code=-15, reason="", stopped=True)))
    assert job.state.phase is JobPhase.SUCCEEDED
    assert cost(job.state, job.now + 5000).task_hours == told.task_hours
    assert (told.preemptions, told.lost_steps) == (0, 0)
    assert cost_in_words(told) == "Cost: 3.94 task-hours (ps 1.50, worker 2.44), 4.89 CPU-hours, 2.44 GPU-hours"


def test_steps_that_a_preempted_mirrored_job_makes_again_are_lost() -> None:
    job = Job("workers: 2\n")
    job.happens(at_step(FIRST, 700), at_step(SECOND, 690), after=10.0)
    job.happens(Ended(FIRST, TAKEN))
    # What a task says while it is about to end tells nothing of where training will continue.
    job.happens(at_step(SECOND, 700))
    job.happens(Ended(SECOND, Exited(code=0, reason="", stopped=True)), after=5.0)
    assert (job.state.phase, job.state.preemptions) == (JobPhase.QUEUED, 1)
    job.place()
    job.happens(at_step(FIRST, 501), at_step(SECOND, 502), after=5.0)
    job.happens(at_step(FIRST, 900), after=5.0)
    told = cost(job.state, job.now)
    assert told.lost_steps == 199
    assert cost_in_words(told).endswith("Preempted 1 time: 199 steps had to be repeated")


def test_others_continue_without_a_worker_of_a_preemptible_job() -> None:
    job = Job("ps: 1\nworkers: {count: '2:4', cpus: 1}\npreemptible: true\n")
    job.happens(at_step(FIRST, 100), at_step(SECOND, 110), after=10.0)
    for how in (TAKEN, Lost(reason="host b has not answered for 40 s")):
        job.happens(Ended(SECOND, how))
        task = job.state.tasks[SECOND]
        assert (job.state.phase, task.phase, task.placed, task.restarts) == (
            JobPhase.RUNNING,
            TaskPhase.WAITING,
            False,
            0,
        )
        assert job.phase(FIRST) is TaskPhase.RUNNING
        job.happens(at_step(FIRST, 150), after=10.0)
        job.place()
        job.happens(at_step(SECOND, 151), after=1.0)
    told = cost(job.state, job.now)
    assert (told.preemptions, told.lost_steps) == (2, 0)
    # One that has no place when the others are done is not waited for.
    job.happens(Ended(SECOND, TAKEN))
    job.happens(Ended(FIRST, Exited(code=0, reason="")))
    job.happens(Ended(PS, Exited(code=-15, reason="", stopped=True)))
    assert job.state.phase is JobPhase.SUCCEEDED


def test_a_preempted_ps_of_a_preemptible_job_takes_all_with_it() -> None:
    job = Job("ps: 1\nworkers: 1\npreemptible: true\n")
    job.happens(Ended(PS, TAKEN))
    assert (job.state.phase, job.state.then) == (JobPhase.ENDING, JobPhase.QUEUED)
