"""This machine: the default backend.

Each task is a process in its own session below a keeper (`headwater.platform.host.keeper`), which outlives the server:
tasks continue when the server exits or crashes, and are found again after its restart.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.cluster.variables import LAUNCH_TOKEN
from headwater.errors import OpError, ResourceExhaustedError
from headwater.platform.backends.base import BackendError
from headwater.platform.backends.hosts import HostsBackend
from headwater.platform.host.agent import Agent, AgentError
from headwater.platform.host.ports import NoPort
from headwater.platform.spec import JobSpec

if TYPE_CHECKING:
    from headwater.data.io.json_types import Json, JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalSettings:
    """How this machine is used.

    Attributes:
      state_dir: a folder for records of tasks and for the jobs' own folders; used by this server only, on a local disk.
      cpus: the number of cores for tasks; all unless given.
      memory_bytes: the memory for tasks, in bytes; all unless given.
      gpus: the number of GPUs for tasks; all unless given.
      labels: the labels that selectors of jobs are matched with.
      environ: the environment that tasks inherit; the server's unless given, without variables that begin with
        ``HEADWATER_``.
      outlive: whether tasks continue when this process exits or crashes; otherwise they are killed at that time.
    """

    state_dir: Path
    cpus: int | None = None
    memory_bytes: int | None = None
    gpus: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    environ: Mapping[str, str] | None = None
    outlive: bool = True

    def __post_init__(self) -> None:
        for name in ("cpus", "memory_bytes", "gpus"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"{name} must not be negative, but is {value}")


class _ThisMachine:
    host = "local"
    address = "127.0.0.1"
    local = True

    def __init__(self, settings: LocalSettings) -> None:
        self.labels = settings.labels
        self._settings = settings
        environ = os.environ if settings.environ is None else settings.environ
        try:
            self._agent = Agent(settings.state_dir.absolute(), environ, outlive=settings.outlive)
        except OpError as error:
            raise BackendError(error.message) from error

    def call(self, method: str, **arguments: object) -> Json:
        try:
            # No lock: a start waits for its keeper, and polls of running tasks must not wait for the start.
            result = getattr(self._agent, method)(**arguments)
        except (AgentError, NoPort, OSError, OpError) as error:
            temporary = isinstance(error, NoPort | OSError | ResourceExhaustedError)
            raise BackendError(str(error), temporary=temporary) from error
        return self._within_limits(result) if method == "describe" else result

    def silence_s(self) -> float:
        return 0.0

    def close(self) -> None:
        """Does nothing: there is no connection."""

    def _within_limits(self, description: JsonObject) -> dict[str, object]:
        settings = self._settings
        memory = description["memory_bytes"]
        return {
            **description,
            "cores": description["cores"][: settings.cpus],
            "memory_bytes": memory if settings.memory_bytes is None else min(memory, settings.memory_bytes),
            "gpus": description["gpus"][: settings.gpus],
        }


class LocalBackend(HostsBackend):
    """Runs tasks on this machine."""

    name = "local"

    @classmethod
    def refusals(cls, spec: JobSpec, *, has_archive: bool) -> list[tuple[str, str]]:
        if has_archive or spec.workdir is None:
            return []
        folder = Path(spec.workdir)
        if not folder.is_dir():
            return [("workdir", f"there is no folder {folder} on the server's machine")]
        if spec.program is not None and not (folder / spec.program).exists():
            return [("program", f"there is no {spec.program!r} in {folder}")]
        return []

    def __init__(self, settings: LocalSettings) -> None:
        super().__init__(
            [_ThisMachine(settings)], lost_after_s=0.0, state_dir=settings.state_dir, token_variable=LAUNCH_TOKEN
        )
