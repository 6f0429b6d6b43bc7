"""Memory of the machine, compared with psutil's figures."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import psutil
import pytest

from headwater.cluster.machine_memory import machine_memory


def test_memory_is_the_figure_of_psutil() -> None:
    assert machine_memory("MemTotal") == psutil.virtual_memory().total
    assert machine_memory("MemTotal", "SwapTotal") == psutil.virtual_memory().total + psutil.swap_memory().total
    assert 0 < machine_memory("MemAvailable") < machine_memory("MemTotal")


def test_an_unknown_entry_is_named() -> None:
    with pytest.raises(KeyError, match="MemNone"):
        machine_memory("MemNone")


STEPS = """
import resource, sys
import numpy as np
from headwater.cluster.machine_memory import keep_freed_memory

print(keep_freed_memory())
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def step():
    arrays = [np.ones(1 << 18) for _ in range(8)]  # 16 MB
    return sum(array[0] for array in arrays)
step()
before = faults()
for _ in range(10):
    step()
print(faults() - before < 1000)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the settings are glibc's")
@pytest.mark.parametrize(
    ("variables", "printed"), [({}, ["True", "True"]), ({"MALLOC_TRIM_THRESHOLD_": "131072"}, ["False", "False"])]
)
def test_freed_memory_is_kept_unless_the_user_sets_malloc(variables: dict[str, str], printed: list[str]) -> None:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    done = subprocess.run(
        [sys.executable, "-c", STEPS], env=plain | variables, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == printed
