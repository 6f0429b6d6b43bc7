"""A JAX program computes with received parameters in place, and values that it keeps do not change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.processes import processes

KEEPS = Path(__file__).with_name("keeps.py")

pytestmark = pytest.mark.slow


def test_received_parameters_are_used_in_place() -> None:
    with processes(ps=1, worker=1) as cluster:
        for job in ("ps", "worker"):
            config = json.dumps({"cluster": cluster.hosts, "task": {"type": job, "index": 0}})
            task = cluster.start(job, 0, KEEPS, TF_CONFIG=config)
        said = task.succeeds()
    assert "in place: 12 of 12; unchanged: 13 of 13; given away: 13" in said
    assert "last: 13" in said
