"""What all parts of a host of parameters share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from headwater.cluster.task.agreement import Agreement
from headwater.ps.consistency import Consistency


@dataclass(frozen=True, kw_only=True, slots=True)
class ServingContext:
    """The task, what its program asks for, and the lock over all that it hosts.

    Attributes:
      task: this task's name, for people.
      choice: how closely workers keep together.
      agreement: whether workers run one program.
      lock: held by who decides and updates.
      changed: its condition, notified at every change.
      clock: seconds that only grow.
      answers: whether a worker's task, by name, can be reached; it may take some seconds to find out.
    """

    task: str
    choice: Consistency
    agreement: Agreement
    lock: threading.RLock
    changed: threading.Condition
    clock: Callable[[], float]
    answers: Callable[[str], bool]
