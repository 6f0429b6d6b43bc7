"""Histories of the platform: a server with a database runs jobs on hosts, and is killed and stopped meanwhile.

The hosts continue to run when the server is killed, as machines do. For some time, the answers of hosts are late or
missing, even if the hosts have carried out the request. Tasks succeed, fail, are preempted while their hosts are
drained, or are lost with their host. The rules: no request that the server has acknowledged is lost, no task is started
without a reserved place or in the wrong order, no task that saves its state at a request is killed within its grace
period, and at the end no task and no reservation remains.
"""

from __future__ import annotations

import functools
import math
import random
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from headwater.cluster.names import TaskName
from headwater.platform import store as store_module
from headwater.platform.backends.base import (
    BackendError,
    Capacity,
    Exited,
    Lost,
    NotEnough,
    Running,
    TaskBackend,
    TaskOrder,
    TaskPlace,
    TaskRequest,
    TaskState,
)
from headwater.platform.completion import WORKING
from headwater.platform.manager import Manager, ManagerSettings
from headwater.platform.policy import NotPossible
from headwater.platform.spec import parse_job
from headwater.platform.states import AskRestart, AskScale, AskStop, JobPhase
from headwater.platform.store import Store
from tests.simulation.facades import EPOCH_S
from tests.simulation.scheduler import HistoryError, Process, Simulation, running

T = TypeVar("T")

_ROOM = 6
_POLL_S = 1.0
_LIMIT = 2
_GRACE_S = 5.0


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """A user's request about a job, ``after_s`` seconds after its submission."""

    kind: str
    after_s: float


