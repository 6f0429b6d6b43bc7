"""Measures a click model with Headwater's estimator, TensorFlow 1.15's and Keras, alternating, in one run.

    python benchmarks/click_model.py --peer PYTHON_WITH_TENSORFLOW_1_15

The estimators run ``programs/click_model.py``, Keras ``programs/click_model_keras.py``. Prints the figures of each
measurement when it has finished, and in the end medians and ratios:
examples per second in training with one process and in clusters, seconds from the launch to the first 100 steps, of
evaluation and of export, examples per second of parsing alone and of prediction from serialized examples, and peak
memory of each job. Saves them as ``build/bench/click_model.json`` with a plot of the ratios.

    python benchmarks/click_model.py --peer PYTHON_WITH_TENSORFLOW_1_15 --seeds 5 --steps 1000

Compares quality instead: prints mean and range, over seeds, of the loss and the AUC on held-out records after training
in one process. Saves them as ``build/bench/click_model_seeds.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from processor import peak_memory
from run import OURS, PEER, Running, free_ports

HERE = Path(__file__).parent
PROGRAM, PROGRAM_OF_KERAS = HERE / "programs" / "click_model.py", HERE / "programs" / "click_model_keras.py"
KERAS = "Headwater, Keras"
RECORDS = HERE.parent / "examples" / "click_model.py"
CLUSTERS = ((1, 1), (2, 2))
"""Numbers of ps tasks and of workers, including the chief."""
LINES = {
    "train": ("launch_s", "examples_per_s", "evaluate_s", "predicted_per_s", "peak_memory"),
    "parse": ("parsed_per_s",),
}
"""For each phase of an estimator's program in one process, a key of each line that it prints, in order."""
LINES_OF_KERAS = {"train": ("launch_s", "examples_per_s", "evaluate_s", "peak_memory")}

Figures = dict[str, float]


def in_one_process(
    command: Sequence[str], environment: Mapping[str, str], lines: Mapping[str, Sequence[str]]
) -> Figures:
    """Returns the figures of training, evaluation, export and prediction in one process, and of parsing alone."""
    found: Figures = {}
    for phase, keys in lines.items():
        launched = [*command, phase, f"--launched={time.time()}"]
        task = Running(launched, dict(environment))
        try:
            for key in keys:
                found |= task.line(key)
            task.end()
        finally:
            task.kill()
    return found


def in_cluster(command: Sequence[str], environment: Mapping[str, str], servers: int, workers: int) -> Figures:
    """Returns the examples per second of all workers, seconds to the first 100 steps, and the peak memory of each job,
    in bytes."""
    hosts = [f"127.0.0.1:{port}" for port in free_ports(servers + workers)]
    cluster = {"chief": hosts[:1], "ps": hosts[1 : 1 + servers], "worker": hosts[1 + servers :]}
    cluster = {job: addresses for job, addresses in cluster.items() if addresses}
    pipes = tempfile.mkdtemp()
    for index in range(workers - 1):
        os.mkfifo(os.path.join(pipes, f"worker{index}"))
    launched = [*command, "train", f"--launched={time.time()}", f"--pipes={pipes}"]
    tasks: dict[str, list[Running]] = {job: [] for job in cluster}
    try:
        for job, addresses in cluster.items():
            for index in range(len(addresses)):
                config = json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})
                tasks[job].append(Running(launched, dict(environment, TF_CONFIG=config)))
        (chief,) = tasks["chief"]
        found: Figures = chief.line("launch_s") | chief.line("examples_per_s")
        for job, members in tasks.items():
            # Workers end after training, and report their memory; a ps does not end.
            found[f"peak_memory_of_{job}"] = max(
                peak_memory(task.pid) if job == "ps" else task.line("peak_memory")["peak_memory"] for task in members
            )
    finally:
        for task in [task for members in tasks.values() for task in members]:
            task.kill()
        shutil.rmtree(pipes)
    return {f"{key}, {servers} ps + {workers}": value for key, value in found.items()}


def quality(command: Sequence[str], environment: Mapping[str, str], seed: int) -> Figures:
    """Returns the loss and the AUC on held-out records after training in one process."""
    task = Running([*command, "train", f"--seed={seed}"], dict(environment))
    try:
        return task.line("loss")
    finally:
        task.kill()


def compare_quality(
    commands: Mapping[str, Sequence[str]], environment: Mapping[str, str], seeds: int
) -> dict[str, list[Figures]]:
    """Prints mean and range of loss and AUC over seeds; returns the figures of each seed by contender."""
    found: dict[str, list[Figures]] = {name: [] for name in commands}
    for seed in range(1, seeds + 1):
        for name, command in commands.items():
            found[name].append(quality(command, environment, seed))
            report(f"seed {seed} of {seeds}: {name}", found[name][-1])
    for measure in ("loss", "auc"):
        for name, figures in found.items():
            values = [each[measure] for each in figures]
            print(
                f"{measure:4s} {name:16s} {statistics.mean(values):.4f} ({min(values):.4f} to {max(values):.4f})",
                flush=True,
            )
    return found


