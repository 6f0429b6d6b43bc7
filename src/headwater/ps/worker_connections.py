"""A worker's connection to a ``ps``, and its latest request."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from headwater.cluster.transport.channel import Channel


class WorkerConnection:
    """The connection of one worker. It also identifies the worker's step in progress for the progress watchdog.

    Attributes:
      worker: the name of the worker.
      channel: the channel to the worker.
      waits_for: reason and start of the worker's wait here; None while it does not wait. The reason is empty for a wait
        for an update, which `headwater.ps.consistency.waiting_text` describes.
      turn: notified when the worker may continue.
      watched: whether the watchdog counts the worker's steps.
    """

    def __init__(self, worker: str, channel: Channel, turn: threading.Condition) -> None:
        self.worker = worker
        self.channel = channel
        self.turn = turn
        self.waits_for: tuple[str, float] | None = None
        self.watched = False


@dataclass(kw_only=True, slots=True)
class Request:
    """The latest request of a worker, which may be repeated.

    Attributes:
      number: assigned by the worker.
      applied: whether its gradients were accepted.
      version: the version of the values when the gradients were pushed.
      step_number: number of the assigned step; None without one.
      assigned_work: the assigned range of examples, as (epoch, start, stop, seed of the order); or a text that names
        the ranges that were set aside; None without either.
    """

    number: int
    applied: bool = False
    version: int = -1
    step_number: int | None = None
    assigned_work: tuple[int, int, int, int] | str | None = None
