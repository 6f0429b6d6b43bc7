"""Compares four consistency modes with the same model, with one of two workers slowed down.

Synchronous, k of n (the first gradient of two counts), bounded staleness (at most 4 steps apart) and asynchronous
training of a classifier, on one parameter server and two workers. The plot shows the loss on held-out examples by
update and by second: stricter modes reduce the loss more per update, weaker modes make more updates per second.

    python examples/consistency.py --folder build/consistency

It runs `consistency_task.py` under ``headwater run``, once for each mode.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

CHOICES = ("synchronous 2", "k-of-n 1 2", "bounded-staleness 4", "asynchronous")
TASK = Path(__file__).with_name("consistency_task.py")


def run(choice, arguments):
    """Trains with one mode; returns steps, seconds and losses."""
    command = [
        *(sys.executable, "-m", "headwater", "run", "--ps", "1", "--workers", "2", str(TASK), "--choice", choice),
        *("--seconds", str(arguments.seconds), "--slow_down", str(arguments.slow_down)),
    ]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    lines = [line.partition("] ")[2] for line in output.splitlines() if line.startswith("[worker 0]")]
    points = [json.loads(line) for line in lines if line.startswith("{")]
    staleness = [line for line in lines if line.startswith("staleness")][-1]
    return points, staleness


def draw(found, picture):
    """Saves a plot of the losses by update and by second."""
    figure, panels = plt.subplots(1, 2, sharey=True, figsize=(11, 4.5), layout="constrained")
    for choice, points in found.items():
        losses = [point["loss"] for point in points]
        for axes, by in zip(panels, ("step", "seconds"), strict=True):
            axes.plot([point[by] for point in points], losses, label=choice)
    panels[0].set(xlabel="update", ylabel="loss on held-out examples", yscale="log", title="by update")
    panels[1].set(xlabel="second", title="by second; one of two workers is slowed down")
    for axes in panels:
        axes.grid(alpha=0.3, which="both")
    panels[0].legend()
    figure.savefig(picture, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("build/consistency"), help="folder for the plot")
    parser.add_argument("--seconds", type=float, default=10, help="seconds of training of each mode")
    parser.add_argument("--slow_down", type=float, default=0.02, help="seconds by which worker 1 delays each step")
    arguments = parser.parse_args()
    found = {}
    for choice in CHOICES:
        found[choice], staleness = run(choice, arguments)
        last = found[choice][-1]
        print(f"{choice:20s} {last['step']:6d} updates, loss {last['loss']:.4f}, {staleness}", flush=True)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    (arguments.folder / "consistency.json").write_text(json.dumps(found))
    draw(found, arguments.folder / "consistency.png")
    print(f"picture {arguments.folder / 'consistency.png'}")


if __name__ == "__main__":
    main()
