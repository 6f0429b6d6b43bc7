"""What the platform remembers of jobs, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.talk import Talk
from headwater.platform.backends.base import Place, Usage
from headwater.platform.states import JobState, Note

TokenRole = Literal["view", "run", "admin"]
"""What a token allows: to look, to run jobs, to give tokens. Each allows what those before it do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobRecord:
    """A job, and where its tasks are.

    Attributes:
      id: unique among all jobs that this server ever had.
      owner: the name of the token that submitted it.
      submitted_at: when, in seconds since 1970.
      backend: which one runs it.
      archive: the digest of its archive; None where it has none.
      state: what is known of it.
      places: where its tasks run, or are to run.
      handles: the backend's handle of each task that was started.
      usages: what each running task uses.
      talks: what each running task says of itself beside its progress.
      handle: the engine's handle of the whole job, where one runs it as a whole.
      handle_attempt: the job's attempt that ``handle`` is of.
      holds: whether its backend may hold something for it that is to be given back when it is over: places, or what
        an engine was handed and has given no handle of yet. It is stored before the backend is asked for any.
      sweep: what it is one of many jobs of; None for one of its own.
      settings: which values it has of those that differ within its sweep.
    """

    id: str
    owner: str
    submitted_at: float
    backend: str
    archive: str | None = None
    state: JobState
    places: Mapping[TaskName, Place] = field(default_factory=dict[TaskName, Place])
    handles: Mapping[TaskName, str] = field(default_factory=dict[TaskName, str])
    usages: Mapping[TaskName, Usage] = field(default_factory=dict[TaskName, Usage])
    talks: Mapping[TaskName, Talk] = field(default_factory=dict[TaskName, Talk])
    handle: str | None = None
    handle_attempt: int = 0
    holds: bool = False
    sweep: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict[str, str])

    def with_state(self, state: JobState) -> JobRecord:
        """This record with ``state`` in place of what it was."""
        return replace(self, state=state)


@dataclass(frozen=True, kw_only=True, slots=True)
class JobEvent:
    """Something that happened to a job, and why.

    Attributes:
      id: grows with time, over all jobs.
      job_id: which job.
      at: when, in seconds since 1970.
      note: what.
    """

    id: int
    job_id: str
    at: float
    note: Note


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One life of one task.

    Attributes:
      task: which, e.g. ``worker-0``.
      attempt: how often it had been started before.
      host: where it ran.
      started_at: when, in seconds since 1970.
      ended_at: when; None while it runs.
      code: its exit code; None where there is none.
      reason: how it ended, in words.
      last_lines: what it printed last.
    """

    task: str
    attempt: int
    host: str = ""
    started_at: float
    ended_at: float | None = None
    code: int | None = None
    reason: str = ""
    last_lines: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """How fast a task was, and what it used, at one moment.

    Attributes:
      task: which, e.g. ``worker-0``.
      at: when, in seconds since 1970.
      step: the global step.
      steps_per_s: the task's own speed.
      loss: the latest loss.
      metrics: further numbers that it reported, by name.
      usage: what it used.
    """

    task: str
    at: float
    step: int | None = None
    steps_per_s: float | None = None
    loss: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    usage: Usage | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Secret:
    """A value that jobs may name. The value itself is not here.

    Attributes:
      name: what jobs call it.
      owner: the name of the token that stored it.
      stored_at: when, in seconds since 1970.
    """

    name: str
    owner: str
    stored_at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """A right to use the server. What opens it is not here: only its hash is kept.

    Attributes:
      id: names it.
      name: whose it is, or what for.
      kind: a ``token`` of its own, or a ``session`` of the web page that was opened with one.
      role: what it allows.
      parent: the token that opened the session.
      created_at: when, in seconds since 1970.
      expires_at: when it ends; None for never.
      last_used_at: about when it was last used.
    """

    id: str
    name: str
    kind: Literal["token", "session"] = "token"
    role: TokenRole
    parent: str | None = None
    created_at: float
    expires_at: float | None = None
    last_used_at: float | None = None
