"""Measures embedding tables that grow: rates beside TensorFlow's recommenders-addons, and ten million keys on 2 ps.

    python benchmarks/dynamic_tables.py --peer PYTHON_WITH_TENSORFLOW_RECOMMENDERS_ADDONS --picture docs/tables.png

The peer's tables are in the training process itself; ours are on a ps, as they are on a cluster. Saves the figures as
``build/bench/dynamic_tables.json``, and draws how memory, rates and evictions go while keys come.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent / "programs"
BATCHES = (256, 2048)
OURS, PEER = "Headwater, 1 ps + 1 worker", "recommenders-addons, one process"


def lines(command: list[str]) -> list[dict[str, Any]]:
    """The lines of JSON that a program, or the worker of a cluster, prints."""
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed ({done.returncode}):\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    found = [line[line.index("{") :] for line in done.stdout.splitlines() if line.endswith("}") and "{" in line]
    return [json.loads(line) for line in found]


def ours(servers: int, *arguments: str) -> list[dict[str, Any]]:
    """What ``keys.py`` tells on ``servers`` ps and one worker."""
    run = [sys.executable, "-m", "headwater", "run", "--ps", str(servers), "--workers", "1"]
    return lines([*run, str(PROGRAMS / "keys.py"), *arguments])


def rates(peer: str | None, rounds: int, seconds: float) -> dict[str, dict[str, float]]:
    """Medians of the rounds, by case and system."""
    runs: dict[tuple[str, int], list[dict[str, float]]] = {}
    for _ in range(rounds):
        for batch in BATCHES:
            arguments = f"--batch={batch}", f"--seconds={seconds}"
            runs.setdefault((OURS, batch), []).extend(ours(1, "rate", *arguments))
            if peer is not None:
                runs.setdefault((PEER, batch), []).extend(lines([peer, str(PROGRAMS / "dynamic_tfra.py"), *arguments]))
    found: dict[str, dict[str, float]] = {}
    for (name, batch), told in runs.items():
        medians = {key: statistics.median(one[key] for one in told) for key in told[0]}
        found[f"{name}, batch {batch}"] = medians
        print(f"{name}, batch {batch}:", *(f"{key} {value:,.0f}" for key, value in medians.items()), flush=True)
    return found


def draw(grown: list[dict[str, Any]], path: Path) -> None:
    """Rows, memory, evictions and rows/s by the keys that were seen."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    seen = [each["seen"] / 1e6 for each in grown]
    figure, (rows, memory, rate) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for number, task in enumerate(sorted(grown[0]["tables"])):
        told, colour = [each["tables"][task] for each in grown], ("#2a6f97", "#f4a259")[number % 2]
        rows.plot(seen, [one["rows"] / 1e6 for one in told], color=colour, label=f"{task}: rows")
        rows.plot(seen, [one["evicted"] / 1e6 for one in told], "--", color=colour, label=f"{task}: evicted")
        memory.plot(seen, [one["nbytes"] / 1e6 for one in told], color=colour, label=task)
    rate.plot(seen, [each["rows_per_s"] / 1e6 for each in grown], color="#2a6f97")
    rows.set(title="Rows of a ps", ylabel="millions", xlabel="distinct keys seen, millions")
    memory.set(title="Memory of the table", ylabel="MB", xlabel="distinct keys seen, millions")
    rate.set(title="Looked up and trained", ylabel="million rows/s", xlabel="distinct keys seen, millions")
    for axes in (rows, memory, rate):
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    rows.legend()
    memory.legend()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="a python that has tensorflow-recommenders-addons")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--max_rows", type=int, default=3_000_000, help="on each ps; further rows are evicted")
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    parser.add_argument("--picture", type=Path, help="where to draw it; by default beside the figures")
    args = parser.parse_args()
    found = rates(args.peer, args.rounds, args.seconds)
    grown = ours(2, "grow", f"--keys={args.keys}", f"--max_rows={args.max_rows}", "--batch=8192")
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "dynamic_tables.json").write_text(json.dumps({"rates": found, "grown": grown}, indent=1))
    draw(grown, args.picture or args.out / "dynamic_tables.png")
    print(json.dumps(grown[-1]))


if __name__ == "__main__":
    main()
