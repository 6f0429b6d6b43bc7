"""The demo: one parameter server and two workers, a picture, and a log folder for TensorBoard."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[4] / "examples/demo.py"


@pytest.mark.slow
def test_the_demo_finds_w_and_b_and_draws_them(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder = tmp_path / "demo"
    result = subprocess.run(
        [sys.executable, str(DEMO), "--folder", str(folder), "--steps", "6000"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    *_, outcome, first, second, picture, log = result.stdout.splitlines()
    values = re.fullmatch(r"result +w = (\S+), b = (\S+)", outcome)
    assert values is not None
    assert float(values[1]) == pytest.approx(2, abs=0.2)
    assert float(values[2]) == pytest.approx(10, abs=0.2)
    for index, line in enumerate((first, second)):
        assert re.fullmatch(rf"worker {index} +[\d,]+ steps/s", line)
    assert picture.split() == ["picture", str(folder / "linear.png")]
    assert (folder / "linear.png").read_bytes().startswith(b"\x89PNG")
    assert log.endswith(f"headwater tensorboard {folder / 'log'}")
    assert list((folder / "log").glob("events.out.tfevents.*"))
