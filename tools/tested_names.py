"""Finds names of TensorFlow that no test uses, and holds them against a list with reasons.

Tests are read, not run. A name counts where code says it in full (``tf.nn.relu``, ``from tensorflow... import``), in a
program or a line of a string (``"tf.add(x, y)"``), or as a word of a string in a file that says its area by itself, as
in ``getattr(tf.nn, name)``. Something that has several names, as ``tf.acos`` and ``tf.math.acos``, is tested by any of
them; so is a constant, by another name of the same last word and value.

``python tools/tested_names.py`` prints names without test or reason, and reasons for what needs none; it fails where
there is one. Reasons are in ``tools/data/untested_names.txt``.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import compatibility

from headwater import tf

REPOSITORY = Path(__file__).resolve().parent.parent
REASONS = REPOSITORY / "tools" / "data" / "untested_names.txt"
_TABLES_OF_EXPRESSIONS = ("cases", "families")


def untested() -> list[str]:
    """The names of `compatibility` that are there and that no test uses."""
    there = [name for name, there in compatibility.classify(_listed()).items() if there]
    said = set(_said())
    said |= {name.rpartition(".")[0] for name in said}
    tested = [value for name in said if (value := _value(name)) is not None]
    objects = {id(inspect.unwrap(value)) for value in tested if callable(value)}
    constants = {(name.rpartition(".")[2], repr(_value(name))) for name in said}

    def is_tested(name: str) -> bool:
        value = _value(name)
        same = (
            id(inspect.unwrap(value)) in objects
            if callable(value)
            else (name.rpartition(".")[2], repr(value)) in constants
        )
        return same or _short(name) in said

    return [name for name in there if not is_tested(name)]


def reasons() -> Mapping[str, str]:
    """For each name that no test uses why."""
    lines = [line for line in REASONS.read_text().splitlines() if line and not line.startswith("#")]
    return {name.strip(): reason.strip() for name, _, reason in (line.partition("#") for line in lines)}


def _listed() -> list[str]:
    return compatibility.public_names() + compatibility.other_names()


def _short(name: str) -> str:
    return f"tf.{name.removeprefix('tensorflow.')}" if name.startswith("tensorflow.") else name


@cache
def _value(name: str) -> Any:
    """What ``tf.nn.relu``, or ``headwater.tf1.functional.nn.relu``, is; None where there is no such name."""
    first, *words = _short(name).split(".")
    place = first
    value: Any = sys.modules.get("tensorflow", tf) if first == "tf" else importlib.import_module(first)
    for word in words:
        place = f"{place}.{word}"
        try:
            value = (
                importlib.import_module(place) if not hasattr(value, word) and first != "tf" else getattr(value, word)
            )
        except Exception:  # noqa: BLE001 - a lazy module may raise anything for a name that it does not have
            return None
    return value


def _said() -> Iterator[str]:
    for path in sorted((REPOSITORY / "tests").rglob("*.py")):
        yield from names_in(ast.parse(path.read_text()))
    sys.path.insert(0, str(REPOSITORY))
    for table in _TABLES_OF_EXPRESSIONS:
        for case in importlib.import_module(f"tests.inproc.graph.ops.{table}").CASES:
            yield from names_in(ast.parse(case if isinstance(case, str) else case[0]))


def names_in(tree: ast.AST, within: bool = False) -> Iterator[str]:
    """Each name that ``tree`` says, words that may be names, and, unless it is ``within`` one, those in strings."""
    places: dict[str, str] = {"keras": "tf.keras"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("tensorflow", "headwater"):
            module = str(node.module).replace("tensorflow", "tf", 1)
            names = {alias.asname or alias.name: f"{module}.{alias.name}" for alias in node.names}
            places |= {name: place for name, place in names.items() if name != "tf"}
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = _chain(node.value, places)
            if name.startswith("tf."):
                places[node.targets[0].id] = name
    yield from places.values()
    passed: set[ast.AST] = {node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    documents: set[ast.AST] = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    areas: set[str] = set()
    words: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = _chain(node, places)
            if name.startswith(("tf.", "headwater.")):
                yield name
                if node not in passed and name.startswith("tf.") and isinstance(_value(name), ModuleType):
                    areas.add(name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documents:
            words.update(node.value.split())
            if ("tf." in node.value or "tensorflow." in node.value) and not within:
                yield from _names_in_text(node.value)
    for area in areas:
        yield from (f"{area}.{word}" for word in words if word.replace(".", "").isidentifier())


def _names_in_text(text: str) -> Iterator[str]:
    """Those of a program, or of lines that are expressions."""
    try:
        yield from names_in(ast.parse(text), within=True)
        return
    except SyntaxError:
        pass
    for line in text.splitlines():
        try:
            yield from names_in(ast.parse(line.strip(), mode="eval"), within=True)
        except SyntaxError:
            continue


def _chain(node: ast.AST, places: Mapping[str, str]) -> str:
    """``tf.nn.relu`` for the expression, or an empty text for what is not a name."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    return ".".join([places.get(node.id, node.id), *reversed(words)]) if isinstance(node, ast.Name) else ""


def main() -> int:
    """Prints what is wrong, and the share."""
    found, reason = set(untested()), reasons()
    for name in sorted(found - reason.keys()):
        print(f"{name}: no test uses it")
    for name in sorted(reason.keys() - found):
        print(f"{name}: {REASONS.name} gives a reason, and there is a test")
    there = sum(compatibility.classify(_listed()).values())
    print(f"tests use {there - len(found)} of the {there} names that are there; {len(reason)} have a reason")
    return int(found != set(reason))


if __name__ == "__main__":
    sys.exit(main())
