"""Graceful shutdown on SIGTERM of a `fit` that saves its position: after the current step, `fit` saves the state from
which it can resume, and ends."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

#: Exit code of a process that asks its launcher to restart it (EX_TEMPFAIL).
RESTART_EXIT_CODE = 75


class Stoppable(Protocol):
    """A `fit` in progress.

    Attributes:
      stop_wanted: whether this process is asked to end.
    """

    stop_wanted: bool


class Preempted(SystemExit):
    """This process, or another process of the job, was asked to end (SIGTERM), and the state to resume from is saved.

    Ends the process with exit code 75, unless the program catches it.

    Attributes:
      epoch: number of finished epochs.
      step: number of finished steps of the current epoch; 0 if the epoch will be restarted.
    """

    def __init__(self, epoch: int, step: int = 0) -> None:
        super().__init__(RESTART_EXIT_CODE)
        self.epoch = epoch
        self.step = step
        where = f"epoch {epoch}, step {step}" if step else f"epoch {epoch}"
        print(
            f"headwater: saved after {where}, because a task was asked to end; "
            f"ending with exit code {RESTART_EXIT_CODE} to request a restart",
            file=sys.stderr,
        )

    @staticmethod
    @contextmanager
    def save_on_sigterm(fit: Stoppable, *, saves: bool) -> Generator[None]:
        """A context in which SIGTERM asks ``fit`` to save and end after the current step.

        Args:
          fit: the running `fit`; its ``stop_wanted`` is set.
          saves: whether any callback saves; if not, the handling of SIGTERM is not changed.
        """
        may = threading.current_thread() is threading.main_thread()
        if not saves or not may or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            yield
            return

        def notice(_signum: int, _frame: FrameType | None) -> None:
            fit.stop_wanted = True

        signal.signal(signal.SIGTERM, notice)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