@dataclass(frozen=True, kw_only=True)
class JobSetting:
    """A job of a history.

    Attributes:
      servers: number of ``ps`` tasks.
      workers: least and greatest number of workers.
      scope: the tasks that restart after a failure of a task.
      work_s: mean duration of a worker's work, in seconds.
      fails: probability that a worker fails.
      late: probability that a worker other than the first is killed after it has finished its work, before it exits. In
          such histories, ``ps`` tasks end by themselves when all work is finished. None: workers exit as soon as they
          have finished their work, and ``ps`` tasks do not end by themselves.
      evaluator: mean time of an evaluator's validation after the work, in seconds; None for no evaluator.
      requests: users' requests about the job, in their order.
    """

    servers: int
    workers: tuple[int, int]
    scope: str
    work_s: float
    fails: float
    late: float | None
    evaluator: float | None
    requests: tuple[JobRequest, ...]

    def text(self, number: int) -> str:
        """Returns the job file. The job's name contains the number of the job in the history."""
        least, most = self.workers
        ends = "" if self.evaluator is None else "evaluator: true\n"
        return ends + (
            f"name: job{number}\nprogram: b.py\nps: {{count: {self.servers}}}\n"
            f"workers: {{count: {least if least == most else f'{least}:{most}'}, cpus: 1}}\n"
            f"restart: {{limit: {_LIMIT}, backoff: 2s, scope: {self.scope}}}\ndeadlines: {{grace: {_GRACE_S:.0f}s}}\n"
        )


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The setting of a history.

    Attributes:
      jobs: the jobs, in the order of their submission.
      ends: kills of the server: seconds since the previous kill, and seconds until the restart.
      stops: stops of the server: seconds since the previous stop, and the duration.
      outages: periods without answers of hosts: seconds since the previous period, and the duration.
      delay_s: mean latency of a host's answer.
      lost: probability that a task is lost with its host.
      drains: seconds between times at which all running tasks are preempted.
    """

    jobs: tuple[JobSetting, ...]
    ends: tuple[tuple[float, float], ...]
    stops: tuple[tuple[float, float], ...]
    outages: tuple[tuple[float, float], ...]
    delay_s: float
    lost: float
    drains: tuple[float, ...]

    @staticmethod
    def draw(chance: random.Random, *, ends: bool) -> Setting:
        """Returns a random setting. With ``ends``, tasks may be killed, or may continue to run, after they have
        finished their work."""

        def times(most: int) -> tuple[tuple[float, float], ...]:
            return tuple(
                (10 ** chance.uniform(-1, 2), 10 ** chance.uniform(-1, 1.3)) for _ in range(chance.randint(0, most))
            )

        def job() -> JobSetting:
            least = chance.choice((1, 1, 2, 3))
            kinds = chance.choices(("stop", "restart", "scale", "requeue"), k=chance.choice((0, 0, 1, 2)))
            return JobSetting(
                servers=chance.choice((0, 1, 2)),
                workers=(least, chance.choice((least, least + 2))),
                scope=chance.choice(("task", "job")),
                work_s=chance.choice((3.0, 30.0)),
                fails=chance.choice((0.0, 0.1, 0.5)),
                late=chance.choice((0.0, 0.5)) if ends else None,
                evaluator=chance.choice((None, 5.0, 1000.0)) if ends else None,
                requests=tuple(JobRequest(kind=kind, after_s=chance.expovariate(1 / 20)) for kind in kinds),
            )

        return Setting(
            jobs=tuple(job() for _ in range(chance.choice((1, 2, 3)))),
            ends=times(3),
            stops=times(1),
            outages=times(2),
            delay_s=chance.choice((0.001, 0.1, 1.0)),
            lost=chance.choice((0.0, 0.0, 0.1)),
            drains=tuple(seconds for seconds, _ in times(2)),
        )


@dataclass(kw_only=True)
class _Incarnation:
    """One attempt of a task on the hosts.

    Attributes:
      attempt: the number of the attempt.
      state: its present state.
      stopped: whether the server has asked the task to end.
      preempted: whether the host has asked the task to end.
      kill_at: the end of the grace period, after the first request to end.
      end_reported: whether a server has learnt of the end of the attempt.
      finished: whether the task has completed its work.
    """

    attempt: int
    state: TaskState
    stopped: bool = False
    preempted: bool = False
    kill_at: float = math.inf
    end_reported: bool = False
    finished: bool = False

    @property
    def asked(self) -> bool:
        """Whether the task was asked to end."""
        return self.stopped or self.preempted

    @property
    def ended_well(self) -> bool:
        """Whether the task has finished its work, or was stopped."""
        return self.finished or (isinstance(self.state, Exited) and (self.state.code == 0 or self.stopped))

    @property
    def failed(self) -> bool:
        """Whether the task has ended with an error, perhaps after its work, without a request to end."""
        return isinstance(self.state, Exited) and self.state.code != 0 and not self.asked

    @property
    def ended_by_itself(self) -> bool:
        """Whether the task has ended without an error, and without a request to end."""
        return isinstance(self.state, Exited) and self.state.code == 0 and not self.asked


@dataclass(kw_only=True)
class Hosts(TaskBackend):
    """All machines; they outlive servers."""

    name: ClassVar[str] = "local"

    simulation: Simulation
    setting: Setting
    incarnations: dict[tuple[str, TaskName], list[_Incarnation]] = field(
        default_factory=dict[tuple[str, TaskName], list[_Incarnation]]
    )
    reserved: dict[str, set[TaskName]] = field(default_factory=dict[str, set[TaskName]])
    silent: bool = False

    def ask(self) -> None:
        """Simulates the latency of a request or an answer; may raise `BackendError`. Called before and after each
        action."""
        # If the host stops answering after the action, the server gets an error although the action was carried out.
        # When the server repeats the request, the action must not happen a second time.
        chance = self.simulation.random
        running().sleep(chance.expovariate(1.0 / self.setting.delay_s))
        if self.silent:
            running().sleep(2.0)
            raise BackendError("the host does not answer", temporary=True)

    def capacity(self) -> Capacity:
        return Capacity(hosts=())

    def reserve(self, job_id: str, requests: Sequence[TaskRequest]) -> tuple[TaskPlace, ...]:
        self.ask()
        mine = self.reserved.setdefault(job_id, set())
        if sum(map(len, self.reserved.values())) + len(requests) > _ROOM:
            raise NotEnough("no room", temporary=True)
        if twice := mine & {request.task for request in requests}:
            raise HistoryError(f"{twice} of {job_id} have places already")
        mine.update(request.task for request in requests)
        return tuple(TaskPlace(task=request.task, host="h", address=f"h:{request.task.index}") for request in requests)

    def restore(self, job_id: str, places: Sequence[TaskPlace]) -> None:
        self.reserved[job_id] = {place.task for place in places}

    def forget_server(self) -> None:
        """Drops reservations, which only a server's memory has; running tasks stay."""
        self.reserved.clear()

    def release(self, job_id: str, tasks: Sequence[TaskName] | None = None) -> None:
        self.ask()
        mine = self.reserved.get(job_id, set())
        freed = set(mine if tasks is None else tasks)
        mine -= freed
        if not mine:
            self.reserved.pop(job_id, None)
        for (job, task), incarnations in self.incarnations.items():
            if job == job_id and task in freed:
                self._kill(incarnations[-1])
        self.ask()

    def start(self, order: TaskOrder) -> str:
        self.ask()
        key = order.job_id, order.task
        if order.task not in self.reserved.get(order.job_id, ()):
            raise HistoryError(f"{order.task} of {order.job_id} is started without a place")
        incarnations = self.incarnations.setdefault(key, [])
        if incarnations and incarnations[-1].attempt > order.attempt:
            raise HistoryError(f"attempt {order.attempt} of {key} is started after attempt {incarnations[-1].attempt}")
        if incarnations and incarnations[-1].attempt == order.attempt and incarnations[-1].end_reported:
            raise HistoryError(f"attempt {order.attempt} of {key} is started again after its end")
        if not incarnations or incarnations[-1].attempt < order.attempt:
            if incarnations:
                self._kill(incarnations[-1])
            incarnations.append(_Incarnation(attempt=order.attempt, state=Running()))
            running().note(f"{order.task} of {order.job_id} runs, attempt {order.attempt}")
            self._run_task(order.job_id, order.task, incarnations[-1])
        self.ask()
        return f"{order.job_id}/{order.task.job}/{order.task.index}/{order.attempt}"

    def _run_task(self, job_id: str, task: TaskName, incarnation: _Incarnation) -> None:
        chance, job = self.simulation.random, self.setting.jobs[int(job_id.partition("-")[0].removeprefix("job"))]
        after = chance.expovariate(1.0 / job.work_s)
        if chance.random() < self.setting.lost:
            self.simulation.after(after, lambda: self._end(incarnation, None))
        elif task.job == "evaluator" and job.evaluator is not None:
            self.simulation.after(chance.expovariate(1.0 / job.evaluator), lambda: self._end(incarnation, 0))
        elif task.job in WORKING and job.late is None:
            code = 1 if chance.random() < job.fails else 0
            self.simulation.after(after, lambda: self._end(incarnation, code))
        elif task.job in WORKING and self.work_is_complete(job_id):
            # The task waits in vain for a ps, and then fails.
            self.simulation.after(600.0, lambda: self._end(incarnation, 1))
        elif task.job in WORKING:
            fails, late = chance.random() < job.fails, task.index > 0 and chance.random() < (job.late or 0.0)
            tail = chance.expovariate(1.0)

            def work_ends() -> None:
                if fails or not isinstance(incarnation.state, Running):
                    self._end(incarnation, 1)
                    return
                incarnation.finished = True
                self.simulation.after(tail, lambda: leave(-9 if late else 0))

            def leave(code: int) -> None:
                self._end(incarnation, code)
                self.simulation.after(0.5, lambda: self._end_servers(job_id))

            self.simulation.after(after, work_ends)

    def _of(self, job_id: str, role: str) -> dict[int, _Incarnation]:
        """Returns the latest attempts of a role's tasks, by number."""
        return {
            task.index: incarnations[-1]
            for (job, task), incarnations in self.incarnations.items()
            if job == job_id and task.job == role
        }

    def work_is_complete(self, job_id: str) -> bool:
        """Returns whether a job's ``ps`` have ended by themselves."""
        servers = self._of(job_id, "ps")
        return bool(servers) and all(incarnation.ended_by_itself for incarnation in servers.values())

    def _end_servers(self, job_id: str) -> None:
        """Ends the ``ps`` tasks of a job if its first worker has ended, and no other worker is connected."""
        workers = self._of(job_id, "worker")
        if workers[0].ended_by_itself and not any(
            isinstance(incarnation.state, Running) for incarnation in workers.values()
        ):
            for incarnation in self._of(job_id, "ps").values():
                self._end(incarnation, 0)

    def _end(self, incarnation: _Incarnation, code: int | None) -> None:
        if isinstance(incarnation.state, Running):
            at = EPOCH_S + self.simulation.now
            if code is None:
                incarnation.state = Lost(reason="its host is gone")
            else:
                incarnation.state = Exited(
                    code=code,
                    reason=f"exit code {code}",
                    at=at,
                    stopped=incarnation.stopped,
                    preempted=incarnation.preempted and not incarnation.stopped,
                )

    def _kill(self, incarnation: _Incarnation) -> None:
        if isinstance(incarnation.state, Running) and incarnation.asked and self.simulation.now < incarnation.kill_at:
            raise HistoryError(f"attempt {incarnation.attempt} is killed within its grace period")
        self._end(incarnation, -9)

    def _request_end(self, incarnation: _Incarnation, grace_s: float) -> None:
        incarnation.kill_at = min(incarnation.kill_at, self.simulation.now + grace_s)
        # The task saves its state first.
        self.simulation.after(self.simulation.random.random() * grace_s, lambda: self._end(incarnation, -15))

    def drain(self) -> None:
        """Preempts all running tasks."""
        self.simulation.note("all tasks are preempted")
        for incarnations in self.incarnations.values():
            if isinstance(incarnations[-1].state, Running):
                incarnations[-1].preempted = True
                self._request_end(incarnations[-1], _GRACE_S)

    def _incarnation_of(self, handle: str) -> _Incarnation:
        job_id, job, index, attempt = handle.rsplit("/", 3)
        return next(
            incarnation
            for incarnation in self.incarnations[job_id, TaskName(job, int(index))]
            if incarnation.attempt == int(attempt)
        )

    def poll(self, handle: str) -> TaskState:
        self.ask()
        incarnation = self._incarnation_of(handle)
        incarnation.end_reported = not isinstance(incarnation.state, Running)
        return incarnation.state

    def stop(self, handle: str, *, grace_s: float) -> None:
        self.ask()
        incarnation = self._incarnation_of(handle)
        if isinstance(incarnation.state, Running):
            incarnation.stopped = True
            self._request_end(incarnation, grace_s)
        self.ask()

    def adopt(self, handle: str) -> bool:
        self.ask()
        return isinstance(self._incarnation_of(handle).state, Running)

    def forget(self, job_id: str) -> None:
        self.ask()


