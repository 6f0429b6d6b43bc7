"""Finds arguments that a public function takes and never looks at, and holds them against a list with reasons.

Every module that the tables of names lead to is read, not run: an argument is ignored where nothing but ``del`` names
it. ``python tools/ignored_arguments.py`` prints the ones that ``tools/data/ignored_arguments.txt`` gives no reason for,
and reasons for what is not ignored any more; it fails where there is one.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from headwater.tf1.compat.tables.areas import AREAS
from headwater.tf1.compat.tables.contrib import CONTRIB
from headwater.tf1.compat.tables.core import CORE

REASONS = Path(__file__).resolve().parent / "data" / "ignored_arguments.txt"
_PUBLIC = ("__init__", "__new__", "__call__")


@dataclass(frozen=True, slots=True)
class _Source:
    """A module: its functions and classes, and for each name that it imports where that is."""

    nodes: dict[str, ast.FunctionDef | ast.ClassDef]
    imports: dict[str, tuple[str, str]]


@cache
def _source(module: str) -> _Source:
    spec = importlib.util.find_spec(module) if module.startswith("headwater.") else None
    if spec is None or spec.origin is None:
        return _Source({}, {})
    body = ast.parse(Path(spec.origin).read_text()).body
    imports = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    return _Source({node.name: node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}, imports)


def _found(module: str, name: str) -> tuple[str, ast.FunctionDef | ast.ClassDef] | None:
    """The module in which ``name`` of ``module`` is written, and what it is there."""
    source = _source(module)
    if name in source.nodes:
        return module, source.nodes[name]
    return _found(*source.imports[name]) if name in source.imports else None


def _methods(module: str, cls: ast.ClassDef) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The public methods of a class and of those above it, by where they are written."""
    for method in cls.body:
        if isinstance(method, ast.FunctionDef) and (method.name in _PUBLIC or not method.name.startswith("_")):
            yield f"{module.removeprefix('headwater.')}.{cls.name}.{method.name}", method
    for base in cls.bases:
        place: list[str] = []
        while isinstance(base, ast.Attribute):
            place.append(base.attr)
            base = base.value
        if isinstance(base, ast.Subscript):
            base = base.value
        if not isinstance(base, ast.Name):
            continue
        there = _found(module, base.id)
        if place and base.id in _source(module).imports:
            package, last = _source(module).imports[base.id]
            there = _found(f"{package}.{last}", place[0])
        if there is not None and isinstance(there[1], ast.ClassDef):
            yield from _methods(there[0], there[1])


def public_functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Every function and public method that a name of ``tf`` leads to, as ``module.function``."""
    seen: set[str] = set()
    for area in (CORE, *AREAS.values(), *CONTRIB.values()):
        for place in area.table().values():
            there = _found(*place)
            if there is None:
                continue
            module, node = there
            label = f"{module.removeprefix('headwater.')}.{node.name}"
            for name, function in [(label, node)] if isinstance(node, ast.FunctionDef) else _methods(module, node):
                if name not in seen:
                    seen.add(name)
                    yield name, function


def _passes_all(function: ast.FunctionDef) -> bool:
    """Returns whether a function passes on all of its arguments, as in ``g(**locals())``."""
    nodes = list(ast.walk(function))
    copies = {
        name.id
        for node in nodes
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and node.value is not None
        and "locals()" in ast.unparse(node.value)
        for name in ast.walk(node)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }
    passed = [node.value for node in nodes if isinstance(node, ast.keyword) and node.arg is None]
    return any("locals()" in ast.unparse(value) or ast.unparse(value) in copies for value in passed)


def ignored(function: ast.FunctionDef) -> list[str]:
    """The arguments of a function that it never looks at; none where all it does is to raise, or nothing."""
    body = [step for step in function.body if not isinstance(step, ast.Expr | ast.Pass)] or [ast.Pass()]
    if isinstance(body[0], ast.Raise | ast.Pass) or _passes_all(function):
        return []
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    named += [argument for argument in (given.vararg, given.kwarg) if argument is not None]
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return [argument.arg for argument in named if argument.arg not in used and argument.arg not in ("self", "cls")]


def found() -> list[str]:
    """All ignored arguments, as ``module.function: argument``."""
    return sorted(f"{label}: {name}" for label, node in public_functions() for name in ignored(node))


def reasons() -> dict[str, str]:
    """The reason for each, by ``module.function: argument``."""
    lines = (line.partition(" # ") for line in REASONS.read_text().splitlines() if not line.startswith("#"))
    return {name: reason for name, _, reason in lines if name}


def unexplained() -> list[str]:
    """Ignored arguments without a reason, and reasons without such an argument."""
    there, known = set(found()), reasons()
    return sorted(there - known.keys()) + [f"not ignored: {text}" for text in sorted(known.keys() - there)]


def main() -> int:
    """Prints what has no reason; 1 where there is something."""
    left = unexplained()
    print("\n".join(left))
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
