"""Memory of the machine, compared with psutil's figures."""

from __future__ import annotations

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
