"""SIGTERM before a process is taken away: what was learned is saved, then the process ends as it would have."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final

_logger: Final = logging.getLogger(__name__)


class SaveOnSigterm:
    """Saves when SIGTERM comes, and then lets it do what it does by default.

    Only in the main thread, and only where the program does nothing else at SIGTERM. The program runs on meanwhile; a
    second SIGTERM ends it at once.

    Args:
      save: saves; errors are logged.
    """

    def __init__(self, save: Callable[[], None]) -> None:
        self._save = save
        self._installed = False

    def install(self) -> None:
        """From now on."""
        main = threading.current_thread() is threading.main_thread()
        if main and not self._installed and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._on_signal)
            self._installed = True

    def remove(self) -> None:
        """Ends it."""
        if self._installed and threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGTERM) == self._on_signal:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._installed = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._installed = False
        # In a thread: whatever the main thread is at, it may hold locks that saving needs.
        threading.Thread(target=self._save_and_end, name="saves before the end").start()

    def _save_and_end(self) -> None:
        _logger.warning("SIGTERM: saving before the end")
        try:
            self._save()
        except Exception:  # whatever it is, the process ends as it was asked to
            _logger.exception("Nothing could be saved")
        os.kill(os.getpid(), signal.SIGTERM)
