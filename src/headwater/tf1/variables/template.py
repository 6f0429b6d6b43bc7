"""Functions that create their variables once and share them between calls."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.tf1.variables.scope_settings import VariableScope
from headwater.tf1.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headwater.graph.types import Structure


class Template:
    """A function whose first call creates variables and whose further calls reuse them; see `make_template`."""

    def __init__(
        self,
        name: str,
        func: Callable[..., object],
        create_scope_now: bool = False,
        unique_name: str | None = None,
        custom_getter: Callable[..., Structure] | None = None,
    ) -> None:
        if name is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise ValueError("name cannot be None.")
        self.name: str = name
        self.func: Callable[..., object] = func
        self._unique_name = unique_name
        self._custom_getter = custom_getter
        self._scope: VariableScope | None = None
        self._called = False
        if create_scope_now:
            with self._first_scope(names_operations=False) as scope:
                self._scope = scope

    def _first_scope(self, *, names_operations: bool = True) -> variable_scope:
        return variable_scope(
            self._unique_name, self.name, custom_getter=self._custom_getter, auxiliary_name_scope=names_operations
        )

    def __call__(self, *args: object, **kwargs: object) -> object:
        if self._scope is None:
            entered = self._first_scope()
        else:
            entered = variable_scope(self._scope, reuse=self._called)
        with entered as scope:
            self._scope = self._scope or scope
            before = len(get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES))
            result = self.func(*args, **kwargs)
            new = get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES)[before:]
        if self._called and new:
            raise ValueError(
                f"New trainable variable created when calling the template {self.name!r} after the first time, "
                f"perhaps you used tf.Variable when you meant tf.get_variable: {[variable.name for variable in new]}"
            )
        self._called = True
        return result

    @property
    def variable_scope(self) -> VariableScope | None:
        """The scope of the variables; None before the first call."""
        return self._scope

    @property
    def variable_scope_name(self) -> str | None:
        """The name of the variables' scope with a trailing ``/``; None before the first call."""
        return None if self._scope is None else f"{self._scope.name}/"

    @property
    def variables(self) -> list[Any]:
        """All variables created so far."""
        return self.global_variables + self.local_variables

    @property
    def trainable_variables(self) -> list[Any]:
        """The trainable variables created so far, which optimizers update."""
        return self._collection(GraphKeys.TRAINABLE_VARIABLES)

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The other variables created so far."""
        trained = set(map(id, self.trainable_variables))
        return [variable for variable in self.variables if id(variable) not in trained]

    @property
    def global_variables(self) -> list[Any]:
        """The global variables created so far, which checkpoints contain."""
        return self._collection(GraphKeys.GLOBAL_VARIABLES)

    @property
    def local_variables(self) -> list[Any]:
        """The local variables created so far, which belong to one task."""
        return self._collection(GraphKeys.LOCAL_VARIABLES)

    def _collection(self, key: str) -> list[Any]:
        return get_default_graph().get_collection(key, self.variable_scope_name) if self._scope else []


def make_template(
    name_: str,
    func_: Callable[..., object],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Callable[..., object] | None = None,
    **kwargs: object,
) -> Template:
    """Returns ``func_`` as a function whose calls share the variables that the first call creates with `get_variable`.

    Args:
      name_: name of the variables' scope; a suffix makes it unique.
      create_scope_now_: make the scope's name unique now instead of at the first call.
      unique_name_: the scope's exact name.
      custom_getter_: as for `variable_scope`.
      kwargs: arguments of ``func_`` in every call.

    Raises:
      ValueError: ``name_`` is None; or, in a call, ``func_`` creates trainable variables in a further call.
    """
    function = functools.partial(func_, **kwargs) if kwargs else func_
    return Template(name_, function, create_scope_now_, unique_name_, custom_getter_)
