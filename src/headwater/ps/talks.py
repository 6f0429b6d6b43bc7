"""A worker's conversation with a ``ps``, and its latest request."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from headwater.cluster.transport.channel import Channel


class WorkerTalk:
    """The conversation with one worker; to the progress watchdog, its step.

    Attributes:
      worker: its name.
      channel: to it.
      waits_for: what it waits for here, and since when; None while it does not. The text is empty for an update, which
        `waiting_text` tells of.
      turn: notified when the worker may go on.
      watched: whether the watchdog counts its steps.
    """

    def __init__(self, worker: str, channel: Channel, turn: threading.Condition) -> None:
        self.worker = worker
        self.channel = channel
        self.turn = turn
        self.waits_for: tuple[str, float] | None = None
        self.watched = False


@dataclass(kw_only=True, slots=True)
class Request:
    """The latest request of a worker, which may come again.

    Attributes:
      number: the worker's number of it.
      applied: whether its gradients were taken.
      version: of the values when they were given.
      ticket: the step that it was given; None without one.
      handed: the range of examples that it was given, as (epoch, start, stop, seed of the order); or, in words, which
        were set aside; None without either.
    """

    number: int
    applied: bool = False
    version: int = -1
    ticket: int | None = None
    handed: tuple[int, int, int, int] | str | None = None
