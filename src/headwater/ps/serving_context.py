"""Context that all parts of a host of parameters share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from headwater.cluster.task.agreement import Agreement
from headwater.ps.consistency import Consistency


@dataclass(frozen=True, kw_only=True, slots=True)
class ServingContext:
    """The task, the options of its program, and the lock over everything that it hosts.

    Attributes:
      task: this task's name, for errors and logs.
      choice: the consistency between workers.
      agreement: compares the programs of the workers.
      lock: held by the thread that decides and updates.
      changed: a condition of ``lock``, notified at every change.
      clock: returns monotonic seconds.
      answers: returns whether the task of a worker, given by name, can be reached. A call may take some seconds.
    """

    task: str
    choice: Consistency
    agreement: Agreement
    lock: threading.RLock
    changed: threading.Condition
    clock: Callable[[], float]
    answers: Callable[[str], bool]
