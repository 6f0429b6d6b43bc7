"""Updates of variables without dimensions, such as the scale of attention's scores."""

from __future__ import annotations

import numpy as np
import pytest

from headwater.graph.kernels.registry import update_kernel_of


@pytest.mark.parametrize(("op", "slots"), [("ApplyAdam", 2), ("ApplyAdagrad", 1), ("ApplyMomentum", 1)])
def test_a_scalar_changes_as_a_vector_of_one(op: str, slots: int) -> None:
    update = update_kernel_of(op)
    assert update is not None
    more = {"ApplyAdam": [0.9, 0.99, 0.1, 0.9, 0.99, 1e-8], "ApplyAdagrad": [0.1], "ApplyMomentum": [0.1]}[op]
    numbers = [np.array(value, np.float32) for value in more]
    last = [np.array(0.9, np.float32)] if op == "ApplyMomentum" else []
    found: list[list[float]] = []
    for shape in ((), (1,)):
        state = [np.full(shape, value, np.float32) for value in (1.0, 0.5, 0.25)[: 1 + slots]]
        update(*state, *numbers, np.full(shape, 2.0, np.float32), *last)
        found.append([float(array.reshape(())) for array in state])
    assert found[0] == found[1]
    assert found[0][0] < 1
