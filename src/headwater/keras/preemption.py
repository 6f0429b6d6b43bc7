"""What SIGTERM does to a `fit` that saves where it is: it ends after the present step, and can be started again."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

#: Exit code of a process that its launcher shall start again (EX_TEMPFAIL).
RESTART_EXIT_CODE = 75


class Stoppable(Protocol):
    """A `fit` in progress.

    Attributes:
      stop_wanted: whether this process is asked to end.
    """

    stop_wanted: bool


class Preempted(SystemExit):
    """This process was asked to end (SIGTERM), or another one was, and what is needed to go on has been saved.

    It ends the process with exit code 75, unless the program catches it.

    Attributes:
      epoch: epochs that are over.
      step: steps of the present one that are over; 0 where it is begun anew.
    """

    def __init__(self, epoch: int, step: int = 0) -> None:
        super().__init__(RESTART_EXIT_CODE)
        self.epoch = epoch
        self.step = step
        where = f"epoch {epoch}, step {step}" if step else f"epoch {epoch}"
        print(
            f"headwater: saved after {where}, because a task was asked to end; "
            f"ending with exit code {RESTART_EXIT_CODE} to be started again",
            file=sys.stderr,
        )

    @staticmethod
    @contextmanager
    def noticed_by(fit: Stoppable, *, wanted: bool) -> Generator[None]:
        """Within it, SIGTERM tells ``fit`` that it is to save and end after the present step.

        Args:
          fit: is told.
          wanted: whether there is anything that saves; without it SIGTERM does what it did.
        """
        may = threading.current_thread() is threading.main_thread()
        if not wanted or not may or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            yield
            return

        def notice(_signum: int, _frame: FrameType | None) -> None:
            fit.stop_wanted = True

        signal.signal(signal.SIGTERM, notice)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
