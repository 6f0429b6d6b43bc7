"""Environment variables that more than one layer reads or sets; see docs/operating.md."""

from __future__ import annotations

import os
from collections.abc import Mapping

#: JSON from ``host:port`` to the number of an inherited descriptor, of a socket that listens at that address.
LISTEN_FDS = "HEADWATER_LISTEN_FDS"
#: Maximum number of workers of a cluster, including workers that join it while it runs.
MAX_WORKERS = "HEADWATER_MAX_WORKERS"
#: ``1`` allows a server without authentication that other machines can reach.
INSECURE = "HEADWATER_INSECURE"
#: A secret that a launcher has created for the tasks that it starts. Unlike ``HEADWATER_TOKEN``, it is used on loopback
#: only, and other programs of the same user are accepted as well.
LAUNCH_TOKEN = "HEADWATER_LAUNCH_TOKEN"
#: Set for a worker that has joined a running cluster: the address of the task that assigned its place.
JOINED = "HEADWATER_JOINED"
#: Workers other than the chief whose programs ended without an error before this task was started, such as
#: ``/job:worker/task:1,/job:worker/task:3``. The task does not wait for them, because they will not connect.
ENDED = "HEADWATER_ENDED"
#: A folder in which each ``ps`` of graphs saves its own state, to restore it after a restart.
SAVES = "HEADWATER_SAVES"
#: Seconds between two such saves.
SAVE_EVERY_S = "HEADWATER_SAVE_EVERY_S"
#: The number of replicas of each variable of a graph, on different ``ps``: 1 or 2.
REPLICAS = "HEADWATER_REPLICAS"
#: A folder for a job's own records: event files, journals.
LOG_DIR = "HEADWATER_LOG_DIR"
#: The number of shards of the parameters of Keras and JAX programs, so that these can move between ``ps``.
SHARDS = "HEADWATER_SHARDS"
#: Interval at which such shards are rebalanced automatically between ``ps`` of unequal load, in seconds.
REBALANCE_S = "HEADWATER_REBALANCE_S"
#: The number of ``ps`` that have these shards when the job starts; by default all ``ps`` that a task knows.
FIRST_PS = "HEADWATER_FIRST_PS"


def has_two_copies(environ: Mapping[str, object] | None = None) -> bool:
    """Returns whether the environment requests two replicas of each variable of a graph."""
    return str((os.environ if environ is None else environ).get(REPLICAS, "")).strip() == "2"
