"""What a ``ps`` does with gradients: the interface between its host and an optimizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

Array = NDArray[Any]


class Updater(Protocol):
    """The values of a task's blocks, and the optimizer that updates them. The host calls one method at a time.

    Blocks are those of the task in its layout's order; *optimized* ones take gradients, others (*extras*) take changes
    by addition.
    """

    def fill(self, values: Sequence[Array], state: Sequence[Array] | None) -> None:
        """Takes values of all blocks, and of the optimizer's state; None begins that anew.

        Raises:
          InvalidArgumentError: number, shape or dtype of the arrays are not those of this updater.
        """
        ...

    def assign(self, values: Sequence[Array]) -> None:
        """Takes values of all blocks; the optimizer's state stays."""
        ...

    def values(self, extras: Sequence[int] | None) -> list[Array]:
        """The optimized blocks' values, then those of ``extras`` (positions among the others); None: all blocks' values
        in the layout's order. They are read-only, and stay as they are while updates go on."""
        ...

    @property
    def optimizer(self) -> str:
        """What the optimizer is called, for people."""
        ...

    def state_sizes(self) -> list[tuple[str, tuple[int, ...], str]]:
        """Name, shape and dtype of each part of the optimizer's state; nothing before there are values. May be called
        while an update goes on."""
        ...

    def state(self) -> dict[str, Array]:
        """The optimizer's state by name, in the order that `fill` takes."""
        ...

    def apply(
        self,
        gradients: Sequence[Array],
        changes: Mapping[int, Array],
        tables: Sequence[tuple[Array, Array]],
        knobs: Sequence[float],
        scale: float = 1.0,
    ) -> None:
        """Makes one update.

        Args:
          gradients: one for each optimized block.
          changes: what to add to some of the others, by position among these.
          tables: for each table the numbers of rows, none twice, and the gradients of these.
          knobs: scalars that the workers' program sets, such as the learning rate.
          scale: by how much to multiply what the update changes the values by; the optimizer's state sees all of it.
        """
        ...

    def rows(self, numbers: Sequence[Array]) -> list[Array]:
        """For each table the rows of these numbers."""
        ...
