"""The page about compatibility describes the present state."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_the_page_is_up_to_date() -> None:
    command = [sys.executable, str(REPOSITORY / "tools" / "compatibility.py"), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
