"""What a task tells of each change of its variables, and of what else it keeps, where another one makes the same
changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from headwater.errors import OpError
from headwater.graph.resources.containers import Cell


class Place(NamedTuple):
    """Where in a session's plans an instruction stands: the number of its plan, and its position there."""

    plan: int
    position: int


#: Of instructions of plans that no session has.
NOWHERE: Final = Place(0, 0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an instruction that changes something has given.

    Attributes:
      outputs: arrays.
      faults: by operation whether it has failed, which may have to be waited for.
      error: what an operation on the host has raised after it had changed something.
      commits: whether its step has committed itself with it: see `headwater.graph.runtime.step.Step.commit`.
    """

    outputs: Sequence[Any] = ()
    faults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    error: OpError | None = None
    commits: bool = False


@dataclass(frozen=True, slots=True)
class KeptOperation:
    """An operation on the host that uses what a task keeps besides variables.

    Attributes:
      place: of its instruction.
      perform: carries it out, for a step, with its inputs; gives its outputs.
      cells: variables among its inputs.
      stable: whether its outputs count once it was carried out, though it changes nothing.
    """

    place: Place
    perform: Callable[[Any, Sequence[Any]], Sequence[Any]]
    cells: Sequence[Cell] = ()
    stable: bool = False


class RecordedStep(Protocol):
    """The step that changes something."""

    @property
    def session(self) -> str: ...

    @property
    def number(self) -> int: ...

    @property
    def resumes(self) -> bool: ...


class Recorder(Protocol):
    """Hears of each change of a task's variables, and carries out operations on what else it keeps."""

    def known(self, step: RecordedStep, place: Place) -> Outcome | None:
        """What has come of an instruction of ``step`` already, perhaps on a task that is lost; None where it is yet to
        be carried out."""
        ...

    def changed(
        self, step: RecordedStep, place: Place, inputs: Sequence[Any] | None, cells: Sequence[Cell], outcome: Outcome
    ) -> None:
        """Variables have changed. The lock of the resources is held.

        Args:
          step: of which step.
          place: of the instruction.
          inputs: what it was given besides variables; None where it would give something else a second time.
          cells: the variables that have changed.
          outcome: what it has given.
        """
        ...

    def carry_out(self, operation: KeptOperation, step: Any, inputs: Sequence[Any]) -> Sequence[Any]:
        """Carries out an operation, as a whole, once nothing is left to wait for; unless ``step`` has done so already.

        Args:
          operation: which.
          step: the step in progress.
          inputs: of the operation.

        Returns:
          Its outputs.
        """
        ...
