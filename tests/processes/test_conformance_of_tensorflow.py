"""The recorded results of TensorFlow 1.15 (``tests/conformance``) equal its current results."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.conformance.compare import same

pytestmark = [pytest.mark.peer, pytest.mark.slow]

FOLDER = Path(__file__).resolve().parents[1] / "conformance"


def test_stored_outcomes_are_tensorflows(tf1_python: Path, tmp_path: Path) -> None:
    cases = sorted((FOLDER / "cases").glob("*.py"))
    subprocess.run(
        [tf1_python, "-W", "ignore", FOLDER / "run.py", tmp_path, *cases],
        check=True,
        capture_output=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    for case in cases:
        name = case.with_suffix(".json").name
        # Sums of many floats differ in the last digits between processes.
        same(json.loads((tmp_path / name).read_text()), json.loads((FOLDER / "expected" / name).read_text()), name)
