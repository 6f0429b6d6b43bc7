"""Counts of function calls of threads: a measure of the cost of a step that does not depend on the machine."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

WINDOWS = 6
"""Number of counts, of which the least is used: other activities of the interpreter are not part of all counts."""


class Calls:
    """Numbers of calls of the counting thread, and of threads that are started during the counting.

    Attributes:
      here: calls of the counting thread: of Python functions, by name, and of C functions, by name.
      elsewhere: the same for the other threads.
    """

    def __init__(self) -> None:
        self.here: tuple[Counter[str], Counter[str]] = Counter(), Counter()
        self.elsewhere: tuple[Counter[str], Counter[str]] = Counter(), Counter()
        self._counting = False
        self._thread = threading.get_ident()
        self._names: dict[CodeType, str] = {}

    def note(self, frame: FrameType, event: str, argument: Any) -> None:
        """Counts a call. Registered with `sys.setprofile`."""
        if not self._counting:
            return
        python, native = self.here if threading.get_ident() == self._thread else self.elsewhere
        if event == "call":
            code = frame.f_code
            name = self._names.get(code)
            if name is None:
                name = self._names[code] = f"{code.co_filename.rpartition('/')[2]}:{code.co_name}"
            python[name] += 1
        elif event == "c_call":
            native[getattr(argument, "__qualname__", str(argument))] += 1

    def per_step(self, step: Callable[[], object], steps: int) -> Calls:
        """Returns the calls of one step: the least of `WINDOWS` counts of ``steps`` steps each, divided and rounded."""
        found: list[Calls] = []
        for _ in range(WINDOWS):
            window = Calls()
            self.here, self.elsewhere = window.here, window.elsewhere
            self._counting = True
            for _ in range(steps):
                step()
            self._counting = False
            for counts in (*window.here, *window.elsewhere):
                for name in counts:
                    counts[name] = round(counts[name] / steps)
            found.append(window)
        return min(found, key=lambda calls: sum(calls.here[0].values()) + sum(calls.elsewhere[0].values()))


@contextmanager
def counting() -> Iterator[Calls]:
    """Context manager that counts calls of this thread, and of threads that are started in the context."""
    calls = Calls()
    before = sys.getprofile()
    threading.setprofile(calls.note)
    sys.setprofile(calls.note)
    try:
        yield calls
    finally:
        sys.setprofile(before)
        threading.setprofile(before)
