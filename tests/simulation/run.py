"""Runs histories, one after the other: ``python -m tests.simulation.run graphs 0 100``.

Prints a line for each history that breaks a rule, with its number; ``--notes`` prints all that happened in a history.
What hashes give must be the same in each run, so that a history is: this begins itself anew without random hashes.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import logging
import os
import sys
import time
import traceback

_HASHES = "PYTHONHASHSEED"
#: Longest real time of one history, in seconds; then all stacks are printed, and this process ends.
_STUCK_S = 180.0


def main() -> int:
    """Runs what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", help="of histories: graphs or parameters")
    parser.add_argument("first", type=int, help="number of the first history")
    parser.add_argument("count", type=int, help="how many")
    parser.add_argument("--step", type=int, default=1, help="from one number to the next")
    parser.add_argument("--notes", action="store_true", help="print what happens in each history")
    parser.add_argument("--traces", action="store_true", help="print the sum of each history's switches")
    options = parser.parse_args()
    os.environ |= {"JAX_PLATFORMS": "cpu", "HEADWATER_CONNECT_DEADLINE_S": "120", _HASHES: "0"}
    if sys.flags.hash_randomization:
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation.run", *sys.argv[1:]])
    return run(options)


def run(options: argparse.Namespace) -> int:
    """Runs histories; the number of those that broke a rule, at most 100."""
    # Only in a process that has its environment.
    from tests.simulation import caches, facades, graphs, parameters
    from tests.simulation.cluster import Journal
    from tests.simulation.scheduler import Killed, describe

    facades.install()
    caches.share()
    unraisable = sys.unraisablehook
    sys.unraisablehook = lambda args: None if args.exc_type is Killed else unraisable(args)
    log = logging.getLogger("headwater")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.addHandler(Journal())
    kinds = {"graphs": graphs.history, "parameters": parameters.history}
    broken = 0
    began = time.monotonic()
    gc.collect()
    gc.freeze()
    gc.disable()  # what the collector ends, it would end at another moment in each run
    for number in range(options.first, options.first + options.count * options.step, options.step):
        faulthandler.dump_traceback_later(_STUCK_S, exit=True)
        simulation, history = kinds[options.kind](number)
        try:
            simulation.run(history.run)
            outcome = "holds"
        except Exception as error:  # noqa: BLE001 - whatever a history ends with, its number is told
            broken += 1
            outcome = f"BROKEN: {type(error).__name__}: {error}"
            if options.notes:
                traceback.print_exception(error)
        finally:
            history.close()
        if options.notes:
            print(describe(simulation.notes))
        if options.traces:
            print(f"{options.kind} {number} trace {simulation.trace:08x}")
        if outcome != "holds" or options.notes:
            print(f"{options.kind} {number} {outcome}", flush=True)
        del simulation, history
        gc.collect()
    faulthandler.cancel_dump_traceback_later()
    print(
        f"{options.count} histories of {options.kind} in {time.monotonic() - began:.0f} s, {broken} broken", flush=True
    )
    return min(broken, 100)


if __name__ == "__main__":
    sys.exit(main())
