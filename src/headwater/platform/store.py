"""The database: jobs, tasks, attempts, events, samples and tokens, in SQLite or any database given by a URL.

All methods are thread-safe. Each `save` is one transaction.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine, delete, event, func, select, text, update
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.orm import Session

from headwater.platform.job_store import JobStore
from headwater.platform.records import Attempt, JobEvent, JobRecord, Sample, Secret, Token
from headwater.platform.rows import (
    attempt_record,
    attempt_values,
    event_record,
    job_record,
    job_values,
    sample_record,
    sample_values,
    task_values,
    token_record,
)
from headwater.platform.states import JobPhase, Note
from headwater.platform.tables import AttemptRow, EventRow, JobRow, SampleRow, SecretRow, TaskRow, TokenRow

_FINAL_PHASES = tuple(phase.value for phase in JobPhase if phase.over)
# The key of PostgreSQL's advisory lock: any number that no other program uses.
_LOCK_KEY = 0x68656164
_NOT_ALONE = (
    "another server uses {}: two servers would start every task twice. End that server, or give this server a "
    "database of its own"
)

_POSTGRESQL = "pip install 'headwater[postgresql]'"
#: Instructions if the driver of a URL is not installed, by the scheme of the URL.
_DRIVER = {"postgresql": f"; write postgresql+psycopg://, and {_POSTGRESQL}", "postgresql+psycopg": f": {_POSTGRESQL}"}


class StoreError(Exception):
    """The database cannot be used; the message has the reason and the remedy."""


class Store(JobStore):
    """The database of one server.

    Args:
      url: a URL of SQLAlchemy, e.g. ``sqlite:///jobs.db`` or ``postgresql+psycopg://user@host/headwater``.

    Raises:
      StoreError: the URL is invalid, or its driver is not installed.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        try:
            self._url: URL = make_url(url)
            self._engine = create_engine(self._url, pool_pre_ping=True)
        except ArgumentError as error:
            raise StoreError(f"database {_shown(url)}: {error}") from error
        except ImportError as error:
            raise StoreError(f"database {_shown(url)}: {error}{_DRIVER.get(make_url(url).drivername, '')}") from error
        self._is_sqlite = self._url.get_backend_name() == "sqlite"
        if self._is_sqlite:
            event.listen(self._engine, "connect", _set_up_sqlite)
        self._held: Connection | int | None = None
        # SQLite has one writer at a time; a lock here is fairer and faster than its retries.
        self._writing = threading.RLock()

    def __str__(self) -> str:
        return self._url.render_as_string(hide_password=True)

    def open(self) -> None:
        """Locks the database for this server, and migrates its tables.

        Raises:
          StoreError: another server uses the database, or it cannot be reached or changed.
        """
        try:
            self._lock_database()
            with self._engine.begin() as connection:
                migrate(connection)
        except SQLAlchemyError as error:
            self.close()
            raise StoreError(f"database {self}: {error}") from error

    def close(self) -> None:
        """Closes the database and releases its lock."""
        held, self._held = self._held, None
        if isinstance(held, int):
            os.close(held)
        elif held is not None:
            held.close()
        self._engine.dispose()

    def save(
        self,
        record: JobRecord,
        *,
        notes: Iterable[Note] = (),
        attempts: Iterable[Attempt] = (),
        samples: Iterable[Sample] = (),
        now: float,
    ) -> None:
        with self._write() as session:
            session.merge(JobRow(**job_values(record)))
            session.flush()
            for task in record.state.tasks.values():
                session.merge(TaskRow(**task_values(record, task)))
            names = [(name.job, name.index) for name in record.state.tasks]
            for row in session.scalars(select(TaskRow).where(TaskRow.job_id == record.id)):
                if (row.role, row.number) not in names:
                    session.delete(row)
            for attempt in attempts:
                session.merge(AttemptRow(**attempt_values(record.id, attempt)))
            for sample in samples:
                session.merge(SampleRow(**sample_values(record.id, sample)))
            session.add_all(
                EventRow(job_id=record.id, at=now, task=note.task, kind=note.kind, text=note.text) for note in notes
            )

    def job(self, job_id: str) -> JobRecord | None:
        with Session(self._engine) as session:
            row = session.get(JobRow, job_id)
            return _with_tasks(session, [row])[0] if row is not None else None

    def jobs(
        self,
        *,
        live: bool | None = None,
        phase: JobPhase | None = None,
        name: str | None = None,
        owner: str | None = None,
        before: float | None = None,
        limit: int | None = None,
    ) -> list[JobRecord]:
        """Returns jobs, the latest first.

        Args:
          live: True for unfinished jobs only, False for finished ones only.
          phase: only jobs in this phase.
          name: only jobs of this name.
          owner: only jobs of this owner.
          before: only jobs submitted before this time.
          limit: maximum number.
        """
        query = select(JobRow).order_by(JobRow.submitted_at.desc(), JobRow.id)
        if live is not None:
            query = query.where(JobRow.phase.not_in(_FINAL_PHASES) if live else JobRow.phase.in_(_FINAL_PHASES))
        for column, value in ((JobRow.phase, phase), (JobRow.name, name), (JobRow.owner, owner)):
            if value is not None:
                query = query.where(column == str(value))
        if before is not None:
            query = query.where(JobRow.submitted_at < before)
        if limit is not None:
            query = query.limit(limit)
        with Session(self._engine) as session:
            return _with_tasks(session, session.scalars(query).all())

    def find_unfinished(self) -> list[JobRecord]:
        query = select(JobRow).where(JobRow.phase.not_in(_FINAL_PHASES) | JobRow.holds)
        with Session(self._engine) as session:
            return _with_tasks(session, session.scalars(query).all())

    def find_ended(self, *, before: float | None, beyond: int | None, limit: int) -> list[tuple[str, float]]:
        at = func.coalesce(JobRow.ended_at, JobRow.submitted_at)
        over = select(JobRow.id, at).where(JobRow.phase.in_(_FINAL_PHASES))
        with Session(self._engine) as session:
            extra, old = list[tuple[str, float]](), list[tuple[str, float]]()
            if beyond is not None:
                count = session.scalar(select(func.count()).select_from(over.subquery())) or 0
                most = min(limit, max(0, count - beyond))
                extra = [(key, time) for key, time in session.execute(over.order_by(at, JobRow.id).limit(most))]
            if before is not None:
                past = over.where(at < before).order_by(at, JobRow.id).limit(limit)
                old = [(key, time) for key, time in session.execute(past)]
            # Both lists are prefixes of the list of finished jobs in order of their ends, so the longer list contains
            # the shorter one.
            return max(extra, old, key=len)

    def archives(self) -> set[str]:
        with Session(self._engine) as session:
            digests = session.scalars(select(JobRow.archive).where(JobRow.archive.is_not(None)).distinct())
            return {digest for digest in digests if digest is not None}

    def counts(self) -> dict[JobPhase, int]:
        """Returns the number of jobs in each phase, without empty phases."""
        with Session(self._engine) as session:
            rows = session.execute(select(JobRow.phase, func.count()).group_by(JobRow.phase))
            return {JobPhase(phase): count for phase, count in rows}

    def delete_job(self, job_id: str) -> None:
        with self._write() as session:
            session.execute(delete(JobRow).where(JobRow.id == job_id))

    def events(
        self, *, job_id: str | None = None, after: int = 0, limit: int = 1000, latest_first: bool = False
    ) -> list[JobEvent]:
        order = EventRow.id.desc() if latest_first else EventRow.id.asc()
        query = select(EventRow).where(EventRow.id > after).order_by(order).limit(limit)
        if job_id is not None:
            query = query.where(EventRow.job_id == job_id)
        with Session(self._engine) as session:
            return [event_record(row) for row in session.scalars(query)]

    def last_event(self) -> int:
        """Returns the id of the newest event; 0 if there is none."""
        with Session(self._engine) as session:
            return session.scalar(select(func.max(EventRow.id))) or 0

    def attempts(self, job_id: str, *, limit: int = 1000) -> list[Attempt]:
        """Returns the attempts of a job's tasks, the latest first."""
        query = select(AttemptRow).where(AttemptRow.job_id == job_id)
        query = query.order_by(AttemptRow.started_at.desc(), AttemptRow.task).limit(limit)
        with Session(self._engine) as session:
            return [attempt_record(row) for row in session.scalars(query)]

    def attempt(self, job_id: str, task: str, attempt: int) -> Attempt | None:
        with Session(self._engine) as session:
            row = session.get(AttemptRow, (job_id, task, attempt))
            return attempt_record(row) if row is not None else None

    def samples(self, job_id: str, *, after: float = 0.0, limit: int = 20_000) -> list[Sample]:
        """Returns samples of a job's tasks, the oldest first."""
        query = select(SampleRow).where(SampleRow.job_id == job_id, SampleRow.at > after)
        with Session(self._engine) as session:
            return [sample_record(row) for row in session.scalars(query.order_by(SampleRow.at).limit(limit))]

    def put_secret(self, secret: Secret, sealed: bytes) -> None:
        """Stores a secret with its encrypted value, replacing one of the same name."""
        with self._write() as session:
            session.merge(SecretRow(name=secret.name, owner=secret.owner, stored_at=secret.stored_at, sealed=sealed))

    def sealed_secret(self, name: str) -> bytes | None:
        """Returns the encrypted value of a secret; None if there is no secret of this name."""
        with Session(self._engine) as session:
            return session.scalar(select(SecretRow.sealed).where(SecretRow.name == name))

    def secrets(self) -> list[Secret]:
        """Returns all secrets by name, without their values."""
        with Session(self._engine) as session:
            rows = session.scalars(select(SecretRow).order_by(SecretRow.name))
            return [Secret(name=row.name, owner=row.owner, stored_at=row.stored_at) for row in rows]

    def delete_secret(self, name: str) -> bool:
        """Deletes a secret; returns whether the secret existed."""
        with self._write() as session:
            gone = session.execute(delete(SecretRow).where(SecretRow.name == name).returning(SecretRow.name))
            return gone.first() is not None

    def add_token(self, token: Token, *, secret_hash: str, csrf_hash: str | None = None) -> None:
        """Stores a token, or a session."""
        values = {name: getattr(token, name) for name in token.__slots__}
        with self._write() as session:
            session.add(TokenRow(**values, secret_hash=secret_hash, csrf_hash=csrf_hash))

    def token(self, secret_hash: str) -> tuple[Token, str | None] | None:
        """Returns the token, or session, whose secret has this hash, and the hash of its CSRF secret."""
        with Session(self._engine) as session:
            row = session.scalar(select(TokenRow).where(TokenRow.secret_hash == secret_hash))
            return (token_record(row), row.csrf_hash) if row is not None else None

    def tokens(self) -> list[Token]:
        """Returns all tokens, without sessions, the oldest first."""
        query = select(TokenRow).where(TokenRow.kind == "token").order_by(TokenRow.created_at, TokenRow.id)
        with Session(self._engine) as session:
            return [token_record(row) for row in session.scalars(query)]

    def delete_token(self, token_id: str) -> bool:
        """Deletes a session, or a token with the sessions that it opened; returns whether there was such a token or
        session."""
        with self._write() as session:
            session.execute(delete(TokenRow).where(TokenRow.parent == token_id))
            gone = session.execute(delete(TokenRow).where(TokenRow.id == token_id).returning(TokenRow.id))
            return gone.first() is not None

    def touch_token(self, token_id: str, now: float) -> None:
        """Stores the time of a token's last use."""
        with self._write() as session:
            session.execute(update(TokenRow).where(TokenRow.id == token_id).values(last_used_at=now))

    def delete_expired_tokens(self, now: float) -> None:
        """Deletes expired tokens and sessions."""
        with self._write() as session:
            session.execute(delete(TokenRow).where(TokenRow.expires_at <= now))

    @contextmanager
    def _write(self) -> Generator[Session]:
        with self._writing, Session(self._engine) as session, session.begin():
            yield session
        # Notify after the commit, so that woken readers see the change.
        self._notify()

    def _lock_database(self) -> None:
        if self._is_sqlite:
            if not self._url.database or self._url.database == ":memory:":
                raise StoreError(f"database {self}: must be a file")
            path = Path(f"{self._url.database}.lock")
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(descriptor)
                raise StoreError(_NOT_ALONE.format(self._url.database)) from error
            self._held = descriptor
        elif self._url.get_backend_name() == "postgresql":
            connection = self._engine.connect()
            if not connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": _LOCK_KEY}):
                connection.close()
                raise StoreError(_NOT_ALONE.format(self))
            connection.commit()
            self._held = connection


def migrate(connection: Connection) -> None:
    """Migrates the tables of ``connection`` to the latest revision."""
    config = Config()
    config.set_main_option("script_location", "headwater.platform:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _with_tasks(session: Session, rows: Sequence[JobRow]) -> list[JobRecord]:
    tasks: dict[str, list[TaskRow]] = {row.id: [] for row in rows}
    for task in session.scalars(select(TaskRow).where(TaskRow.job_id.in_(tasks))):
        tasks[task.job_id].append(task)
    return [job_record(row, tasks[row.id]) for row in rows]


def _set_up_sqlite(connection: Any, _record: object) -> None:
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", "busy_timeout=10000"):
        connection.execute(f"PRAGMA {pragma}")


def _shown(url: str) -> str:
    """Returns ``url`` without parts that may contain a password."""
    scheme, separator, _ = url.partition("://")
    return f"{scheme}{separator}..." if separator else "(not an URL)"
