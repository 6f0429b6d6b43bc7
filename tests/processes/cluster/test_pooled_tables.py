"""Rows that two ps combine in bags, with synchronous replicas: two workers train as one process does. Tasks are
processes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.processes import processes

PROGRAM = Path(__file__).with_name("programs") / "pooled.py"

pytestmark = [pytest.mark.slow, pytest.mark.long]


@pytest.mark.parametrize("wire", ["float32", "bfloat16"])
def test_bags_train_alike_on_two_ps_with_synchronous_replicas(wire: str, tmp_path: Path) -> None:
    alone, there = str(tmp_path / "alone.npz"), str(tmp_path / "there.npz")
    with processes(worker=1) as cluster:
        cluster.start("worker", 0, PROGRAM, "--folder", alone).succeeds()
    with processes(ps=2, worker=2) as cluster:
        for index in range(2):
            cluster.start("ps", index, PROGRAM)
        workers = [
            cluster.start("worker", index, PROGRAM, "--folder", there, HEADWATER_ROWS_WIRE=wire) for index in range(2)
        ]
        workers[0].wait_for("saved .*/job:ps/task:0.*/job:ps/task:1")
        for worker in workers:
            worker.succeeds()
    with np.load(alone) as expected, np.load(there) as found:
        assert set(expected) == set(found)
        assert expected["steps"] == found["steps"] == 4
        for name in set(expected) - {"steps"}:
            # Numbers that are sent in half precision, and the values of a half-precision table, are rounded to 8 bits.
            rounded = wire == "bfloat16" or name.startswith("halves")
            bound = 2.0**-6 if rounded else 1e-6
            np.testing.assert_allclose(found[name], expected[name], rtol=bound, atol=bound)
