"""Brings what runs in line with what is wanted, for all jobs of one server.

One thread goes over the jobs that are not over, again and again: it looks at their tasks, lets
`headwater.platform.policy` decide, stores the decision, and only then does what the stored state asks for. Every deed
may be done twice without harm: the same attempt of a task starts once, however often it is asked for. So a manager that
is killed at any moment is followed by another one that goes on from the store: nothing is started twice or lost.
"""

from __future__ import annotations

import logging
import math
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from headwater.cluster.names import TaskName
from headwater.platform import policy
from headwater.platform.archive_store import ArchiveStore
from headwater.platform.backends.base import (
    Backend,
    BackendError,
    JobBackend,
    NotEnough,
    Place,
    TaskBackend,
    TaskOrder,
)
from headwater.platform.engines import advance
from headwater.platform.looking import Sampler, ended_attempt, look
from headwater.platform.policy import NotPossible
from headwater.platform.records import Attempt, JobRecord, Sample
from headwater.platform.spec import JobSpec
from headwater.platform.states import (
    AskRestart,
    AskScale,
    AskStop,
    CouldNotStart,
    Ended,
    Event,
    JobPhase,
    JobState,
    Note,
    NotPlaced,
    Placed,
    Started,
    TaskPhase,
    TaskState,
    Tick,
)
from headwater.platform.store import Store
from headwater.platform.tasks import task_order, task_requests

_log = logging.getLogger(__name__)

Wish = AskStop | AskRestart | AskScale
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
_PROGRESS_SAVE_S = 2.0
# Jobs that run must not wait for long while others are forgotten.
_TRIMMED_AT_ONCE = 50
# An archive is handed in before the job that needs it.
_ARCHIVE_S = 3600.0


class NoSuchJob(LookupError):
    """There is no job of that id."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ManagerSettings:
    """How a server runs its jobs.

    Attributes:
      data_dir: where logs and archives are.
      poll_s: seconds between two looks at all tasks.
      sample_s: seconds between two samples of a task's progress and use, at first.
      max_running: at most so many jobs run at once; 0 for no bound.
      overtake_s: seconds for which a job that waits for resources may be overtaken by smaller ones behind it.
      keep_s: seconds for which a job that is over is remembered, with its logs; None for ever.
      keep_jobs: at most so many jobs that are over are remembered, those that ended last; None for all.
      trim_s: seconds between two looks for what is not to be remembered any more.
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
        """Where the server keeps what belongs to a job."""
        return self.data_dir / "jobs" / job_id

    def log_path(self, job_id: str, task: str) -> Path:
        """The file with what a task (``worker-0``) printed."""
        return self.job_dir(job_id) / f"{task}.log"

    @property
    def archives_dir(self) -> Path:
        """The folder of archives that were handed in."""
        return self.data_dir / "archives"

    def archive_path(self, digest: str) -> Path:
        """The file of an archive that was handed in."""
        return self.archives_dir / digest


