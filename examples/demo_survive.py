"""Trains survive.py on 3 ps and 4 workers while a task is killed, stopped, added or removed every ten seconds.

Plots the loss, steps/s and the times of the disturbances, compares acknowledged with applied updates, and audits the
examples. ``make demo-survive`` runs it. It fails if an acknowledged update is lost, or an example counts twice or not
at all.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

SERVERS, WORKERS = 3, 4
SHARDS = 4  # of the parameters, and of the tables
PROGRAM = Path(__file__).with_name("survive.py")
HEADWATER = (sys.executable, "-u", "-m", "headwater")


class Task:
    """A process of the cluster and its output.

    Args:
      name: of the task.
      command: starts it.
      environment: environment variables of the process.
      hear: is called with each line of output.
    """

    def __init__(
        self, name: str, command: list[str], environment: dict[str, str], hear: Callable[[str, str], None]
    ) -> None:
        self.name = name
        self.process = subprocess.Popen(
            command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self._reader = threading.Thread(target=self._read, args=[hear], daemon=True)
        self._reader.start()

    def _read(self, hear: Callable[[str, str], None]) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            hear(self.name, line.rstrip())

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.ends()

    def ends(self) -> int:
        """Waits for the process to end; returns its exit code."""
        code = self.process.wait()
        self._reader.join()
        return code


class Cluster:
    """Three ``ps`` and four workers, and their disturbances.

    Args:
      folder: for the output of tasks.
      seed: determines the disturbances.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._arguments = [str(PROGRAM), str(folder)]
        held = [socket.create_server(("127.0.0.1", 0)) for _ in range(SERVERS + WORKERS + 1)]
        hosts = [f"127.0.0.1:{each.getsockname()[1]}" for each in held]
        self._hosts = {"ps": hosts[: SERVERS + 1], "worker": hosts[SERVERS + 1 :]}
        for each in held:
            each.close()
        self._chance = random.Random(seed)
        self._began = time.time()
        self._log = (folder / "tasks.log").open("w")
        self._changed = threading.Condition()
        #: How often in succession `headwater status` has found all parts twice.
        self._found_whole = 0
        #: Tasks that have been started, and have made no step yet.
        self._fresh: set[str] = set()
        self.losses: list[tuple[float, float]] = []
        self.applied: list[int] = []
        self.events: list[tuple[float, str]] = []
        self.ps = [self._start("ps", index) for index in range(SERVERS)]
        self.workers = [self._start("worker", index) for index in range(WORKERS)]
        self._more: Task | None = None
        self._status: Task | None = None

    @property
    def now(self) -> float:
        """Returns the seconds since the start."""
        return time.time() - self._began

    # Tasks ------------------------------------------------------------------------------------------------------------

    def _start(self, job: str, index: int) -> Task:
        # The initial tasks do not know of the ps that joins.
        ps = self._hosts["ps"][: max(SERVERS, index + 1) if job == "ps" else SERVERS]
        config = json.dumps({"cluster": self._hosts | {"ps": ps}, "task": {"type": job, "index": index}})
        environment = {**os.environ, "TF_CONFIG": config, "JAX_PLATFORMS": "cpu", "HEADWATER_FIRST_PS": str(SERVERS)}
        name = f"{job} {index}"
        if job == "worker":
            self._fresh.add(name)
        return Task(name, [*HEADWATER, "exec", *self._arguments], environment, self._hear)

    def _join(self) -> Task:
        environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
        self._fresh.add("one more worker")
        command = [*HEADWATER, "worker", "--join", self._hosts["ps"][0], *self._arguments]
        return Task("one more worker", command, environment, self._hear)

    def _look(self) -> None:
        """Runs `headwater status` repeatedly to observe the ps."""
        if self._status is None or self._status.process.poll() is not None:
            # The newest task has the addresses of all others.
            command = [*HEADWATER, "status", self._hosts["ps"][len(self.ps) - 1], "--watch", "--json"]
            self._status = Task("status", command, dict(os.environ), self._hear_status)

    def _hear_status(self, _: str, line: str) -> None:
        with self._changed:
            with contextlib.suppress(ValueError):  # the text that reports an unreachable first ps is not JSON
                self._found_whole = self._found_whole + 1 if has_all_twice(json.loads(line)) else 0
            self._changed.notify_all()

    def _hear(self, task: str, line: str) -> None:
        with self._changed:
            self._log.write(f"{self.now:7.2f} {task}: {line}\n")
            self._log.flush()
            if found := re.match(r"loss (\S+) (\S+)", line):
                self.losses.append((float(found[1]) - self._began, float(found[2])))
                self._fresh.discard(task)
            elif line.startswith("applied "):
                self.applied = [int(word) for word in line.split()[1:]]
            self._changed.notify_all()

    def _await(self, ready: Callable[[], bool], what: str) -> None:
        """Waits for output of tasks; ends this program if a task has ended."""
        with self._changed:
            while not self._changed.wait_for(ready, 5):
                self._look()
                for task in [*self.ps, *self.workers]:
                    if task.process.poll() is not None:
                        sys.exit(f"{task.name} has ended, see {self._folder / 'tasks.log'}")
                print(f"\n{self.now:6.1f} s: waits until {what}", end="", flush=True)

    def begin(self) -> None:
        """Waits until all workers make steps and each shard has two replicas."""
        self._whole()

    def _whole(self) -> None:
        self._await(lambda: not self._fresh, "all workers make steps")
        # The first status may be older than the last disturbance.
        self._await(lambda: self._found_whole >= 2, "each part has two copies")

    # Disturbances -----------------------------------------------------------------------------------------------------

    def disturb(self, kind: str) -> None:
        """Applies one disturbance once the cluster is healthy: the guarantees hold for one loss at a time."""
        self._whole()
        self.events.append((self.now, kind))
        print(f"\n{self.events[-1][0]:6.1f} s: {kind}", end="", flush=True)
        self._found_whole = 0
        index = self._chance.randrange(len(self.ps))
        if kind == "a ps is killed":
            self.ps[index].kill()
            self.ps[index] = self._start("ps", index)
        elif kind == "a ps is stopped":
            self._stop_for_a_while(self.ps[index])
        elif kind == "a worker is killed":
            index = self._chance.randrange(1, WORKERS)
            self.workers[index].kill()
            self.workers[index] = self._start("worker", index)
        elif kind == "a worker is stopped":
            self._stop_for_a_while(self.workers[self._chance.randrange(WORKERS)])
        elif kind == "a ps joins, or leaves":
            if len(self.ps) > SERVERS:
                leaves = self.ps.pop()
                leaves.signal(signal.SIGTERM)
                if leaves.ends():
                    sys.exit(f"{leaves.name} has failed, see {self._folder / 'tasks.log'}")
            else:
                self.ps.append(self._start("ps", SERVERS))
            if self._status is not None:  # it is restarted with another number of ps
                self._status.kill()
        elif self._more is None:
            self._more = self._join()
        else:
            self._more.kill()
            self._more = None

    def _stop_for_a_while(self, task: Task) -> None:
        task.signal(signal.SIGSTOP)
        threading.Timer(5, task.signal, [signal.SIGCONT]).start()

    def kinds(self) -> Iterator[str]:
        """Yields the kinds of disturbances, in a new order in each round."""
        while True:
            kinds = ["a ps is killed", "a ps is stopped", "a worker is killed", "a worker is stopped"]
            self._chance.shuffle(kinds)
            for number in (0, 1):
                yield from [*kinds[2 * number :][:2], "a ps joins, or leaves", "a worker joins, or leaves"]

    def acknowledged(self) -> int:
        """Returns the number of acknowledged updates, over all incarnations of all workers."""
        return sum(path.stat().st_size for path in self._folder.glob("acknowledged-*"))

    def end(self) -> None:
        """Ends training once the cluster is healthy, and waits for all tasks."""
        self._whole()
        (self._folder / "end").touch()
        more = [self._more] if self._more is not None else []
        for task in [*self.workers, *more, *self.ps]:
            if task.ends():
                sys.exit(f"\n{task.name} has failed, see {self._folder / 'tasks.log'}")

    def stop(self) -> None:
        """Kills the remaining processes."""
        others = [task for task in (self._more, self._status) if task is not None]
        for task in [*self.ps, *self.workers, *others]:
            with contextlib.suppress(ProcessLookupError):
                task.process.kill()


