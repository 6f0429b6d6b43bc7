"""Tuples of arrays as few arrays."""

from __future__ import annotations

import numpy as np
import pytest

from headwater.graph.resources.packing import Array, pack_elements, unpack_elements


@pytest.mark.parametrize(
    "elements",
    [
        [],
        [(np.array(1), np.array(b"a", object))],
        [(np.arange(6).reshape(2, 3), np.zeros((0, 4))), (np.arange(2).reshape(1, 2), np.ones((1, 4)))],
        [(np.array(1.5),), (np.array([2.5]),), (np.array([[3.5], [4.5]]),)],
    ],
)
def test_elements_survive_packing(elements: list[tuple[Array, ...]]) -> None:
    found = unpack_elements(pack_elements(elements))
    assert len(found) == len(elements)
    for element, other in zip(found, elements, strict=True):
        for component, expected in zip(element, other, strict=True):
            assert component.dtype == expected.dtype
            assert component.shape == expected.shape
            np.testing.assert_array_equal(component, expected)


def test_many_are_few() -> None:
    assert len(pack_elements([(np.array(1), np.zeros(3))] * 1000)) == 6
