"""Measures mirrored training through Keras's ``fit`` beside TensorFlow 2 and PyTorch, alternating, in one run.

    python benchmarks/mirrored.py --tf2 PYTHON_WITH_TENSORFLOW_2_AND_TF_KERAS --torch PYTHON_WITH_PYTORCH

Prints the median steps/s of each on this machine, and ratios; saves them as ``build/bench/mirrored.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
OURS, TF2, TORCH = "Headwater", "TensorFlow 2, MultiWorkerMirroredStrategy", "PyTorch, DistributedDataParallel"
#: The ratio to reach.
WANTED = {TF2: 3.0, TORCH: 1.0}


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on at this moment."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in held]
    for server in held:
        server.close()
    return ports


def measure(command: list[str], workers: int, steps: int) -> float:
    """Steps/s of the slowest of ``workers`` workers."""
    ports = free_ports(workers)
    addresses = [f"127.0.0.1:{port}" for port in ports]
    running: list[subprocess.Popen[str]] = []
    for rank in range(workers):
        task = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}}
        environment = {
            **os.environ,
            "TF_CONFIG": json.dumps(task),
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(ports[0]),
            "RANK": str(rank),
            "WORLD_SIZE": str(workers),
        }
        running.append(
            subprocess.Popen(
                [*command, str(steps)], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        )
    rates: list[float] = []
    for process in running:
        out, err = process.communicate(timeout=600)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{out}\n{err[-3000:]}")
        rates += [float(line.split()[1]) for line in out.splitlines() if line.startswith("steps/s")]
    return min(rates)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tf2", help="a Python interpreter with TensorFlow 2 and tf-keras")
    parser.add_argument("--torch", help="a Python interpreter with PyTorch")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    keras = str(PROGRAMS / "mirrored_keras.py")
    commands = {OURS: [sys.executable, "-m", "headwater", "exec", keras]}
    if arguments.tf2:
        commands[TF2] = [arguments.tf2, keras]
    if arguments.torch:
        commands[TORCH] = [arguments.torch, str(PROGRAMS / "mirrored_torch.py")]
    rates: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(arguments.rounds):
        for name, command in commands.items():
            rates[name].append(measure(command, arguments.workers, arguments.steps))
    medians = {name: statistics.median(found) for name, found in rates.items()}
    print(f"{arguments.workers} workers, 784-256-256-10, Adam, 32 examples each, median of {arguments.rounds}:")
    for name, rate in medians.items():
        line = f"  {rate:8.1f} steps/s  {name}"
        if name != OURS:
            line += f"; Headwater is {medians[OURS] / rate:.2f} times as fast (wanted: {WANTED[name]:g})"
        print(line)
    result = Path("build/bench/mirrored.json")
    result.parent.mkdir(parents=True, exist_ok=True)
    result.write_text(json.dumps({"steps_per_s": rates, "medians": medians}, indent=2))


if __name__ == "__main__":
    main()
