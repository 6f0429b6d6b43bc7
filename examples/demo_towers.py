"""Runs mnist_towers.py on four GPUs or four virtual GPUs, and plots the convergence.

Prints the test accuracy, and writes a plot, a trace and a TensorBoard log folder. ``make demo-towers`` runs it. It
needs the digits: see ``headwater make-records --help``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from demo import scalars

TOWERS = 4
WANTED = 0.97
HEADWATER = (sys.executable, "-m", "headwater")
DATA = "HEADWATER_DATA_DIR"


def environment() -> dict[str, str]:
    """Returns this process's environment, with virtual GPUs and a default folder of digits next to the project."""
    beside = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    found = dict(os.environ, HEADWATER_VIRTUAL_GPUS=os.environ.get("HEADWATER_VIRTUAL_GPUS", str(TOWERS)))
    if not found.get(DATA) and (beside / "mnist").is_dir():
        found[DATA] = str(beside)
    return found


def call(*arguments: object) -> None:
    """Runs a command of Headwater; exits if it fails, since it has printed the reason."""
    done = subprocess.run([*HEADWATER, *map(str, arguments)], env=environment(), check=False)
    if done.returncode:
        sys.exit(done.returncode)


def draw(log: Path, picture: Path) -> float:
    """Saves a plot of the loss by step; returns the test accuracy."""
    curves = scalars(log)
    accuracy = curves["test_accuracy"][1][-1]
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    axes.plot(*curves["loss"], color="tab:blue", marker=".")
    axes.set(xlabel=f"step of {TOWERS} towers", ylabel="mean loss of all towers", yscale="log")
    axes.set_title(f"MNIST on {TOWERS} towers: {accuracy:.2%} of the test digits recognised")
    axes.grid(alpha=0.3)
    figure.savefig(picture, dpi=120)
    return accuracy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("build/demo-towers"),
        help="folder for all output; its log folder is emptied first",
    )
    parser.add_argument("--steps", type=int, default=400, help="steps, each of all towers together")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    log, records, picture = folder / "log", folder / "records", folder / "towers.png"
    shutil.rmtree(log, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)

    if not (records / "test.tfrecords").exists():
        call("make-records", "mnist", records)
    program = Path(__file__).with_name("mnist_towers.py")
    call("exec", program, "--data", records, "--logdir", log, "--towers", TOWERS, "--steps", arguments.steps)
    accuracy = draw(log, picture)

    print()
    print(f"picture       {picture}")
    print(f"trace         {log / 'trace.json'}, for chrome://tracing")
    print(f"TensorBoard   headwater tensorboard {log}")
    if accuracy < WANTED:
        sys.exit(f"only {accuracy:.2%} of the test digits were recognised; {WANTED:.0%} are wanted")


if __name__ == "__main__":
    main()
