"""The disk is full while a program saves: earlier checkpoints stay complete, the error names the cause, training
continues.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_a_full_disk_while_saving(tmp_path: Path) -> None:
    program = Path(__file__).with_name("full_disk_program.py")
    done = subprocess.run([sys.executable, str(program), str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    facts = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert facts.pop("refused").startswith(f"{tmp_path}/model-2.data-"), facts
    assert facts == {"step": "3", "newest": f"{tmp_path}/model-1", "whole": "1.0", "then": "3.0"}
    assert {name.partition(".")[0] for name in os.listdir(tmp_path)} == {"checkpoint", "model-1", "model-3"}
