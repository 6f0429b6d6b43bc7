"""A request to end (SIGTERM) to a task of many processes: the processes that receive it, and their order.

A task's command may be a shell around the program that saves at SIGTERM: ``/bin/sh -c "python train.py"``, a pipeline,
a script, a launcher. A signal only to the first process ends the shell, and the program never receives it. A signal
to the whole process group ends ``tee``, too, so that the program fails when it prints that it saves. So:

- A program that handles SIGTERM receives it once. Like a supervisor, it is responsible for all its descendants, which
  receive nothing.
- A shell with a trap runs it only after the command in the foreground, which therefore receives the signal, too. A
  command in the background does not receive the signal, because many traps pass it on and then exit; the request waits
  for the end of such a command.
- A process without a handler that has child processes receives the signal, so that it starts no further processes.
- Other processes without a handler have nothing to save. They receive the signal when no program that handles or
  ignores SIGTERM is left. If there was such a program, other processes may still have to read its output. So they
  receive the signal only if they have not ended by themselves, at the end of their input, within `READERS_END_S`.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass

from headwater.platform.host.processes import ProcessIdentity, ProcessTable, identity, signals_of

#: Seconds that commands of a task get to read the rest of their input and end, after the last program has ended that
#: saves at SIGTERM.
READERS_END_S = 1.0

_SHELLS = frozenset({"sh", "bash", "dash", "ash", "busybox", "ksh", "mksh", "zsh"})


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskProcess:
    """One process of a task.

    Attributes:
      identity: the process.
      parent: the number of its parent.
      handles: whether it has a handler for SIGTERM.
      ignores: whether it ignores SIGTERM, and so may continue to write to other processes of the task.
      shell: whether it is a shell.
      background: whether a shell has started it with ``&``: as POSIX requires, such a command ignores SIGQUIT.
    """

    identity: ProcessIdentity
    parent: int
    handles: bool
    ignores: bool = False
    shell: bool = False
    background: bool = False


class EndRequest:
    """A request to end, from the first signal until every process that must answer has ended."""

    def __init__(self) -> None:
        self._signalled: set[ProcessIdentity] = set()
        self._left_to_others: set[ProcessIdentity] = set()
        self._background: set[ProcessIdentity] = set()
        self._answered = False
        self._saving = False
        self._signal_readers_at = 0.0

    @property
    def answered(self) -> bool:
        """Whether all processes that receive the signal, and all background commands that are waited for, had ended at
        the last `processes_to_signal`."""
        return self._answered

    def processes_to_signal(self, processes: Mapping[int, TaskProcess], now: float) -> list[ProcessIdentity]:
        """Chooses the processes that must receive SIGTERM now, and counts them as signalled.

        Args:
          processes: all living processes of the task, by number.
          now: the time in seconds, on a clock that is not set.
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
            (first if process.handles or process.ignores or below else last).append(process)
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
        # A shell with a trap does not count as such a program: it may itself wait for one of ``last``.
        saving = any((process.handles or process.ignores) and not process.shell for process in first)
        if self._saving and not saving:
            self._signal_readers_at = now + READERS_END_S
        self._saving = saving
        if not chosen and not saving and now >= self._signal_readers_at:
            chosen = [process for process in last if process.identity not in self._signalled]
        waited_for = any(process.identity in self._background for process in processes.values())
        self._answered = not first and not last and not waited_for
        self._signalled.update(process.identity for process in chosen)
        return [process.identity for process in chosen]


def processes_below(pid: int) -> dict[int, TaskProcess]:
    """Returns the living descendants of ``pid``, by number."""
    processes: dict[int, TaskProcess] = {}
    table = ProcessTable()
    for number in table.descendants(pid):
        try:
            who = identity(number)
        except ProcessLookupError:
            continue
        signals = signals_of(number)
        if signals is None or not who.is_alive():
            continue
        processes[number] = TaskProcess(
            identity=who,
            parent=table.parent(number),
            handles=signal.SIGTERM in signals.caught,
            ignores=signal.SIGTERM in signals.ignored,
            shell=signals.command in _SHELLS,
            background=signal.SIGQUIT in signals.ignored,
        )
    return processes
