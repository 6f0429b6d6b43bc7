"""Records of jobs, tokens and secrets, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from headwater.cluster.names import TaskName
from headwater.cluster.telemetry.task_activity import TaskActivity
from headwater.platform.backends.base import TaskPlace, Usage
from headwater.platform.states import JobState, Note

TokenRole = Literal["view", "run", "admin"]
"""The permissions of a token: to look, to run jobs, to issue tokens. Each role includes those before it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobRecord:
    """A job and the places of its tasks.

    Attributes:
      id: unique among all jobs of this server, including deleted ones.
      owner: the name of the token that submitted the job.
      submitted_at: when, in seconds since 1970.
      backend: the name of the backend that runs the job.
      archive: the digest of the job's archive; None without an archive.
      state: the state of the job.
      places: the places of the job's tasks.
      handles: the backend's handle of each task that was started.
      usages: the resource usage of each running task.
      activities: the traffic, staleness and waits that each running task reports in addition to its progress.
      handle: the engine's handle of the whole job, if an engine runs it.
      handle_attempt: the job's attempt that ``handle`` belongs to.
      holds: whether its backend may hold resources that must be released when the job is over: places, or a submission
        for which the engine has not returned a handle yet.
      sweep: the sweep that the job belongs to; None if it belongs to none.
      settings: the values of this job that differ within its sweep.
    """

    id: str
    owner: str
    submitted_at: float
    backend: str
    archive: str | None = None
    state: JobState
    places: Mapping[TaskName, TaskPlace] = field(default_factory=dict[TaskName, TaskPlace])
    handles: Mapping[TaskName, str] = field(default_factory=dict[TaskName, str])
    usages: Mapping[TaskName, Usage] = field(default_factory=dict[TaskName, Usage])
    activities: Mapping[TaskName, TaskActivity] = field(default_factory=dict[TaskName, TaskActivity])
    handle: str | None = None
    handle_attempt: int = 0
    holds: bool = False
    sweep: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict[str, str])

    def with_state(self, state: JobState) -> JobRecord:
        """Returns this record with another ``state``."""
        return replace(self, state=state)


@dataclass(frozen=True, kw_only=True, slots=True)
class JobEvent:
    """An event in a job's history, with its reason.

    Attributes:
      id: increases with time, over all jobs.
      job_id: the job.
      at: when, in seconds since 1970.
      note: the event.
    """

    id: int
    job_id: str
    at: float
    note: Note


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """An attempt, which is one start of one task.

    Attributes:
      task: the task, e.g. ``worker-0``.
      attempt: how often the task had been started before.
      host: the host on which it ran.
      started_at: when, in seconds since 1970.
      ended_at: the time of the end; None while the attempt runs.
      code: the exit code; None if there is none.
      reason: how the attempt ended, in words.
      last_lines: the last lines of the task's output.
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
    """Speed and resource usage of a task at one moment.

    Attributes:
      task: the task, e.g. ``worker-0``.
      at: when, in seconds since 1970.
      step: the global step.
      steps_per_s: the task's own speed.
      loss: the latest loss.
      metrics: further metrics that the task reported, by name.
      usage: the task's resource usage.
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
    """A secret of the server, without its value.

    Attributes:
      name: the name of the secret in job files.
      owner: the name of the token that stored the secret.
      stored_at: when, in seconds since 1970.
    """

    name: str
    owner: str
    stored_at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """A right to use the server. Its secret is not included: only a hash of it is stored.

    Attributes:
      id: the id of the token.
      name: the owner or purpose of the token.
      kind: a ``token``, or a ``session`` of the web page that was opened with a token.
      role: the permissions of the token.
      parent: the token that opened the session.
      created_at: when, in seconds since 1970.
      expires_at: the time at which the token expires; None if it never expires.
      last_used_at: the approximate time of the last use.
    """

    id: str
    name: str
    kind: Literal["token", "session"] = "token"
    role: TokenRole
    parent: str | None = None
    created_at: float
    expires_at: float | None = None
    last_used_at: float | None = None
