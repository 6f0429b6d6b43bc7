"""Compiles executables in the background of running steps, one at a time."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable
from typing import Final

_log = logging.getLogger(__name__)
_turn: Final = threading.Lock()
_ending: Final = threading.Event()
_compiling: Final[set[str]] = set()


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
        # One compilation at a time, because each can occupy all cores, which running steps need as well.
        with _turn:
            if _ending.is_set():
                return
            _compiling.add(self._name)
            try:
                self._compile()
            except Exception as error:  # noqa: BLE001  raised by the first run of the executable
                _log.debug("%s is not compiled in the background: %s", self._name, error)
            finally:
                _compiling.clear()

    def wait(self) -> None:
        """Waits until it has ended."""
        self._thread.join()


# XLA cannot interrupt a compilation, and a process that ends during one crashes, because destructors free objects that
# the compiler still uses. So the process waits here for the compilation in progress. Exit handlers run in reverse order
# of registration: this one is registered at import and therefore runs after the task has left its cluster and closed
# its files, so that no other process waits for the compilation.
@atexit.register
def _finish() -> None:
    _ending.set()
    for name in _compiling.copy():
        _log.info("the process ends once %s is compiled", name)
    with _turn:
        pass
