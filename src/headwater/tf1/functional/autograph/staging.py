"""Interface that a kind of tensors implements for control flow over its tensors, and the registered kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from headwater.graph.types import Structure


class Staging(Protocol):
    """Control flow over one kind of tensors.

    Attributes:
      lazy_ranges: whether a loop may go over a range of an unknown length that is not a tensor.
    """

    lazy_ranges: bool

    def is_tensor(self, value: object) -> bool:
        """Whether ``value`` is such a tensor."""
        ...

    def convert(self, value: Structure) -> Structure:
        """``value`` as such a tensor; TypeError or ValueError where it cannot be one."""
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
        """Zeros of the types and shapes of the tensors that ``function``, the first turn of a loop, gives.

        They stand for names that a turn sets first. An error where that cannot be, or the loop may have no turn.
        """
        ...

    def logical_not(self, value: object) -> Structure:
        """Whether ``value`` does not hold."""
        ...

    def size(self, value: object) -> Structure:
        """How many parts a tensor has along its first dimension."""
        ...

    def item(self, value: Structure, index: object) -> Structure:
        """One of these parts."""
        ...

    def range(self, *limits: object) -> Structure:
        """Integers, as Python's ``range``."""
        ...

    def number(self, value: object, kind: type) -> Structure:
        """``value`` as Python's ``int`` or ``float`` would have it."""
        ...


_stagings: list[Staging] = []


def add_staging(staging: Staging) -> None:
    """Makes a kind of tensors known."""
    _stagings.append(staging)


def staging_of(*values: object) -> Staging | None:
    """The kind of tensors that the first tensor among ``values`` belongs to; None where there is none."""
    return next((kind for value in values for kind in _stagings if kind.is_tensor(value)), None)
