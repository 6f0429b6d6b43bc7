"""Measures Headwater beside TensorFlow 1.15: the same programs under both, alternating, in one run.

    python benchmarks/run.py --peer PATH_TO_PYTHON_WITH_TENSORFLOW_1_15

Prints a table of medians and ratios, with the processor time that a step takes in all processes together, which other
work on the machine changes little, and where it goes (see ``processor.py``). Saves it as ``build/bench/bench.json``
with a plot beside it. Medians are compared with those of the newest run on the same kind of machine in
``benchmarks/past_runs.jsonl``, and kept there. Without a peer it measures Headwater alone.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import past_runs
from processor import PLACES, Sampling, Times, peak_memory, sum_of, times_of

PROGRAMS = Path(__file__).parent / "programs"
PROFILED = ("linear.py", "mlp.py", "mlp_sync.py", "local_run.py", "large.py", "lenet.py")
"""Programs of which ``perf``, where there is one, tells where Headwater's processor time goes."""
OURS = "Headwater"
PEER = "TensorFlow 1.15"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One thing that is measured.

    Attributes:
      name: in the table.
      program: file in ``programs/``.
      workers: how many worker tasks; 0 for a program of one process.
      wanted: the ratio that Headwater is to reach.
      arguments: for the program.
      virtual_gpus: how many GPUs the CPU stands in for.
      servers: how many ``ps`` tasks, where there are workers.
      ours: file that Headwater runs in its place, of a program without graphs that moves the same bytes.
    """

    name: str
    program: str
    workers: int
    wanted: float
    arguments: tuple[str, ...] = ()
    virtual_gpus: int = 0
    servers: int = 1
    ours: str = ""


CASES = (
    Case(name="local Session.run", program="local_run.py", workers=0, wanted=8),
    *(
        Case(
            name=f"Session.run of {count} operations",
            program="local_run.py",
            workers=0,
            wanted=6,
            arguments=(f"--operations={count}",),
        )
        for count in (10, 100, 1000)
    ),
    Case(name="linear, 1 ps + 1 worker", program="linear.py", workers=1, wanted=8),
    Case(name="linear, 1 ps + 2 workers", program="linear.py", workers=2, wanted=8),
    Case(name="mlp, 1 ps + 1 worker", program="mlp.py", workers=1, wanted=4),
    Case(name="mlp, 1 ps + 2 workers", program="mlp.py", workers=2, wanted=4),
    Case(name="mlp synchronous, 1 ps + 2 workers", program="mlp_sync.py", workers=2, wanted=4),
    Case(name="100 MB, 1 ps + 1 worker", program="large.py", workers=1, wanted=3),
    Case(
        name="200 MB tree of JAX, 1 ps + 1 worker",
        program="large.py",
        ours="tree_jax.py",
        workers=1,
        wanted=3,
        arguments=("--megabytes=200",),
    ),
    Case(name="queue of records, examples/s", program="queue_records.py", workers=0, wanted=8),
    Case(name="LeNet step", program="lenet.py", workers=0, wanted=3),
    Case(name="LeNet forward", program="lenet.py", workers=0, wanted=3, arguments=("--forward",)),
    Case(
        name="step of 4 towers",
        program="lenet.py",
        workers=0,
        wanted=1,
        arguments=("--towers=4", "--batch=25"),
        virtual_gpus=4,
    ),
    *(
        Case(
            name=f"embeddings, {servers} ps + {workers} worker{'s'[: workers - 1]}, batch {batch}, rows/s",
            program="embeddings.py",
            workers=workers,
            servers=servers,
            wanted=3,
            arguments=(f"--batch={batch}",),
        )
        for servers in (1, 2)
        for workers in (1, 2)
        for batch in (256, 2048)
    ),
    Case(name="tf.data of records, examples/s", program="dataset_records.py", workers=0, wanted=8),
)


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on at this moment."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in held]
    for server in held:
        server.close()
    return ports


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What one run of a case showed.

    Attributes:
      rate: steps per second, summed over the workers.
      times: of each job, or ``""`` for a program of one process: processor time and waits per step, of all its tasks
        together. Workers tell their own; of a ``ps``, ``/proc`` does, where there is one.
      shares: of each of `processor.PLACES` in the processor time; None where nothing was sampled.
      told: all that workers told; the first one's word where several told the same.
      memory: of each job, the most that one of its tasks held, in bytes.
    """

    rate: float
    times: dict[str, Times]
    shares: dict[str, float] | None = None
    told: dict[str, Any] = field(default_factory=dict[str, Any])
    memory: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def processor_us(self) -> float:
        """Processor time per step of all processes, in microseconds."""
        return 1e6 * sum(times.total for times in self.times.values())