def report(title: str, figures: Figures) -> None:
    """Prints the figures of a finished measurement in one line."""
    print(f"{title}: {', '.join(f'{key} {value:.4g}' for key, value in figures.items())}", flush=True)


def ratio(measure: str, ours: float, peer: float) -> float:
    """Returns the factor by which Headwater is better: faster, or with less time or memory."""
    return ours / peer if "per_s" in measure else peer / ours


def plot(ratios: Mapping[str, float], path: Path) -> None:
    """Draws the ratios of all measures."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 0.35 * len(ratios) + 1.2), layout="constrained")
    colours = ["#2a6f97" if value >= 1 else "#d98324" for value in ratios.values()]
    axes.bar_label(axes.barh(list(ratios), list(ratios.values()), color=colours), fmt="%.2f", padding=3, fontsize=8)
    axes.axvline(1, color="grey", linewidth=0.8)
    axes.set_xscale("log")
    axes.margins(x=0.15)
    axes.invert_yaxis()
    axes.set_xlabel(f"factor by which {OURS} is better than {PEER}: more examples, less time, less memory")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", help="a python that has TensorFlow 1.15")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300, help="of training, by all workers together")
    parser.add_argument("--model", choices=["wide_deep", "deepfm"], default="wide_deep")
    parser.add_argument("--records", type=int, default=200_000, help="in the file of training records")
    parser.add_argument("--folder", type=Path, default=Path("build/clicks"), help="of the records")
    parser.add_argument("--only-one-process", action="store_true", help="measure no clusters")
    parser.add_argument("--only-clusters", action="store_true", help="measure clusters only")
    parser.add_argument("--seeds", type=int, default=0, help="compare loss and AUC over this many seeds instead")
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    args = parser.parse_args()
    write_records(args.folder, args.records)
    contenders = {OURS: [sys.executable, "-m", "headwater", "exec"]} | ({PEER: [args.peer]} if args.peer else {})
    environment = dict(os.environ, CUDA_VISIBLE_DEVICES="", PYTHONWARNINGS="ignore", TF_CPP_MIN_LOG_LEVEL="3")
    # The phase follows the program's name.
    options = [f"--folder={args.folder}", f"--model={args.model}", f"--steps={args.steps}"]
    commands = {name: [*python, str(PROGRAM), *options] for name, python in contenders.items()}
    if args.model == "wide_deep" and not args.seeds:
        commands[KERAS] = [sys.executable, str(PROGRAM_OF_KERAS), f"--folder={args.folder}", f"--steps={args.steps}"]
    args.out.mkdir(parents=True, exist_ok=True)
    if args.seeds:
        found = compare_quality(commands, environment, args.seeds)
        (args.out / "click_model_seeds.json").write_text(json.dumps(found, indent=1))
        return
    runs: dict[str, list[Figures]] = {name: [] for name in commands}
    for number in range(1, args.rounds + 1):
        for name, command in commands.items():
            title = f"round {number} of {args.rounds}: {name}"
            lines = LINES_OF_KERAS if name == KERAS else LINES
            found = {} if args.only_clusters else in_one_process(command, environment, lines)
            if found:
                report(f"{title}, one process", found)
            for servers, workers in () if args.only_one_process else CLUSTERS:
                figures = in_cluster(command, environment, servers, workers)
                report(title, figures)
                found |= figures
            runs[name].append(found)
    medians = {
        name: {key: statistics.median(run[key] for run in found) for key in found[0]} for name, found in runs.items()
    }
    ratios = {
        key: ratio(key, value, medians[PEER][key])
        for key, value in medians[OURS].items()
        if args.peer and key not in ("loss", "auc")
    }
    for key in medians[OURS]:
        values = "".join(f"  {name} {found[key]:14.2f}" for name, found in medians.items() if key in found)
        factor = f" {ratios[key]:7.2f}x" if key in ratios else ""
        print(f"{key:36s}{values}{factor}", flush=True)
    (args.out / "click_model.json").write_text(json.dumps(runs, indent=1))
    if ratios:
        plot(ratios, args.out / "click_model.png")


def write_records(folder: Path, count: int) -> None:
    """Writes records for training and a fifth as many for tests, unless they exist."""
    from headwater import tf

    folder.mkdir(parents=True, exist_ok=True)
    write = runpy.run_path(str(RECORDS))["write_records"]
    for name, records, seed in (("train", count, 1), ("test", count // 5, 2)):
        write(tf, folder / f"{name}.tfrecord", records, seed)


if __name__ == "__main__":
    main()