def has_all_twice(reports: list[dict[str, Any]]) -> bool:
    """Returns whether each shard has a primary and a backup, according to the status of all tasks."""
    groups = [group for report in reports if report["snapshot"] for group in report["snapshot"]["groups"]]
    groups = [group for group in groups if group["copies"]]
    for role in ("primary", "backup"):
        numbers = [re.search(rf"{role} of ([\d, ]*)", group["copies"]) for group in groups]
        found = sorted(int(number) for words in numbers if words for number in re.findall(r"\d+", words[1]))
        if found != sorted([*range(SHARDS), *range(SHARDS)]):  # of the parameters, and of the tables
            return False
    return not any(group["lacks_backup"] for group in groups)


def draw(cluster: Cluster, counts: list[tuple[float, int]], path: Path, title: str) -> None:
    """Saves a plot of the loss, steps/s and the disturbances."""
    figure, (loss, rate) = plt.subplots(2, 1, sharex=True, figsize=(10, 6), layout="constrained")
    found = np.array(sorted(cluster.losses))
    loss.plot(found[:, 0], found[:, 1], ".", color="#2a6f97", alpha=0.15, markersize=3)
    width = max(1, len(found) // 100)
    mean = np.convolve(found[:, 1], np.ones(width) / width, "valid")
    loss.plot(found[width - 1 :, 0], mean, color="#2a6f97")
    at, sums = np.array(counts).T
    rate.plot(at[1:], np.diff(sums) / np.diff(at), color="#2a6f97")
    colours = {"a ps is killed": "#c1121f", "a ps is stopped": "#f4a259", "a ps joins, or leaves": "#588157"}
    for axes in (loss, rate):
        for number, (moment, kind) in enumerate(cluster.events):
            first = kind not in [other for _, other in cluster.events[:number]]
            style = "-" if "ps" in kind else ":"
            axes.axvline(
                moment, color=colours.get(kind, "grey"), linestyle=style, linewidth=1, label=kind if first else None
            )
        axes.grid(alpha=0.3)
    loss.set(ylabel="cross entropy", title=title)
    loss.legend(loc="upper right", fontsize=8)
    rate.set(ylabel="acknowledged updates / s", xlabel="seconds", ylim=(0, None))
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("build/demo-survive"), help="emptied first")
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--every", type=float, default=10, help="seconds between two disturbances")
    parser.add_argument("--seed", type=int, default=0, help="of what happens")
    args = parser.parse_args()
    folder: Path = args.folder.absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    cluster = Cluster(folder, args.seed)
    counts, pause, over = list[tuple[float, int]](), threading.Event(), threading.Event()

    def count() -> None:
        while not over.wait(1):
            counts.append((cluster.now, cluster.acknowledged()))

    try:
        cluster.begin()
        threading.Thread(target=count, daemon=True).start()
        until = cluster.now + args.seconds
        for kind in cluster.kinds():
            pause.wait(args.every)
            if cluster.now > until - args.every:
                break
            cluster.disturb(kind)
        over.set()
        cluster.end()
    finally:
        cluster.stop()
    print()
    acknowledged, applied = cluster.acknowledged(), cluster.applied
    lost = max(acknowledged - min(applied), 0)
    audit = subprocess.run([*HEADWATER, "audit", str(folder / "journals")], check=False, text=True, capture_output=True)
    verdict = audit.stdout.splitlines()[-1] if audit.stdout else audit.stderr
    losses = [value for _, value in sorted(cluster.losses)]
    print(f"loss {np.mean(losses[:50]):.3f} -> {np.mean(losses[-50:]):.3f}; {len(cluster.events)} disturbances")
    print(f"updates acknowledged: {acknowledged:,}; applied on the ps: {applied}; lost: {lost}")
    print(verdict)
    draw(cluster, counts, folder / "survive.png", f"{len(cluster.events)} disturbances, {lost} updates lost\n{verdict}")
    print(f"picture: {folder / 'survive.png'}; output of the tasks: {folder / 'tasks.log'}")
    if lost or audit.returncode:
        sys.exit(1)


if __name__ == "__main__":
    main()
