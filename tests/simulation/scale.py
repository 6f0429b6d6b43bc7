"""Simulates large clusters: measures the speed of many workers on many parameter servers, and the longest step.

    python -m tests.simulation.scale docs/scale.png --message-us 40 --workers 1 10 100

The real protocol code of workers and servers runs. Processing a message takes time on the receiver's one core;
``benchmarks/transport.py`` measures this time. Gradients are tiny: the result depends on the number of tasks.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

_HASHES = "PYTHONHASHSEED"
#: The consistency for a number of workers, by its label in plots.
_CHOICES: dict[str, Callable[[int], str]] = {
    "asynchronous": lambda workers: "async",
    "9 of 10": lambda workers: f"k={max(1, workers * 9 // 10)}",
    "synchronous": lambda workers: "sync",
}


@dataclass(kw_only=True)
class Measured:
    """The result of a run.

    Attributes:
      begins: start times of each worker's steps, in seconds of the simulation.
      ends: end times of these steps.
    """

    begins: list[list[float]] = field(default_factory=list[list[float]])
    ends: list[list[float]] = field(default_factory=list[list[float]])

    @property
    def steps_per_s(self) -> float:
        """Steps per second of all workers together, in the time in which all are training."""
        first, last = max(times[0] for times in self.ends), min(times[-1] for times in self.ends)
        if last <= first:  # one worker was done before another one began
            first, last = min(times[0] for times in self.ends), max(times[-1] for times in self.ends)
        return sum(first < at <= last for times in self.ends for at in times) / (last - first)

    @property
    def longest_s(self) -> float:
        """The longest step, apart from the first step of each worker, in which the tasks connect."""
        return max(
            end - begin
            for begins, ends in zip(self.begins, self.ends, strict=True)
            for begin, end in list(zip(begins, ends, strict=True))[1:]
        )


def measure(workers: int, servers: int, consistency: str, *, steps: int, message_s: float, work_s: float) -> Measured:
    """Runs one cluster.

    Args:
      workers: number of workers.
      servers: number of parameter servers.
      consistency: see `headwater.ps.consistency.from_text`.
      steps: number of steps of each worker.
      message_s: processing time of a message, in seconds.
      work_s: mean computation time of a worker's gradients, in seconds.
    """
    import numpy as np

    from tests.simulation.account import UNITS
    from tests.simulation.parameters import ParameterHistory, Setting
    from tests.simulation.scheduler import Simulation, running

    simulation = Simulation(workers, horizon_s=36_000.0, preemption=0.0, max_switches=1_000_000_000)
    setting = Setting(
        servers=servers,
        workers=workers,
        consistency=consistency,
        steps=steps,
        snapshots=0,
        faults=(),
        delay_s=0.0001,
        work_s=work_s,
    )
    measured = Measured(begins=[[] for _ in range(workers)], ends=[[] for _ in range(workers)])

    class Run(ParameterHistory):
        """Trains, and measures."""

        def run(self) -> None:
            self.cluster.network.message_s = message_s
            self.cluster.start(within_s=0.1)
            self.cluster.wait_until(lambda: all(len(times) == steps for times in measured.ends))

        def _train(self, index: int) -> None:
            zeros = np.zeros((servers, UNITS), np.float32)
            client = self._client(index)
            for _ in range(steps):
                measured.begins[index].append(simulation.now)
                running().sleep(simulation.random.uniform(0.5, 1.5) * work_s)
                client.push([zeros, zeros])
                measured.ends[index].append(simulation.now)
            self.cluster.changed()
            running().sleep(36_000.0)

    history = Run(simulation, setting)
    simulation.run(history.run)
    return measured


def main() -> None:
    """Runs the clusters of the command line, and plots the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plot", help="the picture to write")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 3, 10, 30, 100, 300, 1000])
    parser.add_argument("--servers", type=int, default=16)
    parser.add_argument("--steps", type=int, default=5, help="of each worker")
    parser.add_argument("--message-us", type=float, default=40.0, help="processing time of a message")
    parser.add_argument("--work-ms", type=float, default=100.0, help="computation time of a gradient")
    options = parser.parse_args()
    os.environ |= {"JAX_PLATFORMS": "cpu", "HEADWATER_CONNECT_DEADLINE_S": "3600", _HASHES: "0"}
    if sys.flags.hash_randomization:
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation.scale", *sys.argv[1:]])

    # Imported only in the restarted process, which has the right environment.
    from tests.simulation import facades

    facades.install()
    logging.getLogger("headwater").setLevel(logging.ERROR)
    gc.freeze()
    gc.disable()
    found: dict[str, list[Measured]] = {}
    for name, choice in _CHOICES.items():
        for workers in options.workers:
            began = time.monotonic()
            measured = measure(
                workers,
                options.servers,
                choice(workers),
                steps=options.steps,
                message_s=options.message_us / 1e6,
                work_s=options.work_ms / 1e3,
            )
            found.setdefault(name, []).append(measured)
            print(
                f"{name}, {workers} workers, {options.servers} ps: {measured.steps_per_s:.0f} steps/s, longest step "
                f"{measured.longest_s:.3f} s ({time.monotonic() - began:.0f} s to simulate)",
                flush=True,
            )
            gc.collect()
    _draw(options, found)


def _draw(options: argparse.Namespace, found: dict[str, list[Measured]]) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    figure, (rates, longest) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for name, runs in found.items():
        rates.plot(options.workers, [run.steps_per_s for run in runs], marker="o", label=name)
        longest.plot(options.workers, [run.longest_s for run in runs], marker="o", label=name)
    alone = [1000.0 / options.work_ms * workers for workers in options.workers]
    rates.plot(options.workers, alone, color="grey", linestyle=":", label="gradients alone")
    for axes, what in ((rates, "steps/s of all workers"), (longest, "longest step, s")):
        axes.set(xscale="log", xlabel=f"workers, with {options.servers} ps", ylabel=what)
        axes.grid(alpha=0.3)
        axes.legend()
    rates.set_yscale("log")
    longest.set_ylim(bottom=0)
    figure.suptitle(
        f"Simulated: {options.work_ms:g} ms for gradients, {options.message_us:g} µs of one core for each message"
    )
    figure.savefig(options.plot, dpi=120)


if __name__ == "__main__":
    main()
