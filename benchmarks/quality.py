"""Trains the same model while parameter servers are killed, in each mode of recovery, and draws how good it gets.

    python benchmarks/quality.py --mnist FOLDER

A worker trains a small network on handwritten digits (without ``--mnist`` on made-up images) with Adam and two ps, as a
graph and with JAX. After each ``--between`` updates one of the ps is killed and started again, in turns; the worker
computes ``--updates`` of them, whatever becomes of them. Checkpoints, copies and states are made every ``--every``
updates. For five seeds of first values and batches this shows the loss of test digits, as a picture and a table.

A failure every 150 updates at 200 updates/s stands for one every minute of a longer training: what is lost is a part of
the updates between two failures, however long these take.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from tasks import HEADWATER, Task, free_addresses

from headwater.data.mnist_data import read_idx

PROGRAMS = Path(__file__).parent / "programs"
LINE = re.compile(r"at (\d+) loss (\S+)")
COPY = re.compile(r"has a copy of (?:shard |the state of /job:ps/task:)(\d+) ")


@dataclass(frozen=True, kw_only=True)
class Mode:
    """What is done against the loss of a ps.

    Attributes:
      name: for people.
      program: in `PROGRAMS`.
      keep: what the program does; see there.
      disturbed: whether ps are killed.
      own: whether each ps of a graph saves its own state.
      copies: whether each part has a second copy.
      colour: in the picture.
    """

    name: str
    program: str
    keep: str = ""
    disturbed: bool = True
    own: bool = False
    copies: bool = False
    colour: str


MODES = (
    Mode(name="graph, undisturbed", program="quality.py", disturbed=False, colour="#222222"),
    Mode(name="graph, no checkpoint", program="quality.py", colour="#c1121f"),
    Mode(name="graph, checkpoints (together)", program="quality.py", keep="checkpoint", colour="#f4a259"),
    Mode(name="graph, own states", program="quality.py", own=True, colour="#2a6f97"),
    Mode(name="graph, two copies", program="quality.py", copies=True, colour="#6a994e"),
    Mode(name="JAX, undisturbed", program="quality_jax.py", disturbed=False, colour="#777777"),
    Mode(name="JAX, copy by the chief", program="quality_jax.py", keep="copy", colour="#bc6c25"),
    Mode(name="JAX, own states", program="quality_jax.py", keep="own", colour="#4ea8de"),
    Mode(name="JAX, two copies", program="quality_jax.py", keep="replicas", copies=True, colour="#2d6a4f"),
)


class Worker(Task):
    """A worker whose losses are read, or a ps whose copies are."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.losses: dict[int, float] = {}
        self.over = False
        self.copies: set[int] = set()
        super().__init__(command, env)

    def hear(self, line: str) -> None:
        if found := LINE.match(line):
            self.losses[int(found[1])] = float(found[2])
        elif found := COPY.search(line):
            self.copies.add(int(found[1]))
        self.over = self.over or line == "over\n"

    def has_come_to(self, update: int) -> None:
        """Waits until the worker has computed an update."""
        self.wait_for(lambda: update in self.losses or self.process.poll() is not None)
        if update not in self.losses:
            raise RuntimeError("".join(self.output[-30:]))


def train(mode: Mode, seed: int, data: Path, options: argparse.Namespace) -> dict[int, float]:
    """The loss by number of computed updates."""
    hosts = free_addresses(3)
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        env = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONUNBUFFERED": "1"}
        if mode.own:
            env |= {"HEADWATER_SAVES": str(folder), "HEADWATER_SAVE_EVERY_S": f"{options.every / options.rate:g}"}
        if mode.copies:
            env["HEADWATER_REPLICAS"] = "2"
        command = [*HEADWATER, str(PROGRAMS / mode.program), f"--data={data}", f"--seed={seed}", f"--keep={mode.keep}"]
        command += [f"--updates={options.updates}", f"--rate={options.rate}", f"--gate={options.between}"]
        command += [f"--every={options.every}", f"--folder={folder}"]

        def start(job: str, index: int) -> Worker:
            cluster = {"ps": hosts[:2], "worker": hosts[2:]}
            config = json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})
            task = Worker(command, {**env, "TF_CONFIG": config})
            ends.callback(task.end)
            return task

        servers = [start("ps", index) for index in range(2)]
        worker = start("worker", 0)
        for number, gate in enumerate(range(options.between, options.updates, options.between)):
            worker.has_come_to(gate)
            if mode.copies:  # one loss at a time: each part has two copies again
                for shard, server in enumerate(servers):
                    server.wait_for(lambda shard=shard: any(shard in one.copies for one in servers))
            worker.tell("continue")
            if mode.disturbed:
                which = 1 - number % 2
                servers[which].end()
                for server in servers:
                    server.copies.clear()
                servers[which] = start("ps", which)
        worker.has_come_to(options.updates)
        return worker.losses


