"""Runs keras_mnist.py on two mirrored workers, kills one of them during training, and checks the accuracy.
Then runs it on one parameter server and two workers, asynchronously.

``make demo-keras`` runs it. The digits are read from HEADWATER_DATA_DIR, or are scikit-learn's.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

WANTED = 0.97
#: Of workers that do not wait for each other.
WANTED_ASYNCHRONOUSLY = 0.95
DATA = "HEADWATER_DATA_DIR"
PROGRAM = Path(__file__).with_name("keras_mnist.py")


def environment() -> dict[str, str]:
    """Returns this process's environment, with a default folder of digits next to the project if none is set."""
    beside = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    found = dict(os.environ)
    if not found.get(DATA) and (beside / "mnist").is_dir():
        found[DATA] = str(beside)
    return found


def run(launch: list[str], folder: Path, *, kill_at: int | None) -> list[float]:
    """Runs the program and returns the accuracy of each worker.

    Args:
      launch: options of ``headwater run``.
      folder: for checkpoints and events.
      kill_at: number of steps, as printed by worker 1, after which it is killed; None: it is not killed.
    """
    command = [sys.executable, "-m", "headwater", "run", *launch, str(PROGRAM), "--folder", str(folder)]
    small = DATA not in environment()
    command += ["--epochs", "40", "--report", "5"] if small else []
    print("$", " ".join(command[3:]), flush=True)
    accuracies: list[float] = []
    victim: int | None = None
    with subprocess.Popen(
        command, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if found := re.match(r"\[worker 1\] process (\d+)", line):
                victim = int(found[1])
            if found := re.search(r"accuracy ([\d.]+)", line):
                accuracies.append(float(found[1]))
            step = re.match(r"\[worker 1\] step (\d+)", line)
            if kill_at is not None and step and victim is not None and int(step[1]) >= (5 if small else kill_at):
                print(f"--- killing worker 1, process {victim}", flush=True)
                os.kill(victim, signal.SIGKILL)
                kill_at = None
    if process.returncode:
        sys.exit(process.returncode)
    if kill_at is not None:
        sys.exit("worker 1 finished before it could be killed")
    return accuracies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("build/demo-keras"), help="emptied first")
    folder: Path = parser.parse_args().folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    mirrored = run(["--workers", "2"], folder / "mirrored", kill_at=300)
    print()
    print(f"mirrored, one worker killed and restarted: {min(mirrored):.2%} of the test digits recognised")
    print(f"TensorBoard   headwater tensorboard {folder / 'mirrored' / 'log'}")
    if min(mirrored) < WANTED or max(mirrored) > min(mirrored):
        sys.exit(f"expected the same accuracy of at least {WANTED:.0%} from both workers, got {mirrored}")
    print()
    served = run(["--ps", "1", "--workers", "2"], folder / "served", kill_at=None)
    print()
    print(f"1 ps and 2 workers, asynchronously: {min(served):.2%} of the test digits recognised")
    if min(served) < WANTED_ASYNCHRONOUSLY:
        sys.exit(f"expected an accuracy of at least {WANTED_ASYNCHRONOUSLY:.0%}")


if __name__ == "__main__":
    main()
