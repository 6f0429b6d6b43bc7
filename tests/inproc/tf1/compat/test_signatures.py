"""Functions have TensorFlow 1.15's signatures: arguments, their order, their defaults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[4]
TOOLS = REPOSITORY / "tools"
sys.path.insert(0, str(TOOLS))
import signatures  # noqa: E402


@pytest.mark.slow
def test_every_difference_has_a_reason() -> None:
    checked = subprocess.run([sys.executable, str(TOOLS / "signatures.py")], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("ours", "theirs", "found"),
    [
        ("x, y, name=None", "x, y, name=None", []),
        ("x, y, name=None, more=1", "x, y, name=None", []),
        ("x, name=None", "x, y, name=None", ["lacks y"]),
        ("y, x", "x, y", ["order y, x"]),
        ("x, axis=0", "x, axis=1", ["axis=0 for 1"]),
        ("x, axis", "x, axis=None", ["axis=(none) for None"]),
        ("x, strides=[1, 1]", "x, strides=(1, 1)", []),
        ("x, rate=1.0", "x, rate=1", []),
        ("x, init=<Zeros>", "x, init=<zeros>", []),
        ("x, **kwargs", "x, y=None", ["takes y among others"]),
        ("x, z", "x", ["needs z"]),
        ("x", "x, *args", ["lacks *"]),
        ("x, *, name=None", "x, name=None", ["order x"]),
    ],
)
def test_differences_of_signatures(ours: str, theirs: str, found: list[str]) -> None:
    assert list(signatures.differences(signatures.parsed(ours), signatures.parsed(theirs))) == found


def test_defaults_with_commas_and_brackets_are_read_whole() -> None:
    found = signatures.parsed("x, window=(1, (2, 3)), text=', ', *, steps=[1, 2], **more")
    assert found.positional == {"x": signatures.REQUIRED, "window": "(1, (2, 3))", "text": "', '"}
    assert found.named == {"steps": "[1, 2]"}
    assert found.more == (False, True)
