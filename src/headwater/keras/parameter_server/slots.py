"""Variables of a model's optimizer, whose values are on the ``ps``: read from there only if the program uses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.keras.embeddings.variables import TableVariable
from headwater.keras.internals import JaxVariable, in_stateless_scope

_Variable: Any = JaxVariable


class SlotVariable(_Variable):
    """A variable of an optimizer on the ``ps``; `as_slot` changes the class of an existing variable to this one."""

    #: Reads the variables of the optimizer from the ``ps``, if steps have changed them there since the last read.
    _read: Callable[[], None]

    @property
    def value(self) -> Any:
        if not in_stateless_scope():
            self._read()
        return super().value


def as_slot(variable: Any, read: Callable[[], None]) -> None:
    """Makes ``variable`` call ``read`` before the program reads it; does nothing to tables, which are read by rows."""
    if not isinstance(variable, TableVariable):
        variable.__class__ = SlotVariable
        variable._read = read
