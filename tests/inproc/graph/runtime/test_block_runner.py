"""Executables that map operations over rows are compiled once, for all callers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from headwater.graph.passes.plan import Compute, Node
from headwater.graph.runtime.block_runner import _shared_mapping
from tests.support.compilations import compilations


def test_threads_of_several_plans_compile_a_function_once() -> None:
    node = Node("squared", "Square", ("x:0",), {}, {})
    computes = [Compute("CPU:0", (node,), ("x:0",), (), ("squared:0",)) for _ in range(2)]
    mappings = [_shared_mapping(compute, [0], seed) for seed, compute in enumerate(computes)]
    rows, counters = np.arange(6.0).reshape(2, 3), np.arange(2, dtype=np.uint32)
    mappings[0]([rows[:1]], counters[:1])  # wait until JAX's own initial compilations are done
    with compilations() as compiled, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: mappings[number % 2]([rows], counters)[0], range(8)))
    assert len(compiled) == 1
    for each in found:
        np.testing.assert_array_equal(each, rows**2)
