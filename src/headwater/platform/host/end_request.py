"""A request to end (SIGTERM) to a task of many processes: the processes that receive it, and their order.

A task's command may be a shell around the program that saves at SIGTERM: ``/bin/sh -c "python train.py"``, a pipeline,
a script, a launcher. A signal only to the first process ends the shell, and the program never receives it. A signal
to the whole process group at once ends ``tee`` as well, so that the program fails when it prints that it saves. So:

- A program that handles SIGTERM receives it once. Like a supervisor, it is responsible for all its descendants, which
  receive nothing.
- A shell with a trap runs it only after the command in the foreground, which therefore receives the signal, too. A
  command in the background does not receive it, because many traps pass the signal on and then exit; the request waits
  for its end.
- A process without a handler that has child processes receives it, so that it starts no others.
- Other processes without a handler have nothing to save. They receive it when no program with a handler is left.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass

from headwater.platform.host.processes import ProcessIdentity, ProcessTable, identity, signals_of

_SHELLS = frozenset({"sh", "bash", "dash", "ash", "busybox", "ksh", "mksh", "zsh"})


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskProcess:
    """One process of a task.

    Attributes:
      identity: the process.
      parent: the number of its parent.
      handles: whether it has a handler for SIGTERM.
      shell: whether it is a shell.
      background: whether a shell has started it with ``&``: as POSIX requires, such a command ignores SIGQUIT.
    """

    identity: ProcessIdentity
    parent: int
    handles: bool
    shell: bool = False
    background: bool = False


class EndRequest:
    """A request to end, from the first signal until every process that must answer has ended."""

    def __init__(self) -> None:
        self._signalled: set[ProcessIdentity] = set()
        self._left_to_others: set[ProcessIdentity] = set()
        self._background: set[ProcessIdentity] = set()
        self._answered = False

    @property
    def answered(self) -> bool:
        """Whether all processes that receive the signal, and all background commands that are waited for, had ended at
        the last `processes_to_signal`."""
        return self._answered

    def processes_to_signal(self, processes: Mapping[int, TaskProcess]) -> list[ProcessIdentity]:
        """Chooses the processes that must receive SIGTERM now, and counts them as signalled.

        Args:
          processes: all living processes of the task, by number.
        """
        children: dict[int, list[TaskProcess]] = {}
        for process in processes.values():
            children.setdefault(process.parent, []).append(process)
        first: list[TaskProcess] = []
        last: list[TaskProcess] = []

        def exclude_tree(process: TaskProcess) -> None:
            self._left_to_others.add(process.identity)
            for child in children.get(process.identity.pid, ()):
                exclude_tree(child)

        def visit(process: TaskProcess) -> None:
            below = children.get(process.identity.pid, [])
            if process.identity in self._left_to_others:
                return
            if process.handles and not process.shell:
                first.append(process)
                for child in below:
                    exclude_tree(child)
                return
            (first if process.handles or below else last).append(process)
            for child in below:
                if process.handles and child.background:
                    self._background.add(child.identity)
                    exclude_tree(child)
                else:
                    visit(child)

        for process in processes.values():
            if process.parent not in processes:
                visit(process)
        chosen = [process for process in first if process.identity not in self._signalled]
        # Signal ``last`` only when no program that handles SIGTERM is left, because it may need them while it saves.
        # A shell with a trap does not count: it may itself wait for one of ``last``.
        if not chosen and not any(process.handles and not process.shell for process in first):
            chosen = [process for process in last if process.identity not in self._signalled]
        waited_for = any(process.identity in self._background for process in processes.values())
        self._answered = not first and not last and not waited_for
        self._signalled.update(process.identity for process in chosen)
        return [process.identity for process in chosen]


def processes_below(pid: int) -> dict[int, TaskProcess]:
    """Returns the living descendants of ``pid``, by number."""
    found: dict[int, TaskProcess] = {}
    table = ProcessTable()
    for number in table.descendants(pid):
        try:
            who = identity(number)
        except ProcessLookupError:
            continue
        signals = signals_of(number)
        if signals is None or not who.is_alive():
            continue
        found[number] = TaskProcess(
            identity=who,
            parent=table.parent(number),
            handles=signal.SIGTERM in signals.caught,
            shell=signals.command in _SHELLS,
            background=signal.SIGQUIT in signals.ignored,
        )
    return found
