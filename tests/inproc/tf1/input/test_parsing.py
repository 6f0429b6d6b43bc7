"""Blocks of examples are parsed in the same way by the protobuf library and by compiled functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headwater.data.io.example import Example, Feature, Features, FloatList, Int64List
from headwater.dtypes import float32, int64
from headwater.errors import InvalidArgumentError
from headwater.graph.ops import parsing
from tests.support.loops import use_loops


def example(**features: list[Any]) -> bytes:
    made = {
        name: Feature(float_list=FloatList(value=values))
        if name == "f"
        else Feature(int64_list=Int64List(value=values))
        for name, values in features.items()
    }
    return Example(features=Features(feature=made)).SerializeToString()


@pytest.mark.parametrize("compiled", [True, False])
def test_operations_give_the_same_both_ways(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    use_loops(monkeypatch, compiled=compiled)

    def parsed(serialized: list[bytes]) -> list[Any]:
        packed = np.empty(len(serialized), object)
        packed[:] = serialized
        attrs = {"dense_keys": ("i", "f"), "Tdense": (int64, float32), "dense_shapes": ((), (2,))}
        default = np.zeros(0, np.int64)
        return [x.tolist() for x in parsing.parse_examples_alike(packed, default, np.ones(2, np.float32), **attrs)]

    good = [example(i=[n]) if n % 2 else example(i=[n], f=[n, 0]) for n in range(10)]
    assert parsed(good) == [list(range(10)), [[1, 1] if n % 2 else [n, 0] for n in range(10)]]
    for bad, message in {
        example(f=[1, 2]): "Feature: i .data type: int64. is required but could not be found",
        example(i=[1], f=[1]): "Key: f, Index: 9.  Number of float values != expected",
        example(f=[1, 2]).replace(b"f", b"i"): "Key: i, Index: 9.  Data types don't match",
        b"junk": "Index: 9.  Can't parse serialized Example",
    }.items():
        with pytest.raises(InvalidArgumentError, match=message):
            parsed([*good[:9], bad])
