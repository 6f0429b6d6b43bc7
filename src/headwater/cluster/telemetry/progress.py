"""Progress that a task reports to its launcher: its step, its speed, its loss.

The protocol: the environment variable ``HEADWATER_STATUS`` holds the path of a Unix datagram socket. Each datagram is
one JSON object of at most `MAX_DATAGRAM` bytes::

    {"task": "/job:worker/task:0", "step": 1200, "steps_per_s": 812.5, "loss": 0.031, "metrics": {"accuracy": 0.9}}

``step`` is the global step; ``steps_per_s`` counts the task's own steps. ``together`` is true if the task cannot
continue without the other tasks, so that all of them have to be restarted when one is lost. ``activity`` has the task's
traffic and the staleness of its gradients (`headwater.cluster.telemetry.task_activity`). Every field but ``task`` may
be missing, which means that it has not changed. Reporting never blocks and never fails: if there is no launcher, or the
launcher reads too slowly, the report is dropped.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from headwater.cluster.telemetry.task_activity import TaskActivity

if TYPE_CHECKING:
    from headwater.data.io.json_types import JsonObject

STATUS_VARIABLE = "HEADWATER_STATUS"
MAX_DATAGRAM = 8192
MAX_METRICS = 16
_MAX_NAME = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """One report.

    Attributes:
      task: the device name of the task, e.g. ``/job:worker/task:0``.
      step: the global step, None if unknown.
      steps_per_s: steps of this task per second, None if unknown.
      loss: the latest loss, None if unknown.
      together: True from a task that cannot continue without the other tasks, None if not reported.
      metrics: further numbers by name, such as ``accuracy``; at most `MAX_METRICS`.
      activity: the task's traffic and staleness; None if not reported.
    """

    task: str
    step: int | None = None
    steps_per_s: float | None = None
    loss: float | None = None
    together: bool | None = None
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    activity: TaskActivity | None = None

    def encode(self) -> bytes:
        """Returns the report as a datagram."""
        fields = {
            "task": self.task,
            "step": self.step,
            "steps_per_s": self.steps_per_s,
            "loss": self.loss,
            "together": self.together,
            "metrics": dict(self.metrics) or None,
            "activity": self.activity.fields() if self.activity is not None else None,
        }
        return json.dumps({name: value for name, value in fields.items() if value is not None}).encode()

    @staticmethod
    def decode(datagram: bytes) -> Progress | None:
        """Decodes a datagram; returns None if it is malformed."""
        try:
            fields: object = json.loads(datagram)
        except (ValueError, RecursionError):
            return None
        if not isinstance(fields, dict):
            return None
        values = cast("JsonObject", fields)
        task = values.get("task")
        if not isinstance(task, str):
            return None
        step = values.get("step")
        return Progress(
            task=task,
            step=step if isinstance(step, int) else None,
            steps_per_s=_number(values.get("steps_per_s")),
            loss=_number(values.get("loss")),
            together=True if values.get("together") is True else None,
            metrics=_metrics(values.get("metrics")),
            activity=TaskActivity.of(values.get("activity")),
        )

    def merge_later(self, later: Progress) -> Progress:
        """Merges a later report into this one. Missing fields have not changed; a missing speed is unknown."""
        return replace(
            self,
            task=later.task or self.task,
            step=self.step if later.step is None else later.step,
            # A report with only traffic or metrics does not make the speed unknown.
            steps_per_s=later.steps_per_s if later.has_progress else self.steps_per_s,
            loss=self.loss if later.loss is None else later.loss,
            together=self.together if later.together is None else later.together,
            metrics=dict(list({**self.metrics, **later.metrics}.items())[:MAX_METRICS]),
            activity=self.activity if later.activity is None else later.activity,
        )

    @property
    def has_progress(self) -> bool:
        """Whether the report has a step, a speed or a loss."""
        return self.step is not None or self.steps_per_s is not None or self.loss is not None


def report(progress: Progress) -> None:
    """Sends one report to the launcher that started this process; drops it without a launcher."""
    address = os.environ.get(STATUS_VARIABLE)
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
        try:
            sending.sendto(progress.encode(), address)
        except OSError:
            # The launcher has exited.
            return


class ProgressReporter:
    """Counts the steps of one task and sends a report a few times a second.

    `step` is cheap enough to call at every step (well under a microsecond when it is not yet time to send), and may be
    called from any thread.

    Args:
      task: the device name of the task.
      address: the path of the launcher's socket; None to drop reports.
      interval_s: minimum time between two reports, in seconds.
      clock: returns monotonic seconds.

    Attributes:
      task: the device name of the task; empty if none is named.
    """

    def __init__(
        self, *, task: str, address: str | None, interval_s: float = 0.25, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.task: str = task
        self._address = address
        self._interval_s = interval_s
        self._clock = clock
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._since = clock()
        self._steps = 0
        self._global_step: int | None = None
        self._loss: float | None = None
        if address is not None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)

    @staticmethod
    def from_environment(task: str) -> ProgressReporter:
        """Returns a reporter to the launcher that started this process; without a launcher it drops reports."""
        return ProgressReporter(task=task, address=os.environ.get(STATUS_VARIABLE) or None)

    @property
    def listening(self) -> bool:
        """Whether there is a launcher to report to."""
        return self._socket is not None

    def step(self, global_step: int | None = None, *, steps: int = 1, loss: float | None = None) -> None:
        """Counts ``steps`` more steps of this task; sends a report when the interval has passed.

        Args:
          global_step: the shared step afterwards; None if unknown.
          steps: how many steps this task has made since the last call.
          loss: the loss of the latest step; None if unknown.
        """
        if self._socket is None:
            return
        with self._lock:
            self._steps += steps
            if global_step is not None:
                self._global_step = int(global_step)
            if loss is not None:
                self._loss = float(loss)
            now = self._clock()
            if now - self._since >= self._interval_s:
                self._send(now)

    def close(self) -> None:
        """Reports steps that were not reported yet. Further steps are ignored."""
        with self._lock:
            if self._socket is None:
                return
            if self._steps:
                self._send(self._clock())
            self._socket.close()
            self._socket = None

    def _send(self, now: float) -> None:
        assert self._socket is not None
        assert self._address is not None
        elapsed = now - self._since
        progress = Progress(
            task=self.task,
            step=self._global_step,
            # A short interval at the end is too noisy for a speed.
            steps_per_s=self._steps / elapsed if elapsed >= self._interval_s else None,
            loss=self._loss,
        )
        self._since, self._steps = now, 0
        try:
            self._socket.sendto(progress.encode(), self._address)
        except OSError:
            # No listener, or a full buffer: the next report replaces this one.
            return


def _metrics(value: object) -> dict[str, float]:
    if not isinstance(value, dict):
        return {}
    metrics = {name[:_MAX_NAME]: _number(amount) for name, amount in cast("JsonObject", value).items()}
    return {name: amount for name, amount in list(metrics.items())[:MAX_METRICS] if amount is not None}


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer beyond any float
        return None
