"""The state of a function: which of Keras's variables it reads and changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from keras import StatelessScope

from headwater.tf2.tape import variable_changes

if TYPE_CHECKING:
    import keras

_base = StatelessScope


class RecordingScope(_base):
    """Within it, variables have the values given here, and changes are kept here.

    Args:
      variables: those with values of their own.
      values: for each its value.

    Attributes:
      used: variables that were read or changed, by their ids, in the order in which they were first used.
      written: those of them that were changed.
    """

    def __init__(self, variables: Sequence[object] = (), values: Sequence[object] = ()) -> None:
        super().__init__(collect_losses=True)
        self.state_mapping: dict[int, object] = {
            id(variable): value for variable, value in zip(variables, values, strict=True)
        }
        self.used: dict[int, object] = {}
        self.written: dict[int, keras.Variable] = {}

    def get_current_value(self, variable: keras.Variable) -> Any:
        self.used.setdefault(id(variable), variable)
        if variable._value is None and id(variable) not in self.state_mapping:
            # Made in here: Keras initialises it when the outermost scope ends, and gives another array at every read.
            made = variable._initializer(variable._shape, dtype=variable._dtype)
            self.state_mapping[id(variable)] = made
        # Regularisation losses take what this gives as it is, None as well.
        return self.state_mapping.get(id(variable), variable._value)

    def add_update(self, update: Any) -> None:
        variable, value = update
        variable_changes(variable)
        self.used.setdefault(id(variable), variable)
        self.written.setdefault(id(variable), variable)
        self.state_mapping[id(variable)] = value

    def current(self, variable: keras.Variable) -> Any:
        """The value that a variable that was used has now."""
        value = self.state_mapping.get(id(variable))
        return variable.value if value is None else value
