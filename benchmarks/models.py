"""Measures the models of ``programs/models.py`` under Headwater and both TensorFlows, alternating, in one run.

    python benchmarks/models.py --peer PYTHON_WITH_TENSORFLOW_1_15 --peer2 PYTHON_WITH_TENSORFLOW_2

Prints medians for each model: seconds from the import to the end of the first step; steps per second, of all steps and
of the last third; median and worst step after the twentieth; peak memory; and ratios to the better TensorFlow. Saves
each run in ``build/bench/models.json``, and a plot of the ratios as ``models.svg``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from outcomes import medians, save

PROGRAM = Path(__file__).parent / "programs" / "models.py"
CHANGING = ("clicks", "segments", "masks", "sentences", "loops", "speech", "products", "tags", "calls")
"""Models whose sizes change in every batch."""
CONSTANT = (
    *("lenet", "mobilenet", "gan", "resnet", "alexnet", "pools", "volumes", "transformer", "unrolled", "gru"),
    *("seq2seq", "words", "factors", "clusters", "variables", "saver", "tiny", "conds"),
)
OURS = "Headwater"
LIMIT_S = 300
LONGER = ("mobilenet", "gan", "resnet", "alexnet", "volumes", "transformer", "unrolled")
"""Models whose executables take seconds to compile. They are measured three times as long."""
TITLES = ("start s", "steps/s", "at end", "median ms", "worst ms", "peak MB")
NAMES = ("rate", "late_rate", "median_ms", "worst_ms", "peak_mb")
"""Figures that the program prints, besides the times of its start, and the table has."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Figures of one run of a model, or medians of several.

    Attributes:
      start_s: import, build, initialisation and first step, in seconds.
      rate: steps per second after the first step.
      late_rate: steps per second in the last third of the steps.
      median_ms: median time of a step, in milliseconds.
      worst_ms: the longest step after the twentieth, in milliseconds.
      peak_mb: peak memory of the process, in megabytes.
    """

    start_s: float
    rate: float
    late_rate: float
    median_ms: float
    worst_ms: float
    peak_mb: float


def measure(model: str, python: Sequence[str], seconds: float) -> Outcome:
    """Trains a model once; exits with the program's error where it fails."""
    seconds *= 3 if model in LONGER else 1
    command = [*python, str(PROGRAM), model, f"--seconds={seconds}"]
    environment = dict(os.environ, CUDA_VISIBLE_DEVICES="", PYTHONWARNINGS="ignore", TF_CPP_MIN_LOG_LEVEL="3")
    done = subprocess.run(
        command, env=environment, text=True, capture_output=True, check=False, timeout=LIMIT_S + seconds
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed ({done.returncode}):\n{done.stdout}\n{done.stderr[-3000:]}")
    return outcome_of(json.loads(done.stdout.splitlines()[-1]))


def outcome_of(line: Mapping[str, float]) -> Outcome:
    """Returns the outcome from the line that the program prints."""
    start_s = sum(line[phase] for phase in ("import_s", "build_s", "init_s", "first_step_s"))
    return Outcome(start_s=start_s, **{name: line[name] for name in NAMES})


def ratios(found: Mapping[str, Outcome]) -> dict[str, float]:
    """Returns how many times faster Headwater steps and starts than the better TensorFlow; empty without one."""
    ours = found[OURS]
    others = [outcome for name, outcome in found.items() if name != OURS]
    if not others:
        return {}
    return {
        "steps": ours.rate / max(other.rate for other in others),
        "late": ours.late_rate / max(other.late_rate for other in others),
        "start": min(other.start_s for other in others) / ours.start_s,
    }


def rows(model: str, found: Mapping[str, Outcome]) -> list[str]:
    """Returns the lines of the table for a model."""
    lines = [
        f"{model:12s} {name:16s}" + "".join(f"{value:11.2f}" for value in asdict(one).values())
        for name, one in found.items()
    ]
    if ratio := ratios(found):
        lines.append(f"{'':12s} to the better   " + ", ".join(f"{key} {value:.2f}x" for key, value in ratio.items()))
    return lines


def summary(results: Mapping[str, Mapping[str, Outcome]]) -> list[str]:
    """Returns geometric means of the ratios, of models with changing and with constant sizes."""
    lines: list[str] = []
    for title, models in (("changing sizes", CHANGING), ("constant sizes", CONSTANT)):
        found = [ratio for model in models if model in results and (ratio := ratios(results[model]))]
        if found:
            means = {key: statistics.geometric_mean(ratio[key] for ratio in found) for key in found[0]}
            least = {key: min(ratio[key] for ratio in found) for key in found[0]}
            figures = ", ".join(f"{key} {means[key]:.2f}x (least {least[key]:.2f}x)" for key in means)
            lines.append(f"{title}: geometric means {figures}")
    return lines


def plot(results: Mapping[str, Mapping[str, Outcome]], path: Path) -> None:
    """Draws the ratios to the better TensorFlow; slower models in another colour."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.fonttype"] = "none"  # text instead of outlines, which makes the file several times smaller
    import matplotlib.pyplot as plt

    names = list(results)
    figure, panels = plt.subplots(1, 3, figsize=(12, 0.3 * len(names) + 1.5), layout="constrained", sharey=True)
    for axes, key, title in zip(
        panels,
        ("steps", "late", "start"),
        ("steps per second", "last third of the steps", "import to the end of the first step"),
        strict=True,
    ):
        found = [ratios(results[name])[key] for name in names]
        colours = ["#2a6f97" if ratio >= 1 else "#d98324" for ratio in found]
        bars = axes.barh(names, found, color=colours)
        axes.bar_label(bars, fmt="%.2f", padding=3, fontsize=8)
        axes.axvline(1, color="grey", linewidth=0.8)
        axes.set_xscale("log")
        axes.margins(x=0.15)
        axes.set_title(f"{title}", fontsize=9)
    figure.suptitle("Factor by which Headwater is faster than the better of TensorFlow 1.15 and 2", fontsize=10)
    panels[0].invert_yaxis()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="a python that has TensorFlow 1.15")
    parser.add_argument("--peer2", help="a python that has TensorFlow 2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--only", nargs="*", choices=CHANGING + CONSTANT, default=CHANGING + CONSTANT)
    parser.add_argument("--limit", type=float, default=float("inf"), help="start no measurement after so many seconds")
    parser.add_argument("--resume", action="store_true", help="keep the measurements in --out, and make the others")
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    args = parser.parse_args()
    contenders: dict[str, list[str]] = {OURS: [sys.executable, "-m", "headwater", "exec"]}
    contenders |= {
        name: [python] for name, python in (("TensorFlow 1.15", args.peer), ("TensorFlow 2", args.peer2)) if python
    }
    print(f"{'model':12s} {'':16s}" + "".join(f"{title:>11s}" for title in TITLES))
    path, began = args.out / "models.json", time.monotonic()
    runs = _measured_before(path) if args.resume else {}
    for turn in range(args.rounds):
        for model in args.only:
            for name, python in contenders.items():
                found = runs.setdefault(f"{model}, {name}", [])
                if len(found) <= turn and time.monotonic() - began < args.limit:
                    found.append(measure(model, python, args.seconds))
                    save(path, runs)
    results: dict[str, dict[str, Outcome]] = {}
    for model in args.only:
        found = {name: runs[f"{model}, {name}"] for name in contenders}
        if all(found.values()):
            results[model] = {name: _medians(outcomes) for name, outcomes in found.items()}
            print("\n".join(rows(model, results[model])))
    print("\n".join(summary(results)))
    if results and (args.peer or args.peer2):
        plot(results, args.out / "models.svg")


def _measured_before(path: Path) -> dict[str, list[Outcome]]:
    """Returns the outcomes of each model and contender in the file; empty if it does not exist."""
    saved: dict[str, list[dict[str, float]]] = json.loads(path.read_text()) if path.exists() else {}
    return {name: [Outcome(**each) for each in outcomes] for name, outcomes in saved.items()}


def _medians(found: Sequence[Outcome]) -> Outcome:
    return Outcome(**dict(zip((field.name for field in fields(Outcome)), medians(found), strict=True)))


if __name__ == "__main__":
    main()
