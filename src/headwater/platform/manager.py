"""Reconciles all jobs of one server with their desired state.

A thread per backend repeatedly processes the backend's unfinished jobs: it polls their tasks, lets
`headwater.platform.policy` decide, stores the decision, and only then performs the actions that the stored state
requires (`headwater.platform.task_jobs`, `headwater.platform.engines`). Users' requests are decided and stored
immediately, by the thread that receives them (`headwater.platform.live`), and performed when the backend's thread next
processes the job.
"""

from __future__ import annotations

import logging
import math
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.clocks import SteadyClock
from headwater.platform import policy
from headwater.platform.archive_store import ArchiveStore
from headwater.platform.backends.base import Backend, BackendError, JobBackend, TaskBackend, TaskOrder
from headwater.platform.engines import EngineJobs
from headwater.platform.job_secrets import GivenSecrets, SecretError, Secrets
from headwater.platform.job_store import JobStore
from headwater.platform.lanes import BackendSource, Lane
from headwater.platform.live import JobIsGone, LiveJobs
from headwater.platform.policy import NotPossible
from headwater.platform.records import JobRecord
from headwater.platform.spec import JobSpec
from headwater.platform.states import AskRestart, AskScale, AskStop, JobTick, Note, NotPlaced, label
from headwater.platform.task_jobs import TaskJobs
from headwater.platform.tasks import task_order

_log = logging.getLogger(__name__)

UserRequest = AskStop | AskRestart | AskScale
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
# A backend's thread ends once it has processed all jobs; a thread that still waits for an answer after this time is
# abandoned.
_CLOSE_TIMEOUT_S = 10.0
# Limit for a deletion to wait for a call about the same job.
_CALL_TIMEOUT_S = 30.0
# Jobs deleted per trim, so that running jobs do not wait long.
_TRIMMED_AT_ONCE = 50
# An archive is uploaded before its job is submitted, so an archive without a job is kept for this long.
_UNUSED_ARCHIVE_S = 3600.0


class NoSuchJob(LookupError):
    """There is no job with that id."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ManagerSettings:
    """Settings for running a server's jobs.

    Attributes:
      data_dir: the folder of logs and archives.
      poll_s: seconds between two polls of all tasks.
      sample_s: initial interval between two samples of a task's progress and usage, in seconds.
      max_running: maximum number of jobs that run at once; 0 for no limit.
      overtake_s: seconds for which smaller jobs may overtake a job that waits for resources.
      keep_s: seconds for which a finished job is kept, with its logs; None for no limit.
      keep_jobs: number of finished jobs that are kept, namely the latest; None for all.
      trim_s: seconds between two searches for finished jobs to delete.
    """

    data_dir: Path
    poll_s: float = 0.5
    sample_s: float = 5.0
    max_running: int = 0
    overtake_s: float = 600.0
    keep_s: float | None = 90 * 86400.0
    keep_jobs: int | None = 1000
    trim_s: float = 600.0

    def job_dir(self, job_id: str) -> Path:
        """Returns the server's folder for a job."""
        return self.data_dir / "jobs" / job_id

    def log_path(self, job_id: str, task: str) -> Path:
        """Returns the log file of a task (``worker-0``)."""
        return self.job_dir(job_id) / f"{task}.log"

    @property
    def archives_dir(self) -> Path:
        """The folder of uploaded archives."""
        return self.data_dir / "archives"

    def archive_path(self, digest: str) -> Path:
        """Returns the file of an uploaded archive."""
        return self.archives_dir / digest


