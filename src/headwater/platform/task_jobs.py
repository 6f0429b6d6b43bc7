"""Jobs whose tasks a backend runs one by one: polls them, and performs the actions that their stored state requires.

Every action is idempotent: the same attempt of a task starts once, however often it is requested. So a server can be
killed at any moment, and the next server continues from the store: nothing is started twice or lost. Jobs that engines
run as a whole are in `headwater.platform.engines`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from headwater.cluster.names import TaskName
from headwater.platform import policy
from headwater.platform.backends.base import BackendError, NotEnough, TaskBackend, TaskOrder, TaskPlace
from headwater.platform.live import LiveJobs
from headwater.platform.polling import poll_tasks
from headwater.platform.records import Attempt, JobRecord
from headwater.platform.states import (
    AskScale,
    CouldNotStart,
    Event,
    JobPhase,
    JobTick,
    NotPlaced,
    Placed,
    Started,
    TaskPhase,
)
from headwater.platform.tasks import task_requests

_log = logging.getLogger(__name__)
# Seconds between two attempts to place one more worker.
_GROW_S = 5.0


class TaskJobs:
    """The jobs of one backend.

    Args:
      jobs: all unfinished jobs of the server.
      backend: the backend that runs the tasks of these jobs.
      order: creates the order for a task of a job.
      max_running: maximum number of the server's jobs that run at once; 0 for no limit.
      overtake_s: seconds for which smaller jobs may overtake a job that waits for resources.
    """

    def __init__(
        self,
        jobs: LiveJobs,
        backend: TaskBackend,
        *,
        order: Callable[[JobRecord, TaskName], TaskOrder],
        max_running: int,
        overtake_s: float,
    ) -> None:
        self._jobs = jobs
        self._backend = backend
        self._order = order
        self._max_running = max_running
        self._overtake_s = overtake_s
        #: When one more worker was last tried for a job.
        self._grown_at: dict[str, float] = {}
        #: The attempts of tasks (job, task, attempt) that were asked to stop.
        self._stopped: set[tuple[str, TaskName, int]] = set()

    def adopt(self, record: JobRecord) -> None:
        """Resumes a job of the previous server; raises `BackendError`."""
        if record.holds and not record.places:
            # The server may have been killed between a reservation and storing the places: release it.
            self._backend.release(record.id)
        self._backend.restore(record.id, tuple(record.places.values()))
        for handle in record.handles.values():
            self._backend.adopt(handle)
        # The previous server may or may not have started these tasks: starting them again is idempotent.
        self._start(record)

    def advance(self, record: JobRecord) -> None:
        """Processes a job once: polls its tasks, and performs the actions that are due.

        Raises:
          BackendError: the backend could not be reached, or failed.
          JobIsGone: the job has been deleted.
        """
        seen = poll_tasks(record, self._backend, self._jobs.clock())
        record = self._jobs.decide(
            record,
            *seen.events,
            JobTick(),
            alter=lambda now: replace(now, usages=seen.usages, activities=seen.activities),
        )
        # Release before placing, so that the same call can reserve the places again.
        record = self._release(record)
        record = self._place(record)
        record = self._grow(record)
        record = self._start(record)
        self._stop(record)
        self._stopped = {key for key in self._stopped if self._jobs.get(key[0]) is not None}
        self._grown_at = {key: at for key, at in self._grown_at.items() if self._jobs.get(key) is not None}

    def _release(self, record: JobRecord) -> JobRecord:
        """Releases places that the state no longer names, including places that it drops in the meantime.

        For a finished job, also releases places that a previous server may have reserved without storing them.
        """
        while (unused := _unused(record, record.places)) or (record.state.phase.over and record.holds):
            self._backend.release(record.id, unused if len(unused) < len(record.places) else None)
            record = self._jobs.decide(record, alter=lambda now, unused=unused: _release_places(now, unused))
        self._jobs.drop_if_over(record)
        return record

    def _place(self, record: JobRecord) -> JobRecord:
        names = policy.needs_place(record.state, self._jobs.clock())
        if not names:
            return record
        workers: int | None = None
        try:
            if record.state.phase is JobPhase.QUEUED:
                self._check_precedence(record)
                places, workers = self._reserve_all(record)
            else:
                places = self._reserve(record, names)
        except NotEnough as error:
            return self._jobs.decide(record, NotPlaced(str(error), temporary=error.temporary))
        except BackendError as error:
            return self._jobs.decide(record, NotPlaced(str(error)))
        placed = {place.task: place for place in places}
        return self._accept_places(
            record, placed, lambda now: self._may_get_places(now, record, placed), Placed(tuple(placed), workers)
        )

    def _accept_places(
        self,
        record: JobRecord,
        placed: dict[TaskName, TaskPlace],
        may_have: Callable[[JobRecord], bool],
        *events: Event,
    ) -> JobRecord:
        """Applies ``events`` to a job that has been given places, if the job may still have the places; otherwise
        releases them.

        The places are stored in either case, so that they are released later if a host does not answer now.
        """
        with self._jobs.lock:
            # The job may have been stopped or scaled in the meantime, and another job may have started elsewhere.
            now = self._jobs.current(record)
            taken = may_have(now)
            record = self._jobs.decide(
                now, *(events if taken else ()), alter=lambda now: replace(now, places={**now.places, **placed})
            )
        return record if taken else self._release(record)

    def _reserve(self, record: JobRecord, names: Sequence[TaskName]) -> Sequence[TaskPlace]:
        """Reserves places for tasks of a running job: for all or none; if preemptible, for as many as possible.

        Raises:
          BackendError: no place could be reserved; `NotEnough` if no task fits.
        """
        if not record.state.spec.preemptible:
            return self._reserve_places(record, names)
        places: list[TaskPlace] = []
        for name in names:
            try:
                places += self._reserve_places(record, [name])
            except NotEnough:
                if name == names[-1] and not places:
                    raise
            except BackendError:
                if not places:
                    raise
                break
        return places

    def _reserve_places(self, record: JobRecord, names: Sequence[TaskName]) -> Sequence[TaskPlace]:
        """Reserves places for tasks of a job; raises `NotEnough`, or another `BackendError`."""
        self._jobs.mark_held(record)
        return self._backend.reserve(record.id, task_requests(record.state.spec, names))

    def _grow(self, record: JobRecord) -> JobRecord:
        """Adds one more worker to a preemptible job, if it can be placed."""
        state, now = record.state, self._jobs.clock()
        further = TaskName("worker", state.workers)
        if (
            not state.spec.preemptible
            or state.fixed
            or state.phase is not JobPhase.RUNNING
            or state.spec.restart_scope != "task"
            or state.workers >= state.spec.workers.count.most
            or further in state.tasks
            or policy.done_at(state, now) is not None
            or any(not task.placed and task.phase is TaskPhase.WAITING for task in state.tasks.values())
            or now - self._grown_at.get(record.id, -math.inf) < _GROW_S
        ):
            return record
        self._grown_at[record.id] = now
        try:
            places = self._reserve_places(record, [further])
        except BackendError:
            return record
        request = AskScale("the server, because resources are free,", state.workers + 1, fixed=False)

        def unchanged(now: JobRecord) -> bool:
            before = state.phase, state.workers, state.attempt
            return (now.state.phase, now.state.workers, now.state.attempt) == before

        placed = {place.task: place for place in places}
        return self._accept_places(record, placed, unchanged, request, Placed(tuple(placed)))

    def _may_get_places(self, now: JobRecord, seen: JobRecord, placed: dict[TaskName, TaskPlace]) -> bool:
        if now.state.attempt != seen.state.attempt or now.state.phase is not seen.state.phase:
            return False
        if now.state.phase is JobPhase.QUEUED:
            full = bool(self._max_running) and self._jobs.running() >= self._max_running
            return (now.state.workers, now.state.fixed) == (seen.state.workers, seen.state.fixed) and not full
        return set(placed) <= set(policy.needs_place(now.state, self._jobs.clock()))

    def _reserve_all(self, record: JobRecord) -> tuple[Sequence[TaskPlace], int]:
        """Reserves places for all tasks of a queued job, with as many workers as possible."""
        choices = policy.worker_choices(record.state)
        for workers in choices:
            names = tuple(policy.with_workers(record.state, workers).tasks)
            try:
                return self._reserve_places(record, names), workers
            except NotEnough:
                if workers == choices[-1]:
                    raise
        raise AssertionError("a job has at least one choice of workers")

    def _check_precedence(self, record: JobRecord) -> None:
        """Raises `NotEnough` if other jobs have precedence."""
        now, running = self._jobs.clock(), self._jobs.running()
        if self._max_running and running >= self._max_running:
            raise NotEnough(f"{running} jobs run already, the maximum of this server", temporary=True)
        # Jobs of other backends compete for other resources.
        for other in self._jobs.in_queue_order(record.backend):
            if other.id == record.id:
                return
            waited = now - max(other.state.queued_at, other.state.not_before)
            if other.state.phase is JobPhase.QUEUED and waited > self._overtake_s:
                raise NotEnough(f"{other.id} has waited for {waited:.0f} s and is placed first", temporary=True)

    def _start(self, record: JobRecord) -> JobRecord:
        """Starts the tasks that must be started, and stores all of their handles at once.

        After a crash in between, the next server starts the tasks again, which returns the handles of the running
        tasks.
        """
        started: dict[TaskName, tuple[str, Attempt]] = {}
        for name in record.state.tasks:
            record = self._jobs.current(record)  # the job may have been stopped or scaled since the previous start
            task = record.state.tasks.get(name)
            if task is None or task.phase is not TaskPhase.STARTING or name in record.handles:
                continue
            try:
                handle = self._backend.start(self._order(record, name))
            except BackendError as error:
                # Decide immediately: after this failure, the remaining tasks may not have to be started.
                record = self._jobs.decide(self._store_started(record, started), CouldNotStart(name, str(error)))
                started = {}
                continue
            host, now = record.places[name].host, self._jobs.clock()
            started[name] = handle, Attempt(task=task.label, attempt=task.attempt, host=host, started_at=now)
        return self._store_started(record, started)

    def _store_started(self, record: JobRecord, started: Mapping[TaskName, tuple[str, Attempt]]) -> JobRecord:
        """Stores the handles and attempts of tasks that the backend has started."""
        if not started:
            return record
        handles = {name: handle for name, (handle, _) in started.items()}
        return self._jobs.decide(
            record,
            *map(Started, started),
            attempts=[attempt for _, attempt in started.values()],
            alter=lambda now: replace(now, handles={**now.handles, **handles}),
        )

    def _stop(self, record: JobRecord) -> None:
        tasks = record.state.tasks
        training = any(task.phase.alive and name.job in policy.WORKING for name, task in tasks.items())
        for name, task in tasks.items():
            if name.job == "ps" and training and record.state.phase is not JobPhase.RUNNING:
                continue  # a ps holds values that other tasks may still save
            handle = record.handles.get(name)
            key = (record.id, name, task.attempt)
            if task.phase is TaskPhase.ENDING and handle is not None and key not in self._stopped:
                self._backend.stop(handle, grace_s=record.state.spec.deadlines.grace)
                self._stopped.add(key)


def _release_places(record: JobRecord, unused: Sequence[TaskName]) -> JobRecord:
    """Returns ``record`` without the ``unused`` places, except places that its state names again."""
    gone = _unused(record, unused)
    places = {name: place for name, place in record.places.items() if name not in gone}
    return replace(record, places=places, holds=bool(places))


def _unused(record: JobRecord, places: Iterable[TaskName]) -> list[TaskName]:
    """Returns those ``places`` that the state does not name."""
    tasks = record.state.tasks
    return [name for name in places if name not in tasks or not tasks[name].placed]