class JobsHistory:
    """A history of the platform.

    Args:
      simulation: the history.
      setting: the history's setting.
    """

    def __init__(self, simulation: Simulation, setting: Setting) -> None:
        self.simulation = simulation
        self.setting = setting
        self.folder = Path(tempfile.mkdtemp(prefix="headwater-simulated-"))
        _new_database(self.folder / "jobs.db")
        self.hosts = Hosts(simulation=simulation, setting=setting)
        self._server: Process | None = None
        self._manager: Manager | None = None
        self._submitted: list[str] = []
        self._asked: dict[str, set[str]] = {}
        self._people = 0

    def run(self) -> None:
        """Runs the whole history; raises HistoryError if a rule is broken."""
        simulation, setting = self.simulation, self.setting
        simulation.note(str(setting))
        self._start()
        for times, happens in (
            (setting.ends, self._kill),
            (setting.stops, self._stop),
            (setting.outages, self._silence),
        ):
            at = 0.0
            for after, seconds in times:
                at += after
                simulation.after(at, functools.partial(happens, seconds))
        at = 0.0
        for after in setting.drains:
            at += after
            simulation.after(at, self.hosts.drain)
        people = simulation.process("people")
        for number in range(len(setting.jobs)):
            self._people += 1
            simulation.thread(people, "person", functools.partial(self._person, number)).start()
        while self._people:
            simulation.sleep(1.0)
        while not all(
            self._call(lambda manager, job_id=job_id: manager.job(job_id)).state.phase.over
            for job_id in self._submitted
        ):
            simulation.sleep(1.0)
        # The server may still release places and delete records of jobs that are over.
        simulation.sleep(60.0)
        self._check()

    def close(self) -> None:
        """Removes the files of the history."""
        shutil.rmtree(self.folder, ignore_errors=True)

    # The server -------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        simulation = self.simulation
        self._server = process = simulation.process("server")
        simulation.note(f"{process} begins")
        simulation.thread(process, "program", lambda: self._serve(process)).start()

    def _serve(self, process: Process) -> None:
        store = Store(f"sqlite:///{self.folder}/jobs.db")
        process.on_end.append(store.close)
        store.open()
        self.hosts.forget_server()
        settings = ManagerSettings(data_dir=self.folder, poll_s=_POLL_S, max_running=2)
        manager = Manager(store, [self.hosts], settings)
        manager.start()
        self._manager = manager

    def _kill(self, seconds: float) -> None:
        assert self._server is not None
        if self._server.dead:
            return
        self._manager = None
        self.simulation.kill(self._server)
        self.simulation.after(seconds, self._start)

    def _stop(self, seconds: float) -> None:
        server = self._server
        assert server is not None
        self.simulation.stop(server)
        self.simulation.after(seconds, lambda: self.simulation.go_on(server))

    def _silence(self, seconds: float) -> None:
        self.simulation.note(f"the hosts do not answer for {seconds:.1f} s")
        self.hosts.silent = True

        def answers() -> None:
            self.hosts.silent = False

        self.simulation.after(seconds, answers)

    # Users ------------------------------------------------------------------------------------------------------------

    def _call(self, wanted: Callable[[Manager], T]) -> T:
        """Returns a server's answer; retries if the server ends before it answers.

        Raises:
          NotPossible: the server refuses the request.
        """
        while True:
            manager, process = self._manager, self._server
            answers: list[T | NotPossible] = []
            if manager is not None and process is not None and not process.dead:

                def request(manager: Manager = manager, answers: list[Any] = answers) -> None:
                    try:
                        answers.append(wanted(manager))
                    except NotPossible as error:
                        answers.append(error)

                self.simulation.thread(process, "request", request).start()
                while not answers and not process.dead:
                    running().sleep(0.1)
            if answers:
                if isinstance(answers[0], NotPossible):
                    raise answers[0]
                return answers[0]
            running().sleep(0.5)

    def _is_over(self, job_id: str) -> bool:
        return self._call(lambda manager: manager.job(job_id)).state.phase.over

    def _person(self, number: int) -> None:
        job = self.setting.jobs[number]
        chance = running().random
        running().sleep(chance.expovariate(1 / 5))
        spec = parse_job(job.text(number))

        def submit(manager: Manager) -> str:
            return manager.submit(spec, owner="eve").id

        job_id = self._call(submit)
        self._submitted.append(job_id)
        running().note(f"{job_id} was submitted")
        asked = self._asked.setdefault(job_id, set())
        for request in job.requests:
            running().sleep(request.after_s)
            asked.add(request.kind)
            try:
                self._call(lambda manager, request=request: manager.apply_request(job_id, _asked(request, job)))
            except NotPossible as error:
                running().note(f"{request.kind} {job_id}: {error}")
            else:
                running().note(f"{request.kind} {job_id} was taken")
        self._people -= 1

    # Rules ------------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        store = Store(f"sqlite:///{self.folder}/jobs.db")
        for job_id, incarnations in self.hosts.incarnations.items():
            if isinstance(incarnations[-1].state, Running):
                raise HistoryError(f"{job_id} still runs, though all jobs are over")
        for job_id in self._submitted:
            record = store.job(job_id)
            if record is None:
                raise HistoryError(f"{job_id} was submitted, and is forgotten")
            if record.places:
                raise HistoryError(f"{job_id} is over, and still has places: {record.places}")
            last = {
                task: incarnations[-1]
                for (job, task), incarnations in self.hosts.incarnations.items()
                if job == job_id and task in record.state.tasks
            }
            # A worker that was scaled away need not have succeeded: it may have failed just before. The same applies to
            # workers other than the first if the ps tasks have ended by themselves: no work was left for them.
            complete = self.hosts.work_is_complete(job_id)
            owing = 1 if complete else record.state.workers
            well = [
                incarnation.ended_well
                for task, incarnation in last.items()
                if task.job in WORKING and task.index < owing
            ]
            ended_badly = any(
                incarnation.failed or not incarnation.ended_well
                for (job, _), incarnations in self.hosts.incarnations.items()
                if job == job_id
                for incarnation in incarnations
            )
            match record.state.phase:
                case JobPhase.SUCCEEDED if not well or not all(well):
                    raise HistoryError(f"{job_id} is said to have succeeded: {last}")
                case JobPhase.FAILED if not ended_badly:
                    raise HistoryError(f"{job_id} is said to have failed: {record.state.reason}; {last}")
                case JobPhase.STOPPED if "stop" not in self._asked[job_id]:
                    raise HistoryError(f"{job_id} is stopped, which no person asked for")
                case _:
                    continue
        if kept := {job_id: tasks for job_id, tasks in self.hosts.reserved.items() if tasks}:
            raise HistoryError(f"places are kept though all jobs are over: {kept}")
        store.close()


def _asked(request: JobRequest, job: JobSetting) -> Any:
    match request.kind:
        case "stop":
            return AskStop("eve")
        case "requeue":
            return AskStop("eve", requeue=True)
        case "restart":
            return AskRestart("eve")
        case _:
            return AskScale("eve", job.workers[0] + 1)


@functools.cache
def _template() -> bytes:
    """Returns the bytes of an empty database with all tables."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.db"
        store = Store(f"sqlite:///{path}")
        store.open()
        store.close()
        return path.read_bytes()


def _new_database(path: Path) -> None:
    path.write_bytes(_template())
    # The template has all tables already. Creating them again takes longer than most histories.
    modules: Any = store_module
    modules.migrate = lambda connection: None


def history(seed: int, *, ends: bool = False) -> tuple[Simulation, JobsHistory]:
    """Creates, but does not run, a history drawn from ``seed``; see `Setting.draw`."""
    simulation = Simulation(seed, horizon_s=7200.0 if ends else 3600.0)
    return simulation, JobsHistory(simulation, Setting.draw(random.Random(f"jobs {seed}"), ends=ends))
