"""Measures parameter servers through Keras's ``fit`` beside mirrored training, and embedding tables, in one run.

    python benchmarks/parameter_servers.py

Prints the median steps/s of a network of two hidden layers on 1 ps and 2 workers, of both workers together, beside the
steps/s of 2 mirrored workers; and the rows/s of tables of a million rows on 2 ps. Saves them as
``build/bench/parameter_servers.json``.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parent / "programs" / "keras_fit.py"
TOWERS = Path(__file__).parent.parent / "examples" / "keras_two_towers.py"


def run(launch: list[str], program: Path, *arguments: str) -> str:
    """What the tasks of a cluster print."""
    command = [sys.executable, "-m", "headwater", "run", *launch, str(program), *arguments]
    return subprocess.run(command, text=True, capture_output=True, check=True).stdout


def steps_per_s(launch: list[str], mode: str, steps: int) -> float:
    """Updates in a second, as the slowest worker sees them. Each is made of 32 examples, whatever the mode: mirrored
    workers compute 16 each, asynchronous ones all 32 of every other update."""
    output = run(launch, PROGRAM, mode, str(steps))
    return min(float(found) for found in re.findall(r"steps/s ([\d.]+)", output))


def rows_per_s() -> tuple[float, float]:
    """Rows that all workers read in a second, and KiB that travel in a step."""
    output = run(["--ps", "2", "--workers", "2"], TOWERS, "--examples", "100000", "--epochs", "3")
    rows = [float(found.replace(",", "")) for found in re.findall(r"([\d,]+) rows/s", output)]
    kib = [float(found.replace(",", "")) for found in re.findall(r"([\d,]+) KiB in a step", output)]
    return sum(rows), statistics.mean(kib)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--output", type=Path, default=Path("build/bench/parameter_servers.json"))
    arguments = parser.parse_args()
    found: dict[str, list[float]] = {}
    for _ in range(arguments.rounds):
        for name, launch, mode in (
            ("mirrored", ["--workers", "2"], "mirrored"),
            ("async", ["--ps", "1", "--workers", "2"], "async"),
            ("sync", ["--ps", "1", "--workers", "2"], "sync"),
        ):
            found.setdefault(name, []).append(steps_per_s(launch, mode, arguments.steps))
            print(f"{name}: {found[name][-1]:,.0f} steps/s", flush=True)
        rows, kib = rows_per_s()
        found.setdefault("rows", []).append(rows)
        found.setdefault("KiB in a step", []).append(kib)
        print(f"tables: {rows:,.0f} rows/s, {kib:,.0f} KiB in a step", flush=True)
    medians = {name: statistics.median(values) for name, values in found.items()}
    for name in ("async", "sync"):
        print(f"parameter servers, {name}: {medians[name] / medians['mirrored']:.2f} times the mirrored steps/s")
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps({"runs": found, "medians": medians}, indent=1))


if __name__ == "__main__":
    main()
