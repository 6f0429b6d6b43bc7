"""Counts what this process compiles, by part, from JAX's events; logs a summary when the process ends.

The logger is `headwater.graph.runtime.compile`, at level ``INFO``. JAX names a part by its last operation, see
`headwater.graph.runtime.programs`.
"""

from __future__ import annotations

import atexit
import logging
import threading
from dataclasses import dataclass
from typing import Any, Final

_log: Final = logging.getLogger("headwater.graph.runtime.compile")
_EVENTS: Final = "/jax/core/compile/"
_LAST: Final = "/jax/core/compile/backend_compile_duration"
_MAX_NAMED: Final = 20


@dataclass(slots=True)
class Compilations:
    """The compilations of one part.

    Attributes:
      shapes: number of executables, one for each distinct shape of its inputs.
      seconds: time of tracing and compiling them.
    """

    shapes: int = 0
    seconds: float = 0.0


class Statistics:
    """The compilations of all parts of a process, by name. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: dict[str, Compilations] = {}

    def listen(self, event: str, duration_secs: float, **details: str | int) -> None:
        """Counts an event of `jax.monitoring`."""
        if not event.startswith(_EVENTS):
            return
        name = str(details.get("fun_name", "")).removeprefix("jit(").removesuffix(")").removeprefix("jit_")
        with self._lock:
            part = self._parts.setdefault(name, Compilations())
            # Tracing, lowering and compiling are separate events; only the last one stands for an executable.
            part.shapes += event == _LAST
            part.seconds += duration_secs

    def summary(self) -> str:
        """Returns the compiled parts, with the longest compilations first; empty if there are none."""
        with self._lock:
            found = {name: part for name, part in self._parts.items() if part.shapes}
        if not found:
            return ""
        slowest = sorted(found.items(), key=lambda item: -item[1].seconds)
        named = [f"{name} ({part.shapes} shapes, {part.seconds:.2f} s)" for name, part in slowest[:_MAX_NAMED]]
        more = len(slowest) - _MAX_NAMED
        total = sum(part.seconds for part in found.values())
        return f"compiled {len(found)} parts in {total:.2f} s: {', '.join(named)}" + (
            f" and {more} more" if more > 0 else ""
        )


statistics: Final = Statistics()


def count_compilations(jax: Any) -> None:
    """Starts counting in JAX, which was just imported."""
    jax.monitoring.register_event_duration_secs_listener(statistics.listen)
    atexit.register(_log_summary)


def _log_summary() -> None:
    if summary := statistics.summary():
        _log.info("%s", summary)
