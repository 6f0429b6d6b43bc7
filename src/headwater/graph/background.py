"""Compiles executables in the background of running steps, one at a time."""

from __future__ import annotations

import atexit
import logging
import sys
import threading
from collections.abc import Callable
from typing import Final

_log = logging.getLogger(__name__)
_turn: Final = threading.Lock()
_ending: Final = threading.Event()
_compiling: Final[set[str]] = set()
#: Time for which a thread may keep the interpreter's lock while it imports or traces in the background. A step on
#: kernels releases the lock in each operation on arrays, and with Python's interval it could wait 5 ms to get the lock
#: again.
_SWITCH_S: Final = 1e-4


class Compilation:
    """A compilation in a thread of its own. A process that ends waits for the work in
    progress and drops the rest.

    Args:
      compile_it: compiles; if it fails, the first run of the executable compiles again, and raises the error.
      name: description of the work in the log.
    """

    def __init__(self, compile_it: Callable[[], object], name: str) -> None:
        self._thread = threading.Thread(target=_run, args=(compile_it, name), name=name, daemon=True)
        self._thread.start()

    @property
    def has_ended(self) -> bool:
        """Whether the work has ended."""
        return not self._thread.is_alive()

    def wait(self, limit_s: float | None = None) -> None:
        """Waits until the work has ended, for ``limit_s`` seconds at most."""
        self._thread.join(limit_s)


def _run(compile_it: Callable[[], object], name: str) -> None:
    # One compilation at a time, because each can occupy all cores, which running steps need as well.
    with _turn:
        if _ending.is_set():
            return
        _compiling.add(name)
        interval = sys.getswitchinterval()
        sys.setswitchinterval(min(interval, _SWITCH_S))
        try:
            compile_it()
        except Exception as error:  # noqa: BLE001  raised by the first run of the executable
            _log.debug("%s failed: %s", name, error)
        finally:
            sys.setswitchinterval(interval)
            _compiling.clear()


# XLA cannot interrupt a compilation, and a process that ends during one crashes, because destructors free objects that
# the compiler still uses. So the process waits here for the compilation in progress. Exit handlers run in reverse order
# of registration: this one is registered at import and therefore runs after the task has left its cluster and closed
# its files, so that no other process waits for the compilation.
@atexit.register
def _finish() -> None:
    _ending.set()
    for name in _compiling.copy():
        _log.info("the process ends after %s", name)
    with _turn:
        pass
