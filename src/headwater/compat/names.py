"""Namespaces made of names that live elsewhere: each is loaded when it is first asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from headwater.compat.modules import missing_attribute


def namespace(
    module_name: str, names: Mapping[str, str], modules: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions ``__getattr__`` and ``__dir__`` of a module that only holds names.

    Args:
      module_name: the module's own ``__name__``.
      names: for each module the names to take from it, separated by blanks; ``here=there`` where it is called
        otherwise there.
      modules: names that stand for whole modules.
    """
    table: dict[str, tuple[str, str]] = {}
    for source, listed in names.items():
        for word in listed.split():
            name, _, there = word.partition("=")
            assert name not in table, f"{module_name}.{name} is said to be in {table[name][0]} and in {source}"
            table[name] = (source, there or name)
    whole = dict(modules or {})

    def get(name: str) -> Any:
        if name in whole:
            value: Any = importlib.import_module(whole[name])
        elif name in table:
            source, there = table[name]
            value = getattr(importlib.import_module(source), there)
        else:
            raise missing_attribute(module_name.removeprefix("headwater.compat."), name)
        setattr(sys.modules[module_name], name, value)
        return value

    def listing() -> list[str]:
        own = [name for name in vars(sys.modules[module_name]) if name.startswith("__")]
        return sorted({*table, *whole, *own})

    return get, listing
