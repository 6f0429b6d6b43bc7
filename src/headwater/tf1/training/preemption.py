"""Preemption: saves a checkpoint on SIGTERM, then ends the process by the signal's default action."""

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
    """Handler of SIGTERM: saves, then restores the signal's default action and lets it end the process.

    It is installed only in the main thread, and only if the program has no other handler of SIGTERM. The program
    continues while it saves; a second SIGTERM ends the process immediately. Several installed instances save one after
    the other.

    Args:
      save: saves; errors are logged.
      session: the session that is saved; `forget_session` removes all instances of the same session.
    """

    def __init__(self, save: Callable[[], object], session: object = None) -> None:
        self.save = save
        self.session = session

    def install(self) -> None:
        """Registers the handler; does nothing outside the main thread or if the program handles SIGTERM itself."""
        main = threading.current_thread() is threading.main_thread()
        if main and self not in _installed and signal.getsignal(signal.SIGTERM) in (signal.SIG_DFL, _on_signal):
            _installed.append(self)
            signal.signal(signal.SIGTERM, _on_signal)

    def remove(self) -> None:
        """Unregisters the handler; the last one restores the default action."""
        if self in _installed and threading.current_thread() is threading.main_thread():
            _installed.remove(self)
            if not _installed and signal.getsignal(signal.SIGTERM) == _on_signal:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)


_installed: Final[list[SaveOnSigterm]] = []


def forget_session(session: object) -> None:
    """Removes the handlers of a closed session, also if an error has closed it."""
    for one in _installed[:]:
        if one.session is session:
            one.remove()


def _on_signal(number: int, frame: FrameType | None) -> None:
    del number, frame
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second SIGTERM ends the process immediately
    # Save in another thread: the interrupted main thread may hold locks that saving needs.
    threading.Thread(target=_save_and_end, args=(_installed[:],), name="saves before the end").start()
    _installed.clear()


def _save_and_end(installed: list[SaveOnSigterm]) -> None:
    _logger.warning("SIGTERM: saving before the end")
    for one in installed:
        try:
            one.save()
        except Exception:  # a failed save must not keep the process from ending
            _logger.exception("Nothing could be saved")
    # The default action is restored by now, so the process ends with the exit status of SIGTERM.
    os.kill(os.getpid(), signal.SIGTERM)
