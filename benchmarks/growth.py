"""Measures what grows with a cluster: steps a second by workers and by ps, the time until the first step, memory.

It also tells how long the longest step of a worker takes while others join its job, in medians of its steps.

    python benchmarks/growth.py --peer PATH_TO_PYTHON_WITH_TENSORFLOW_1_15 --picture docs/growth.png

Each measurement is made under Headwater and under the peer in turn. Medians are saved as ``build/bench/growth.json``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from run import OURS, PEER, Case, Measured, measure

WORKERS = (1, 2, 4, 8, 16, 24)
SERVERS = (1, 2, 4)
VARIABLES = (10, 100, 1000)
#: What the second worker of ``joins.py`` does: rest, build graphs, join by the graph of the first, by one of its own.
JOINS = range(4)
#: What programs tell of themselves that is kept: the first three until the first step is done.
TOLD = ("build_s", "ready_s", "first_step_s", "longest_medians", "late_share")
COLOURS = {OURS: "#2a6f97", PEER: "#f4a259"}


def by_workers(python: list[str], workers: int, seconds: float) -> Measured:
    """Steps of the linear model, of workers that all count at the same time."""
    with tempfile.TemporaryDirectory() as together:
        case = Case(
            name="growth", program="linear.py", workers=workers, wanted=0, arguments=(f"--together={together}",)
        )
        return measure(case, python, seconds)


def by_servers(python: list[str], servers: int, seconds: float) -> Measured:
    """Steps of 2 workers of a network of two layers, its variables on ``servers`` ps."""
    return measure(Case(name="growth", program="mlp.py", workers=2, servers=servers, wanted=0), python, seconds)


def by_variables(python: list[str], variables: int) -> Measured:
    """The first step of a model with ``variables`` variables, and some more."""
    case = Case(name="growth", program="variables.py", workers=1, wanted=0, arguments=(f"--variables={variables}",))
    return measure(case, python, 1.0)


def by_joins(python: list[str], second: int, seconds: float) -> Measured:
    """Steps of a model of 200 variables, while another worker does what ``joins.py`` knows by a number."""
    case = Case(name="growth", program="joins.py", workers=2, wanted=0, arguments=(f"--second={second}",))
    return measure(case, python, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="a python that has TensorFlow 1.15")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    parser.add_argument("--picture", type=Path, help="where to draw it; by default beside the figures")
    args = parser.parse_args()
    contenders = {OURS: [sys.executable, "-m", "headwater", "exec"]} | ({PEER: [args.peer]} if args.peer else {})
    found: dict[str, dict[str, dict[int, dict[str, float]]]] = {name: {} for name in contenders}
    runs: dict[tuple[str, str, int], list[Measured]] = {}
    for _ in range(args.rounds):
        for count in WORKERS:
            for name, python in contenders.items():
                runs.setdefault((name, "workers", count), []).append(by_workers(python, count, args.seconds))
        for count in SERVERS:
            for name, python in contenders.items():
                runs.setdefault((name, "servers", count), []).append(by_servers(python, count, args.seconds))
        for count in VARIABLES:
            for name, python in contenders.items():
                runs.setdefault((name, "variables", count), []).append(by_variables(python, count))
        for second in JOINS:
            for name, python in contenders.items():
                runs.setdefault((name, "joins", second), []).append(by_joins(python, second, 5 * args.seconds))
    for (name, what, count), measured in runs.items():
        row = {key: statistics.median(figures(one)[key] for one in measured) for key in figures(measured[0])}
        found[name].setdefault(what, {})[count] = row
        print(f"{name:16s} {count:5d} {what:10s}", *(f"{key} {value:.4g}" for key, value in row.items()), flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "growth.json").write_text(json.dumps(found, indent=1))
    draw(found, args.picture or args.out / "growth.png")


def figures(measured: Measured) -> dict[str, float]:
    """What is kept of a run."""
    told = {key: measured.told[key] for key in TOLD if key in measured.told}
    memory = {f"{job}_mb": peak / 1e6 for job, peak in measured.memory.items()}
    return {"rate": measured.rate, "processor_us": measured.processor_us, **told, **memory}


def draw(found: dict[str, Any], path: Path) -> None:
    """Steps a second and memory by workers, steps a second by ps, the time until the first step by variables."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (steps, servers, first, memory) = plt.subplots(1, 4, figsize=(15, 3.6), layout="constrained")
    for name, its in found.items():
        workers = its["workers"]
        steps.plot(list(workers), [row["rate"] for row in workers.values()], "o-", color=COLOURS[name], label=name)
        for job, line in (("ps", "o-"), ("worker", "s--")):
            megabytes = [row.get(f"{job}_mb", 0.0) for row in workers.values()]
            memory.plot(list(workers), megabytes, line, color=COLOURS[name], label=f"{name}: {job}")
        servers.plot(list(SERVERS), [its["servers"][count]["rate"] for count in SERVERS], "o-", color=COLOURS[name])
        variables = its["variables"]
        until = [sum(row[key] for key in TOLD[:3]) for row in variables.values()]
        first.plot(list(variables), until, "o-", color=COLOURS[name], label=name)
    steps.set(xscale="log", xlabel="workers", ylabel="steps of all workers / s", title="1 ps, a linear model")
    steps.set_ylim(bottom=0)
    steps.set_xticks(WORKERS, [str(count) for count in WORKERS])
    servers.set(xlabel="ps", ylabel="steps of both workers / s", title="2 workers, two layers", xticks=SERVERS)
    servers.set_ylim(bottom=0)
    first.set(xscale="log", yscale="log", xlabel="variables", ylabel="s", title="From the program to its first step")
    memory.set(xscale="log", xlabel="workers", ylabel="MB", title="Memory of a task, at most")
    memory.set_xticks(WORKERS, [str(count) for count in WORKERS])
    memory.set_ylim(0, 1.5 * memory.get_ylim()[1])
    for axes in (steps, first, memory):
        axes.legend()
    for axes in (steps, servers, first, memory):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