class Manager:
    """Runs jobs.

    Args:
      store: what is remembered; open, and only this manager's.
      backends: where jobs can run; the first is the default.
      settings: how.
      on_note: is told of everything that happens to a job, after it is stored; must not block.
      clock: gives seconds since 1970.
    """

    def __init__(
        self,
        store: Store,
        backends: Sequence[Backend],
        settings: ManagerSettings,
        *,
        on_note: Callable[[JobRecord, Note], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store = store
        self.settings = settings
        self.backends: Mapping[str, Backend] = {backend.name: backend for backend in backends}
        self.default_backend = backends[0].name
        self._on_note = on_note
        self._clock = clock
        self._lock = threading.RLock()
        self._records: dict[str, JobRecord] = {}
        self._stopped: set[tuple[str, TaskName, int]] = set()
        self._sampler = Sampler(settings.sample_s)
        self._saved_at: dict[str, float] = {}
        self._trimmed_at = -math.inf
        self._wake = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Finds the jobs again that ran before, and begins to look after all of them."""
        self.adopt()
        self._thread = threading.Thread(target=self._loop, name="headwater-manager", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops looking after jobs; what runs goes on."""
        self._closing = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        for backend in self.backends.values():
            backend.close()

    def submit(self, spec: JobSpec, *, owner: str, archive: str | None = None, workers: int | None = None) -> JobRecord:
        """Queues a job.

        Raises:
          NotPossible: its backend is not there, or it cannot have so many workers.
        """
        backend = spec.backend or self.default_backend
        if backend not in self.backends:
            raise NotPossible(f"backend: this server has {', '.join(self.backends)}, but not {backend}")
        now = self._clock()
        try:
            state = policy.begin(spec, now, workers=workers)
        except ValueError as error:
            raise NotPossible(str(error)) from error
        job_id = f"{spec.name}-{''.join(secrets.choice(_ALPHABET) for _ in range(6))}"
        record = JobRecord(
            id=job_id, owner=owner, submitted_at=now, backend=backend, archive=archive, state=state
        )  # fmt: skip
        with self._lock:
            self._save(record, (Note("queued", f"submitted by {owner}"),))
        self._wake.set()
        return record

    def ask(self, job_id: str, wish: Wish) -> JobRecord:
        """Stops, restarts or scales a job.

        Raises:
          NoSuchJob: there is none.
          NotPossible: the job is not in a state for that.
        """
        with self._lock:
            record = self.job(job_id)
            if isinstance(wish, AskScale) and record.handle is not None:
                # An engine takes a job with its number of workers: another number is another submission.
                wish = replace(wish, anew=True)
            record = self._decide(record, wish)
        self._wake.set()
        return record

    def delete(self, job_id: str) -> None:
        """Forgets a job that is over, with its logs.

        Raises:
          NoSuchJob: there is none.
          NotPossible: it is not over.
        """
        with self._lock:
            record = self.job(job_id)
            if not record.state.phase.over:
                raise NotPossible(f"the job is {record.state.phase}: stop it first")
            backend = self.backends.get(record.backend)
            if isinstance(backend, TaskBackend):
                backend.release(job_id)
                backend.forget(job_id)
            elif backend is not None and record.handle is not None:
                backend.delete_job(record.handle)
            # Last of all that by which it is found: a deletion that is cut short can be repeated.
            shutil.rmtree(self.settings.job_dir(job_id), ignore_errors=True)
            self.store.delete_job(job_id)
            self._drop(job_id)

    def trim(self) -> None:
        """Forgets jobs that were over long ago, and those beyond the number that is kept, as the settings say.

        Does nothing before it is time again. What cannot be deleted, such as from a host that does not answer, is left
        for the next time.
        """
        settings, now = self.settings, self._clock()
        if abs(now - self._trimmed_at) < settings.trim_s:
            return
        self._trimmed_at = now
        before = None if settings.keep_s is None else now - settings.keep_s
        ended = self.store.ended(before=before, beyond=settings.keep_jobs, limit=_TRIMMED_AT_ONCE)
        for job_id, ended_at in ended:
            with self._lock:
                try:
                    # Somebody may have restarted it meanwhile, or deleted it.
                    if self.job(job_id).state.ended_at in (ended_at, None):
                        self.delete(job_id)
                        _log.info("job %s: forgotten, with its logs: it ended long ago", job_id, extra={"job": job_id})
                except (NoSuchJob, NotPossible):
                    continue
                except BackendError as error:
                    _log.warning("job %s: not forgotten yet: %s", job_id, error)
        ArchiveStore(settings.archives_dir).forget_all_but(self.store.archives(), before=now - _ARCHIVE_S)

    def job(self, job_id: str) -> JobRecord:
        """A job as it is now; raises `NoSuchJob`."""
        record = self._records.get(job_id) or self.store.job(job_id)
        if record is None:
            raise NoSuchJob(f"there is no job {job_id!r}")
        return record

    def newest(self, record: JobRecord) -> JobRecord:
        """What is known now of a job that was read from the store."""
        return self._records.get(record.id, record)

    def live(self) -> list[JobRecord]:
        """The jobs that are not over, in the order in which they are placed."""
        return sorted(self._records.values(), key=lambda record: (-record.state.spec.priority, record.state.queued_at))

    def adopt(self) -> None:
        """Finds the jobs again that ran before."""
        with self._lock:
            for record in self.store.jobs(live=True):
                self._records[record.id] = self._adopt(record)

    def turn(self) -> None:
        """Looks after each job that is not over, once."""
        for record in self.live():
            with self._lock:
                self._advance(record.id)
            if self._closing:
                return

    def _loop(self) -> None:
        while not self._closing:
            self._wake.clear()
            self.turn()
            try:
                self.trim()
            except Exception:  # noqa: BLE001  a full disk, a database that is away: jobs are to be looked after all the same
                _log.exception("what ended long ago could not be forgotten; it is tried again")
            self._wake.wait(self.settings.poll_s if self._records else self.settings.trim_s)

    def _advance(self, job_id: str) -> None:
        record = self._records.get(job_id)
        if record is None:
            return
        backend = self.backends.get(record.backend)
        try:
            if backend is None:
                reason = f"this server was started without its backend, {record.backend}"
                self._decide(record, NotPlaced(reason))
            elif isinstance(backend, JobBackend):
                self._advance_engine(record, backend)
            else:
                record = self._observe(record, backend)
                record = self._decide(record, Tick())
                record = self._release(record, backend)
                record = self._place(record, backend)
                record = self._start(record, backend)
                self._stop(record, backend)
        except BackendError as error:
            _log.warning("job %s: %s", job_id, error)
        except Exception:  # noqa: BLE001  one job that cannot be dealt with must not keep the others from being looked after
            _log.exception("job %s: this turn failed; it is tried again", job_id)

    def _adopt(self, record: JobRecord) -> JobRecord:
        """Takes up a job where another manager left it."""
        backend = self.backends.get(record.backend)
        if not isinstance(backend, TaskBackend):
            return record
        try:
            backend.restore(record.id, tuple(record.places.values()))
            for handle in record.handles.values():
                backend.adopt(handle)
            # What another manager was about to start, it may have started.
            return self._start(record, backend)
        except BackendError as error:
            _log.warning("job %s: %s", record.id, error)
            return record

    def _observe(self, record: JobRecord, backend: TaskBackend) -> JobRecord:
        """Looks at all tasks and lets the policy know what it saw."""
        seen = look(record, backend, self._clock())
        record = replace(record, usages=seen.usages)
        self._records[record.id] = record
        return self._decide(record, *seen.events)

    def _place(self, record: JobRecord, backend: TaskBackend) -> JobRecord:
        now = self._clock()
        names = policy.needs_place(record.state, now)
        if not names:
            return record
        queued = record.state.phase is JobPhase.QUEUED
        try:
            if not queued:
                places, workers = backend.reserve(record.id, task_requests(record.state.spec, names)), None
            else:
                self._check_turn(record, now)
                places, workers = self._reserve_all(record, backend)
        except BackendError as error:
            return self._decide(record, NotPlaced(str(error)))
        placed = {place.task: place for place in places}
        record = replace(record, places={**record.places, **placed})
        return self._decide(record, Placed(tuple(placed), workers))

    def _reserve_all(self, record: JobRecord, backend: TaskBackend) -> tuple[Sequence[Place], int]:
        """Places for all tasks of a queued job, with as many workers as there is room for."""
        choices = policy.worker_choices(record.state)
        for workers in choices:
            names = tuple(policy.with_workers(record.state, workers).tasks)
            try:
                return backend.reserve(record.id, task_requests(record.state.spec, names)), workers
            except NotEnough:
                if workers == choices[-1]:
                    raise
        raise AssertionError("a job has at least one choice of workers")

    def _check_turn(self, record: JobRecord, now: float) -> None:
        """Raises `NotEnough` where others come first."""
        live = self.live()
        running = sum(other.state.phase not in (JobPhase.QUEUED,) for other in live)
        if self.settings.max_running and running >= self.settings.max_running:
            raise NotEnough(f"{running} jobs run already, as many as this server runs at once", ever=True)
        for other in live:
            if other.id == record.id:
                return
            waited = now - max(other.state.queued_at, other.state.not_before)
            if other.state.phase is JobPhase.QUEUED and waited > self.settings.overtake_s:
                raise NotEnough(f"{other.id} has waited for {waited:.0f} s and comes first", ever=True)

    def _start(self, record: JobRecord, backend: TaskBackend) -> JobRecord:
        for name, task in record.state.tasks.items():
            if task.phase is not TaskPhase.STARTING:
                continue
            try:
                handle = backend.start(self._order(record, name))
            except BackendError as error:
                record = self._decide(record, CouldNotStart(name, str(error)))
                continue
            record = replace(record, handles={**record.handles, name: handle})
            attempt = Attempt(
                task=task.label, attempt=task.attempt, host=record.places[name].host, started_at=self._clock()
            )
            record = self._decide(record, Started(name), attempts=(attempt,))
        return record

    def _order(self, record: JobRecord, name: TaskName) -> TaskOrder:
        label = record.state.tasks[name].label
        return task_order(
            record, name, archive=self._archive(record), log_path=self.settings.log_path(record.id, label)
        )

    def _archive(self, record: JobRecord) -> Path | None:
        return self.settings.archive_path(record.archive) if record.archive is not None else None

    def _stop(self, record: JobRecord, backend: TaskBackend) -> None:
        tasks = record.state.tasks
        training = any(task.phase.alive and name.job in policy.WORKING for name, task in tasks.items())
        for name, task in tasks.items():
            if name.job == "ps" and training:
                continue  # it holds what the others may be about to save
            handle = record.handles.get(name)
            key = (record.id, name, task.attempt)
            if task.phase is TaskPhase.ENDING and handle is not None and key not in self._stopped:
                backend.stop(handle, grace_s=record.state.spec.deadlines.grace)
                self._stopped.add(key)

    def _release(self, record: JobRecord, backend: TaskBackend) -> JobRecord:
        """Gives back the places that the state no longer names."""
        tasks = record.state.tasks
        unused = [name for name in record.places if name not in tasks or not tasks[name].placed]
        if unused:
            backend.release(record.id, unused if len(unused) < len(record.places) else None)
            places = {name: place for name, place in record.places.items() if name not in unused}
            record = replace(record, places=places)
            self._save(record)
        if record.state.phase.over:
            self._drop(record.id)
        return record

    def _advance_engine(self, record: JobRecord, backend: JobBackend) -> None:
        """Lets an engine run a whole job."""

        def keep(moved: JobRecord, notes: tuple[Note, ...]) -> None:
            if notes or moved != self._records.get(moved.id):
                self._save(moved, notes)

        record = advance(
            record,
            backend,
            log_dir=self.settings.job_dir(record.id),
            archive=self._archive(record),
            now=self._clock(),
            store=keep,
        )
        if record.state.phase.over:
            self._drop(record.id)

    def _decide(self, record: JobRecord, *events: Event, attempts: Iterable[Attempt] = ()) -> JobRecord:
        """Lets the policy decide on ``events``, and stores what it decided."""
        now = self._clock()
        state, notes, lives = record.state, list[Note](), list(attempts)
        handles = dict(record.handles)
        for event in events:
            if isinstance(event, Ended):
                before = state.tasks.get(event.task)
                if before is not None and handles.pop(event.task, None) is not None:
                    lives += self._ended_attempt(record, before, event, now)
            decision = policy.decide(state, event, now)
            state = decision.state
            notes += decision.notes
        moved = replace(record, state=state, handles=handles)
        samples = self._sampler.take(moved, now)
        # How far tasks are need not survive a crash to the second.
        recent = moved == record or now - self._saved_at.get(record.id, 0.0) < _PROGRESS_SAVE_S
        if recent and not (notes or lives or samples) and _lasting(moved) == _lasting(record):
            self._records[record.id] = moved
            return moved
        self._save(moved, notes, lives, samples)
        return moved

    def _ended_attempt(self, record: JobRecord, task: TaskState, event: Ended, now: float) -> list[Attempt]:
        begun = self.store.attempt(record.id, task.label, task.attempt)
        return [ended_attempt(begun, task, event.how, now)] if begun is not None else []

    def _save(
        self,
        record: JobRecord,
        notes: Sequence[Note] = (),
        attempts: Sequence[Attempt] = (),
        samples: Sequence[Sample] = (),
    ) -> None:
        now = self._clock()
        self.store.save(record, notes=notes, attempts=attempts, samples=samples, now=now)
        self._records[record.id] = record
        self._saved_at[record.id] = now
        for note in notes:
            _log.info(
                "job %s: %s", record.id, note.text, extra={"job": record.id, "task": note.task, "kind": note.kind}
            )
            if self._on_note is not None:
                self._on_note(record, note)

    def _drop(self, job_id: str) -> None:
        """Lets go of a job that is over: it is in the store."""
        self._records.pop(job_id, None)
        self._saved_at.pop(job_id, None)
        self._stopped = {key for key in self._stopped if key[0] != job_id}
        self._sampler.forget(job_id)


def _lasting(record: JobRecord) -> JobState:
    """A job's state without how far its tasks are."""
    tasks = {
        name: replace(task, step=None, steps_per_s=None, loss=None, progress_at=None)
        for name, task in record.state.tasks.items()
    }
    return replace(record.state, tasks=tasks)
