"""Interface that a kind of tensors implements for control flow over its tensors, and the registered kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from headwater.graph.types import Structure


class Staging(Protocol):
    """Control flow over one kind of tensors.

    Attributes:
      lazy_ranges: whether a loop may iterate over a range of an unknown length that is not a tensor.
    """

    lazy_ranges: bool

    def is_tensor(self, value: object) -> bool:
        """Returns whether ``value`` is a tensor of this kind."""
        ...

    def convert(self, value: Structure) -> Structure:
        """Converts ``value`` to a tensor of this kind; TypeError or ValueError if this is impossible."""
        ...

    def cond(
        self, pred: object, yes: Callable[[], list[Structure]], no: Callable[[], list[Structure]]
    ) -> list[Structure]:
        """Returns tensors with the values of ``yes()`` if ``pred`` is true, else of ``no()``; calls both, in order."""
        ...

    def while_loop(
        self,
        test: Callable[[Sequence[Structure]], Structure],
        turn: Callable[[Sequence[Structure]], list[Structure]],
        start: Sequence[Structure],
        names: Sequence[str],
        options: dict[str, Structure],
    ) -> list[Structure]:
        """Applies ``turn`` to the tensors, from ``start``, while ``test`` of them is true; returns the last ones.

        Args:
          names: the program's names of the tensors.
          options: options of the loop (`set_loop_options`).
        """
        ...

    def specs(self, function: Callable[[], list[Structure]], options: dict[str, Structure]) -> list[Structure]:
        """Returns zeros of the types and shapes of the results of ``function``, the first iteration of a loop.

        They are the initial values of variables first assigned in an iteration. Raises an error if this is not
        supported, or the loop may have no iteration.
        """
        ...

    def logical_not(self, value: object) -> Structure:
        """Returns the negation of ``value``."""
        ...

    def size(self, value: object) -> Structure:
        """Returns the size of a tensor's first dimension."""
        ...

    def item(self, value: Structure, index: object) -> Structure:
        """Returns a slice along the first dimension."""
        ...

    def range(self, *limits: object) -> Structure:
        """Integers, as Python's ``range``."""
        ...

    def number(self, value: object, kind: type) -> Structure:
        """Converts ``value`` like Python's ``int`` or ``float``."""
        ...


_stagings: list[Staging] = []


def add_staging(staging: Staging) -> None:
    """Registers the control flow over a kind of tensors."""
    _stagings.append(staging)


def staging_of(*values: object) -> Staging | None:
    """Returns the kind of the first tensor among ``values``; None if there is no tensor."""
    return next((kind for value in values for kind in _stagings if kind.is_tensor(value)), None)
