"""Checks that every test can fail: it asserts, expects an error, or calls a function of the tests that does.

A function checks something where it contains ``assert``, raises an error, uses ``pytest.raises``, ``warns`` or
``fail``, or calls a function or method by a name under which a function of the tests, or of a testing library, checks
something.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).resolve().parent.parent / "tests"

_CHECKERS: Final = frozenset({"raises", "warns", "fail", "expect", "check_call", "run_state_machine_as_test"})
_PREFIXES: Final = ("assert", "expect_", "_assert")

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(tree: ast.AST) -> Iterator[_Function]:
    for node in ast.walk(tree):
        if isinstance(node, _Function):
            yield node


def _tests(module: ast.Module) -> Iterator[_Function]:
    # pytest collects classes of these names only; others, such as models with a `test_step`, are not tests.
    classes = [node for node in module.body if isinstance(node, ast.ClassDef) and node.name.startswith("Test")]
    for node in [*module.body, *(method for one in classes for method in one.body)]:
        if isinstance(node, _Function) and node.name.startswith("test_"):
            yield node


def _calls(function: _Function) -> set[str]:
    """Returns the names by which ``function`` calls others, without what stands before a dot."""
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Attribute):
                found.add(called.attr)
            elif isinstance(called, ast.Name):
                found.add(called.id)
    return found


def _checks(function: _Function, calls: set[str], checkers: set[str]) -> bool:
    if any(isinstance(node, ast.Assert | ast.Raise) for node in ast.walk(function)):
        return True
    return any(name in checkers or name.startswith(_PREFIXES) for name in calls)


def unchecked(sources: dict[str, str]) -> list[str]:
    """Returns ``path:line: name`` for every test that checks nothing.

    Args:
      sources: the text of each module of tests and their helpers, by path.
    """
    functions = [(path, function) for path, text in sources.items() for function in _functions(ast.parse(text))]
    calls = {id(function): _calls(function) for _, function in functions}
    checkers = set(_CHECKERS)
    while True:
        found = {
            function.name
            for _, function in functions
            if not function.name.startswith("test_") and _checks(function, calls[id(function)], checkers)
        }
        if found <= checkers:
            break
        checkers |= found
    return [
        f"{path}:{test.lineno}: {test.name} checks nothing"
        for path, text in sources.items()
        for test in _tests(ast.parse(text))
        if not _checks(test, _calls(test), checkers)
    ]


def main() -> int:
    sources = {
        str(path.relative_to(TESTS.parent)): path.read_text(encoding="utf-8")
        for path in sorted(TESTS.rglob("*.py"))
        if "programs" not in path.parts
    }
    found = unchecked(sources)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
