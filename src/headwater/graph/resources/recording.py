"""Recorded changes of a task's variables and other resources, for replication."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from headwater.errors import OpError
from headwater.graph.resources.containers import Cell


class InstructionPlace(NamedTuple):
    """The place of an instruction in a session's plans: plan number and position."""

    plan: int
    position: int


#: The place of instructions in plans without a session.
NOWHERE: Final = InstructionPlace(0, 0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an instruction that changes state.

    Attributes:
      outputs: the output arrays.
      faults: maps the name of each operation with a check to whether it has failed; the values may not be computed yet.
      error: the error of a host operation that has changed state before it failed; None without an error.
      commits: whether the instruction has committed its step: see `headwater.graph.runtime.step.Step.commit`.
    """

    outputs: Sequence[Any] = ()
    faults: Mapping[str, object] = field(default_factory=dict[str, Any])
    error: OpError | None = None
    commits: bool = False


@dataclass(frozen=True, slots=True)
class ResourceOperation:
    """A host operation that uses resources other than variables.

    Attributes:
      place: the place of the operation's instruction.
      perform: runs the operation for a step, with the operation's inputs; returns the outputs.
      cells: variables among the inputs.
      stable: whether the outputs are recorded even if the operation changes nothing, because a resumed step that ran
        the operation again could get other outputs.
    """

    place: InstructionPlace
    perform: Callable[[Any, Sequence[Any]], Sequence[Any]]
    cells: Sequence[Cell] = ()
    stable: bool = False
