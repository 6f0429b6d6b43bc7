"""Runs linear.py on one parameter server and two workers, and plots the convergence.

Prints w and b and each worker's speed, and writes a plot and a TensorBoard log folder. ``make demo`` runs it.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

WORKERS = 2


def train(folder: Path, steps: int) -> None:
    """Runs the cluster. The output of tasks is in ``folder/output``, checkpoints and events in ``folder/log``."""
    cluster = subprocess.run(
        [
            *(sys.executable, "-m", "headwater", "run", "--ps", "1", "--workers", str(WORKERS), "--flags"),
            *("--log-dir", folder / "output", Path(__file__).with_name("linear.py")),
            *("--logdir", folder / "log", "--steps", str(steps)),
        ],
        check=False,
    )
    if cluster.returncode:
        sys.exit(cluster.returncode)  # it has printed the reason


def scalars(log: Path) -> dict[str, tuple[list[int], list[float]]]:
    """Returns the steps and values of each scalar in the event files of ``log``."""
    events = EventAccumulator(str(log))
    events.Reload()
    return {
        name: ([event.step for event in events.Scalars(name)], [event.value for event in events.Scalars(name)])
        for name in events.scalars.Keys()
    }


def draw(curves: dict[str, tuple[list[int], list[float]]], picture: Path) -> None:
    """Saves a plot of the loss and of both parameters by step."""
    figure, (upper, lower) = plt.subplots(2, 1, sharex=True, figsize=(8, 6), layout="constrained")
    upper.plot(*curves["mean_squared_error"], color="tab:blue")
    upper.set(ylabel="mean squared error", yscale="log", title="Y = w X + b from noisy samples of Y = 2 X + 10")
    for name, truth, colour in (("w", 2, "tab:orange"), ("b", 10, "tab:green")):
        lower.plot(*curves[name], color=colour, label=name)
        lower.axhline(truth, color=colour, linestyle=":", linewidth=1)
    lower.set(xlabel=f"step, of {WORKERS} workers together", ylabel="parameter")
    lower.legend()
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    figure.savefig(picture, dpi=120)


def printed(folder: Path, task: str, label: str) -> str:
    """Returns the text that ``task`` last printed after ``label``."""
    lines = (folder / "output" / f"{task}.log").read_text().splitlines()
    return next(line.removeprefix(label).strip() for line in reversed(lines) if line.startswith(label))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("build/demo"), help="folder for all output; emptied first")
    parser.add_argument("--steps", type=int, default=20000, help="steps of all workers together")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    train(folder, arguments.steps)
    draw(scalars(folder / "log"), folder / "linear.png")

    print()
    print(f"result        {printed(folder, 'worker-0', 'Result:')}")
    for index in range(WORKERS):
        print(f"worker {index}      {printed(folder, f'worker-{index}', 'Speed:')}")
    print(f"picture       {folder / 'linear.png'}")
    print(f"TensorBoard   headwater tensorboard {folder / 'log'}")


if __name__ == "__main__":
    main()
