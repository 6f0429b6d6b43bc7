"""One worker's part of batches that functions compute from blocks of rows."""

from __future__ import annotations

import numpy as np
import pytest

from headwater.data.batches import Batch
from headwater.data.functions import Map
from headwater.data.node import Block, Context, Element, Function, Node
from headwater.data.parts import BatchPart
from headwater.data.sources import Slices
from headwater.data.spec import TensorSpec
from headwater.data.transforms import Shuffle
from headwater.dtypes import int64


class Negative(Function):
    """Works on blocks, and counts the rows that it gets."""

    columnar = True

    def __init__(self) -> None:
        self.called = 0

    def specs(self) -> tuple[TensorSpec, ...]:
        return (TensorSpec((), int64),)

    def __call__(self, context: Context, element: Element) -> Element:
        self.called += 1
        return (-element[0],)

    def rows(self, context: Context, block: Block) -> Block:
        self.called += len(block[0])
        return (-block[0],)


def number(value: int) -> np.ndarray[tuple[()], np.dtype[np.int64]]:
    return np.asarray(value, np.int64)


def batches(function: Function, size: int, drop: bool, shuffled: bool) -> Batch:
    source: Node = Slices(components=(np.arange(1000),))
    if shuffled:
        source = Shuffle(input=source, buffer_size=number(300), seed=1, seed2=2, reshuffle=False)
    mapped = Map(input=source, function=function, parallel=number(1))
    return Batch(input=mapped, batch_size=number(size), drop_remainder=np.asarray(drop))


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("size", [1, 2, 7, 96, 700, 3000])
def test_parts_are_together_the_batches(size: int, drop: bool, shuffled: bool) -> None:
    whole = [batch[0] for batch in batches(Negative(), size, drop, shuffled).elements(Context())]
    functions = [Negative() for _ in range(3)]
    parts = [
        list(BatchPart(input=batches(function, size, drop, shuffled), count=3, index=index).elements(Context()))
        for index, function in enumerate(functions)
    ]
    together = [np.concatenate([part[0] for part in step]).tolist() for step in zip(*parts, strict=True)]
    assert together == [batch.tolist() for batch in whole]
    assert sum(function.called for function in functions) == sum(map(len, whole))
    assert all(part[0].dtype == np.int64 for step in parts for part in step)
