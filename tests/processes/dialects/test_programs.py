"""Programs in the dialects of TensorFlow 0.8 to 1.15, as they were written then, run as they are.

Those of 1.x print the same under TensorFlow 1.15.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"

#: What each prints.
PRINTED = {
    "queues_0_8": "0.8: better True after 60 steps",
    "lists_0_9": "0.9: less than a tenth: True",
    "replicas_0_10": "0.10: replicas ended at [20, 20], w 9.9",
    "words_0_11": "0.11: right True, the same from words-150: True",
    "layers_0_12": "0.12: accuracy True, step 60, tags ['OptimizeLoss/loss']",
    "slim_1_0": "1.0: loss small True, right when evaluated True",
    "estimator_1_4": "1.4: accuracy True, step 60, ['accuracy', 'accuracy_baseline']",
    "hooks_1_6": "1.6: stopped early True, saved True",
    "cluster_1_10": "1.10: both took part True, steps True",
    "compat_1_15": "1.15: added [1.0, 2.0, 3.0], back 3.0, better True, counted True, column words",
}
#: What TensorFlow 1.15 no longer runs, or not without the package portpicker.
OLD = ("queues_0_8", "lists_0_9", "replicas_0_10", "words_0_11", "cluster_1_10")


def printed(*command: str | Path) -> list[str]:
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if line.split(":")[0].replace(".", "").isdigit()]


@pytest.mark.slow
def test_programs_of_all_dialects_run_as_they_are() -> None:
    headwater = Path(sys.executable).with_name("headwater")
    assert printed(headwater, "exec", PROGRAMS / "together.py", *PRINTED) == list(PRINTED.values())


@pytest.mark.peer
@pytest.mark.slow
def test_those_of_1_x_print_the_same_under_tensorflow(tf1_python: Path) -> None:
    newer = {name: line for name, line in PRINTED.items() if name not in OLD}
    assert printed(tf1_python, "-W", "ignore", PROGRAMS / "together.py", *newer) == list(newer.values())
