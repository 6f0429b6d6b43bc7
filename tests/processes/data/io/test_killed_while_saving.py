"""A process is killed while it saves, fifty times: each time, the newest complete checkpoint can be loaded."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.tf1.training.checkpoint_reader import CheckpointReader
from headwater.tf1.training.checkpoint_state import latest_checkpoint

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("names", [pytest.param("same", marks=pytest.mark.long), "numbered"])
def test_the_newest_checkpoint_loads(tmp_path: Path, names: str) -> None:
    choice = random.Random(names)
    last = 0
    for _ in range(25):
        command = [sys.executable, str(Path(__file__).with_name("saver_program.py")), str(tmp_path), names]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            begun = 0
            for _ in range(choice.randint(2, 6)):
                begun = int(process.stdout.readline())
            # Kill it at a random moment of the save that it has begun; reading the folder takes as long as parts of the
            # save.
            for _ in range(choice.randint(0, 400)):
                list(tmp_path.iterdir())
            process.kill()
        newest = latest_checkpoint(tmp_path)
        assert newest is not None
        reader = CheckpointReader(newest)
        values = {int(value) for name in ("a", "b") for value in reader.get_tensor(name)}
        assert len(values) == 1
        saved = values.pop()
        assert begun - 1 <= saved
        assert last < saved
        last = saved
