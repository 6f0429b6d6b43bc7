"""Compiled programs of a process."""

from __future__ import annotations

from typing import Any
from weakref import ref

from headwater.graph.runtime.programs import ExecutableCache


class Program:
    """The part of a program that the bound of memory uses."""

    nbytes = 10

    def __init__(self, executables: ExecutableCache) -> None:
        forget: Any = executables.forget
        self.reference = ref(self, forget)


def test_programs_are_forgotten_whether_they_were_used_or_not() -> None:
    executables = ExecutableCache()
    used: Any = Program(executables)
    executables.use(used)
    unused: Any = Program(executables)
    del unused  # an exception here would be reported as unraisable, which fails the test
    assert executables.is_kept(used)
    reference = used.reference
    del used
    assert reference not in executables._sizes
    assert executables._nbytes == 0
