"""``tf.Module``: objects that have variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

from headwater.graph.convert import name_scope
from headwater.tf1.variables.variables import Variable

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.types import TensorLike


class Module:
    """Base of objects with variables, and modules with variables, in their attributes.

    Args:
      name: an identifier; the class's name in snake case if None.

    Raises:
      ValueError: ``name`` is not an identifier.
    """

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = re.sub(r"([a-z])([A-Z])", r"\1_\2", re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", type(self).__name__))
            name = name.lower()
        if not re.match(r"^[a-zA-Z_]([a-zA-Z0-9_])*$", name):
            raise ValueError(f"{name!r} is not a valid module name. Module names must be valid Python identifiers")
        self._name = name
        with name_scope(None, name) as scope:
            self._scope = scope

    @property
    def name(self) -> str:
        """The name of the module."""
        return self._name

    @property
    def name_scope(self) -> Any:
        """Name scope of the operations that it adds to the graph, for ``with``."""
        return name_scope(self._scope)

    @property
    def variables(self) -> tuple[Any, ...]:
        """All variables, including its modules' variables, by the names of attributes."""
        return tuple(self._flatten(lambda value: isinstance(value, Variable)))

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """The variables that optimizers change."""
        return tuple(self._flatten(lambda value: isinstance(value, Variable) and value.trainable))

    @property
    def submodules(self) -> tuple[Any, ...]:
        """All modules in it."""
        return tuple(self._flatten(lambda value: isinstance(value, Module)))

    def _flatten(self, predicate: Callable[[Any], bool]) -> Iterator[object]:
        return _found(self, predicate, {id(self)})

    @classmethod
    def with_name_scope(cls, method: Callable[..., object]) -> Callable[..., Tensor]:
        """Decorates a method of a module to run in the module's `name_scope`."""

        @wraps(method)
        def within(self: Module, *args: object, **kwargs: object) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return within


def _found(module: Module, predicate: Callable[[Any], bool], seen: set[int]) -> Iterator[object]:
    inner: list[Module] = []
    for _, value in sorted(vars(module).items()):
        for leaf in _leaves(value):
            if id(leaf) in seen:
                continue
            seen.add(id(leaf))
            if predicate(leaf):
                yield leaf
            if isinstance(leaf, Module):
                inner.append(leaf)
    for each in inner:
        yield from _found(each, predicate, seen)


def _leaves(value: TensorLike) -> Iterator[object]:
    if isinstance(value, dict):
        for _, item in sorted(cast("dict[str, Any]", value).items()):
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in cast("list[Any]", value):
            yield from _leaves(item)
    else:
        yield value
