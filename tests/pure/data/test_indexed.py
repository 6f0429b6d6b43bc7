"""Elements of datasets by their numbers are those that going over the datasets gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.data.dataset import Dataset
from headwater.data.indexed import indexed, orderly, sequential_part
from headwater.data.node import Context
from headwater.errors import InvalidArgumentError

SIZE = 7


def generated() -> Iterator[int]:
    yield from range(10, 10 + SIZE)


MAKERS: dict[str, Callable[[], Any]] = {
    "slices": lambda: Dataset.from_tensor_slices((np.arange(SIZE), np.eye(SIZE))),
    "range": lambda: Dataset.range(3, 3 + 2 * SIZE, 2),
    "map": lambda: Dataset.range(SIZE).map(lambda x: (x * 2, x + 1)),
    "skip and take": lambda: Dataset.range(20).skip(4).take(SIZE),
    "zip": lambda: Dataset.zip((Dataset.range(SIZE), Dataset.range(50).prefetch(3))),
    "cache": lambda: Dataset.from_generator(generated, np.int64, ()).cache(),
    "generator": lambda: Dataset.from_generator(generated, np.int64, ()).map(lambda x: x + 1),
    "filter": lambda: Dataset.range(2 * SIZE).filter(lambda x: x % 2 == 0),
    "batch": lambda: Dataset.range(3 * SIZE).batch(3),
    "concatenate": lambda: Dataset.range(3).concatenate(Dataset.range(SIZE - 3)),
}


@pytest.mark.parametrize("kind", MAKERS)
@given(numbers=st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=12))
def test_any_numbers(kind: str, numbers: list[int]) -> None:
    node = MAKERS[kind]().node
    everything = list(node.elements(Context()))
    found = indexed(node).rows(Context(), np.array(numbers))
    for part, column in enumerate(found):
        np.testing.assert_array_equal(column, np.stack([everything[number][part] for number in numbers]))


@pytest.mark.parametrize("kind", ["slices", "range", "cache", "generator"])
def test_a_number_beyond(kind: str) -> None:
    source = indexed(MAKERS[kind]().node)
    with pytest.raises(InvalidArgumentError, match=f"no element {SIZE}"):
        source.rows(Context(), np.array([SIZE]))
    assert len(source.rows(Context(), np.array([0]))[0]) == 1


def test_what_has_to_be_gone_over_is_found() -> None:
    found = {kind: sequential_part(make().node) for kind, make in MAKERS.items()}
    assert {kind: type(part).__name__ for kind, part in found.items() if part is not None} == {
        "generator": "Generated",
        "filter": "Filter",
        "batch": "Batch",
        "concatenate": "Concatenated",
    }


def test_what_changes_the_order_is_found() -> None:
    assert orderly(Dataset.range(3).map(lambda x: x + 1).node) is None
    for changed in (Dataset.range(3).shuffle(2).batch(2), Dataset.range(3).repeat().map(lambda x: x + 1)):
        assert orderly(changed.node) is not None
