"""The platform: jobs, the policy that restarts and scales them, backends, hosts, the web page, the command line.

The platform communicates with a job's tasks through processes and HTTP only; code that trains does not belong here.
Start with `policy`, which decides the next action as a function of state, event and time, then `manager`, which
performs the decisions on the `backends`. `spec` and `job_file` define a job, `store` stores jobs, `api` and `web` show
them, and `cli` is the command ``headwater``.

Jobs run as the user of the server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.platform.notebook import Client

__all__ = ["Client"]


def __getattr__(name: str) -> type[Client]:
    # Code that runs tasks on their hosts imports this package too, and must not load the HTTP client.
    if name == "Client":
        from headwater.platform.notebook import Client  # noqa: PLC0415  as above

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
