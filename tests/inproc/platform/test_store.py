"""The store returns saved values unchanged, and only one server uses a database."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from headwater.cluster.names import TaskName
from headwater.platform import policy
from headwater.platform.auth import Auth
from headwater.platform.backends.base import Resources, TaskPlace, Usage
from headwater.platform.job_store import JobStore, MemoryStore
from headwater.platform.records import Attempt, JobRecord, Sample
from headwater.platform.spec import parse_job
from headwater.platform.states import Fault, JobPhase, Note, Placed, Started
from headwater.platform.store import Store, StoreError
from headwater.platform.tables import Base


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(f"sqlite:///{tmp_path}/jobs.db")
    store.open()
    yield store
    store.close()


@pytest.fixture(params=["database", "memory"])
def either(request: pytest.FixtureRequest, store: Store) -> JobStore:
    """Returns each of the two implementations of the store that running jobs need."""
    return store if request.param == "database" else MemoryStore()


def record(job_id: str = "a-1", at: float = 100.0) -> JobRecord:
    state = policy.initial_state(parse_job("name: a\nprogram: b\nps: 1\nworkers: 2:4"), at)
    tasks = tuple(state.tasks)
    state = policy.decide(state, Placed(tasks), at).state
    state = policy.decide(state, Started(tasks[0]), at).state
    fault = Fault(task="worker-0", at=5.0, attempt=1, code=None, reason="lost", last_lines=("a", "b"))
    task = replace(state.tasks[tasks[1]], first=fault, step=2**40, loss=0.5)
    place = TaskPlace(
        task=tasks[0],
        host="h",
        address="h:1",
        resources=Resources(cpus=1.5, memory_bytes=2**40),
        cores=(0, 1),
        gpus=("0",),
        detail={"a": "b"},
    )
    return JobRecord(
        id=job_id,
        owner="eve",
        submitted_at=at,
        backend="local",
        archive="f" * 64,
        state=replace(state.with_task(task), first=fault, next_attempts={"worker-3": 2}),
        places={tasks[0]: place},
        handles={tasks[0]: "{}"},
        usages={tasks[0]: Usage(cpu_s=1.5, memory_bytes=2**33)},
        handle="42",
        holds=True,
    )


def test_a_stored_job_is_read_unchanged(either: JobStore) -> None:
    job = record()
    either.save(job, now=100.0)
    assert either.job("a-1") == job
    assert either.job("a-2") is None
    assert [list(found.state.tasks) for found in either.find_unfinished()] == [list(job.state.tasks)]
    assert either.archives() == {"f" * 64}


def test_lost_tasks_are_forgotten(either: JobStore) -> None:
    job = record()
    either.save(job, now=100.0)
    tasks = {name: task for name, task in job.state.tasks.items() if name != TaskName("worker", 1)}
    job = job.with_state(replace(job.state, tasks=tasks))
    either.save(job, now=101.0)
    assert either.job("a-1") == job


def test_jobs_that_are_over(either: JobStore) -> None:
    for number, (phase, ended_at, holds) in enumerate(
        [
            (JobPhase.RUNNING, None, True),
            (JobPhase.STOPPED, 9.0, False),
            (JobPhase.FAILED, 7.0, True),
            (JobPhase.SUCCEEDED, 8.0, False),
        ]
    ):
        job = record(f"a-{number}", at=float(number))
        either.save(replace(job, state=replace(job.state, phase=phase, ended_at=ended_at), holds=holds), now=0.0)
    assert {job.id for job in either.find_unfinished()} == {"a-0", "a-2"}
    in_order = [("a-2", 7.0), ("a-3", 8.0), ("a-1", 9.0)]
    assert either.find_ended(before=None, beyond=None, limit=9) == []
    assert either.find_ended(before=9.0, beyond=None, limit=9) == in_order[:2]
    assert either.find_ended(before=8.0, beyond=0, limit=9) == in_order
    assert either.find_ended(before=None, beyond=1, limit=1) == in_order[:1]
    assert either.find_ended(before=None, beyond=5, limit=9) == []


def test_events_and_attempts(either: JobStore) -> None:
    begun = Attempt(task="worker-0", attempt=0, host="h", started_at=1.0)
    either.save(record(), notes=[Note("queued", "x"), Note("failed", "y", "worker-0")], attempts=[begun], now=7.0)
    either.save(record("a-2"), notes=[Note("queued", "other")], now=8.0)
    ended = replace(begun, ended_at=2.0, code=-9, reason="killed by SIGKILL", last_lines=("z",))
    either.save(record(), notes=[Note("restarting", "z")], attempts=[ended], now=9.0)
    events = either.events(job_id="a-1")
    assert [(event.at, event.note.text) for event in events] == [(7.0, "x"), (7.0, "y"), (9.0, "z")]
    assert [event.note.text for event in either.events(after=events[0].id, limit=2)] == ["y", "other"]
    assert either.events(job_id="a-1", limit=2, latest_first=True) == events[:0:-1]
    assert either.attempt("a-1", "worker-0", 0) == ended
    assert either.attempt("a-1", "worker-0", 1) is either.attempt("a-2", "worker-0", 0) is None
    either.delete_job("a-1")
    assert (either.job("a-1"), either.attempt("a-1", "worker-0", 0)) == (None, None)
    assert [event.job_id for event in either.events()] == ["a-2"]


def test_lists_of_jobs(store: Store) -> None:
    for number in range(5):
        job = record(f"a-{number}", at=float(number))
        if number == 3:
            job = job.with_state(replace(job.state, phase=JobPhase.FAILED))
        store.save(job, now=0.0)
    assert [job.id for job in store.jobs(limit=2)] == ["a-4", "a-3"]
    assert [job.id for job in store.jobs(before=3.0)] == ["a-2", "a-1", "a-0"]
    assert [job.id for job in store.jobs(live=False)] == ["a-3"]
    assert [job.id for job in store.jobs(phase=JobPhase.RUNNING, live=True, limit=1)] == ["a-4"]
    assert store.jobs(name="b") == []
    assert store.counts() == {JobPhase.RUNNING: 4, JobPhase.FAILED: 1}


def test_history(store: Store) -> None:
    job = record()
    begun = Attempt(task="worker-0", attempt=0, host="h", started_at=1.0)
    store.save(job, notes=[Note("queued", "x"), Note("failed", "y", "worker-0")], attempts=[begun], now=7.0)
    ended = replace(begun, ended_at=2.0, code=-9, reason="killed by SIGKILL", last_lines=("z",))
    sample = Sample(task="ps-0", at=3.0, step=1, usage=Usage(cpu_s=1.0, memory_bytes=2))
    store.save(job, notes=[Note("restarting", "z")], attempts=[ended], samples=[sample], now=8.0)
    events = store.events(job_id="a-1")
    assert [(event.at, event.note) for event in events] == [
        (7.0, Note("queued", "x")),
        (7.0, Note("failed", "y", "worker-0")),
        (8.0, Note("restarting", "z")),
    ]
    assert store.events(after=events[1].id) == events[2:]
    assert store.last_event() == events[-1].id
    assert store.attempts("a-1") == [ended]
    assert store.attempt("a-1", "worker-0", 0) == ended
    assert store.samples("a-1") == [sample]
    assert store.samples("a-1", after=3.0) == []
    store.delete_job("a-1")
    assert (store.jobs(), store.events(), store.attempts("a-1"), store.samples("a-1")) == ([], [], [], [])


def test_two_servers_cannot_use_one_database(store: Store, tmp_path: Path) -> None:
    other = Store(f"sqlite:///{tmp_path}/jobs.db")
    with pytest.raises(StoreError, match="another server uses"):
        other.open()
    other.close()


@pytest.mark.parametrize("url", ["nonsense", "sqlite://", "mysql+nothing://secret@x/y", "nodb://x"])
def test_urls_that_cannot_be_right(url: str) -> None:
    with pytest.raises(StoreError, match="database") as caught:
        Store(url).open()
    assert "secret" not in str(caught.value)


def test_migrations_lead_to_the_tables_that_the_code_has(store: Store, tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}/jobs.db")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


def test_earlier_attempts_without_next_attempts_are_counted(store: Store, tmp_path: Path) -> None:
    lives = [
        Attempt(task=task, attempt=attempt, host="h", started_at=1.0) for task, attempt in (("a-0", 0), ("b-0", 2))
    ]
    store.save(record(), attempts=lives, now=0.0)
    store.save(record("a-2"), now=0.0)
    store.close()
    engine = create_engine(f"sqlite:///{tmp_path}/jobs.db")
    config = Config()
    config.set_main_option("script_location", "headwater.platform:migrations")
    with engine.begin() as config.attributes["connection"]:
        command.downgrade(config, "0005")
    engine.dispose()
    store = Store(f"sqlite:///{tmp_path}/jobs.db")
    store.open()
    jobs = {job.id: job.state.next_attempts for job in store.jobs()}
    assert jobs == {"a-1": {"a-0": 1, "b-0": 3}, "a-2": {}}
    assert all(job.holds for job in store.jobs())
    store.close()


def test_waiting_for_changes(either: JobStore) -> None:
    seen = either.wait_change(-1, 0.0)
    assert either.wait_change(seen, 0.0) == seen
    either.save(record(), now=0.0)
    assert either.wait_change(seen, 0.0) == seen + 1


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_tokens(store: Store, tmp_path: Path) -> None:
    clock = Clock()
    auth = Auth(store, clock=clock)
    token, secret = auth.issue_token("eve", "run", valid_s=60.0)
    identity = auth.identify(secret)
    assert identity is not None
    assert (identity.name, identity.may("run"), identity.may("admin")) == ("eve", True, False)
    assert auth.identify(secret + "x") is None
    assert auth.identify("") is None
    assert secret.encode() not in (tmp_path / "jobs.db").read_bytes() + (tmp_path / "jobs.db-wal").read_bytes()
    clock.now += 60.0
    assert auth.identify(secret) is None
    assert auth.revoke_token(token.id)
    assert not auth.revoke_token(token.id)
    assert auth.tokens() == []


def test_sessions_need_their_csrf_secret_for_changes(store: Store) -> None:
    auth = Auth(store)
    token, secret = auth.issue_token("eve", "run")
    assert auth.open_session("hw_wrong") is None
    opened = auth.open_session(secret)
    assert opened is not None
    assert auth.identify_session(opened.secret, csrf=None, changes=False) is not None
    assert auth.identify_session(opened.secret, csrf=None, changes=True) is None
    assert auth.identify_session(opened.secret, csrf="x", changes=True) is None
    known = auth.identify_session(opened.secret, csrf=opened.csrf, changes=True)
    assert known is not None
    assert known.role == "run"
    # A session's secret is not accepted as a token, nor the reverse.
    assert auth.identify(opened.secret) is None
    assert auth.identify_session(secret, csrf=None, changes=False) is None
    auth.revoke_token(token.id)
    assert auth.identify_session(opened.secret, csrf=None, changes=False) is None


def test_a_closed_session(store: Store) -> None:
    auth = Auth(store)
    _, secret = auth.issue_token("eve", "view")
    opened = auth.open_session(secret)
    assert opened is not None
    auth.close_session(opened.secret)
    assert auth.identify_session(opened.secret, csrf=None, changes=False) is None
