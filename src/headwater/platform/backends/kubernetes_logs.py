"""Logs of pods, fetched piece by piece.

Kubernetes cannot be asked for a log from a byte on, only for its last seconds, with the time of each line before it. So
the time of the last line that was fetched is remembered, in a file beside the log, with the progress that the pod has
told last: see `headwater.platform.host.pod_task`.
"""

from __future__ import annotations

import json
import math
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from headwater.io.files import atomic_write
from headwater.platform.backends.kubernetes_objects import CONTAINER
from headwater.platform.host.pod_task import MARK
from headwater.telemetry.progress import Progress

_MAX_BYTES = 16 << 20
# The clocks of this machine and of the pod's may differ so much.
_SKEW_S = 10.0


def fetch_log(core: Any, pod: str, namespace: str, path: Path) -> None:
    """Appends to ``path`` what ``pod`` has printed since the last call.

    Args:
      core: the client's API of core objects; what it raises is passed on.
    """
    known = _known(path)
    last = known.get(pod, {}).get("at", "")
    query: dict[str, Any] = {"container": CONTAINER, "timestamps": True, "limit_bytes": _MAX_BYTES}
    if last:
        query["since_seconds"] = math.ceil(max(0.0, time.time() - datetime.fromisoformat(last).timestamp()) + _SKEW_S)
    response = core.read_namespaced_pod_log(pod, namespace, _preload_content=False, _request_timeout=30.0, **query)
    # A line that the bound has cut is fetched again.
    whole, _, _ = response.data.decode("utf-8", "replace").rpartition("\n")
    lines = [line.partition(" ")[::2] for line in whole.split("\n") if line]
    fresh = [(at, line) for at, line in lines if at > last]
    if fresh:
        told = [line.removeprefix(MARK) for _, line in fresh if line.startswith(MARK)]
        with path.open("a") as file:
            file.writelines(f"{line}\n" for _, line in fresh if not line.startswith(MARK))
        progress = told[-1] if told else known.get(pod, {}).get("progress", "")
        known[pod] = {"at": fresh[-1][0], "progress": progress}
        with atomic_write(_position(path)) as position:
            position.write(json.dumps(known).encode())


def last_progress(path: Path, pod: str) -> Progress | None:
    """The latest progress that ``pod`` told, as far as its log was fetched; None where it never did."""
    return Progress.decode(_known(path).get(pod, {}).get("progress", "").encode())


def _position(path: Path) -> Path:
    return path.with_suffix(".position")


def _known(path: Path) -> dict[str, dict[str, str]]:
    try:
        known: dict[str, dict[str, str]] = json.loads(_position(path).read_bytes())
    except FileNotFoundError:
        return {}
    return known
