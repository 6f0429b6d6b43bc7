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
    second SIGTERM ends it at once. Where several are installed all of them save, one after the other.

    Args:
      save: saves; errors are logged.
      session: of which it saves; `forget_session` removes it with others of the same session.
    """

    def __init__(self, save: Callable[[], None], session: object = None) -> None:
        self.save = save
        self.session = session

    def install(self) -> None:
        """From now on."""
        main = threading.current_thread() is threading.main_thread()
        if main and self not in _installed and signal.getsignal(signal.SIGTERM) in (signal.SIG_DFL, _on_signal):
            _installed.append(self)
            signal.signal(signal.SIGTERM, _on_signal)

    def remove(self) -> None:
        """Ends it."""
        if self in _installed and threading.current_thread() is threading.main_thread():
            _installed.remove(self)
            if not _installed and signal.getsignal(signal.SIGTERM) == _on_signal:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)


_installed: Final[list[SaveOnSigterm]] = []


def forget_session(session: object) -> None:
    """Ends what saves of a session that is closed, also where an error has closed it."""
    for one in _installed[:]:
        if one.session is session:
            one.remove()


def _on_signal(number: int, frame: FrameType | None) -> None:
    del number, frame
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # In a thread: whatever the main thread is at, it may hold locks that saving needs.
    threading.Thread(target=_save_and_end, args=(_installed[:],), name="saves before the end").start()
    _installed.clear()


def _save_and_end(installed: list[SaveOnSigterm]) -> None:
    _logger.warning("SIGTERM: saving before the end")
    for one in installed:
        try:
            one.save()
        except Exception:  # whatever it is, the process ends as it was asked to
            _logger.exception("Nothing could be saved")
    os.kill(os.getpid(), signal.SIGTERM)
