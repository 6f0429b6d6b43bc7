"""The Ray backend on a cluster of two nodes on this machine, one of which is killed."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

from tests.support.processes import Process

REPOSITORY = Path(__file__).parents[3]


@pytest.mark.slow
def test_tasks_on_a_failed_node_are_lost(tmp_path: Path) -> None:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    program = Path(__file__).with_name("ray_nodes.py")
    process = Process(
        [sys.executable, str(program), str(tmp_path)],
        os.environ
        | {"PYTHONPATH": str(REPOSITORY), "RAY_USAGE_STATS_ENABLED": "0", "RAY_raylet_start_wait_time_s": "120"},
    )
    assert "all of it worked" in process.succeeds()
