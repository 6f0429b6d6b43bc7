"""Records outcomes of chains: ``python -m tests.chains.record PYTHON [CHAIN ...]``, with TensorFlow 1.15's PYTHON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
PROGRAMS = FOLDER / "programs"
EXPECTED = FOLDER / "expected.json"
CHAINS = sorted(path.stem for path in PROGRAMS.glob("*.py") if path.stem != "parts")


def outcome(chain: str, *command: str | Path) -> dict[str, Any]:
    """Returns the losses and predictions that a chain prints; ``command`` precedes the program's path."""
    environment = os.environ | {"PYTHONPATH": str(PROGRAMS)}
    done = subprocess.run(
        [*command, PROGRAMS / f"{chain}.py"], text=True, capture_output=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def main(python: str, *chains: str) -> None:
    expected = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    for chain in chains or CHAINS:
        expected[chain] = outcome(chain, python, "-W", "ignore")
    lines = [f"{json.dumps(chain)}: {json.dumps(found)}" for chain, found in sorted(expected.items())]
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
