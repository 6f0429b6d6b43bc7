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
#: Python's switch interval during a compilation, in seconds: the time after which the tracing thread has to release the
#: interpreter's lock to a waiting thread. With the default of 5 ms, a step would wait for 5 ms after each of its
#: operations that releases the lock.
_INTERVAL_S: Final = 0.00001


class Compilation:
    """A compilation in a thread of its own. A process that ends waits for the compilation in progress and drops the
    others.

    Args:
      compile_it: compiles; if it fails, the first run of the executable compiles again, and raises the error.
      name: the executable's name in the log.
    """

    def __init__(self, compile_it: Callable[[], object], name: str) -> None:
        self._compile = compile_it
        self._name = name
        self._thread = threading.Thread(target=self._run, name=f"compiling {name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # Compilations use all cores, which running steps need as well. Several at once would also set and restore the
        # switch interval in any order.
        with _turn:
            if _ending.is_set():
                return
            _compiling.add(self._name)
            interval = sys.getswitchinterval()
            sys.setswitchinterval(_INTERVAL_S)
            try:
                self._compile()
            except Exception as error:  # noqa: BLE001  raised by the first run of the executable
                _log.debug("%s is not compiled in the background: %s", self._name, error)
            finally:
                sys.setswitchinterval(interval)
                _compiling.clear()

    def wait(self) -> None:
        """Waits until it has ended."""
        self._thread.join()


# Registered at import, thus called after a task has left its cluster and closed its files, so that no other process
# waits. XLA cannot interrupt a compilation, and a process that ends during one crashes, since destructors free what
# the compiler uses.
@atexit.register
def _finish() -> None:
    _ending.set()
    for name in _compiling.copy():
        _log.info("the process ends once %s is compiled", name)
    with _turn:
        pass