def run(mode: Mode, seed: int, data: Path, options: argparse.Namespace) -> dict[int, float]:
    """As `train`, and keeps the result: with ``--resume`` it is not asked for again."""
    path = options.output.parent / "quality" / f"{mode.name.replace(' ', '-')}-{seed}.json"
    if options.resume and path.exists():
        return {int(update): loss for update, loss in json.loads(path.read_text()).items()}
    losses = train(mode, seed, data, options)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(losses))
    print(f"{mode.name}, seed {seed}: {losses[options.updates]:.4f}", flush=True)
    return losses


def read_digits(folder: Path | None, path: Path) -> str:
    """Writes 10,000 images and 2,000 others for tests; what they are."""
    if folder is None:
        random = np.random.default_rng(0)
        kinds = random.normal(size=(10, 40)) @ random.normal(size=(40, 784)) / 8
        labels = random.integers(0, 10, 12_000)
        images = np.tanh(kinds[labels] + 2.0 * random.normal(size=(12_000, 784)))
        what = "made-up images"
    else:
        images = read_idx(folder / "train-images-idx3-ubyte.gz", 3).reshape(-1, 784)[:12_000] / 255.0
        labels = read_idx(folder / "train-labels-idx1-ubyte.gz", 1)[:12_000]
        what = "handwritten digits"
    images, labels = np.asarray(images, np.float32), np.asarray(labels, np.int64)
    np.savez(
        path, images=images[:10_000], labels=labels[:10_000], test_images=images[10_000:], test_labels=labels[10_000:]
    )
    return what


def draw(found: dict[str, list[dict[int, float]]], path: Path, title: str, between: int) -> None:
    """The mean loss on the way, and the last one of each seed."""
    mpl.use("Agg")
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    way, last = figure.subplots(1, 2, width_ratios=(3, 2))
    for at, mode in enumerate(mode for mode in MODES if mode.name in found):
        runs = found[mode.name]
        steps = sorted(runs[0])
        style = "-" if mode.program == "quality.py" else "--"
        way.plot(
            steps, [np.mean([run[step] for run in runs]) for step in steps], style, color=mode.colour, label=mode.name
        )
        ends = [run[steps[-1]] for run in runs]
        last.plot(ends, [at] * len(ends), "o", color=mode.colour, alpha=0.6)
        last.plot([np.mean(ends)] * 2, [at - 0.3, at + 0.3], color=mode.colour)
    for gate in range(between, max(steps), between):
        way.axvline(gate, color="grey", linestyle=":", linewidth=1)
    way.set(xlabel="updates computed (dotted: a ps is killed)", ylabel="loss of test digits", yscale="log", title=title)
    way.legend(fontsize=8)
    last.set_yticks(range(len(found)), list(found))
    last.invert_yaxis()
    last.set(xlabel="loss at the end; each seed, and the mean")
    for axes in (way, last):
        axes.grid(alpha=0.3, which="both")
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--mnist", type=Path, help="a folder with the digits")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=600)
    parser.add_argument("--between", type=int, default=150, help="updates between two losses, a multiple of 25")
    parser.add_argument("--every", type=int, default=40, help="updates between two checkpoints, copies or states")
    parser.add_argument("--rate", type=float, default=200, help="updates per second at most")
    parser.add_argument("--jobs", type=int, default=3, help="how many clusters train at once")
    parser.add_argument(
        "--resume", action="store_true", help="take what an earlier run with the same settings has found"
    )
    parser.add_argument("--only", default="", help="modes whose name has this")
    parser.add_argument("--output", type=Path, default=Path("build/bench/quality.json"))
    parser.add_argument("--picture", type=Path, default=Path("build/bench/quality.png"))
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    chosen = [mode for mode in MODES if options.only in mode.name]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        data = Path(folder) / "digits.npz"
        what = read_digits(options.mnist, data)
        runs = {
            mode.name: [pool.submit(run, mode, seed, data, options) for seed in range(options.seeds)] for mode in chosen
        }
        found = {name: [one.result() for one in futures] for name, futures in runs.items()}
    print(f"{what}, {options.seeds} seeds, in {time.monotonic() - began:.0f} s")
    print("\n| mode | loss at the end | least and greatest of the seeds |\n| --- | --- | --- |")
    for name, losses in found.items():
        ends = [run[options.updates] for run in losses]
        spread = f"± {statistics.stdev(ends):.3f}" if len(ends) > 1 else ""
        print(f"| {name} | {statistics.mean(ends):.3f} {spread} | {min(ends):.3f} to {max(ends):.3f} |")
    options.output.write_text(json.dumps(found, indent=1))
    draw(found, options.picture, f"{what}, a ps lost every {options.between} updates", options.between)


if __name__ == "__main__":
    main()
