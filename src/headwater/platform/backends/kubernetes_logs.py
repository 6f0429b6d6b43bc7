"""Logs of pods, fetched piece by piece.

Kubernetes cannot be asked for a log from a byte on, only for its last seconds, with the time of each line before it. So
the time of the last line that was fetched is remembered, in a file beside the log, with the progress that the pod has
told last: see `headwater.platform.host.pod_task`.
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
from headwater.platform.host.pod_task import MARK

if TYPE_CHECKING:
    from headwater.data.io.json_types import JsonObject

_MAX_BYTES = 16 << 20
# How much the clocks of this machine and of the pod's may differ: what is tried, one after the other; None: any.
_SKEWS_S: tuple[float | None, ...] = (10.0, 7200.0, None)
_logger = logging.getLogger(__name__)
_PIECE = 16 << 10
_TAIL = 10_000
_INNER_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)(?: |$)")


def fetch_log(core: Any, pod: str, namespace: str, path: Path, *, ended: bool = False) -> None:
    """Appends to ``path`` what ``pod`` has printed since the last call, each line with its time.

    Args:
      core: the client's API of core objects; what it raises is passed on.
      ended: whether the pod prints nothing more: then its last line may have no end.
    """
    known = _known(path)
    last = known.get(pod, {}).get("at", "")
    lines: list[tuple[str, bytes]] = []
    for skew_s in _SKEWS_S if last else (None,):
        lines = _lines(core, pod, namespace, last, skew_s, ended=ended)
        if any(at <= last for at, _ in lines):
            break  # they go on where those of before end; else a clock is further off
    _append(path, pod, lines)


class Listener:
    """Listens to what a pod prints that is about to be deleted: its log goes with it, a moment after its last word.

    Args:
      core: the client's API of core objects.
      pod: which one.
      namespace: where it is.
      path: the file that gets its lines, as `fetch_log` writes them.
      patience_s: for how long it may live.
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
        """Appends what was heard to the file: whole lines, and at the end the last one, too."""
        over = not self._thread.is_alive()
        with self._lock:
            data = bytes(self._data)
        whole, _, rest = data.rpartition(b"\n")
        lines = [*whole.split(b"\n"), rest] if over else whole.split(b"\n")
        _append(self._path, self._pod, _printed(lines))

    def wait_connected(self, timeout_s: float) -> None:
        """Waits until it listens, or cannot."""
        self._connected.wait(timeout_s)

    def close(self, timeout_s: float) -> None:
        """Waits for the end of the log, and writes what is left."""
        self._thread.join(timeout_s)
        self.write()

    def _listen(self) -> None:
        # Some lines of before: an answer begins with its first line, and what is known already is passed over.
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
        except Exception as error:  # noqa: BLE001  the client's, urllib3's: the pod ends all the same
            _logger.info("what pod %s prints at its end is not heard: %s", self._pod, error)
        finally:
            self._connected.set()


def _append(path: Path, pod: str, lines: list[tuple[str, bytes]]) -> None:
    """Appends those of ``lines`` of a pod that are later than the last that was written, and remembers that."""
    known = _known(path)
    last = known.get(pod, {}).get("at", "")
    fresh = [(at, line) for at, line in lines if at > last]
    if fresh:
        mark = MARK.encode()
        told = [line.removeprefix(mark).decode("utf-8", "replace") for _, line in fresh if line.startswith(mark)]
        with path.open("ab") as file:
            file.writelines(
                stamp(datetime.fromisoformat(at).timestamp()) + line + b"\n"
                for at, line in fresh
                if not line.startswith(mark)
            )
        progress = told[-1] if told else known.get(pod, {}).get("progress", "")
        known[pod] = {"at": fresh[-1][0], "progress": progress}
        with atomic_write(_position(path)) as position:
            position.write(pack_json(known))


def _lines(
    core: Any, pod: str, namespace: str, last: str, skew_s: float | None, *, ended: bool
) -> list[tuple[str, bytes]]:
    """Time and text of the lines since ``last``, for clocks that differ by up to ``skew_s``; of all lines for None."""
    query: JsonObject = {"container": CONTAINER, "timestamps": True, "limit_bytes": _MAX_BYTES}
    if skew_s is not None:
        query["since_seconds"] = math.ceil(max(0.0, time.time() - datetime.fromisoformat(last).timestamp()) + skew_s)
    response = core.read_namespaced_pod_log(pod, namespace, _preload_content=False, _request_timeout=30.0, **query)
    data: bytes = response.data
    whole, _, rest = data.rpartition(b"\n")
    # A line that the bound has cut, or that the task has yet to end, is fetched again.
    lines = [*whole.split(b"\n"), rest] if ended and len(data) < _MAX_BYTES else whole.split(b"\n")
    return _printed(lines)


def _printed(lines: list[bytes]) -> list[tuple[str, bytes]]:
    """Time and text of what a pod has printed.

    Lines without a time are the node's, such as ``unable to retrieve container logs`` while a pod is taken away.
    """
    return [_line(line) for line in lines if _INNER_TIME.match(line)]


def _line(line: bytes) -> tuple[str, bytes]:
    """The time of a line, and what was printed.

    The container's runtime cuts long lines into pieces, and Kubernetes puts the time before each piece.
    """
    at, _, text = line.partition(b" ")
    position = _PIECE
    while len(text) > position and (inner := _INNER_TIME.match(text, position)) is not None:
        text = text[:position] + text[inner.end() :]
        position += _PIECE
    return at.decode("ascii", "replace"), text


def last_progress(path: Path, pod: str) -> Progress | None:
    """The latest progress that ``pod`` told, as far as its log was fetched; None where it never did."""
    return Progress.decode(_known(path).get(pod, {}).get("progress", "").encode())


def _position(path: Path) -> Path:
    return path.with_suffix(".position")


def _known(path: Path) -> dict[str, dict[str, str]]:
    try:
        known: dict[str, dict[str, str]] = read_json(_position(path))
    except NotFoundError:
        return {}
    except DataLossError as error:
        # Nothing is lost without it: what was fetched before is fetched once more.
        _logger.warning("%s. Lines of the logs may come twice", error.message)
        return {}
    return known