def measure(
    case: Case, python: list[str], seconds: float, *, program: str = "", sample: bool = False, gpus: bool = False
) -> Measured:
    """Runs a case once.

    Args:
      program: file in ``programs/`` that runs in the place of the case's.
      seconds: how long a worker counts its steps.
      sample: have ``perf`` tell where the processor time goes; it takes some itself.
      gpus: let programs see the GPUs, whose memory they then take as they need it.
    """
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="2", PYTHONWARNINGS="ignore")
    environment |= {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"} if gpus else {"CUDA_VISIBLE_DEVICES": ""}
    if case.virtual_gpus:
        environment["HEADWATER_VIRTUAL_GPUS"] = str(case.virtual_gpus)
    command = [*python, str(PROGRAMS / (program or case.program)), f"--seconds={seconds}", *case.arguments]
    hosts = [f"127.0.0.1:{port}" for port in free_ports(case.servers + case.workers if case.workers else 0)]
    jobs = {"ps": hosts[: case.servers], "worker": hosts[case.servers :]} if case.workers else {}
    flags = [f"--{job}_hosts={','.join(addresses)}" for job, addresses in jobs.items()]
    running: dict[str, list[Running]] = {}
    try:
        for job, addresses in jobs.items():
            tasks = [[f"--job_name={job}", f"--task_index={index}"] for index in range(len(addresses))]
            running[job] = [Running([*command, *flags, *task], environment) for task in tasks]
        workers = running["worker"] if jobs else running.setdefault("", [Running(command, environment)])
        for worker in workers:
            worker.line("measuring")
        sampling = Sampling([task.pid for tasks in running.values() for task in tasks]) if sample else None
        servers = running.get("ps", [])
        began, before = time.monotonic(), sum_of(times_of(task.pid) for task in servers)
        first = workers[0].line("rate")
        window, after = time.monotonic() - began, sum_of(times_of(task.pid) for task in servers)
        memory = {job: max(peak_memory(task.pid) for task in tasks) for job, tasks in running.items()}
        lines = [first, *(worker.line("rate") for worker in workers[1:])]
        shares = None if sampling is None else sampling.shares()
        for worker in workers:
            worker.end()
    finally:
        for task in [task for tasks in running.values() for task in tasks]:
            task.kill()
    steps_per_s = sum(line["steps_per_s"] for line in lines)
    per_step = [
        Times(**{name: line[name] * line["steps_per_s"] / steps_per_s for name in ("user", "system", "switches")})
        for line in lines
    ]
    times = {"worker" if jobs else "": sum_of(per_step)}
    if servers:
        times["ps"] = (after - before).per(window * steps_per_s)
    told = {key: value for line in reversed(lines) for key, value in line.items()}
    return Measured(rate=sum(line["rate"] for line in lines), shares=shares, times=times, told=told, memory=memory)


class Running:
    """A program that was started, and the lines of JSON that it prints."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._command = command
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `kill`
        self._process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self.pid = self._process.pid

    def line(self, key: str) -> dict[str, Any]:
        """The next line that has ``key``; ends this program where the other one ends without it."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{") and key in (found := json.loads(line)):
                return found
        sys.exit(self._failed())

    def end(self) -> None:
        """Waits for its end."""
        if self._process.wait():
            sys.exit(self._failed())

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def _failed(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        return f"{' '.join(self._command)} failed ({code}):\n{self._errors.read()[-3000:]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="a python that has TensorFlow 1.15")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--only", default="", help="measure only cases whose name contains this")
    parser.add_argument("--gpus", action="store_true", help="let the programs use the machine's GPUs")
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    args = parser.parse_args()
    contenders = {OURS: [sys.executable, "-m", "headwater", "exec"]} | ({PEER: [args.peer]} if args.peer else {})
    results: list[dict[str, Any]] = []
    machine = past_runs.machine_kind() + (", GPUs in use" if args.gpus else "")
    for case in [case for case in CASES if args.only in case.name]:
        runs: dict[str, list[Measured]] = {name: [] for name in contenders}
        for _ in range(args.rounds):
            for name, python in contenders.items():
                program = case.ours if name == OURS else ""
                runs[name].append(measure(case, python, args.seconds, program=program, gpus=args.gpus))
        medians = {name: statistics.median(run.rate for run in found) for name, found in runs.items()}
        processor = {name: statistics.median(run.processor_us for run in found) for name, found in runs.items()}
        result: dict[str, Any] = {"case": case.name, "wanted": case.wanted, "medians": medians}
        result["ratio"] = medians[OURS] / medians[PEER] if args.peer else None
        result["rates"] = {name: [run.rate for run in found] for name, found in runs.items()}
        result["processor_us"] = processor
        result["by_job"] = by_job(runs[OURS])
        if case.program in PROFILED and not case.ours:
            sampled = measure(case, contenders[OURS], args.seconds, sample=True, gpus=args.gpus)
            if sampled.shares is not None:
                result["places_us"] = {place: processor[OURS] * share for place, share in sampled.shares.items()}
        results.append(result)
        print(_row(result), flush=True)
        if before := past_runs.newest(case.name, machine):
            print(f"  {past_runs.compared(_figures(result), case.name, before)}", flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "bench.json").write_text(json.dumps(results, indent=1))
    if args.peer:
        plot(results, args.out / "bench.png")
    cases = {str(result["case"]): _figures(result) for result in results}
    past_runs.keep(
        past_runs.Run(commit=past_runs.commit(), machine=machine, date=time.strftime("%Y-%m-%d"), cases=cases)
    )
    print(f"saved in {args.out} and {past_runs.PAST_RUNS}")


