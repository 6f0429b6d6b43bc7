"""Jobs: what to run, as a file or a form, and what starts, watches, restarts and scales it.

- `spec`, `job_file`: what a job is, and how it is read from ``job.yaml``.
- `policy`: what to do next, as a function of what has happened; starts and reads nothing.
- `store`: what is remembered: jobs, tasks, attempts, events, tokens.
- `backends`: where tasks run: this machine, other hosts, Ray, Kubernetes, Slurm.
- `manager`: brings what runs in line with what is wanted.
- `api`: the same over HTTP.
- `Client`: the same for programs and notebooks.

A job runs as the user that the server runs as. Everything here reaches a job's tasks through processes and HTTP only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.platform.notebook import Client

__all__ = ["Client"]


def __getattr__(name: str) -> type[Client]:
    # What runs tasks on their machines imports this package, too, and needs no client of HTTP.
    if name == "Client":
        from headwater.platform.notebook import Client  # noqa: PLC0415  as above

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
