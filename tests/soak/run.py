"""Trains for a long time on real processes with repeated failures, and checks that no resource use grows.

    python -m tests.soak.run --minutes 60
    python -m tests.soak.run --minutes 10 --copies graph --every 10

Two ``ps`` and two workers train. At intervals one of them is paused (SIGSTOP) for a while, or a worker is killed and
restarted. With ``--copies``, three ``ps`` keep two copies of their state, and every task, including the chief, is
paused or killed and restarted; the next failure follows once the cluster has recovered. Workers check that each
acknowledged step was applied exactly once. Memory, descriptors, threads and steps per second of every
task are recorded, and memory and steps are plotted. The run fails if a worker fails or, without ``--copies``, if
memory, descriptors or threads have grown.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

from headwater.errors import OpError
from headwater.platform.cli.status import ClusterWatch
from tests.support.processes import Process, Processes, processes

PROGRAM = Path(__file__).with_name("program.py")
OF_JAX = Path(__file__).with_name("program_jax.py")
AUDIT = (sys.executable, "-u", "-m", "headwater", "audit")
_MIB = 1 << 20
#: Permitted growth of memory between the end of the first quarter and the end, in MiB and as a fraction.
_MORE_MIB, _MORE = 24.0, 0.05
#: Permitted growth of the numbers of descriptors and of threads: a new connection takes some of both.
_MORE_OTHERS = 8
#: Permitted time until each part has two copies again and each worker makes steps, in seconds.
_PATIENCE_S = 180.0


@dataclass(kw_only=True)
class Incarnation:
    """A task from its start to its end.

    Attributes:
      name: of the task.
      process: the process of this incarnation.
      samples: seconds since the beginning, MiB of memory, descriptors, threads, steps so far.
    """

    name: str
    process: Process
    samples: list[tuple[float, float, int, int, int]] = field(default_factory=list[tuple[float, float, int, int, int]])

    def look(self, now: float) -> None:
        """Adds a sample if the process still runs."""
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
        """Messages about the figures that have grown; empty if the task ran for less than half of ``seconds``."""
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
    """The cluster, and the failures caused in it.

    Args:
      cluster: its processes.
      folder: for checkpoints.
      seconds: how long to train.
      seed: of the order of the failures.
      program: what each task runs.
      environ: environment variables of each task.
    """

    def __init__(
        self,
        cluster: Processes,
        folder: str,
        seconds: float,
        seed: int,
        program: Path = PROGRAM,
        environ: dict[str, str] | None = None,
    ) -> None:
        self._cluster = cluster
        self._folder = folder
        self._program = program
        self._environ = environ or {}
        self._seconds = seconds
        self._chance = random.Random(seed)
        self._began = time.monotonic()
        self._until = time.time() + seconds
        self._pause = threading.Event()
        self.incarnations: list[Incarnation] = []
        self.events: list[tuple[float, str]] = []
        self._tasks = {
            f"{job}{index}": self._start(job, index)
            for job, hosts in cluster.hosts.items()
            for index in range(len(hosts))
        }

    def _start(self, job: str, index: int) -> Incarnation:
        arguments = f"--folder={self._folder}", f"--until={self._until}"
        config = json.dumps({"cluster": self._cluster.hosts, "task": {"type": job, "index": index}})
        environ = {"TF_CONFIG": config, **self._environ}
        incarnation = Incarnation(
            name=f"{job}{index}", process=self._cluster.start(job, index, self._program, *arguments, **environ)
        )
        self.incarnations.append(incarnation)
        return incarnation

    def run(self, every_s: float) -> None:
        """Causes failures and samples figures until the time is over, then waits for all tasks to end.

        Raises:
          AssertionError: a task has failed.
        """
        for kind in self._kinds():
            due = self._now() + every_s
            while (now := self._now()) < min(due, self._seconds) or not self._is_well(now - due):
                for incarnation in self._tasks.values():
                    incarnation.look(now)
                self._say(now)
                self._pause.wait(min(5.0, every_s / 2) if now < due else 0.5)
            if now > self._seconds - every_s:
                break
            self._disturb(kind, now)
        for incarnation in self._tasks.values():
            incarnation.process.succeeds()

    def _now(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    def _is_well(self, since_s: float) -> bool:
        """Whether the next failure, due ``since_s`` ago, may be caused now."""
        del since_s
        return True

    def _kinds(self) -> Iterator[str]:
        """Pauses of each task and restarts of the second worker, in a new order each round."""
        while True:
            kinds = ["ps0", "ps1", "worker0", "worker1", "start worker1"]
            self._chance.shuffle(kinds)
            yield from kinds

    def _disturb(self, kind: str, now: float) -> None:
        self.events.append((now, kind))
        task = kind.removeprefix("start ")
        if task != kind:
            self._tasks[task].process.kill()
            self._tasks[task] = self._start(task[:-1], int(task[-1]))
            return
        pid = self._tasks[task].process.pid
        os.kill(pid, signal.SIGSTOP)
        self._pause.wait(self._chance.uniform(0.2, 8.0))
        os.kill(pid, signal.SIGCONT)

    def check(self) -> str:
        """Returns lines about the incarnations of all tasks; raises AssertionError if a check of them fails."""
        return ""

    def _say(self, now: float) -> None:
        parts = [
            f"{incarnation.name} {incarnation.samples[-1][1]:.0f} MiB"
            + (f" {incarnation.samples[-1][4]} steps" * bool(incarnation.samples[-1][4]))
            for incarnation in self._tasks.values()
            if incarnation.samples
        ]
        print(f"\r{now:6.0f} of {self._seconds:.0f} s: {', '.join(parts)}", end="", flush=True)

    def draw(self, path: Path) -> None:
        """Memory and steps per second of all tasks."""
        import matplotlib as mpl

        mpl.use("agg")
        from matplotlib import pyplot

        figure, (memory, rate) = pyplot.subplots(2, 1, figsize=(10, 6), sharex=True, layout="constrained")
        names = list(self._tasks)
        for incarnation in self.incarnations:
            samples, color = np.array(incarnation.samples), f"C{names.index(incarnation.name)}"
            if len(samples) < 2:
                continue
            first = incarnation is next(other for other in self.incarnations if other.name == incarnation.name)
            memory.plot(samples[:, 0], samples[:, 1], color=color, label=incarnation.name if first else None)
            if samples[-1, 4]:
                rates = np.diff(samples[:, 4]) / np.diff(samples[:, 0])
                rate.plot(samples[1:, 0], rates, color=color, label=incarnation.name if first else None)
        for axes, what in ((memory, "memory, MiB"), (rate, "steps/s")):
            axes.set(ylabel=what, ylim=(0, None))
            axes.grid(alpha=0.3)
            for at, _ in self.events:
                axes.axvline(at, color="grey", alpha=0.3, linewidth=0.7)
            axes.legend(loc="lower right", ncols=len(names))
        rate.set_xlabel("seconds; grey: a task is stopped, or a worker restarted")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)


class SoakOfCopies(Soak):
    """A cluster whose ``ps`` keep two copies of their state, so that one failure at a time loses nothing."""

    _stepped: dict[str, int] = {}  # by worker: its step lines before the last failure

    def _kinds(self) -> Iterator[str]:
        """Pauses and restarts of all tasks, in a new order each round."""
        while True:
            kinds = [f"{start}{task}" for task in self._tasks for start in ("", "start ")]
            self._chance.shuffle(kinds)
            yield from kinds

    def _disturb(self, kind: str, now: float) -> None:
        self._stepped = {name: 0 if kind == f"start {name}" else self._step_lines(name) for name in self._tasks}
        super()._disturb(kind, now)

    def _step_lines(self, name: str) -> int:
        return len(re.findall("^steps ", self._tasks[name].process.output, re.MULTILINE))

    def _is_well(self, since_s: float) -> bool:
        """Whether each part has two copies and each worker makes steps: Headwater guarantees to survive one loss only.

        Raises:
          AssertionError: this is not reached within `_PATIENCE_S`, or a task has ended.
        """
        for incarnation in self._tasks.values():
            assert incarnation.process.runs or self._now() > self._seconds, f"{incarnation.name} has ended"
        assert since_s < _PATIENCE_S, f"the cluster has not recovered {since_s:.0f} s after {self.events[-1:]}"
        workers = [name for name in self._tasks if name.startswith("worker")]
        stepping = all(self._step_lines(name) > self._stepped.get(name, 0) for name in workers)
        return self._now() > self._seconds or (stepping and self._all_twice())

    def _all_twice(self) -> bool:
        """Whether each part has a serving copy and a backup that could replace it without a loss.

        Further copies of a graph's parts may be spares.
        """
        try:
            watch = ClusterWatch(self._cluster.hosts["ps"][0])
        except OpError:
            return False
        with closing(watch):
            snapshots = [report.snapshot for report in watch.reports() if "ps" in report.task]
        copies = [group.copies for one in snapshots if one is not None for group in one.groups if group.copies]
        whole = [words for words in copies if re.match("primary of shard .* backup on ", words)]
        follow = [words for words in copies if words.startswith("backup of shard ")]
        return len(whole) == len(follow) == len(self._cluster.hosts["ps"])

    def check(self) -> str:
        chiefs = [incarnation.process.output for incarnation in self.incarnations if incarnation.name == "worker0"]
        for output in chiefs[1:]:
            assert "initialised again" not in output, "a chief has restored a checkpoint"
        kinds = Counter(re.sub(r"\d", "", kind) for _, kind in self.events)
        return f"{re.findall('^counted .*', chiefs[-1], re.MULTILINE)}, {dict(kinds)}"


def main() -> int:
    """Runs what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--every", type=float, default=30.0, help="seconds between two failures")
    parser.add_argument("--seed", type=int, default=0, help="seed of the order and duration of failures")
    parser.add_argument("--copies", choices=["graph", "jax"], help="two copies of the ps state, in this program")
    parser.add_argument("--plot", type=Path, default=Path("build/soak.png"))
    options = parser.parse_args()
    seconds, tasks = 60.0 * options.minutes, 3 if options.copies else 2
    with tempfile.TemporaryDirectory(prefix="headwater-soak-") as folder, processes(ps=tasks, worker=tasks) as cluster:
        if options.copies:
            program, environ = (OF_JAX, {}) if options.copies == "jax" else (PROGRAM, {"HEADWATER_REPLICAS": "2"})
            soak = SoakOfCopies(cluster, folder, seconds, options.seed, program, environ)
        else:
            soak = Soak(cluster, folder, seconds, options.seed)
        try:
            soak.run(options.every)
            told = soak.check()
            if options.copies == "jax":
                told += f"; {cluster.run(*AUDIT, f'{folder}/journals').succeeds().splitlines()[-1]}"
        finally:
            print()
            soak.draw(options.plot)
            print(f"drawn: {options.plot}")
        grown = (
            []
            if options.copies
            else [line for incarnation in soak.incarnations for line in incarnation.growth(seconds)]
        )
        steps = sum(incarnation.samples[-1][4] for incarnation in soak.incarnations if incarnation.samples)
    print(f"{steps} steps, {len(soak.events)} failures: {'; '.join(grown) or told or 'nothing has grown'}")
    return bool(grown)


if __name__ == "__main__":
    sys.exit(main())
