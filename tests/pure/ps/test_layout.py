"""Placement of variables on ``ps``."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.ps.layout import (
    FixedShardsPartitioner,
    MaxSizePartitioner,
    MinSizePartitioner,
    VariableSpec,
    make_layout,
)


def spec(name: str, *shape: int) -> VariableSpec:
    return VariableSpec(name=name, shape=shape, dtype="float32")


def test_variables_go_to_whichever_has_the_fewest_bytes() -> None:
    layout = make_layout([spec("a", 100), spec("b", 10), spec("c", 10), spec("d", 90)], 2)
    assert [[block.variable for block in blocks] for blocks in layout.blocks] == [[0], [1, 2, 3]]
    assert [layout.nbytes(task) for task in range(2)] == [400, 440]


@pytest.mark.parametrize(
    ("partitioner", "parts"),
    [
        (FixedShardsPartitioner(2), 2),
        (MinSizePartitioner(min_shard_bytes=1000, max_shards=8), 4),
        (MinSizePartitioner(min_shard_bytes=5000, max_shards=8), 1),
        (MinSizePartitioner(min_shard_bytes=100, max_shards=3), 3),
        (MaxSizePartitioner(max_shard_bytes=2000), 2),
        (MaxSizePartitioner(max_shard_bytes=1999), 3),
        (MaxSizePartitioner(max_shard_bytes=1, max_shards=2), 2),
    ],
)
def test_partitioners(partitioner: FixedShardsPartitioner, parts: int) -> None:
    assert partitioner(spec("v", 100, 10)) == parts


def test_no_more_parts_than_tasks_or_rows() -> None:
    layout = make_layout([spec("wide", 2, 50), spec("long", 90), spec("scalar")], 3, FixedShardsPartitioner(5))
    parts = [sum(block.variable == number for blocks in layout.blocks for block in blocks) for number in range(3)]
    assert parts == [2, 3, 1]


def test_invalid_configurations_are_rejected() -> None:
    with pytest.raises(ValueError, match="no ps task"):
        make_layout([spec("v", 1)], 0)
    with pytest.raises(ValueError, match="same name"):
        make_layout([spec("v", 1), spec("v", 2)], 1)
    with pytest.raises(ValueError, match="num_shards must be positive"):
        FixedShardsPartitioner(0)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(1, 5), st.integers(1, 6))
def test_the_parts_of_all_tasks_are_the_whole(rows: list[int], tasks: int, shards: int) -> None:
    specs = [spec(f"v{number}", count, 3) for number, count in enumerate(rows)]
    values = [np.random.default_rng(number).normal(size=(count, 3)) for number, count in enumerate(rows)]
    layout = make_layout(specs, tasks, FixedShardsPartitioner(shards))
    joined = layout.join([layout.split(values, task) for task in range(tasks)])
    for found, value in zip(joined, values, strict=True):
        np.testing.assert_array_equal(found, value)
    assert layout.signature() == make_layout(specs, tasks, FixedShardsPartitioner(shards)).signature()
