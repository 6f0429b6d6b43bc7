"""Elements read by number equal the elements read by iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.data.dataset import Dataset
from headwater.data.experimental import parallel_interleave
from headwater.data.indexed import NoElementError, counted, indexed, reordering_part, sequential_part, unrepeatable
from headwater.data.node import INFINITE, Context
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
    "uneven batch": lambda: Dataset.range(3 * SIZE - 1).map(lambda x: x + 1).batch(3),
    "padded batch": lambda: Dataset.range(2 * SIZE).map(lambda x: np.arange(x)).padded_batch(2, [None]),
    "batch of a filter": lambda: Dataset.range(9 * SIZE).filter(lambda x: x % 3 == 0).take(3 * SIZE - 1).batch(3),
    "concatenate": lambda: Dataset.range(3).concatenate(Dataset.range(SIZE - 3)),
    "shard": lambda: Dataset.range(2 * SIZE).shard(2, 1),
    "repeat": lambda: Dataset.range(3).repeat().take(SIZE),
    "shuffle": lambda: Dataset.range(SIZE).shuffle(SIZE, seed=3, reshuffle_each_iteration=False),
    "shuffled filter": lambda: Dataset.range(2 * SIZE).filter(lambda x: x % 2 == 0).shuffle(
        3, seed=3, reshuffle_each_iteration=False
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", MAKERS)
@given(numbers=st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=12))
def test_any_numbers(kind: str, numbers: list[int]) -> None:
    node = MAKERS[kind]().node
    everything = list(node.elements(Context()))
    source = indexed(node)
    for number in numbers:
        for one, expected in zip(source.element(Context(), number), everything[number], strict=True):
            np.testing.assert_array_equal(one, expected)
            assert one.dtype == expected.dtype
    if len({part.shape for element in everything for part in element}) == len(everything[0]):
        found = source.rows(Context(), np.array(numbers))
        for part, column in enumerate(found):
            np.testing.assert_array_equal(column, np.stack([everything[number][part] for number in numbers]))


@pytest.mark.parametrize(
    ("make", "first"),
    [
        (lambda data: data.shuffle(50, seed=3).batch(3), 0),
        (lambda data: data.batch(3).shuffle(50, seed=4), 0),
        (lambda data: data.shuffle(50, seed=3).repeat(2).batch(3), 0),
        # A function is tried with an element first, for which its input is gone over.
        (lambda data: data.shuffle(50, seed=3).filter(lambda x: x != 4), 1),
        (lambda data: data.filter(lambda x: x != 4).shuffle(50, seed=3).map(lambda x: -x).batch(3), 1),
    ],
)
def test_each_epoch_equals_a_further_iteration(make: Callable[[Any], Any], first: int) -> None:
    node, same = make(Dataset.range(SIZE)).node, make(Dataset.range(SIZE)).node
    turns = [list(node.elements(Context())) for _ in range(3)]
    source = indexed(same)
    assert not unrepeatable(same)
    for turn in (2, 0, 1):
        assert counted(same) == len(turns[turn])
        for number, (expected,) in enumerate(turns[turn]):
            np.testing.assert_array_equal(source.element(Context(), number, first + turn)[0], expected)
        with pytest.raises(NoElementError):
            source.element(Context(), len(turns[turn]), first + turn)
    assert len(set(map(str, turns))) > 1


def test_repetitions_of_a_shuffled_iteration_have_different_orders() -> None:
    node = Dataset.range(SIZE).filter(lambda x: x >= 0).shuffle(SIZE, seed=1).repeat(2).node
    turns = [[int(indexed(node).element(Context(), at, turn)[0]) for at in range(2 * SIZE)] for turn in range(2)]
    orders = [turn[half : half + SIZE] for turn in turns for half in (0, SIZE)]
    assert all(sorted(order) == list(range(SIZE)) for order in orders)
    assert len(set(map(tuple, orders))) == 4


def test_functions_run_for_the_elements_that_are_asked_for() -> None:
    asked: list[int] = []

    def noted(line: Any) -> Any:
        asked.append(int(line))
        return line

    node = Dataset.range(9).filter(lambda x: x >= 0).map(noted).batch(2).node
    source = indexed(node)
    del asked[:]
    source.element(Context(), 2)
    assert asked == [4, 5]


def test_nondeterministic_datasets_are_detected() -> None:
    numbers = Dataset.range(SIZE)
    assert not unrepeatable(numbers.shuffle(3, seed=1).interleave(lambda x: Dataset.range(3)).node)
    for changed, words in (
        (numbers.shuffle(3), "shuffle without a seed"),
        (numbers.flat_map(lambda x: Dataset.range(3).shuffle(2)), "order may change"),
        (MAKERS["generator"](), "generator"),
        (Dataset.sample_from_datasets([numbers, numbers]), "random numbers"),
        (numbers.apply(parallel_interleave(lambda x: Dataset.range(2), 2, sloppy=True)), "order may change"),
    ):
        assert words in unrepeatable(changed.map(lambda x: x).node)


@pytest.mark.parametrize("kind", MAKERS)
def test_elements_are_counted(kind: str) -> None:
    node = MAKERS[kind]().node
    assert counted(node) == len(list(node.elements(Context())))


def test_infinite_datasets_are_not_iterated() -> None:
    endless = Dataset.range(3).filter(lambda x: x > 0).repeat()
    assert counted(endless.batch(2).prefetch(1).node) == INFINITE
    assert counted(endless.take(5).batch(2).node) == 3


@pytest.mark.parametrize("kind", ["slices", "range", "cache", "generator"])
def test_a_number_beyond(kind: str) -> None:
    source = indexed(MAKERS[kind]().node)
    with pytest.raises(InvalidArgumentError, match=f"no element {SIZE}"):
        source.rows(Context(), np.array([SIZE]))
    assert len(source.rows(Context(), np.array([0]))[0]) == 1


def test_datasets_that_must_be_iterated_are_detected() -> None:
    found = {kind: sequential_part(make().node) for kind, make in MAKERS.items()}
    assert {kind: type(part).__name__ for kind, part in found.items() if part is not None} == {
        "generator": "Generated",
        "filter": "Filter",
        "batch of a filter": "Filter",
        "concatenate": "Concatenated",
        "shuffled filter": "Shuffle",
    }


def test_reordering_datasets_are_detected() -> None:
    assert reordering_part(Dataset.range(3).map(lambda x: x + 1).node) is None
    for changed in (Dataset.range(3).shuffle(2).batch(2), Dataset.range(3).repeat().map(lambda x: x + 1)):
        assert reordering_part(changed.node) is not None
