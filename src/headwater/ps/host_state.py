"""All that a ``ps`` has of a set of parameters at one moment, but rows of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.errors import InvalidArgumentError
from headwater.ps.updater import Array


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """The latest request of a worker; see `headwater.ps.protocol`.

    Attributes:
      life: of the worker's program.
      number: of the request; -1 before the first.
      applied: whether its gradients were taken.
      version: of the values when they were given.
      ticket: the step that it was given; None without one.
    """

    life: int
    number: int = -1
    applied: bool = False
    version: int = -1
    ticket: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class HostState:
    """See above.

    Attributes:
      version: how many updates the values have seen.
      filled: generation of the values, see `headwater.ps.protocol`.
      life: of the ``ps`` that has them.
      trainings: that are over.
      seed: of epochs.
      steps: the present epoch, how many of its steps were handed out, at which version it began, and how many it has.
      answered: by worker what it asked last.
      sums: by epoch what workers have added up.
      ledger: which examples are applied; None where none are accounted for.
      values: of all blocks but tables.
      state: the optimizer's, by name.
    """

    version: int
    filled: int
    life: int
    trainings: int
    seed: int
    steps: tuple[int, int, int, int]
    answered: Mapping[str, Answered]
    sums: Mapping[int, Sequence[float]]
    ledger: bytes | None
    values: Sequence[Array]
    state: Mapping[str, Array]

    def facts(self) -> dict[str, object]:
        """All but the arrays and the ledger, as JSON takes it."""
        answered = {
            worker: [one.life, one.number, one.applied, one.version, one.ticket]
            for worker, one in self.answered.items()
        }
        return {
            "version": self.version,
            "filled": self.filled,
            "life": self.life,
            "trainings": self.trainings,
            "seed": self.seed,
            "steps": list(self.steps),
            "answered": answered,
            "sums": [[epoch, list(sums)] for epoch, sums in self.sums.items()],
        }

    @staticmethod
    def of(
        facts: Mapping[str, Any], ledger: bytes | None, values: Sequence[Array], state: Mapping[str, Array]
    ) -> HostState:
        """What `facts` gave, with the rest.

        Raises:
          InvalidArgumentError: these are no such facts.
        """
        try:
            epoch, given, base, steps = map(int, facts["steps"])
            return HostState(
                version=int(facts["version"]),
                filled=int(facts["filled"]),
                life=int(facts["life"]),
                trainings=int(facts["trainings"]),
                seed=int(facts["seed"]),
                steps=(epoch, given, base, steps),
                answered={str(worker): _answered(*told) for worker, told in dict(facts["answered"]).items()},
                sums={int(epoch): [float(number) for number in numbers] for epoch, numbers in facts["sums"]},
                ledger=ledger,
                values=values,
                state=state,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidArgumentError(None, None, f"these are no facts of a state of parameters: {error}") from error


def _answered(life: int, number: int, applied: bool, version: int, ticket: int | None) -> Answered:
    return Answered(life=life, number=number, applied=applied, version=version, ticket=ticket)
