"""Namespaces of names defined in other modules: each name is loaded at its first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

from headwater.tf1.compat.modules import missing_attribute


@dataclass(frozen=True, slots=True)
class Area:
    """Contents of a namespace.

    Attributes:
      doc: its docstring.
      names: for each module the names to export from it, separated by blanks; ``here=there`` if the module's name is
        ``there``.
      modules: in the same form, for each package the names of whole modules.
    """

    doc: str
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    modules: Mapping[str, str] = field(default_factory=dict[str, str])

    def table(self) -> dict[str, tuple[str, str]]:
        """Returns, for each name, its module and the name in the module."""
        return _places(self.names)

    def module_table(self) -> dict[str, str]:
        """Returns the module of each name that refers to a whole module."""
        return {name: ".".join(place) for name, place in _places(self.modules).items()}


def _places(listed: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    table: dict[str, tuple[str, str]] = {}
    for source, words in listed.items():
        for word in words.split():
            name, _, there = word.partition("=")
            assert name not in table, f"{name} is listed in {table[name][0]} and in {source}"
            table[name] = (source, there or name)
    return table


_WITH_RAGGED: Final = (
    "headwater.tf1.compat.old",
    "headwater.tf1.functional.",
    "headwater.tf1.input.parsing",
    "headwater.tf1.variables.",
)
"""Prefixes of the names of modules with functions that accept ragged tensors."""


def namespace(module_name: str, area: Area) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns ``__getattr__`` and ``__dir__`` for the module ``module_name`` with the names of an area."""
    table, modules = area.table(), area.module_table()

    def get(name: str) -> Any:
        if name in modules:
            value = importlib.import_module(modules[name])
        elif name in table:
            source, there = table[name]
            value = getattr(importlib.import_module(source), there)
            if source.startswith(_WITH_RAGGED):
                from headwater.tf1.functional.ragged_dispatch import dispatching  # noqa: PLC0415  loads NumPy

                value = dispatching(value, source, there)
        else:
            raise missing_attribute(module_name.removeprefix("headwater.tf1.compat."), name)
        setattr(sys.modules[module_name], name, value)
        return value

    def listing() -> list[str]:
        own = [name for name in vars(sys.modules[module_name]) if name.startswith("__")]
        return sorted({*table, *modules, *own})

    return get, listing


def add_module(name: str, area: Area) -> None:
    """Creates the importable module ``name``, which has no file, with the names of an area."""
    module = ModuleType(name, area.doc)
    module.__spec__ = ModuleSpec(name, None, origin="Headwater")
    module.__getattr__, module.__dir__ = namespace(name, area)  # pyright: ignore[reportAttributeAccessIssue]
    sys.modules[name] = module
