"""Hooks that are called when a module is imported, without importing it, and modules that are loaded at first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Hook = Callable[[ModuleType], None]


def _nothing() -> None:
    return


def on_import(name: str, after: Hook, before: Callable[[], None] = _nothing) -> None:
    """Registers ``after`` for the import of the module ``name``; calls it immediately if that is imported already.

    Hooks of one module are called in the order of their registration.

    Args:
      name: the full name of the module.
      after: called with the module once its code has run.
      before: called before the module's code runs.
    """
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        after(module)
        return
    for finder in sys.meta_path:
        if isinstance(finder, _Finder) and finder.name == name:
            finder.hooks.append((before, after))
            return
    sys.meta_path.insert(0, _Finder(name, (before, after)))


def load_at_first_use(names: Collection[str]) -> None:
    """Defers the code of modules, from their import to the first use of one of their attributes."""
    sys.meta_path.insert(0, _LazyFinder(names))


class _LazyFinder:
    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if fullname not in self._names:
            return None
        from importlib.util import LazyLoader  # noqa: PLC0415  it takes longer to import than this module

        spec = _find_otherwise(self, fullname, path, target)
        if spec is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def _find_otherwise(finder: object, fullname: str, path: Sequence[str] | None, target: ModuleType | None) -> Any:
    """Returns the spec of a module with a loader that another finder returns, or None."""
    for other in [other for other in sys.meta_path if other is not finder]:
        spec: Any = other.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            return spec
    return None


class _Finder:
    """Finds one module. `importlib.abc` would take longer to import than all of the package `headwater`."""

    def __init__(self, name: str, *hooks: tuple[Callable[[], None], Hook]) -> None:
        self.name = name
        self.hooks = list(hooks)

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if fullname != self.name:
            return None
        # Stay in sys.meta_path until the module's code has run: `importlib.util.find_spec` calls this, too, without
        # importing the module.
        spec = _find_otherwise(self, fullname, path, target)
        if spec is not None:
            spec.loader = _Loader(spec.loader, self)
        return spec


class _Loader:
    def __init__(self, loader: Any, finder: _Finder) -> None:
        self._loader = loader
        self._finder = finder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        for before, _ in self._finder.hooks:
            before()
        # The module's own loader, as `inspect` and `importlib.resources` expect it.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        for _, after in self._finder.hooks:  # a hook may add others
            after(module)
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
