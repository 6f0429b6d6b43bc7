"""The state of a function: Keras's variables that it reads and changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from keras import StatelessScope

from headwater.tf2.tape import variable_changes

if TYPE_CHECKING:
    import keras

_base = StatelessScope


class RecordingScope(_base):
    """A scope with its own values of variables: it records reads and changes, and does not change the variables.

    Args:
      variables: variables with initial values in this scope.
      values: the value of each.

    Attributes:
      used: variables that were read or changed, by id, in the order of their first use.
      written: variables that were changed, by id.
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
            # The variable was created in this scope: Keras initialises it at the end of the outermost scope, and would
            # create a new array at each read until then.
            made = variable._initializer(variable._shape, dtype=variable._dtype)
            self.state_mapping[id(variable)] = made
        # Keras's regularisation losses use this result directly, without a fallback for None.
        return self.state_mapping.get(id(variable), variable._value)

    def add_update(self, update: Any) -> None:
        variable, value = update
        variable_changes(variable)
        self.used.setdefault(id(variable), variable)
        self.written.setdefault(id(variable), variable)
        self.state_mapping[id(variable)] = value

    def current(self, variable: keras.Variable) -> Any:
        """Returns the current value of a used variable."""
        value = self.state_mapping.get(id(variable))
        return variable.value if value is None else value
