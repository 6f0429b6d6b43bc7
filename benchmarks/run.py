"""Measures Headwater beside TensorFlow 1.15: the same programs under both, alternating, in one run.

    python benchmarks/run.py --peer PATH_TO_PYTHON_WITH_TENSORFLOW_1_15

Prints a table of medians and ratios, and saves it as ``build/bench/bench.json`` with a plot beside it. Without a peer
it measures Headwater alone.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
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
    """

    name: str
    program: str
    workers: int
    wanted: float
    arguments: tuple[str, ...] = ()
    virtual_gpus: int = 0
    servers: int = 1


CASES = (
    Case(name="local Session.run", program="local_run.py", workers=0, wanted=3),
    *(
        Case(
            name=f"Session.run of {count} operations",
            program="local_run.py",
            workers=0,
            wanted=3,
            arguments=(f"--operations={count}",),
        )
        for count in (10, 100, 1000)
    ),
    Case(name="linear, 1 ps + 1 worker", program="linear.py", workers=1, wanted=4),
    Case(name="linear, 1 ps + 2 workers", program="linear.py", workers=2, wanted=4),
    Case(name="mlp, 1 ps + 1 worker", program="mlp.py", workers=1, wanted=3),
    Case(name="mlp, 1 ps + 2 workers", program="mlp.py", workers=2, wanted=3),
    Case(name="mlp synchronous, 1 ps + 2 workers", program="mlp_sync.py", workers=2, wanted=3),
    Case(name="100 MB, 1 ps + 1 worker", program="large.py", workers=1, wanted=2),
    Case(name="queue of records, examples/s", program="queue_records.py", workers=0, wanted=3),
    Case(name="LeNet step", program="lenet.py", workers=0, wanted=1),
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
    Case(name="tf.data of records, examples/s", program="dataset_records.py", workers=0, wanted=3),
)


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on at this moment."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in held]
    for server in held:
        server.close()
    return ports


def measure(case: Case, python: list[str], seconds: float) -> float:
    """Steps per second of ``case``, summed over its workers."""
    environment = dict(os.environ, CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="2", PYTHONWARNINGS="ignore")
    if case.virtual_gpus:
        environment["HEADWATER_VIRTUAL_GPUS"] = str(case.virtual_gpus)
    command = [*python, str(PROGRAMS / case.program), f"--seconds={seconds}", *case.arguments]
    if not case.workers:
        return _rate(_start(command, environment))
    hosts = [f"127.0.0.1:{port}" for port in free_ports(case.servers + case.workers)]
    jobs = {"ps": hosts[: case.servers], "worker": hosts[case.servers :]}
    flags = [f"--{job}_hosts={','.join(addresses)}" for job, addresses in jobs.items()]

    def start(job: str) -> list[subprocess.Popen[str]]:
        return [
            _start([*command, *flags, f"--job_name={job}", f"--task_index={index}"], environment)
            for index in range(len(jobs[job]))
        ]

    servers = start("ps")
    try:
        return sum(_rate(worker) for worker in start("worker"))
    finally:
        for server in servers:
            server.kill()
            server.communicate()


def _start(command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _rate(process: subprocess.Popen[str]) -> float:
    out, errors = process.communicate()
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if process.returncode or not lines:
        sys.exit(f"{' '.join(process.args)} failed ({process.returncode}):\n{errors[-3000:]}")  # type: ignore[arg-type]
    return float(json.loads(lines[-1])["rate"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="a python that has TensorFlow 1.15")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--only", default="", help="measure only cases whose name contains this")
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    args = parser.parse_args()
    contenders = {OURS: [sys.executable, "-m", "headwater", "exec"]} | ({PEER: [args.peer]} if args.peer else {})
    results: list[dict[str, object]] = []
    for case in [case for case in CASES if args.only in case.name]:
        rates: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(args.rounds):
            for name, python in contenders.items():
                rates[name].append(measure(case, python, args.seconds))
        medians = {name: statistics.median(found) for name, found in rates.items()}
        ratio = medians[OURS] / medians[PEER] if args.peer else None
        results.append({"case": case.name, "wanted": case.wanted, "ratio": ratio, "medians": medians, "rates": rates})
        print(_row(results[-1]), flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "bench.json").write_text(json.dumps(results, indent=1))
    if args.peer:
        plot(results, args.out / "bench.png")
    print(f"saved in {args.out}")


def _row(result: dict[str, object]) -> str:
    medians = "  ".join(f"{name} {rate:10.1f}/s" for name, rate in result["medians"].items())  # type: ignore[attr-defined]
    ratio = "" if result["ratio"] is None else f"  {result['ratio']:6.2f}x (at least {result['wanted']:g}x)"
    return f"{result['case']!s:28s} {medians}{ratio}"


def plot(results: list[dict[str, object]], path: Path) -> None:
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
