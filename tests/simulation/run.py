"""Runs histories, one after the other: ``python -m tests.simulation.run graphs:100 mirrored:1000 --first 0``, or
selected ones: ``python -m tests.simulation.run graphs@17,42``.

Prints a line for each history that breaks a rule, with its number; ``--notes`` prints all events of a history. A
history is only reproducible if hashes are, so the program restarts itself with a fixed hash seed.
"""

from __future__ import annotations

import argparse
import faulthandler
import functools
import gc
import logging
import os
import sys
import time
import traceback
from collections.abc import Sequence
from typing import Any

_HASHES = "PYTHONHASHSEED"
#: Longest real time of one history, in seconds; then all stacks are printed, and this process ends.
_STUCK_S = 600.0


def main() -> int:
    """Runs the histories of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "kinds",
        nargs="+",
        help="a kind with a count (graphs:10), or with numbers of histories (graphs@17,42). Kinds: "
        "copies, copies-in-step, deposits, deposits-examples, "
        "deposits-rounds, drains, ended, examples, graph-copies, graph-copies-examples, graph-copies-queues, "
        "graph-copies-rounds, graph-drains, graph-examples, graph-moves, graphs, jobs, jobs-ends, mirrored, "
        "moved-copies, moves, own, parameters, rounds and shared-batches",
    )
    parser.add_argument("--first", type=int, default=0, help="number of the first history of each kind")
    parser.add_argument("--step", type=int, default=1, help="difference of the numbers of consecutive histories")
    parser.add_argument("--notes", action="store_true", help="print the events of each history")
    parser.add_argument("--traces", action="store_true", help="print the checksum of the switches of each history")
    parser.add_argument("--without", help="a fix to revert; see tests/simulation/defects.py")
    options = parser.parse_args()
    os.environ |= {"JAX_PLATFORMS": "cpu", "HEADWATER_CONNECT_DEADLINE_S": "120", _HASHES: "0"}
    if sys.flags.hash_randomization:
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation.run", *sys.argv[1:]])
    return run(options)


def run(options: argparse.Namespace) -> int:
    """Runs histories; returns the number of histories that broke a rule, at most 100."""
    # Imported only in the restarted process, which has the right environment.
    from tests.simulation import (
        caches,
        copies,
        defects,
        deposits,
        drains,
        examples,
        facades,
        graph_copies,
        graph_examples,
        graph_queues,
        graphs,
        jobs,
        mirrored,
        moved_copies,
        moves,
        own_states,
        parameters,
        rounds,
        shared_batches,
    )
    from tests.simulation.cluster import Journal
    from tests.simulation.scheduler import Killed

    facades.install()
    caches.share()
    if options.without:
        defects.DEFECTS[options.without]()
    unraisable = sys.unraisablehook
    sys.unraisablehook = lambda args: None if args.exc_type is Killed else unraisable(args)
    log = logging.getLogger("headwater")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.addHandler(Journal())
    kinds = {
        "copies": copies.history,
        "copies-in-step": copies.history_in_step,
        "deposits": deposits.history,
        "deposits-examples": deposits.history_of_examples,
        "deposits-rounds": deposits.history_of_rounds,
        "drains": drains.history,
        "ended": rounds.ended_history,
        "examples": examples.history,
        "graph-copies": graph_copies.history,
        "graph-copies-examples": graph_copies.history_of_examples,
        "graph-copies-queues": graph_queues.history,
        "graph-copies-rounds": graph_copies.history_of_rounds,
        "graph-drains": drains.history_of_graphs,
        "graph-examples": graph_examples.history,
        "graph-moves": graph_copies.history_with_moves,
        "graphs": graphs.history,
        "jobs": jobs.history,
        "jobs-ends": functools.partial(jobs.history, ends=True),
        "mirrored": mirrored.history,
        "moved-copies": moved_copies.history,
        "moves": moves.history,
        "own": own_states.history,
        "parameters": parameters.history,
        "rounds": rounds.history,
        "shared-batches": shared_batches.history,
    }
    gc.collect()
    gc.freeze()
    gc.disable()  # the collector would run finalizers at different moments in each run
    broken = 0
    for kind, numbers in (_parse_kind(options, item) for item in options.kinds):
        began, before = time.monotonic(), broken
        for number in numbers:
            broken += not _check_history(options, kind, number, kinds[kind])
        seconds = time.monotonic() - began
        print(f"{len(numbers)} histories of {kind} in {seconds:.0f} s, {broken - before} broken", flush=True)
    faulthandler.cancel_dump_traceback_later()
    return min(broken, 100)


def _parse_kind(options: argparse.Namespace, item: str) -> tuple[str, Sequence[int]]:
    """Parses a kind and the numbers of its histories from an argument of the command line."""
    kind, _, numbers = item.partition("@")
    if numbers:
        return kind, [int(number) for number in numbers.split(",")]
    kind, _, count = item.partition(":")
    return kind, range(options.first, options.first + int(count) * options.step, options.step)


def _check_history(options: argparse.Namespace, kind: str, number: int, make: Any) -> bool:
    """Runs one history, and prints its number if it breaks a rule."""
    from tests.simulation.scheduler import describe

    faulthandler.dump_traceback_later(_STUCK_S, exit=True)
    simulation, history = make(number)
    outcome = "holds"
    try:
        simulation.run(history.run)
    except Exception as error:  # noqa: BLE001 - any error breaks the rules
        outcome = f"BROKEN: {type(error).__name__}: {error}"
        if options.notes:
            traceback.print_exception(error)
    finally:
        history.close()
    if options.notes:
        print(describe(simulation.notes))
    if options.traces:
        print(f"{kind} {number} trace {simulation.trace:x}")
    if outcome != "holds" or options.notes:
        print(f"{kind} {number} {outcome}", flush=True)
    del simulation, history
    gc.collect()
    gc.freeze()  # the remaining objects are caches for all histories: later collections need not traverse them
    return outcome == "holds"


if __name__ == "__main__":
    sys.exit(main())
