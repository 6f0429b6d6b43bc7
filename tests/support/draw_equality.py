"""Draws programs from the table of `tests.support.equality`, and compares workers with one process.

    python -m tests.support.draw_equality [--seed 1] [--draws 100]

Prints each program whose results differ or that is refused, and a summary. The exit code is 1 if results differ.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable

import numpy as np

import headwater.keras  # noqa: F401  chooses the backend of Keras
from tests.support.equality import Outcome, Program, alone, draw, mirrored, require_equal, served


def compare(program: Program) -> str:
    """Returns the kind of the first difference between one process and two workers, or one asynchronous worker:
    ``equal``, ``refused``, ``differs`` or ``fails alone``; prints the program unless all are equal."""
    try:
        expected = alone(program)
    except Exception as error:  # noqa: BLE001  Keras itself does not support it
        print(f"fails alone: {program}: {error}", flush=True)
        return "fails alone"
    ways: dict[str, Callable[[], list[Outcome]]] = {
        "mirrored": lambda: mirrored(program),
        "sync": lambda: served(program)[:1],
        "async": lambda: served(program, workers=1, consistency="async"),
    }
    if program.model == "normalized":  # parameter servers refuse it
        del ways["sync"]
    for name, run in ways.items():
        try:
            for found in run():
                require_equal(found, expected, name)
        except ValueError as error:
            print(f"refused: {name}: {program}: {error}", flush=True)
            return "refused"
        except Exception as error:  # noqa: BLE001  any other error is a difference
            print(f"differs: {name}: {program}: {type(error).__name__}: {error}", flush=True)
            return "differs"
    return "equal"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draws", type=int, default=100)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(chosen.seed)
    counts: Counter[str] = Counter()
    while counts.total() < chosen.draws:
        program = draw(rng)
        if not program.possible:
            continue
        counts[compare(program)] += 1
        if counts.total() % 10 == 0 or counts.total() == chosen.draws:
            print(f"{counts.total()} draws of seed {chosen.seed}: {dict(counts)}", flush=True)
    return 1 if counts["differs"] else 0


if __name__ == "__main__":
    sys.exit(main())
