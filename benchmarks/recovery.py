"""Measures what the loss of one parameter server of two costs: seconds until training goes on, and updates lost.

    python benchmarks/recovery.py --peer PYTHON_WITH_TENSORFLOW_1.15

Each of two ps has variables of 100 MB (``--mb``). One is killed while it trains, and started again at once. Prints a
table for programs without checkpoints, with a checkpoint every 10 s, with own states every 5 s, and with two copies of
each part; without ``--peer`` without TensorFlow. Saves it as ``build/bench/recovery.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tasks import HEADWATER, Task, free_addresses

PROGRAMS = Path(__file__).parent / "programs"
GRAPH, JAX = PROGRAMS / "recovery.py", PROGRAMS / "recovery_jax.py"
LINE = re.compile(r"at ([\d.]+) counts (\d+) (\d+)")


@dataclass(frozen=True, kw_only=True)
class Way:
    """What a program does against a loss.

    Attributes:
      name: for people.
      python: the command that runs it.
      program: which.
      checkpoints: whether it saves checkpoints.
      own: whether each ps saves its own state.
      arguments: of the program.
    """

    name: str
    python: list[str]
    program: Path = GRAPH
    checkpoints: bool = False
    own: bool = False
    arguments: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a loss has cost.

    Attributes:
      seconds: from the kill to the end of the next step.
      starting: of these, until the process that was started again serves; 0 where that is not waited for.
      lost: updates of the ps that was killed.
      other: updates of the other one.
      steps_per_s: before the kill.
    """

    seconds: float
    starting: float
    lost: int
    other: int
    steps_per_s: float


class Steps(Task):
    """A worker whose steps are read, or a ps."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.steps: list[tuple[float, int, int]] = []
        super().__init__(command, env)

    def hear(self, line: str) -> None:
        if found := LINE.match(line):
            self.steps.append((float(found[1]), int(found[2]), int(found[3])))

    def step_after(self, at: float) -> tuple[float, int, int]:
        """The first step that ended after a time."""
        self.wait_for(lambda: bool(self.steps) and self.steps[-1][0] > at)
        return next(step for step in self.steps if step[0] > at)


def measure(way: Way, mb: int, train_s: float) -> Outcome:
    hosts = free_addresses(3)
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONUNBUFFERED": "1"}
        if way.own:
            env |= {"HEADWATER_SAVES": str(folder / "saves"), "HEADWATER_SAVE_EVERY_S": "5"}

        def start(job: str, index: int) -> Steps:
            command = [*way.python, str(way.program)]
            if way.program is JAX:
                cluster = {"ps": hosts[:2], "worker": hosts[2:]}
                env["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})
                command += [str(mb), *way.arguments]
            else:
                command += [f"--ps_hosts={','.join(hosts[:2])}", f"--worker_hosts={hosts[2]}", f"--mb={mb}"]
                command += [f"--job_name={job}", f"--task_index={index}"]
                command += [f"--checkpoints={folder / 'checkpoints'}"] if way.checkpoints else []
            task = Steps(command, dict(env))
            ends.callback(task.end)
            return task

        servers = [start("ps", index) for index in range(2)]
        worker = start("worker", 0)
        first, *_ = worker.step_after(0.0)
        worker.step_after(first + train_s)
        servers[1].end()
        killed = time.time()
        servers[1] = start("ps", 1)
        # What was under way when it was killed may have got its answer.
        before, after = worker.steps[-1], worker.step_after(killed)
        while after[2] > before[2] and after[0] - before[0] <= 1.0 and way.program is not JAX:
            before, after = after, worker.step_after(after[0])
        trained = [step for step in worker.steps if step[0] <= killed]
        return Outcome(
            seconds=after[0] - killed,
            starting=max(0.0, servers[1].served_at - killed),
            lost=max(0, before[2] - after[2] + 1),
            other=max(0, before[1] - after[1] + 1),
            steps_per_s=(len(trained) - 1) / (trained[-1][0] - trained[0][0]),
        )


def ways(peer: str | None) -> list[Way]:
    found = [
        Way(name="no checkpoint", python=HEADWATER),
        Way(name="a checkpoint every 10 s", python=HEADWATER, checkpoints=True),
        Way(name="own states every 5 s (deltas)", python=HEADWATER, own=True),
        Way(name="two copies (JAX, pushes all values)", python=HEADWATER, program=JAX, arguments=["2"]),
    ]
    if peer is not None:
        found.append(Way(name="TensorFlow 1.15, no checkpoint", python=[peer]))
        found.append(Way(name="TensorFlow 1.15, a checkpoint every 10 s", python=[peer], checkpoints=True))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--peer", help="a python with TensorFlow 1.15")
    parser.add_argument("--mb", type=int, default=100, help="size of the variables of each ps")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=25.0, help="of training before the loss")
    parser.add_argument("--only", default="", help="ways whose name has this")
    parser.add_argument("--output", type=Path, default=Path("build/bench/recovery.json"))
    arguments = parser.parse_args()
    table: dict[str, list[Outcome]] = {}
    chosen = [way for way in ways(arguments.peer) if arguments.only in way.name]
    for _ in range(arguments.rounds):
        for way in chosen:
            table.setdefault(way.name, []).append(measure(way, arguments.mb, arguments.seconds))
            print(f"{way.name}: {table[way.name][-1]}", flush=True)
    print(f"\n| {arguments.mb} MB on each ps | seconds | to start the ps | updates lost | of the other ps | steps/s |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, outcomes in table.items():
        found = [statistics.median(getattr(one, column) for one in outcomes) for column in asdict(outcomes[0])]
        print(f"| {name} | {found[0]:.1f} | {found[1]:.1f} | {found[2]:.0f} | {found[3]:.0f} | {found[4]:.1f} |")
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps({name: list(map(asdict, one)) for name, one in table.items()}, indent=1))


if __name__ == "__main__":
    main()
