"""Programs in the dialects of TensorFlow 0.8 to 1.15, as they were written then, run unchanged.

There are ten for each group of versions with similar names and orders of arguments. Their expected output is in
``printed.json``: the output of TensorFlow 1.15, if TensorFlow 1.15 still runs the program.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"

PRINTED: dict[str, list[str]] = json.loads(PROGRAMS.with_name("printed.json").read_text(encoding="utf-8"))
#: Programs that TensorFlow 1.15 no longer runs, or runs only with the package portpicker.
OLD = ("cluster_1_10", "dataset_1_3")


def version(name: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"_(\d+)", name)))


def printed(*command: str | Path) -> list[str]:
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if line.split(":")[0].replace(".", "").isdigit()]


def lines(names: list[str]) -> list[str]:
    return [line for name in names for line in PRINTED[name]]


def test_there_are_ten_for_each_group_of_versions() -> None:
    groups = [(0, 11), (0, 12), (1, 3), (1, 15)]
    counts = Counter(next(last for last in groups if version(name) <= last) for name in PRINTED)
    assert counts == dict.fromkeys(groups, 10)
    assert {path.stem for path in PROGRAMS.glob("*_*.py")} == set(PRINTED)


@pytest.mark.slow
def test_programs_of_all_dialects_run_as_they_are() -> None:
    headwater = Path(sys.executable).with_name("headwater")
    assert printed(headwater, "exec", PROGRAMS / "together.py", *PRINTED) == lines(list(PRINTED))


@pytest.mark.peer
@pytest.mark.slow
def test_those_of_0_12_and_later_print_the_same_under_tensorflow(tf1_python: Path) -> None:
    newer = [name for name in PRINTED if version(name) > (0, 11) and name not in OLD]
    assert printed(tf1_python, "-W", "ignore", PROGRAMS / "together.py", *newer) == lines(newer)
