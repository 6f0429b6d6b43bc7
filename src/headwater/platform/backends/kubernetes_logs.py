"""Logs of pods, fetched piece by piece.

Kubernetes cannot be asked for a log from a byte on, only for its last seconds, with the time of each line before it. So
the time of the last line that was fetched is remembered, in a file beside the log.
"""

from __future__ import annotations

import json
import math
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from headwater.platform.backends.kubernetes_objects import CONTAINER

_MAX_BYTES = 16 << 20
# The clocks of this machine and of the pod's may differ so much.
_SKEW_S = 10.0


def fetch_log(core: Any, pod: str, namespace: str, path: Path) -> None:
    """Appends to ``path`` what ``pod`` has printed since the last call.

    Args:
      core: the client's API of core objects; what it raises is passed on.
    """
    position = path.with_suffix(".position")
    known: dict[str, str] = json.loads(position.read_text()) if position.exists() else {}
    last = known.get(pod, "")
    query: dict[str, Any] = {"container": CONTAINER, "timestamps": True, "limit_bytes": _MAX_BYTES}
    if last:
        query["since_seconds"] = math.ceil(max(0.0, time.time() - datetime.fromisoformat(last).timestamp()) + _SKEW_S)
    response = core.read_namespaced_pod_log(pod, namespace, _preload_content=False, _request_timeout=30.0, **query)
    # A line that the bound has cut is fetched again.
    whole, _, _ = response.data.decode("utf-8", "replace").rpartition("\n")
    lines = [line.partition(" ")[::2] for line in whole.split("\n") if line]
    fresh = [(at, line) for at, line in lines if at > last]
    if fresh:
        with path.open("a") as file:
            file.writelines(f"{line}\n" for _, line in fresh)
        position.write_text(json.dumps(known | {pod: fresh[-1][0]}))
