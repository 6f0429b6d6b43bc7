"""Trains for long on real processes that are disturbed all along, and looks whether anything grows.

    python -m tests.soak.run --minutes 60

Two ``ps`` and two workers train; every so often one of them is stopped for a while, or a worker is killed and started
anew. Workers check that each acknowledged step was applied exactly once. Memory, descriptors and threads of every task
and its steps per second are drawn. It fails where a worker does, or where something has grown.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

from tests.support.processes import Process, Processes, processes

PROGRAM = Path(__file__).with_name("program.py")
_MIB = 1 << 20
#: Memory may be this much more at the end than after a quarter of the time, in MiB and as a part of it.
_MORE_MIB, _MORE = 24.0, 0.05
#: So may descriptors and threads: a connection that was just made anew takes some of both.
_MORE_OTHERS = 8


@dataclass(kw_only=True)
class Life:
    """A task from its start to its end.

    Attributes:
      name: of the task.
      process: it.
      samples: seconds since the beginning, MiB of memory, descriptors, threads, steps so far.
    """

    name: str
    process: Process
    samples: list[tuple[float, float, int, int, int]] = field(default_factory=list[tuple[float, float, int, int, int]])

    def look(self, now: float) -> None:
        """Another sample, if it lives."""
        try:
            told = psutil.Process(self.process.pid)
            with told.oneshot():
                memory, threads = told.memory_info().rss / _MIB, told.num_threads()
                self.samples.append((now, memory, told.num_fds(), threads, self._steps()))
        except psutil.Error:
            return

    def _steps(self) -> int:
        lines = [line for line in self.process.output.splitlines() if line.startswith("steps ")]
        return int(lines[-1].split()[1]) if lines else 0

    def growth(self, seconds: float) -> list[str]:
        """What has grown, in words; nothing of a life shorter than half of ``seconds``."""
        samples = np.array(self.samples)
        if not len(samples) or samples[-1, 0] - samples[0, 0] < seconds / 2:
            return []
        late = samples[len(samples) // 4 :]
        quarter = max(1, len(late) // 4)
        early, end = np.median(late[:quarter], axis=0), np.median(late[-quarter:], axis=0)
        found: list[str] = []
        if end[1] - early[1] > _MORE_MIB + _MORE * early[1]:
            found.append(f"memory of {self.name} has grown from {early[1]:.0f} to {end[1]:.0f} MiB")
        for at, what in ((2, "descriptors"), (3, "threads")):
            if end[at] - early[at] > _MORE_OTHERS:
                found.append(f"{what} of {self.name} have grown from {early[at]:.0f} to {end[at]:.0f}")
        return found


class Soak:
    """The cluster, and what happens to it.

    Args:
      cluster: its processes.
      folder: for checkpoints.
      seconds: how long to train.
      seed: of what happens.
    """

    def __init__(self, cluster: Processes, folder: str, seconds: float, seed: int) -> None:
        self._cluster = cluster
        self._folder = folder
        self._seconds = seconds
        self._chance = random.Random(seed)
        self._began = time.monotonic()
        self._until = time.time() + seconds
        self._pause = threading.Event()
        self.lives: list[Life] = []
        self.events: list[tuple[float, str]] = []
        self._tasks = {f"{job}{index}": self._start(job, index) for job in ("ps", "worker") for index in range(2)}

    def _start(self, job: str, index: int) -> Life:
        arguments = f"--folder={self._folder}", f"--until={self._until}"
        life = Life(name=f"{job}{index}", process=self._cluster.start(job, index, PROGRAM, *arguments))
        self.lives.append(life)
        return life

    def run(self, every_s: float) -> None:
        """Disturbs and looks until the time is over, then waits for all tasks; AssertionError where one has failed."""
        for kind, due in zip(self._kinds(), itertools.count(every_s, every_s), strict=False):
            while (now := time.monotonic() - self._began) < min(due, self._seconds):
                for life in self._tasks.values():
                    life.look(now)
                self._say(now)
                self._pause.wait(min(5.0, every_s / 2))
            if due > self._seconds - every_s:
                break
            self._disturb(kind, now)
        for life in self._tasks.values():
            life.process.succeeds()

    def _kinds(self) -> Iterator[str]:
        """Stops of the first ``ps`` and so on, and starts of the second worker, in a new order each time."""
        while True:
            kinds = ["ps0", "ps1", "worker0", "worker1", "start worker1"]
            self._chance.shuffle(kinds)
            yield from kinds

    def _disturb(self, kind: str, now: float) -> None:
        self.events.append((now, kind))
        if kind.startswith("start"):
            self._tasks["worker1"].process.kill()
            self._tasks["worker1"] = self._start("worker", 1)
            return
        pid = self._tasks[kind].process.pid
        os.kill(pid, signal.SIGSTOP)
        self._pause.wait(self._chance.uniform(0.2, 8.0))
        os.kill(pid, signal.SIGCONT)

    def _say(self, now: float) -> None:
        parts = [
            f"{life.name} {life.samples[-1][1]:.0f} MiB" + (f" {life.samples[-1][4]} steps" * bool(life.samples[-1][4]))
            for life in self._tasks.values()
            if life.samples
        ]
        print(f"\r{now:6.0f} of {self._seconds:.0f} s: {', '.join(parts)}", end="", flush=True)

    def draw(self, path: Path) -> None:
        """Memory and steps per second of all tasks."""
        import matplotlib as mpl

        mpl.use("agg")
        from matplotlib import pyplot

        figure, (memory, rate) = pyplot.subplots(2, 1, figsize=(10, 6), sharex=True, layout="constrained")
        names = list(self._tasks)
        for life in self.lives:
            samples, color = np.array(life.samples), f"C{names.index(life.name)}"
            if len(samples) < 2:
                continue
            first = life is next(other for other in self.lives if other.name == life.name)
            memory.plot(samples[:, 0], samples[:, 1], color=color, label=life.name if first else None)
            if samples[-1, 4]:
                rates = np.diff(samples[:, 4]) / np.diff(samples[:, 0])
                rate.plot(samples[1:, 0], rates, color=color, label=life.name if first else None)
        for axes, what in ((memory, "memory, MiB"), (rate, "steps/s")):
            axes.set(ylabel=what, ylim=(0, None))
            axes.grid(alpha=0.3)
            for at, _ in self.events:
                axes.axvline(at, color="grey", alpha=0.3, linewidth=0.7)
            axes.legend(loc="lower right", ncols=len(names))
        rate.set_xlabel("seconds; grey: a task is stopped, or a worker started anew")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)


def main() -> int:
    """Runs what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--every", type=float, default=30.0, help="seconds between two disturbances")
    parser.add_argument("--seed", type=int, default=0, help="of what happens when")
    parser.add_argument("--plot", type=Path, default=Path("build/soak.png"))
    options = parser.parse_args()
    seconds = 60.0 * options.minutes
    with tempfile.TemporaryDirectory(prefix="headwater-soak-") as folder, processes(ps=2, worker=2) as cluster:
        soak = Soak(cluster, folder, seconds, options.seed)
        try:
            soak.run(options.every)
        finally:
            print()
            soak.draw(options.plot)
            print(f"drawn: {options.plot}")
        grown = [line for life in soak.lives for line in life.growth(seconds)]
        steps = sum(life.samples[-1][4] for life in soak.lives if life.samples)
    print(f"{steps} steps, {len(soak.events)} disturbances: {'; '.join(grown) or 'nothing has grown'}")
    return bool(grown)


if __name__ == "__main__":
    sys.exit(main())
