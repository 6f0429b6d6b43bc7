"""Logs of pods, fetched piece by piece.

Kubernetes cannot return a log from a byte offset, only its last seconds, with a time before each line. So the time of
the last fetched line is stored in a file beside the log, together with the pod's latest progress report: see
`headwater.platform.host.pod_task`.
"""

from __future__ import annotations

import contextlib
import logging
import math
import re
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.cluster.telemetry.progress import Progress
from headwater.data.io.files import atomic_write
from headwater.data.io.sealed import pack_json, read_json
from headwater.errors import DataLossError, NotFoundError
from headwater.platform.backends.kubernetes_objects import CONTAINER
from headwater.platform.host.lines import stamp
from headwater.platform.host.pod_task import PROGRESS_PREFIX

if TYPE_CHECKING:
    from headwater.data.io.json_types import JsonObject

_MAX_BYTES = 16 << 20
# Differences to assume between the clocks of this machine and the node, tried in order; None: any difference.
_SKEWS_S: tuple[float | None, ...] = (10.0, 7200.0, None)
_logger = logging.getLogger(__name__)
_PIECE = 16 << 10
_TAIL = 10_000
_INNER_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)(?: |$)")


def fetch_log(core: object, pod: str, namespace: str, path: Path, *, ended: bool = False) -> None:
    """Appends the output of ``pod`` since the last call to ``path``, each line with its time.

    Args:
      core: the client's API of core objects; its exceptions are passed on.
      ended: whether the pod has ended: then its last line may lack a line break.
    """
    known = _known(path)
    last = known.get(pod, {}).get("at", "")
    lines: list[tuple[str, bytes]] = []
    for skew_s in _SKEWS_S if last else (None,):
        lines = _lines(core, pod, namespace, last, skew_s, ended=ended)
        if any(at <= last for at, _ in lines):
            break  # the new lines overlap the known ones; otherwise the clocks differ by more
    _append(path, pod, lines)


class Listener:
    """Follows the log of a pod that is about to be deleted, because Kubernetes deletes the log with the pod.

    Args:
      core: the client's API of core objects.
      pod: the name of the pod.
      namespace: the namespace of the pod.
      path: the file to which the pod's lines are appended, as by `fetch_log`.
      patience_s: the longest time until the pod ends, in seconds.
    """

    def __init__(self, core: Any, pod: str, namespace: str, path: Path, *, patience_s: float) -> None:
        self._core, self._pod, self._namespace, self._path = core, pod, namespace, path
        self._patience_s = patience_s
        self._data = bytearray()
        self._lock = threading.Lock()
        self._connected = threading.Event()
        self._thread = threading.Thread(target=self._listen, name=f"headwater-log-{pod}", daemon=True)
        self._thread.start()

    def write(self) -> None:
        """Appends the lines received so far to the file: whole lines and, once the log has ended, the last one."""
        over = not self._thread.is_alive()
        with self._lock:
            data = bytes(self._data)
        whole, _, rest = data.rpartition(b"\n")
        lines = [*whole.split(b"\n"), rest] if over else whole.split(b"\n")
        _append(self._path, self._pod, _printed(lines))

    def wait_connected(self, timeout_s: float) -> None:
        """Waits until the connection is established or has failed."""
        self._connected.wait(timeout_s)

    def close(self, timeout_s: float) -> None:
        """Waits for the end of the log, and writes the remaining lines."""
        self._thread.join(timeout_s)
        self.write()

    def _listen(self) -> None:
        # Request some earlier lines, too: the response starts only when there is a first line. `_append` skips known
        # lines.
        query: JsonObject = {"container": CONTAINER, "timestamps": True, "follow": True, "tail_lines": _TAIL}
        try:
            response = self._core.read_namespaced_pod_log(
                self._pod, self._namespace, _preload_content=False, _request_timeout=self._patience_s, **query
            )
            self._connected.set()
            with contextlib.closing(response):
                for piece in response.stream(4096):
                    with self._lock:
                        self._data += piece[: max(0, _MAX_BYTES - len(self._data))]
        except Exception as error:  # noqa: BLE001  errors of the client and of urllib3: the pod ends anyway
            _logger.info("cannot read the last output of pod %s: %s", self._pod, error)
        finally:
            self._connected.set()


def _append(path: Path, pod: str, lines: list[tuple[str, bytes]]) -> None:
    """Appends those ``lines`` of a pod that are later than the last one written, and stores the new last time."""
    known = _known(path)
    last = known.get(pod, {}).get("at", "")
    fresh = [(at, line) for at, line in lines if at > last]
    if fresh:
        mark = PROGRESS_PREFIX.encode()
        reports = [line.removeprefix(mark).decode("utf-8", "replace") for _, line in fresh if line.startswith(mark)]
        with path.open("ab") as file:
            file.writelines(
                stamp(datetime.fromisoformat(at).timestamp()) + line + b"\n"
                for at, line in fresh
                if not line.startswith(mark)
            )
        progress = reports[-1] if reports else known.get(pod, {}).get("progress", "")
        known[pod] = {"at": fresh[-1][0], "progress": progress}
        with atomic_write(_position(path)) as position:
            position.write(pack_json(known))


def _lines(
    core: Any, pod: str, namespace: str, last: str, skew_s: float | None, *, ended: bool
) -> list[tuple[str, bytes]]:
    """Returns time and text of the lines since ``last``, if clocks differ by at most ``skew_s``; all lines for None."""
    query: JsonObject = {"container": CONTAINER, "timestamps": True, "limit_bytes": _MAX_BYTES}
    if skew_s is not None:
        query["since_seconds"] = math.ceil(max(0.0, time.time() - datetime.fromisoformat(last).timestamp()) + skew_s)
    response = core.read_namespaced_pod_log(pod, namespace, _preload_content=False, _request_timeout=30.0, **query)
    data: bytes = response.data
    whole, _, rest = data.rpartition(b"\n")
    # A line truncated by the limit, or not finished yet, is fetched again by the next call.
    lines = [*whole.split(b"\n"), rest] if ended and len(data) < _MAX_BYTES else whole.split(b"\n")
    return _printed(lines)


def _printed(lines: list[bytes]) -> list[tuple[str, bytes]]:
    """Returns time and text of a pod's output lines.

    Lines without a time are messages of the node, such as ``unable to retrieve container logs`` while a pod is being
    deleted.
    """
    return [_line(line) for line in lines if _INNER_TIME.match(line)]


def _line(line: bytes) -> tuple[str, bytes]:
    """Splits a line into its time and the printed text.

    The container runtime cuts long lines into pieces, and Kubernetes puts the time before each piece.
    """
    at, _, text = line.partition(b" ")
    position = _PIECE
    while len(text) > position and (inner := _INNER_TIME.match(text, position)) is not None:
        text = text[:position] + text[inner.end() :]
        position += _PIECE
    return at.decode("ascii", "replace"), text


def last_progress(path: Path, pod: str) -> Progress | None:
    """Returns the latest progress in the fetched part of the log of ``pod``; None if there is none."""
    return Progress.decode(_known(path).get(pod, {}).get("progress", "").encode())


def _position(path: Path) -> Path:
    return path.with_suffix(".position")


def _known(path: Path) -> dict[str, dict[str, str]]:
    try:
        known: dict[str, dict[str, str]] = read_json(_position(path))
    except NotFoundError:
        return {}
    except DataLossError as error:
        # Only the position is lost: lines that were fetched before are fetched a second time.
        _logger.warning("%s. Log lines may be repeated", error.message)
        return {}
    return known
