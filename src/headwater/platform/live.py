"""Unfinished jobs: in memory, in the store, and behind one lock that is not held during calls to backends.

A backend may take long to answer, or never answer. So the lock is not held while a backend is queried, and the job's
state may change before the answer arrives. The answer is then applied to the new state (`LiveJobs.decide`), but results
of an earlier attempt are ignored.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from headwater.platform import policy
from headwater.platform.costs import account
from headwater.platform.job_store import JobStore
from headwater.platform.polling import Sampler, ended_attempt
from headwater.platform.records import Attempt, JobRecord
from headwater.platform.states import (
    CouldNotStart,
    Ended,
    Event,
    JobDecision,
    JobPhase,
    JobState,
    Note,
    Progressed,
    Started,
    TaskState,
)

_log = logging.getLogger(__name__)
#: Seconds between two saves of a job of which only the progress changes. A crash loses the progress since the last one.
_PROGRESS_SAVE_S = 2.0


class JobIsGone(LookupError):
    """The job is no longer in memory, because it has ended or was deleted."""


class LiveJobs:
    """The jobs that have not ended, or still hold resources.

    Args:
      store: the database of jobs.
      sample_s: initial interval between two samples of a task's progress and usage, in seconds.
      on_note: called for each event of a job, after it is stored; must not block.
      clock: returns seconds since 1970.

    Attributes:
      lock: held while jobs change; reentrant; its holder must not call a backend.
    """

    def __init__(
        self,
        store: JobStore,
        *,
        sample_s: float,
        on_note: Callable[[JobRecord, Note], None] | None,
        clock: Callable[[], float],
    ) -> None:
        self.lock: threading.RLock = threading.RLock()
        self.clock = clock
        self._store = store
        self._on_note = on_note
        self._records: dict[str, JobRecord] = {}
        self._sampler = Sampler(sample_s)
        self._saved_at: dict[str, float] = {}

    def load(self) -> None:
        """Loads all jobs of the store that are not over, or still hold resources."""
        with self.lock:
            for record in self._store.find_unfinished():
                # The previous server may have acquired resources, and been killed before it stored them.
                unknown = not record.state.phase.over and record.handle is None
                self._records[record.id] = replace(record, holds=record.holds or unknown)

    def get(self, job_id: str) -> JobRecord | None:
        """Returns the current state of a job; None if it is not in memory."""
        return self._records.get(job_id)

    def in_queue_order(self, backend: str | None = None) -> list[JobRecord]:
        """Returns the jobs in the order in which they are placed: by priority, then by time in the queue.

        Args:
          backend: the name of a backend, for only its jobs; None for all jobs.
        """
        with self.lock:
            records = [record for record in self._records.values() if backend in (None, record.backend)]
        return sorted(records, key=lambda record: (-record.state.spec.priority, record.state.queued_at))

    def running(self) -> int:
        """Returns the number of jobs that have started and are not over."""
        with self.lock:
            phases = [record.state.phase for record in self._records.values()]
        return sum(phase is not JobPhase.QUEUED and not phase.over for phase in phases)

    def current(self, seen: JobRecord) -> JobRecord:
        """Returns the current state of a job.

        Raises:
          JobIsGone: the job is no longer in memory.
        """
        record = self._records.get(seen.id)
        if record is None:
            raise JobIsGone(seen.id)
        return record

    def add(self, record: JobRecord, notes: Sequence[Note]) -> None:
        """Adds a job that is new, or was over, and stores it."""
        with self.lock:
            self._save(record, notes)

    def mark_held(self, seen: JobRecord) -> None:
        """Marks that a job may hold resources at its backend; called before any resources are requested from the
        backend.

        The mark need not be stored immediately: after a crash, `load` sets it for all unfinished jobs. When a job ends,
        its end and the mark are stored together.

        Raises:
          JobIsGone: the job is no longer in memory.
        """
        with self.lock:
            self._records[seen.id] = replace(self.current(seen), holds=True)

    def drop(self, job_id: str) -> None:
        """Removes a job from memory, after it was stored as over, or deleted."""
        with self.lock:
            self._records.pop(job_id, None)
            self._saved_at.pop(job_id, None)
            self._sampler.forget(job_id)

    def drop_if_over(self, seen: JobRecord) -> None:
        """Removes a job from memory if it is over and holds nothing at its backend."""
        with self.lock:
            record = self._records.get(seen.id)
            if record is not None and record.state.phase.over and not record.holds:
                self.drop(seen.id)

    def decide(
        self,
        seen: JobRecord,
        *events: Event,
        attempts: Iterable[Attempt] = (),
        alter: Callable[[JobRecord], JobRecord] | None = None,
    ) -> JobRecord:
        """Applies events of a job through the policy, and stores the resulting state.

        Args:
          seen: the job's state when its backend was queried.
          events: the events, in order.
          attempts: attempts of tasks that have started.
          alter: a change that is stored with the effects of the events, such as new places.

        Returns:
          The job's new state.

        Raises:
          JobIsGone: the job is no longer in memory.
          NotPossible: an event is a request that cannot be fulfilled.
        """
        with self.lock:
            now, before = self.clock(), self.current(seen)
            record = before if alter is None else alter(before)
            state, notes, begun = record.state, list[Note](), list(attempts)
            handles = dict(record.handles)
            for event in events:
                if not _is_current(event, seen.state, state):
                    continue
                if isinstance(event, Ended):
                    task = state.tasks.get(event.task)
                    if task is not None and handles.pop(event.task, None) is not None:
                        begun += self._ended_attempt(record, task, event, now)
                decision = policy.decide(state, event, now)
                state = decision.state
                notes += decision.notes
            return self._replace(before, replace(record, state=state, handles=handles), notes, begun, now)

    def apply_step(
        self,
        seen: JobRecord,
        step: Callable[[JobState, float], JobDecision],
        *,
        alter: Callable[[JobRecord], JobRecord] | None = None,
    ) -> JobRecord:
        """Replaces a job's state by ``step(state, now)`` and stores the job; see `decide` for the other arguments and
        errors."""
        with self.lock:
            now, before = self.clock(), self.current(seen)
            record = before if alter is None else alter(before)
            decision = step(record.state, now)
            return self._replace(before, record.with_state(decision.state), decision.notes, (), now)

    def _replace(
        self, before: JobRecord, after: JobRecord, notes: Sequence[Note], attempts: Sequence[Attempt], now: float
    ) -> JobRecord:
        """Adds the costs up to ``now`` to a changed job, and stores the job. If only its progress has changed, it is
        stored at most every `_PROGRESS_SAVE_S` seconds."""
        after = after.with_state(account(before.state, after.state, notes, now))
        samples = self._sampler.due_samples(after, now)
        recent = after == before or now - self._saved_at.get(after.id, 0.0) < _PROGRESS_SAVE_S
        if recent and not (notes or attempts or samples) and _without_progress(after) == _without_progress(before):
            self._records[after.id] = after
            return after
        # Stored before it becomes visible: actions must follow only from a state that survives a crash.
        self._store.save(after, notes=notes, attempts=attempts, samples=samples, now=now)
        self._saved(after, notes, now)
        return after

    def _save(self, record: JobRecord, notes: Sequence[Note]) -> None:
        now = self.clock()
        self._store.save(record, notes=notes, now=now)
        self._saved(record, notes, now)

    def _saved(self, record: JobRecord, notes: Sequence[Note], now: float) -> None:
        self._records[record.id] = record
        self._saved_at[record.id] = now
        for note in notes:
            _log.info(
                "job %s: %s", record.id, note.text, extra={"job": record.id, "task": note.task, "kind": note.kind}
            )
            if self._on_note is not None:
                self._on_note(record, note)

    def _ended_attempt(self, record: JobRecord, task: TaskState, event: Ended, now: float) -> list[Attempt]:
        begun = self._store.attempt(record.id, task.label, task.attempt)
        return [ended_attempt(begun, task, event.how, now)] if begun is not None else []


def _is_current(event: Event, seen: JobState, now: JobState) -> bool:
    """Returns whether an event still belongs to the current attempt of its task."""
    if not isinstance(event, Ended | Progressed | Started | CouldNotStart):
        return True
    then, task = seen.tasks.get(event.task), now.tasks.get(event.task)
    return then is not None and task is not None and then.attempt == task.attempt


def _without_progress(record: JobRecord) -> JobRecord:
    """Returns a job without its tasks' progress, usage and traffic, which need not be stored immediately."""
    tasks = {
        name: replace(task, step=None, steps_per_s=None, loss=None, metrics={}, progress_at=None)
        for name, task in record.state.tasks.items()
    }
    return replace(record, state=replace(record.state, tasks=tasks), usages={}, activities={})
