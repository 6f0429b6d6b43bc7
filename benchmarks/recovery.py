"""Measures what the loss of one parameter server of two costs: seconds until training continues, and updates lost.

    python benchmarks/recovery.py --peer PYTHON_WITH_TENSORFLOW_1.15 --peer2 PYTHON_WITH_TENSORFLOW_2

Each of two ps has variables of 100 MB (``--mb``). One is killed while it trains, and started again at once. Prints a
table for programs without checkpoints, with a checkpoint every 10 s, with own states every 5 s, and with two copies of
each part; without ``--peer`` and ``--peer2`` without TensorFlow. A coordinator of TensorFlow 2, which ends when a ps is
lost, is started again at once, too. Saves it as ``build/bench/recovery.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from outcomes import medians, save
from tasks import HEADWATER, PATIENCE_S, Steps, free_addresses

PROGRAMS = Path(__file__).parent / "programs"
GRAPH, JAX, COORDINATED = PROGRAMS / "recovery.py", PROGRAMS / "recovery_jax.py", PROGRAMS / "recovery_tf2.py"
#: The other copy serves within this time of a loss, in seconds.
_TAKEN_OVER_S = 10.0


@dataclass(frozen=True, kw_only=True)
class Way:
    """What a program does against a loss.

    Attributes:
      name: for people.
      python: the command that runs it.
      program: which.
      checkpoints: whether it saves checkpoints.
      own: whether each ps saves its own state.
      copies: how many there are of each part.
    """

    name: str
    python: list[str]
    program: Path = GRAPH
    checkpoints: bool = False
    own: bool = False
    copies: int = 1


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


def measure(way: Way, mb: int, train_s: float) -> Outcome:
    hosts = free_addresses(4)
    cluster = {"ps": hosts[:2], "worker": hosts[2:3]}
    if way.program is COORDINATED:
        cluster["chief"] = hosts[3:]
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONUNBUFFERED": "1"}
        if way.own:
            env |= {"HEADWATER_SAVES": str(folder / "saves"), "HEADWATER_SAVE_EVERY_S": "5"}
        if way.copies > 1 and way.program is GRAPH:
            env["HEADWATER_REPLICAS"] = str(way.copies)
        arguments = [f"--mb={mb}"]
        if way.program is JAX:
            arguments.append(f"--replicas={way.copies}")
        if way.checkpoints:
            arguments.append(f"--checkpoints={folder / 'checkpoints'}")

        def start(job: str, index: int) -> Steps:
            command = [*way.python, str(way.program)]
            env["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})
            if way.program is GRAPH:
                command += [f"--{name}_hosts={','.join(its)}" for name, its in cluster.items()]
                command += [f"--job_name={job}", f"--task_index={index}"]
            task = Steps([*command, *arguments], dict(env))
            ends.callback(task.end)
            return task

        servers = [start("ps", index) for index in range(2)]
        worker = [start(job, 0) for job in cluster if job != "ps"][-1]
        first, *_ = worker.step_after(0.0)
        worker.step_after(first + train_s)
        servers[1].end()
        killed = time.time()
        servers[1] = start("ps", 1)
        trained = worker.steps
        if way.copies > 1:
            before, after = worker.longest_after(killed, _TAKEN_OVER_S)
        elif way.program is COORDINATED:
            worker.process.wait(PATIENCE_S)
            before, after = trained[-1], start("chief", 0).step_after(killed)
        else:
            # What was under way when it was killed may have got its answer.
            before, after = trained[-1], worker.step_after(killed)
            while after[2] > before[2] and after[0] - before[0] <= 1.0:
                before, after = after, worker.step_after(after[0])
        trained = [step for step in trained if step[0] <= killed]
        return Outcome(
            seconds=after[0] - killed,
            starting=max(0.0, servers[1].served_at - killed),
            lost=max(0, before[2] - after[2] + 1),
            other=max(0, before[1] - after[1] + 1),
            steps_per_s=(len(trained) - 1) / (trained[-1][0] - trained[0][0]),
        )


def ways(peer: str | None, peer2: str | None) -> list[Way]:
    found = [
        Way(name="no checkpoint", python=HEADWATER),
        Way(name="a checkpoint every 10 s", python=HEADWATER, checkpoints=True),
        Way(name="own states every 5 s (deltas)", python=HEADWATER, own=True),
        Way(name="two copies", python=HEADWATER, copies=2),
        Way(name="two copies (JAX, pushes all values)", python=HEADWATER, program=JAX, copies=2),
    ]
    if peer is not None:
        found.append(Way(name="TensorFlow 1.15, no checkpoint", python=[peer]))
        found.append(Way(name="TensorFlow 1.15, a checkpoint every 10 s", python=[peer], checkpoints=True))
    if peer2 is not None:
        for name, checkpoints in (("no checkpoint", False), ("a checkpoint every 10 s", True)):
            found.append(
                Way(name=f"TensorFlow 2, {name}", python=[peer2], program=COORDINATED, checkpoints=checkpoints)
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--peer", help="a python with TensorFlow 1.15")
    parser.add_argument("--peer2", help="a python with TensorFlow 2")
    parser.add_argument("--mb", type=int, default=100, help="size of the variables of each ps")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=25.0, help="of training before the loss")
    parser.add_argument("--only", default="", help="ways whose name has this")
    parser.add_argument("--output", type=Path, default=Path("build/bench/recovery.json"))
    arguments = parser.parse_args()
    table: dict[str, list[Outcome]] = {}
    chosen = [way for way in ways(arguments.peer, arguments.peer2) if arguments.only in way.name]
    for _ in range(arguments.rounds):
        for way in chosen:
            table.setdefault(way.name, []).append(measure(way, arguments.mb, arguments.seconds))
            print(f"{way.name}: {table[way.name][-1]}", flush=True)
    print(f"\n| {arguments.mb} MB on each ps | seconds | to start the ps | updates lost | of the other ps | steps/s |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, outcomes in table.items():
        found = medians(outcomes)
        print(f"| {name} | {found[0]:.1f} | {found[1]:.1f} | {found[2]:.0f} | {found[3]:.0f} | {found[4]:.1f} |")
    save(arguments.output, table)


if __name__ == "__main__":
    main()
