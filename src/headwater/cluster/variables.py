"""Environment variables that more than one layer reads or sets; see docs/operating.md."""

from __future__ import annotations

import os
from collections.abc import Mapping

#: JSON from ``host:port`` to the number of an inherited descriptor: a socket that listens there.
LISTEN_FDS = "HEADWATER_LISTEN_FDS"
#: How many workers a cluster may have, with those that join it while it runs.
MAX_WORKERS = "HEADWATER_MAX_WORKERS"
#: ``1`` lets a server start that every program that reaches it can use.
INSECURE = "HEADWATER_INSECURE"
#: A secret that a launcher made for the tasks that it starts. Unlike ``HEADWATER_TOKEN``, it counts on loopback only,
#: and other programs of the same user are let in as well.
LAUNCH_TOKEN = "HEADWATER_LAUNCH_TOKEN"
#: Set for a worker that has joined a running cluster: the address of the task that has given it its place.
JOINED = "HEADWATER_JOINED"
#: Workers other than the chief whose programs have ended without an error before this task was started, such as
#: ``/job:worker/task:1,/job:worker/task:3``: they will not come.
ENDED = "HEADWATER_ENDED"
#: A folder in which each ``ps`` of graphs saves its own state, to go on with it when it is started anew.
SAVES = "HEADWATER_SAVES"
#: Seconds between two such saves.
SAVE_EVERY_S = "HEADWATER_SAVE_EVERY_S"
#: How many ``ps`` have each variable of a graph: 1 or 2.
REPLICAS = "HEADWATER_REPLICAS"
#: A folder for what a job writes of itself: event files, journals.
LOG_DIR = "HEADWATER_LOG_DIR"
#: In how many shards Keras and JAX programs divide their parameters, so that these can move between ``ps``.
SHARDS = "HEADWATER_SHARDS"
#: Seconds after which such shards move by themselves where some ``ps`` have much more to do than others.
REBALANCE_S = "HEADWATER_REBALANCE_S"
#: How many ``ps`` have these shards at the beginning; by default all that a task knows.
FIRST_PS = "HEADWATER_FIRST_PS"


def has_two_copies(environ: Mapping[str, object] | None = None) -> bool:
    """Whether the environment wants each variable of a graph on two ``ps``."""
    return str((os.environ if environ is None else environ).get(REPLICAS, "")).strip() == "2"
