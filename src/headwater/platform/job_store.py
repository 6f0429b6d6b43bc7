"""The part of a database that running jobs needs, and an implementation in memory for a single run of a job.

The database of a server is `headwater.platform.store.Store`. ``headwater run --job`` keeps its job in memory, without a
database engine and its import.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from headwater.platform.records import Attempt, JobEvent, JobRecord, Sample
from headwater.platform.states import Note


class JobStore(ABC):
    """A store of jobs, their events and attempts. All methods are thread-safe. Each `save` is atomic."""

    def __init__(self) -> None:
        self.changed: threading.Condition = threading.Condition()
        self._changes = 0

    @abstractmethod
    def save(
        self,
        record: JobRecord,
        *,
        notes: Iterable[Note] = (),
        attempts: Iterable[Attempt] = (),
        samples: Iterable[Sample] = (),
        now: float,
    ) -> None:
        """Stores a job with its tasks, and its events at ``now``."""

    @abstractmethod
    def job(self, job_id: str) -> JobRecord | None:
        """Returns a job by its id; None if there is none."""

    @abstractmethod
    def find_unfinished(self) -> Sequence[JobRecord]:
        """Returns unfinished jobs, and finished jobs that still hold resources, as after a crash of the server."""

    @abstractmethod
    def find_ended(self, *, before: float | None, beyond: int | None, limit: int) -> list[tuple[str, float]]:
        """Returns finished jobs to be deleted, with the times at which they ended, the earliest first.

        Args:
          before: select the jobs that ended before this time; None selects none by their age.
          beyond: select all finished jobs except the ``beyond`` latest; None selects none by their number.
          limit: maximum number.
        """

    @abstractmethod
    def archives(self) -> set[str]:
        """Returns the digests of the archives of all jobs."""

    @abstractmethod
    def delete_job(self, job_id: str) -> None:
        """Deletes a job with its events, attempts and samples."""

    @abstractmethod
    def events(
        self, *, job_id: str | None = None, after: int = 0, limit: int = 1000, latest_first: bool = False
    ) -> list[JobEvent]:
        """Returns events of one job or all, with ids greater than ``after``.

        The oldest are first, or the latest with ``latest_first``; only the first ``limit`` events are returned.
        """

    @abstractmethod
    def attempt(self, job_id: str, task: str, attempt: int) -> Attempt | None:
        """Returns an attempt of a task; None if there was no such attempt."""

    def wait_change(self, seen: int, timeout_s: float) -> int:
        """Waits until the number of changes exceeds ``seen``, for at most ``timeout_s``; returns the number of
        changes."""
        with self.changed:
            self.changed.wait_for(lambda: self._changes != seen, timeout_s)
            return self._changes

    def _notify(self) -> None:
        """Wakes the threads in `wait_change`; called after each change."""
        with self.changed:
            self._changes += 1
            self.changed.notify_all()


class MemoryStore(JobStore):
    """The jobs of this process, without samples: nothing reads them before the process ends."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._jobs: dict[str, JobRecord] = {}
        self._events: list[JobEvent] = []
        self._attempts: dict[tuple[str, str, int], Attempt] = {}
        self._event_id = 0

    def save(
        self,
        record: JobRecord,
        *,
        notes: Iterable[Note] = (),
        attempts: Iterable[Attempt] = (),
        samples: Iterable[Sample] = (),
        now: float,
    ) -> None:
        del samples
        with self._lock:
            self._jobs[record.id] = record
            self._attempts.update({(record.id, attempt.task, attempt.attempt): attempt for attempt in attempts})
            for note in notes:
                self._event_id += 1
                self._events.append(JobEvent(id=self._event_id, job_id=record.id, at=now, note=note))
        self._notify()

    def job(self, job_id: str) -> JobRecord | None:
        return self._jobs.get(job_id)

    def find_unfinished(self) -> list[JobRecord]:
        with self._lock:
            return [record for record in self._jobs.values() if record.holds or not record.state.phase.over]

    def find_ended(self, *, before: float | None, beyond: int | None, limit: int) -> list[tuple[str, float]]:
        with self._lock:
            over = [record for record in self._jobs.values() if record.state.phase.over]
        at = {record.id: record.submitted_at if (end := record.state.ended_at) is None else end for record in over}
        ordered = sorted(at.items(), key=lambda entry: (entry[1], entry[0]))
        extra = 0 if beyond is None else max(0, len(ordered) - beyond)
        old = 0 if before is None else sum(time < before for _, time in ordered)
        return ordered[: min(limit, max(extra, old))]

    def archives(self) -> set[str]:
        with self._lock:
            return {record.archive for record in self._jobs.values() if record.archive is not None}

    def delete_job(self, job_id: str) -> None:
        with self._lock:
            self._jobs.pop(job_id, None)
            self._events = [event for event in self._events if event.job_id != job_id]
            self._attempts = {key: attempt for key, attempt in self._attempts.items() if key[0] != job_id}
        self._notify()

    def events(
        self, *, job_id: str | None = None, after: int = 0, limit: int = 1000, latest_first: bool = False
    ) -> list[JobEvent]:
        with self._lock:
            events = reversed(self._events) if latest_first else self._events
            matching = (event for event in events if event.id > after and job_id in (None, event.job_id))
            return [event for event, _ in zip(matching, range(limit), strict=False)]

    def attempt(self, job_id: str, task: str, attempt: int) -> Attempt | None:
        return self._attempts.get((job_id, task, attempt))
