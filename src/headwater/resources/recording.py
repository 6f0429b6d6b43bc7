"""What a task tells of each change of its variables, where another one makes the same changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from headwater.resources.containers import Cell


class Place(NamedTuple):
    """Where in a session's plans an instruction stands: the number of its plan, and its position there."""

    plan: int
    position: int


#: Of instructions of plans that no session has.
NOWHERE: Final = Place(0, 0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an instruction that changes variables has given.

    Attributes:
      outputs: arrays.
      faults: by operation whether it has failed, which may have to be waited for.
    """

    outputs: Sequence[Any] = ()
    faults: Mapping[str, Any] = field(default_factory=dict[str, Any])


class RecordedStep(Protocol):
    """The step that changes variables."""

    @property
    def session(self) -> str: ...

    @property
    def number(self) -> int: ...

    @property
    def resumes(self) -> bool: ...


class Recorder(Protocol):
    """Hears of each change of a task's variables."""

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
