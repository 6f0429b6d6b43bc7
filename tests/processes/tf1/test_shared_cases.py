"""Sparse features from records to an exported model, and ragged tensors: the output equals TensorFlow 1.15's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
@pytest.mark.parametrize("name", ["pipeline", "ragged"])
def test_prints_the_same_as_tensorflow(name: str, shared: Path) -> None:
    program = shared / "cases" / "sparse" / f"{name}.py"
    if not program.exists():
        pytest.skip(f"no {program}")
    command = [sys.executable, "-m", "headwater", "exec", program]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert done.stdout.splitlines() == program.with_suffix(".expected").read_text().splitlines(), done.stderr
