"""Measures what precautions against the loss of a parameter server cost: a second copy, or own states every 5 s.

    python benchmarks/precautions.py copies
    python benchmarks/precautions.py saves --seconds 20 --pauses 0

Two ps and one worker, that pauses in each step: as long as an accelerator computes, the processor's cores are free.
Without a pause all share the cores that there are. A cluster with the precaution and one without stand side by side,
and train in turn. Prints a table and saves it as ``build/bench/precautions.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from contextlib import ExitStack
from pathlib import Path

import psutil
from tasks import HEADWATER, Task, free_addresses

PROGRAMS = Path(__file__).parent / "programs"
OF_JAX = "precautions_jax.py"
KINDS = {
    "graph, 784-100-10, Adam": ("precautions_graph.py", []),
    "JAX, 256 bytes, SGD": (OF_JAX, ["--bytes=256"]),
    "JAX, 10 MB, SGD": (OF_JAX, ["--bytes=10000000"]),
    "JAX, table of 200,000 rows of 16, Adagrad": (OF_JAX, ["--bytes=256", "--rows=200000"]),
}
TASKS = [("ps", 0), ("ps", 1), ("worker", 0)]


class Cluster:
    """Two ps and a worker.

    Args:
      ends: ends its tasks.
      kind: what they run.
      precaution: ``copies``, ``saves``, or none.
      first: whether its tasks run before all else on the machine, once they are ready.
    """

    def __init__(self, ends: ExitStack, kind: str, precaution: str, *, first: bool) -> None:
        program, more = KINDS[kind]
        arguments, environ = list(more), dict[str, str]()
        saves = ends.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        if precaution == "copies":
            arguments, environ = [*more, "--replicas=2"], {"HEADWATER_REPLICAS": "2"}
        elif precaution == "saves":
            arguments, environ = [*more, f"--saves={saves}"], {"HEADWATER_SAVES": saves}
        hosts = free_addresses(3)
        cluster = {"ps": hosts[:2], "worker": hosts[2:]}
        self._tasks: list[Task] = []
        for job, index in TASKS:
            env = {**os.environ, "PYTHONUNBUFFERED": "1", "JAX_PLATFORMS": "cpu"}
            command = [*HEADWATER, str(PROGRAMS / program)]
            if program == OF_JAX:
                env["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})
                command += arguments
            else:
                env |= environ
                command += [f"--{name}_hosts={','.join(found)}" for name, found in cluster.items()]
                command += [f"--job_name={job}", f"--task_index={index}"]
            self._tasks.append(Task(command, env))
            ends.callback(self._tasks[-1].end)
        self._worker = self._tasks[-1]
        self._worker.wait_for(lambda: "ready\n" in self._worker.output)
        if first:
            for task in self._tasks:
                task.run_first()

    def train(self, pause_ms: float, seconds: float) -> dict[str, float]:
        """Steps/s, and of each task the processor time of a step in ms."""
        before, said = self._used(), len(self._worker.output)
        self._worker.tell(f"{pause_ms / 1000} {seconds}")
        self._worker.wait_for(lambda: any(line.startswith("rate ") for line in self._worker.output[said:]))
        _, steps, took = self._worker.output[-1].split()
        used = [1000 * (now - then) / int(steps) for now, then in zip(self._used(), before, strict=True)]
        return {"rate": int(steps) / float(took), "ps": statistics.mean(used[:2]), "worker": used[2]}

    def _used(self) -> list[float]:
        """Processor time of each task so far, in seconds."""
        return [sum(psutil.Process(task.process.pid).cpu_times()[:2]) for task in self._tasks]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("precaution", choices=["copies", "saves"])
    parser.add_argument("--pauses", type=float, nargs="+", default=[0, 2, 5, 10, 20], help="in each step, in ms")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of training each time")
    parser.add_argument("--first", action="store_true", help="tasks run before all else on the machine, see tasks.py")
    parser.add_argument("--only", default="", help="kinds whose name has this")
    parser.add_argument("--output", type=Path, default=Path("build/bench/precautions.json"))
    arguments = parser.parse_args()
    table: dict[str, dict[str, list[list[dict[str, float]]]]] = {}
    columns = "", "pause, ms", "steps/s without", "with", "cost", "of rounds", "ms of a ps", "ms of the worker"
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    for kind in (kind for kind in KINDS if arguments.only in kind):
        with ExitStack() as ends:
            clusters = [Cluster(ends, kind, its, first=arguments.first) for its in ("none", arguments.precaution)]
            for pause in arguments.pauses:
                for cluster in clusters:
                    cluster.train(pause, 1)
                rounds = [
                    [cluster.train(pause, arguments.seconds) for cluster in clusters] for _ in range(arguments.rounds)
                ]
                table.setdefault(kind, {})[str(pause)] = rounds
                print(line_of(kind, pause, rounds), f"load {os.getloadavg()[0]:.1f}", flush=True)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(table, indent=1))


def line_of(kind: str, pause: float, rounds: list[list[dict[str, float]]]) -> str:
    """A line of the table."""
    costs = sorted(100 * (1 - two["rate"] / one["rate"]) for one, two in rounds)
    one, two = ({name: statistics.median(each[at][name] for each in rounds) for name in rounds[0][0]} for at in (0, 1))
    cells = (
        kind,
        f"{pause:g}",
        f"{one['rate']:.1f}",
        f"{two['rate']:.1f}",
        f"{statistics.median(costs):.1f} %",
        f"{costs[0]:.1f} to {costs[-1]:.1f} %",
        f"{one['ps']:.2f}, {two['ps']:.2f}",
        f"{one['worker']:.2f}, {two['worker']:.2f}",
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
