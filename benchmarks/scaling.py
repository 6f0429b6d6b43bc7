"""Measures for how long a worker waits while a ps comes and takes its share of large variables, and another one goes.

    python benchmarks/scaling.py

A worker changes 100 MB (``--mb``) on each of two ps in every step. A third one comes and gets a part of that; later the
second one gets SIGTERM, and gives the others what it has. Prints a table, and saves it as ``build/bench/scaling.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from outcomes import medians, save
from tasks import HEADWATER, Steps, free_addresses

PROGRAMS = Path(__file__).parent / "programs"
GRAPH = "recovery.py"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What is trained.

    Attributes:
      name: for people.
      program: which.
      arguments: of the program.
      environ: what its tasks have in their environment.
    """

    name: str
    program: str
    arguments: tuple[str, ...] = ()
    environ: tuple[tuple[str, str], ...] = ()


KINDS = (
    Kind(name="a graph, two copies", program=GRAPH, environ=(("HEADWATER_REPLICAS", "2"),)),
    Kind(name="JAX, shards=4", program="recovery_jax.py", arguments=("--shards=4",)),
    Kind(name="JAX, shards=4, two copies", program="recovery_jax.py", arguments=("--shards=4", "--replicas=2")),
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How long steps took, in seconds.

    Attributes:
      median: of those in which nothing happened.
      alone: the longest of these.
      coming: the longest while a third ps came and got its share.
      going: the longest while the second one gave what it had to the others.
      ended: from SIGTERM to its end.
      lost: updates that are missing at the end.
    """

    median: float
    alone: float
    coming: float
    going: float
    ended: float
    lost: int


class Cluster:
    """Two ps and a worker, and others that come.

    Args:
      ends: ends its tasks.
      kind: what it trains.
      mb: the size of the variable on each ps.
      first: whether its tasks run before all else on the machine.
    """

    def __init__(self, ends: ExitStack, kind: Kind, mb: int, *, first: bool) -> None:
        self._ends, self._kind, self._first = ends, kind, first
        self._hosts = free_addresses(4)
        self._arguments = [f"--mb={mb}", *kind.arguments]
        self._env = {**os.environ, "PYTHONUNBUFFERED": "1", "HEADWATER_FIRST_PS": "2", **dict(kind.environ)}
        self.servers = [self.start("ps", index) for index in range(2)]
        self.worker = self.start("worker", 0)

    def start(self, job: str, index: int) -> Steps:
        """Starts a task."""
        servers = self._hosts[: max(2, index + 1)] if job == "ps" else self._hosts[:2]
        cluster = {"ps": servers, "worker": self._hosts[3:]}
        command = [*HEADWATER, str(PROGRAMS / self._kind.program), *self._arguments]
        env = {**self._env, "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})}
        if self._kind.program == GRAPH:
            command += [f"--{name}_hosts={','.join(its)}" for name, its in cluster.items()]
            command += [f"--job_name={job}", f"--task_index={index}"]
        task = Steps(command, env)
        self._ends.callback(task.end)
        if self._first:
            task.run_first()
        return task

    def train(self, seconds: float) -> list[float]:
        """How long each step took that ended in the next seconds, in seconds."""
        began = time.time()
        self.worker.step_after(began + seconds)
        return self.times(began)

    def times(self, began: float) -> list[float]:
        """How long each step took that ended after a time, in seconds."""
        return [after - before for (before, *_), (after, *_) in pairwise(self.worker.steps) if after > began]

    def lost(self) -> int:
        """How many updates are missing."""
        (_, *first), *between, (_, *last) = self.worker.steps
        return max(len(between) + 1 - (after - before) for before, after in zip(first, last, strict=True))


def measure(kind: Kind, mb: int, seconds: float, *, first: bool) -> Outcome:
    with ExitStack() as ends:
        cluster = Cluster(ends, kind, mb, first=first)
        cluster.worker.step_after(0.0)
        cluster.train(seconds / 2)
        alone = cluster.train(seconds)
        cluster.start("ps", 2)
        coming = cluster.train(seconds)
        told = time.time()
        goes = cluster.servers[1]
        goes.process.terminate()
        goes.wait_for(lambda: "(has ended)\n" in goes.output)
        ended = time.time() - told
        cluster.train(1.0)
        return Outcome(
            median=statistics.median(alone),
            alone=max(alone),
            coming=max(coming),
            going=max(cluster.times(told)),
            ended=ended,
            lost=cluster.lost(),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--mb", type=int, default=100, help="size of the variable on each ps")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="of training before and after the third ps comes")
    parser.add_argument("--first", action="store_true", help="tasks run before all else on the machine, see tasks.py")
    parser.add_argument("--only", default="", help="kinds whose name has this")
    parser.add_argument("--output", type=Path, default=Path("build/bench/scaling.json"))
    arguments = parser.parse_args()
    table: dict[str, list[Outcome]] = {}
    for _ in range(arguments.rounds):
        for kind in (kind for kind in KINDS if arguments.only in kind.name):
            outcome = measure(kind, arguments.mb, arguments.seconds, first=arguments.first)
            table.setdefault(kind.name, []).append(outcome)
            print(f"{kind.name}: {outcome} load {os.getloadavg()[0]:.1f}", flush=True)
    print(f"\n| {arguments.mb} MB on each ps | {' | '.join(asdict(next(iter(table.values()))[0]))} |")
    print(f"|{' --- |' * 7}")
    for name, outcomes in table.items():
        found = medians(outcomes)
        print(f"| {name} | {' | '.join(f'{one:.2f}' for one in found[:-1])} | {found[-1]:.0f} |")
    save(arguments.output, table)


if __name__ == "__main__":
    main()
