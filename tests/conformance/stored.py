"""The cases with what TensorFlow 1.15 gave for each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater import tf
from tests.conformance.run import load

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Case:
    """One case.

    Attributes:
      name: its module and name.
      run: the case itself, a function of the namespace.
      expected: TensorFlow's outcome.
    """

    name: str
    run: Callable[[Any], Any]
    expected: Any

    def __str__(self) -> str:
        return self.name


def stored_cases(*modules: str) -> list[Case]:
    """The cases of ``modules``."""
    found: list[Case] = []
    for module in modules:
        expected = json.loads((FOLDER / "expected" / f"{module}.json").read_text())
        functions = load(str(FOLDER / "cases" / f"{module}.py")).cases(tf)
        assert set(functions) == set(expected), f"cases of {module} without a stored outcome, or the other way round"
        found.extend(Case(f"{module}: {name}", run, expected[name]) for name, run in functions.items())
    return found
