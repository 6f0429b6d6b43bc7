"""A process is killed while it saves Keras's files, more than fifty times: each time, the newest complete file can be
loaded.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
LIVES = 13


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("model", marks=pytest.mark.long),
        pytest.param("unnamed", marks=pytest.mark.long),
        "weights",
        pytest.param("backup", marks=pytest.mark.long),
    ],
)
def test_the_newest_file_loads(tmp_path: Path, kind: str) -> None:
    choice = random.Random(kind)
    folder = tmp_path / "files"
    folder.mkdir()
    program = Path(__file__).with_name("saves_until_killed.py")
    with subprocess.Popen(
        [sys.executable, str(program), str(folder), kind],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=1,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
    ) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None

        def read() -> tuple[str, int]:
            word, number = stdout.readline().split()
            return word, int(number)

        last, begun = 0, 0
        for _ in range(LIVES):
            stdin.write("\n")
            (_, incarnation), (_, found) = read(), read()
            assert begun - 1 <= found
            assert last <= found
            last = found
            for _ in range(choice.randint(1, 3)):
                _, begun = read()
            # Kill it at a random moment of the save that it has begun; reading the folder takes as long as parts of the
            # save.
            for _ in range(choice.randint(0, 400)):
                list(folder.iterdir())
            os.kill(incarnation, signal.SIGKILL)
            while (line := read())[0] != "ended":
                begun = line[1]
        stdin.close()
        assert process.wait() == 0
    assert last > LIVES // 2
    # An unnamed file vanishes with the process that was writing it.
    assert len(list(folder.iterdir())) <= 3