def _figures(result: Mapping[str, Any]) -> past_runs.Figures:
    """What is kept of a case."""
    return past_runs.Figures(
        rate=result["medians"][OURS], processor_us=result["processor_us"][OURS], ratio=result["ratio"]
    )


def by_job(runs: list[Measured]) -> dict[str, dict[str, float]]:
    """Of each job: processor time per step in user mode and in kernel mode, in microseconds, and waits per step."""
    return {
        job: {
            "user_us": 1e6 * statistics.median(run.times[job].user for run in runs),
            "kernel_us": 1e6 * statistics.median(run.times[job].system for run in runs),
            "waits": statistics.median(run.times[job].switches for run in runs),
        }
        for job in runs[0].times
    }


def _row(result: Mapping[str, Any]) -> str:
    medians = "  ".join(f"{name} {rate:10.1f}/s" for name, rate in result["medians"].items())
    ratio = "" if result["ratio"] is None else f"  {result['ratio']:6.2f}x (at least {result['wanted']:g}x)"
    lines = [f"{result['case']!s:28s} {medians}{ratio}"]
    if result["processor_us"]:
        processor = ", ".join(f"{name} {time_us:.0f} us" for name, time_us in result["processor_us"].items())
        lines.append(f"  processor time per step: {processor}")
    for job, found in result["by_job"].items() if "places_us" in result or len(result["by_job"]) > 1 else ():
        lines.append(
            f"  {job or 'process'}: {found['user_us']:.0f} us user, {found['kernel_us']:.0f} us kernel mode, "
            f"{found['waits']:.1f} waits per step"
        )
    if places := result.get("places_us"):
        lines.append("  by place: " + ", ".join(f"{place} {places[place]:.0f}" for place in PLACES) + " us")
    return "\n".join(lines)


def plot(results: list[dict[str, Any]], path: Path) -> None:
    """Draws the ratios beside what they are to reach."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 0.5 * len(results) + 1.5), layout="constrained")
    names = [str(result["case"]) for result in results]
    axes.barh(names, [result["ratio"] for result in results], color="#2a6f97", label=f"{OURS} / {PEER}")
    axes.scatter([result["wanted"] for result in results], names, color="#d00000", zorder=2, label="at least")
    axes.axvline(1, color="grey", linewidth=0.8)
    axes.invert_yaxis()
    axes.set_xlabel("steps per second, ratio of medians")
    axes.legend()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
