"""State of a set of parameters on a ``ps`` at one moment, except rows of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwater.errors import InvalidArgumentError
from headwater.ps.updater import Array


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """The latest request of a worker; see `headwater.ps.protocol`.

    Attributes:
      incarnation: incarnation of the worker's program.
      number: the number of the request; -1 before the first.
      applied: whether its gradients were accepted.
      version: the version of the values when the gradients were pushed.
      step_number: number of the assigned step; None without one.
      assigned_work: the assigned range of examples, see `headwater.ps.worker_connections.Request`; None except in the
        last state of an incarnation, see `HostMemory.state`.
    """

    incarnation: int
    number: int = -1
    applied: bool = False
    version: int = -1
    step_number: int | None = None
    assigned_work: tuple[int, int, int, int] | str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class HostState:
    """The state of a set of parameters on a ``ps``.

    Attributes:
      version: number of updates applied to the values.
      filled: generation of the values, see `headwater.ps.protocol`.
      incarnation: incarnation of the ``ps`` that has the values.
      trainings: the number of trainings that are over.
      seed: the seed for the order of the examples of epochs.
      steps: the current epoch, the number of its steps assigned, the version at which it began, and its length in
        steps.
      answered: the latest request of each worker, by its name.
      sums: contributions of the workers, by epoch.
      ledger: record of the applied examples; None if none are accounted for.
      values: the values of all blocks except tables.
      state: the optimizer's state, by name.
    """

    version: int
    filled: int
    incarnation: int
    trainings: int
    seed: int
    steps: tuple[int, int, int, int]
    answered: Mapping[str, Answered]
    sums: Mapping[int, Sequence[float]]
    ledger: bytes | None
    values: Sequence[Array]
    state: Mapping[str, Array]

    def pack(self) -> tuple[dict[str, object], list[tuple[str, Array]]]:
        """Returns the state as values that JSON can represent, and as arrays, each with a name of its own."""
        # Part of the state, so that a restored ps recognises retries. Without the request numbers, simulated
        # histories found gradients that were applied twice.
        answered = {
            worker: [one.incarnation, one.number, one.applied, one.version, one.step_number, one.assigned_work]
            for worker, one in self.answered.items()
        }
        arrays = [(f"value {number}", value) for number, value in enumerate(self.values)]
        arrays += [(f"state {name}", array) for name, array in self.state.items()]
        if self.ledger is not None:
            arrays.append(("ledger", np.frombuffer(self.ledger, np.uint8)))
        facts: dict[str, object] = {
            "version": self.version,
            "filled": self.filled,
            # Files of earlier versions have this name, too.
            "life": self.incarnation,
            "trainings": self.trainings,
            "seed": self.seed,
            "steps": list(self.steps),
            "answered": answered,
            "sums": [[epoch, list(sums)] for epoch, sums in self.sums.items()],
            "values": len(self.values),
            "ledger": self.ledger is not None,
        }
        return facts, arrays

    @staticmethod
    def unpack(facts: Mapping[str, Any], names: Sequence[str], arrays: Sequence[Array]) -> HostState:
        """Builds a state from the result of `pack`: its facts, and the names and values of its arrays.

        Raises:
          InvalidArgumentError: the facts are malformed.
        """
        try:
            rest = list(arrays)
            ledger = rest.pop().tobytes() if facts.get("ledger") else None
            count = int(facts.get("values", 0))
            epoch, assigned, base, steps = map(int, facts["steps"])
            return HostState(
                version=int(facts["version"]),
                filled=int(facts["filled"]),
                incarnation=int(facts["life"]),
                trainings=int(facts["trainings"]),
                seed=int(facts["seed"]),
                steps=(epoch, assigned, base, steps),
                answered={str(worker): _answered(*words) for worker, words in dict(facts["answered"]).items()},
                sums={int(epoch): [float(number) for number in numbers] for epoch, numbers in facts["sums"]},
                ledger=ledger,
                values=rest[:count],
                state={
                    name.removeprefix("state "): array for name, array in zip(names[count:], rest[count:], strict=False)
                },
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidArgumentError(f"malformed state of parameters: {error}") from error


def _answered(
    incarnation: int,
    number: int,
    applied: bool,
    version: int,
    step_number: int | None,
    assigned_work: list[Any] | str | None = None,
) -> Answered:
    return Answered(
        incarnation=incarnation,
        number=number,
        applied=applied,
        version=version,
        step_number=step_number,
        # JSON has no tuples. Files of earlier versions have no assigned range.
        assigned_work=tuple(assigned_work) if isinstance(assigned_work, list) else assigned_work,
    )
