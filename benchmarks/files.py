"""Measures record files, checkpoints and examples beside TensorFlow 1.15, alternating, in one run.

    python benchmarks/files.py --peer PATH_TO_PYTHON_WITH_TENSORFLOW_1_15

Prints medians per second and ratios. Headwater's checkpoints are on the disk when it says so (fsync), TensorFlow's are
not: on a disk, that is part of the difference; ``--folder`` on a memory file system takes it out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
OURS = "Headwater"
PEER = "TensorFlow 1.15"


def measure(command: list[str], folder: str | None, factor: float) -> dict[str, float]:
    """What one run of a program prints."""
    environment = dict(os.environ, CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="2", PYTHONWARNINGS="ignore")
    with tempfile.TemporaryDirectory(dir=folder) as place:
        done = subprocess.run(
            [*command, place, str(factor)], env=environment, capture_output=True, text=True, check=False
        )
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed ({done.returncode}):\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="a python that has TensorFlow 1.15")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--factor", type=float, default=1, help="more or less of everything")
    parser.add_argument("--folder", help="where to write; the system's folder for temporary files by default")
    args = parser.parse_args()
    contenders = {OURS: [sys.executable, str(PROGRAMS / "files_headwater.py")]}
    if args.peer:
        contenders[PEER] = [args.peer, str(PROGRAMS / "files_tensorflow.py")]
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in contenders}
    for _ in range(args.rounds):
        for name, command in contenders.items():
            runs[name].append(measure(command, args.folder, args.factor))
    for case in runs[OURS][0]:
        medians = {name: statistics.median(run[case] for run in found) for name, found in runs.items()}
        row = "  ".join(f"{name} {rate:12,.0f}/s" for name, rate in medians.items())
        print(f"{case:32s} {row}" + (f"  {medians[OURS] / medians[PEER]:6.2f}x" if args.peer else ""))


if __name__ == "__main__":
    main()
