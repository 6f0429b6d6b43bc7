"""The tables of the platform's database. A change here needs a migration: see `headwater.platform.migrations`."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlalchemy import JSON, BigInteger, Float, ForeignKey, Index, Integer, LargeBinary, MetaData, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from headwater.data.io.json_types import JsonObject

# Systematic names of constraints, so that later migrations can refer to them on every database.
_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
_JOB = "jobs.id"
# SQLite auto-increments only columns declared as INTEGER.
_SERIAL = BigInteger().with_variant(Integer, "sqlite")


class Base(DeclarativeBase):
    """All tables. Times are seconds since 1970."""

    metadata: ClassVar[MetaData] = MetaData(naming_convention=_NAMES)
    type_annotation_map: ClassVar[dict[Any, Any]] = {float: Float(53), JsonObject: JSON, list[str]: JSON}


class JobRow(Base):
    """A job: its submission, and its `headwater.platform.states.JobState`."""

    __tablename__ = "jobs"
    __table_args__: Any = (Index(None, "phase"), Index(None, "submitted_at"))

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(String(40), index=True)
    owner: Mapped[str] = mapped_column(String(100))
    submitted_at: Mapped[float]
    backend: Mapped[str] = mapped_column(String(20))
    spec: Mapped[JsonObject]
    archive: Mapped[str | None] = mapped_column(String(64))
    handle: Mapped[str | None] = mapped_column(Text)
    phase: Mapped[str] = mapped_column(String(12))
    then: Mapped[str | None] = mapped_column(String(12))
    reason: Mapped[str] = mapped_column(Text)
    workers: Mapped[int]
    ps: Mapped[int | None]
    fixed: Mapped[bool]
    queued_at: Mapped[float]
    not_before: Mapped[float]
    started_at: Mapped[float | None]
    attempt_at: Mapped[float | None]
    ended_at: Mapped[float | None]
    restarts: Mapped[int]
    requeues: Mapped[int]
    attempt: Mapped[int]
    first: Mapped[JsonObject | None] = mapped_column(JSON(none_as_null=True))
    handle_attempt: Mapped[int] = mapped_column(server_default="0")
    sweep: Mapped[str | None] = mapped_column(String(64), index=True)
    settings: Mapped[JsonObject | None] = mapped_column(JSON(none_as_null=True))
    spent: Mapped[JsonObject] = mapped_column(server_default="{}")
    preemptions: Mapped[int] = mapped_column(server_default="0")
    lost_steps: Mapped[int] = mapped_column(BigInteger, server_default="0")
    furthest: Mapped[int | None] = mapped_column(BigInteger)
    preempted_at: Mapped[float | None]
    next_attempts: Mapped[JsonObject] = mapped_column(server_default="{}")
    holds: Mapped[bool] = mapped_column(server_default="0")


class TaskRow(Base):
    """A task of a job: its `headwater.platform.states.TaskState`, its place, and its handle."""

    __tablename__ = "tasks"

    job_id: Mapped[str] = mapped_column(ForeignKey(_JOB, ondelete="CASCADE"), primary_key=True)
    role: Mapped[str] = mapped_column(String(20), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    phase: Mapped[str] = mapped_column(String(12))
    attempt: Mapped[int]
    placed: Mapped[bool]
    start_at: Mapped[float]
    started_at: Mapped[float | None]
    ended_at: Mapped[float | None]
    restarts: Mapped[int]
    code: Mapped[int | None]
    reason: Mapped[str] = mapped_column(Text)
    verdict: Mapped[str] = mapped_column(Text)
    first: Mapped[JsonObject | None] = mapped_column(JSON(none_as_null=True))
    step: Mapped[int | None] = mapped_column(BigInteger)
    steps_per_s: Mapped[float | None]
    loss: Mapped[float | None]
    progress_at: Mapped[float | None]
    place: Mapped[str | None] = mapped_column(Text)
    handle: Mapped[str | None] = mapped_column(Text)
    usage: Mapped[JsonObject | None] = mapped_column(JSON(none_as_null=True))
    metrics: Mapped[JsonObject] = mapped_column(server_default="{}")
    host: Mapped[str] = mapped_column(Text, server_default="")
    together: Mapped[bool] = mapped_column(server_default="0")


class AttemptRow(Base):
    """An attempt, which is one start of one task."""

    __tablename__ = "attempts"

    job_id: Mapped[str] = mapped_column(ForeignKey(_JOB, ondelete="CASCADE"), primary_key=True)
    task: Mapped[str] = mapped_column(String(40), primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    host: Mapped[str] = mapped_column(Text)
    started_at: Mapped[float]
    ended_at: Mapped[float | None]
    code: Mapped[int | None]
    reason: Mapped[str] = mapped_column(Text)
    last_lines: Mapped[list[str]]


class EventRow(Base):
    """An event in a job's history, with its reason."""

    __tablename__ = "events"

    id: Mapped[int] = mapped_column(_SERIAL, primary_key=True, autoincrement=True)
    job_id: Mapped[str] = mapped_column(ForeignKey(_JOB, ondelete="CASCADE"), index=True)
    at: Mapped[float]
    task: Mapped[str] = mapped_column(String(40))
    kind: Mapped[str] = mapped_column(String(20))
    text: Mapped[str] = mapped_column(Text)


class SampleRow(Base):
    """Speed and resource usage of a task at one moment."""

    __tablename__ = "samples"

    job_id: Mapped[str] = mapped_column(ForeignKey(_JOB, ondelete="CASCADE"), primary_key=True)
    task: Mapped[str] = mapped_column(String(40), primary_key=True)
    at: Mapped[float] = mapped_column(primary_key=True)
    step: Mapped[int | None] = mapped_column(BigInteger)
    steps_per_s: Mapped[float | None]
    loss: Mapped[float | None]
    cpu_s: Mapped[float | None]
    memory_bytes: Mapped[int | None] = mapped_column(BigInteger)
    gpu_memory_bytes: Mapped[int | None] = mapped_column(BigInteger)
    gpu_utilization: Mapped[float | None]
    metrics: Mapped[JsonObject] = mapped_column(server_default="{}")


class SecretRow(Base):
    """A secret; its value is encrypted."""

    __tablename__ = "secrets"

    name: Mapped[str] = mapped_column(String(63), primary_key=True)
    owner: Mapped[str] = mapped_column(String(100))
    stored_at: Mapped[float]
    sealed: Mapped[bytes] = mapped_column(LargeBinary)


class TokenRow(Base):
    """A token or a session of the web page; contains only hashes of their secrets."""

    __tablename__ = "tokens"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    name: Mapped[str] = mapped_column(String(100), index=True)
    kind: Mapped[str] = mapped_column(String(10))
    role: Mapped[str] = mapped_column(String(10))
    secret_hash: Mapped[str] = mapped_column(String(64), unique=True)
    csrf_hash: Mapped[str | None] = mapped_column(String(64))
    parent: Mapped[str | None] = mapped_column(String(32))
    created_at: Mapped[float]
    expires_at: Mapped[float | None]
    last_used_at: Mapped[float | None]
