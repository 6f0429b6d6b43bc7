"""Measures a step of LeNet, and its loss alone, beside TensorFlow 2, PyTorch and JAX alone, alternating, in one run.

    python benchmarks/convolutions.py --tf2 PYTHON_WITH_TENSORFLOW_2 --torch PYTHON_WITH_PYTORCH [--gpu]

Prints medians of the time and of the processor time of a step (in milliseconds), and by how much Headwater is slower
than the best of the others. Saves them as ``build/bench/convolutions.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
OURS = "Headwater"
#: How much slower than the better of the others a step may be.
WANTED = 1.2


def measure(command: list[str]) -> tuple[float, float]:
    """Time and processor time of a step, in milliseconds."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr[-3000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return 1e3 / found["rate"], 1e3 * (found["user"] + found["system"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tf2", help="a Python interpreter with TensorFlow 2")
    parser.add_argument("--torch", help="a Python interpreter with PyTorch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--gpu", action="store_true", help="all on the first GPU")
    arguments = parser.parse_args()
    given = [f"--seconds={arguments.seconds}", f"--batch={arguments.batch}"]
    if arguments.gpu:
        given.append("--gpu")
    lenet = str(PROGRAMS / "lenet.py")
    commands = {
        OURS: [sys.executable, "-m", "headwater", "exec", lenet],
        "JAX alone": [sys.executable, str(PROGRAMS / "lenet_jax.py")],
    }
    if arguments.tf2:
        commands["TensorFlow 2"] = [arguments.tf2, lenet]
    if arguments.torch:
        commands["PyTorch"] = [arguments.torch, str(PROGRAMS / "lenet_torch.py")]
    result: dict[str, dict[str, dict[str, float]]] = {}
    for what, more in (("step", []), ("forward", ["--forward"])):
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for _ in range(arguments.rounds):
            for name, command in commands.items():
                times[name].append(measure([*command, *given, *more]))
        medians = {
            name: {"ms": statistics.median(ms for ms, _ in found), "cpu_ms": statistics.median(ms for _, ms in found)}
            for name, found in times.items()
        }
        result[what] = medians
        print(f"LeNet, {what}, batch {arguments.batch}, median of {arguments.rounds}:")
        for name, found in medians.items():
            print(f"  {found['ms']:8.3f} ms, of processor time {found['cpu_ms']:8.3f} ms  {name}")
        others = [found for name, found in medians.items() if name != OURS]
        if others:
            slower = {unit: medians[OURS][unit] / min(found[unit] for found in others) for unit in ("ms", "cpu_ms")}
            print(
                f"  Headwater takes {slower['ms']:.2f} times as long as the best of the others, "
                f"{slower['cpu_ms']:.2f} times its processor time (at most {WANTED:g})"
            )
    path = Path("build/bench/convolutions.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
