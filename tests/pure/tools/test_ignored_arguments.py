"""No public function takes an argument that it never looks at, unless a list says why that makes no difference."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
import ignored_arguments


@pytest.mark.slow
def test_every_ignored_argument_has_a_reason() -> None:
    assert ignored_arguments.unexplained() == []


def test_checked_functions_cover_the_namespace() -> None:
    names = {name for name, _ in ignored_arguments.public_functions()}
    assert len(names) > 1500
    assert {"tf1.functional.loops.while_loop", "tf1.training.saver.Saver.__init__", "data.dataset.Dataset.map"} <= names


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def f(a, b): return a", ["b"]),
        ("def f(a, b):\n  del b\n  return a", ["b"]),
        ("def f(a, *b, c=1, **d): return a + c", ["b", "d"]),
        ("def f(a):\n  def g():\n    return a\n  return g", []),
        ('def f(self, a):\n  "Words."\n  raise NotImplementedError', []),
        ('def f(self, a):\n  "Words."', []),
        ("def f(a, b): return g(**locals())", []),
        ("def f(a, b):\n  d = dict(locals())\n  return g(d.pop('a'), **d)", []),
        ("def f(a, b):\n  d = dict(locals())\n  return g(d)", ["a", "b"]),
    ],
)
def test_ignored_arguments_are_found(text: str, found: list[str]) -> None:
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert ignored_arguments.ignored(function) == found
