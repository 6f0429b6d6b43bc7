"""Notifications of a job's end, by HTTP."""

from __future__ import annotations

import logging
import queue
import threading
from typing import TYPE_CHECKING

import httpx

from headwater.platform.records import JobRecord
from headwater.platform.states import Note
from headwater.platform.views import JobSummary

if TYPE_CHECKING:
    from headwater.data.io.json_types import JsonObject

_log = logging.getLogger(__name__)

_TIMEOUT_S = 10.0
_RETRY_DELAYS_S = (1.0, 10.0, 60.0)
_MAX_QUEUED = 1000
# Names of events in job files, by the kind of the note.
_NAMES = {"succeeded": "succeeded", "failed": "failed", "stopped": "stopped", "restarting": "restarted"}


class Notifier:
    """Sends notifications from its own thread; a notification that fails four times is logged and dropped.

    Each is a POST of ``{"job": ..., "event": "failed", "reason": "..."}``, with the job as a `JobSummary`.
    """

    def __init__(self) -> None:
        self._queue: queue.Queue[tuple[str, JsonObject] | None] = queue.Queue(_MAX_QUEUED)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headwater-webhook", daemon=True)
        self._thread.start()

    def __call__(self, record: JobRecord, note: Note) -> None:
        """Queues a notification of an event of a job if it is wanted; does not wait."""
        notify, event = record.state.spec.notify, _NAMES.get(note.kind)
        # Notes about single tasks are skipped, except restarts: "failed" and "succeeded" refer to the job.
        if notify is None or event not in notify.on or (note.task and event != "restarted"):
            return
        reason = record.state.reason if event == "failed" else note.text
        body = {"event": event, "reason": reason, "job": JobSummary.of(record).model_dump(mode="json")}
        try:
            self._queue.put_nowait((notify.webhook, body))
        except queue.Full:
            _log.warning("job %s: too many notifications are waiting: none was sent for %s", record.id, event)

    def close(self) -> None:
        """Sends each waiting notification once, and ends the thread."""
        self._closing.set()
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        with httpx.Client(timeout=_TIMEOUT_S, follow_redirects=False) as client:
            while (entry := self._queue.get()) is not None:
                self._send(client, *entry)

    def _send(self, client: httpx.Client, url: str, body: JsonObject) -> None:
        for pause in (0.0, *_RETRY_DELAYS_S):
            if pause and self._closing.wait(pause):
                break
            try:
                client.post(url, json=body).raise_for_status()
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                _log.warning("notification of %s: %s", body["job"]["id"], error)
            else:
                return
        _log.error("notification of %s failed and is not retried: %s", body["job"]["id"], body["event"])