class Manager:
    """Runs jobs.

    Args:
      store: the store of jobs; open, and used by this manager only.
      backends: the backends for jobs; the first is the default. A backend may be given as a source, which is connected
        after the start.
      settings: folders, limits and intervals of the server.
      on_note: called for each event of a job, after it is stored; must not block.
      secrets: the source of jobs' secrets; this process's environment unless given.
      clock: returns monotonic seconds since 1970; a `SteadyClock` unless given.
    """

    def __init__(
        self,
        store: JobStore,
        backends: Sequence[Backend | BackendSource],
        settings: ManagerSettings,
        *,
        secrets: Secrets | None = None,
        on_note: Callable[[JobRecord, Note], None] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.store = store
        self.settings = settings
        self.secrets: Secrets = secrets or GivenSecrets()
        self.lanes: Mapping[str, Lane] = {backend.name: Lane(backend) for backend in backends}
        self.default_backend: str = backends[0].name
        self._clock = clock = clock or SteadyClock()
        self._archives = ArchiveStore(settings.archives_dir)
        self._jobs = LiveJobs(store, sample_s=settings.sample_s, on_note=on_note, clock=clock)
        self._runners: dict[str, TaskJobs | EngineJobs] = {}
        self._deleting: set[str] = set()
        self._being_processed: set[str] = set()
        self._call_ended = threading.Condition(self._jobs.lock)
        self._trimmed_at = -math.inf
        self._wakes = {name: threading.Event() for name in self.lanes}
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Loads the jobs of the store, and starts the threads that process them."""
        self._jobs.load()
        for name, lane in self.lanes.items():
            self._threads.append(
                threading.Thread(target=self._loop, args=(lane,), name=f"headwater-{name}", daemon=True)
            )
        self._threads.append(threading.Thread(target=self._trim_loop, name="headwater-trimmer", daemon=True))
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stops processing jobs; running tasks continue."""
        self._closing.set()
        for wake in self._wakes.values():
            wake.set()
        until = time.monotonic() + _CLOSE_TIMEOUT_S
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        busy = {thread.name for thread in self._threads if thread.is_alive()}
        for name, lane in self.lanes.items():
            if f"headwater-{name}" in busy:
                _log.warning("backend %s still waits for an answer: its thread is abandoned", name)
            elif lane.backend is not None:
                lane.backend.close()

    def submit(
        self,
        spec: JobSpec,
        *,
        owner: str,
        archive: str | None = None,
        workers: int | None = None,
        sweep: str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> JobRecord:
        """Queues a job; ``sweep`` and ``settings`` name its sweep and its values in it.

        Raises:
          NotPossible: the job's backend does not exist or refuses the job, the number of workers is out of range, or a
            secret that the job names does not exist.
        """
        backend = spec.backend or self.default_backend
        if backend not in self.lanes:
            raise NotPossible(f"backend: this server has {', '.join(self.lanes)}, but not {backend}")
        refusals = self.lanes[backend].kind.refusals(spec, has_archive=archive is not None)
        if refusals:
            raise NotPossible("; ".join(f"{field}: {why}" for field, why in refusals))
        self._check_secrets(spec)
        now = self._clock()
        try:
            kind = self.lanes[backend].kind
            if workers is None and spec.elastic:
                workers = spec.workers.count.most if issubclass(kind, JobBackend) and kind.elastic else None
            state = policy.initial_state(spec, now, workers=workers)
        except ValueError as error:
            raise NotPossible(str(error)) from error
        job_id = f"{spec.name}-{''.join(secrets.choice(_ALPHABET) for _ in range(6))}"
        record = JobRecord(
            id=job_id,
            owner=owner,
            submitted_at=now,
            backend=backend,
            archive=archive,
            state=state,
            sweep=sweep,
            settings=settings or {},
        )
        self._jobs.add(record, (Note("queued", f"submitted by {owner}"),))
        self._wakes[backend].set()
        return record

    def apply_request(self, job_id: str, request: UserRequest) -> JobRecord:
        """Stops, restarts or scales a job.

        Raises:
          NoSuchJob: there is no such job.
          NotPossible: the job's state does not allow it.
        """
        with self._jobs.lock:
            record = self.job(job_id)
            if job_id in self._deleting:
                raise NotPossible("the job is being deleted")
            if isinstance(request, AskRestart):
                self._check_secrets(record.state.spec)
            if isinstance(request, AskScale) and record.handle is not None:
                # An engine runs a job with a fixed number of workers: another number requires another submission.
                request = replace(request, restart_all=True)
            if self._jobs.get(job_id) is None:
                # The job is over, and only in the store: check that the request is possible before loading it.
                policy.decide(record.state, request, self._clock())
                self._jobs.add(record, ())
            record = self._jobs.decide(record, request)
        if record.backend in self._wakes:
            self._wakes[record.backend].set()
        return record

    def delete(self, job_id: str) -> None:
        """Deletes a finished job, with its logs.

        Raises:
          NoSuchJob: there is no such job.
          NotPossible: the job is not over, or is being deleted.
          BackendError: the job's backend does not answer, or refuses; the deletion can be repeated.
        """
        with self._jobs.lock:
            record = self.job(job_id)
            if not record.state.phase.over:
                raise NotPossible(f"the job is {record.state.phase}: stop it first")
            if job_id in self._deleting:
                raise NotPossible("the job is being deleted")
            # From here on, the job is no longer processed, and requests for it are refused.
            self._deleting.add(job_id)
        try:
            # Wait until a thread that processes the job is done: otherwise, resources that the thread acquires would be
            # leaked.
            record = self._wait_for_idle_job(record)
            lane = self.lanes.get(record.backend)
            if lane is not None:
                backend = lane.usable()
                if isinstance(backend, TaskBackend):
                    backend.release(job_id)
                    backend.forget(job_id)
                elif record.handle is not None:
                    backend.delete_job(record.handle)
                else:
                    backend.remove(job_id, record.state.spec)
            # The store's entry is deleted last, so that an interrupted deletion can be repeated.
            shutil.rmtree(self.settings.job_dir(job_id), ignore_errors=True)
            with self._jobs.lock:
                self.store.delete_job(job_id)
                self._jobs.drop(job_id)
        finally:
            self._deleting.discard(job_id)

    def trim(self) -> None:
        """Deletes jobs that ended long ago, or exceed the number of jobs to keep, according to the settings.

        Does nothing before the next trim is due. Jobs that cannot be deleted, for example because a host does not
        answer, are retried by the next trim.
        """
        settings, now = self.settings, self._clock()
        if abs(now - self._trimmed_at) < settings.trim_s:
            return
        self._trimmed_at = now
        before = None if settings.keep_s is None else now - settings.keep_s
        ended = self.store.find_ended(before=before, beyond=settings.keep_jobs, limit=_TRIMMED_AT_ONCE)
        for job_id, ended_at in ended:
            try:
                # The job may have been restarted or deleted in the meantime.
                if self.job(job_id).state.ended_at in (ended_at, None):
                    self.delete(job_id)
                    _log.info("job %s: deleted with its logs, as it ended long ago", job_id, extra={"job": job_id})
            except (NoSuchJob, NotPossible):
                continue
            except BackendError as error:
                _log.warning("job %s: not deleted yet: %s", job_id, error)
        self._archives.remove_unused(self.store.archives(), now=now, after_s=_UNUSED_ARCHIVE_S)

    def job(self, job_id: str) -> JobRecord:
        """Returns the current state of a job; raises `NoSuchJob`."""
        record = self._jobs.get(job_id) or self.store.job(job_id)
        if record is None:
            raise NoSuchJob(f"there is no job {job_id!r}")
        return record

    def newest(self, record: JobRecord) -> JobRecord:
        """Returns the current state of a job that was read from the store."""
        return self._jobs.get(record.id) or record

    def free_secret(self, name: str) -> None:
        """Checks that no unfinished job names a secret; raises `NotPossible`."""
        live = (record for record in self.live() if not record.state.phase.over)
        users = [record.id for record in live if name in record.state.spec.secrets()]
        if users:
            raise NotPossible(f"the secret {name!r} is used by these jobs; stop them first: {', '.join(users[:5])}")

    def live(self) -> list[JobRecord]:
        """Returns the unfinished jobs, in the order in which they are placed."""
        return self._jobs.in_queue_order()

    def resume_jobs(self) -> None:
        """Loads the jobs of the store and resumes them at their backends, without starting threads. A program that
        calls `process_jobs` itself, such as a test, calls this method instead of `start`."""
        self._jobs.load()
        for lane in self.lanes.values():
            if lane.reach():
                self._adopt(lane)

    def process_jobs(self) -> None:
        """Processes each unfinished job once."""
        # Process the jobs in placement order across all backends; each thread of a server processes only the jobs of
        # its own backend.
        for record in self.live():
            lane = self.lanes.get(record.backend)
            if lane is not None:
                lane.reach()
            self._advance(lane, record.id)

    def _loop(self, lane: Lane) -> None:
        wake = self._wakes[lane.name]
        adopted = False
        while not self._closing.is_set():
            # Clear the event before processing the jobs: a request that arrives meanwhile must lead to another pass
            # immediately.
            wake.clear()
            if lane.reach() and not adopted:
                self._adopt(lane)
                adopted = True
            for record in self._jobs.in_queue_order(lane.name):
                if self._closing.is_set():
                    return
                self._advance(lane, record.id)
            idle = lane.backend is not None and not self._jobs.in_queue_order(lane.name)
            wake.wait(self.settings.trim_s if idle else self.settings.poll_s)

    def _trim_loop(self) -> None:
        while not self._closing.is_set():
            try:
                self.trim()
            except Exception:  # noqa: BLE001  a full disk or an unreachable database may have recovered next time
                _log.exception("could not delete old jobs; will retry")
            for record in self._jobs.in_queue_order():
                if record.backend not in self.lanes:
                    self._advance(None, record.id)
            self._closing.wait(self.settings.trim_s)

    def _runner(self, lane: Lane) -> TaskJobs | EngineJobs:
        """Returns the runner of a backend's jobs; raises `BackendError` if the backend is not usable."""
        backend = lane.usable()
        if lane.name not in self._runners:
            if isinstance(backend, JobBackend):
                self._runners[lane.name] = EngineJobs(
                    self._jobs, backend, log_dir=self.settings.job_dir, archive=self._archive, secrets=self._secrets
                )
            else:
                self._runners[lane.name] = TaskJobs(
                    self._jobs,
                    backend,
                    order=self._task_order,
                    max_running=self.settings.max_running,
                    overtake_s=self.settings.overtake_s,
                )
        return self._runners[lane.name]

    def _adopt(self, lane: Lane) -> None:
        runner = self._runner(lane)
        if isinstance(runner, EngineJobs):
            return
        for record in self._jobs.in_queue_order(lane.name):
            try:
                with lane.call_in_progress():
                    self._process_job(record.id, runner.adopt)
            except BackendError as error:
                _log.warning("job %s: %s", record.id, error)

    def _wait_for_idle_job(self, record: JobRecord) -> JobRecord:
        """Waits until no call about a job is in progress, and returns the job; raises `BackendError`."""
        with self._call_ended:
            if not self._call_ended.wait_for(lambda: record.id not in self._being_processed, _CALL_TIMEOUT_S):
                raise BackendError(f"backend {record.backend} has not answered about the job yet", temporary=True)
            return self.job(record.id)

    def _process_job(self, job_id: str, process: Callable[[JobRecord], None]) -> None:
        """Calls ``process`` with a job, unless the job is being deleted. `delete` waits for this call."""
        with self._call_ended:
            record = self._jobs.get(job_id)
            if record is None or job_id in self._deleting:
                return
            self._being_processed.add(job_id)
        try:
            process(record)
        finally:
            with self._call_ended:
                self._being_processed.discard(job_id)
                self._call_ended.notify_all()

    def _advance(self, lane: Lane | None, job_id: str) -> None:
        self._process_job(job_id, lambda record: self._advance_record(lane, record))

    def _advance_record(self, lane: Lane | None, record: JobRecord) -> None:
        try:
            if lane is None:
                reason = f"this server was started without its backend, {record.backend}"
                self._jobs.decide(record, NotPlaced(reason), JobTick())
            elif lane.backend is None:
                # Deadlines of waiting jobs still apply, and jobs that were never started can still end.
                reason = f"backend {lane.name} cannot be used now, and will be retried: {lane.problem()}"
                record = self._jobs.decide(record, NotPlaced(reason), JobTick())
                if record.handle is None:
                    self._jobs.drop_if_over(record)
            else:
                with lane.call_in_progress():
                    self._runner(lane).advance(record)
        except JobIsGone:
            return
        except BackendError as error:
            _log.warning("job %s: %s", record.id, error)
        except Exception:  # noqa: BLE001  one broken job must not prevent the processing of other jobs
            _log.exception("job %s: processing failed and will be retried", record.id)

    def _task_order(self, record: JobRecord, name: TaskName) -> TaskOrder:
        return task_order(
            record,
            name,
            archive=self._archive(record),
            log_path=self.settings.log_path(record.id, label(name)),
            secrets=self._secrets(record),
        )

    def _check_secrets(self, spec: JobSpec) -> None:
        try:
            self.secrets.check(spec.secrets())
        except SecretError as error:
            raise NotPossible(str(error)) from error

    def _secrets(self, record: JobRecord) -> Mapping[str, str]:
        """Returns the values of a job's secrets, which may have been deleted since its submission."""
        try:
            return self.secrets.values(record.state.spec.secrets())
        except SecretError as error:
            raise BackendError(str(error)) from error

    def _archive(self, record: JobRecord) -> Path | None:
        return self.settings.archive_path(record.archive) if record.archive is not None else None
