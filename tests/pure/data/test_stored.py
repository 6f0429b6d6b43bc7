"""Datasets that are kept in files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwater.data.dataset import Dataset
from headwater.data.node import Context
from headwater.errors import DataLossError


class Counted:
    """A generator function that counts how often it is called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Iterator[Any]:
        self.calls += 1
        for number in range(5):
            yield np.full(number, number, np.int64), f"text {number}"


def plain(dataset: Any) -> list[Any]:
    return [(numbers.tolist(), text) for numbers, text in dataset.as_numpy_iterator()]


def generated(source: Counted) -> Any:
    return Dataset.from_generator(source, (np.int64, np.object_), ((None,), ()))


def test_elements_are_made_once_and_found_by_a_later_program(tmp_path: Path) -> None:
    first, later = Counted(), Counted()
    dataset = generated(first).cache(str(tmp_path / "kept"))
    expected = [([number] * number, f"text {number}".encode()) for number in range(5)]
    assert plain(dataset) == plain(dataset) == expected
    assert first.calls == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.data-00000-of-00001", "kept.index"]
    assert plain(generated(later).cache(str(tmp_path / "kept"))) == expected
    assert later.calls == 0


def test_blocks_are_kept_as_such(tmp_path: Path) -> None:
    path = str(tmp_path / "kept")
    dataset = Dataset.range(1000).cache(path).batch(300)
    expected = [list(range(start, min(1000, start + 300))) for start in range(0, 1000, 300)]
    for _ in range(2):
        assert [batch.tolist() for batch in dataset.as_numpy_iterator()] == expected
    # By a pipeline that takes them one by one, and the other way round.
    assert [int(x) for x in Dataset.range(7).cache(path).skip(995).as_numpy_iterator()] == [995, 996, 997, 998, 999]
    other = str(tmp_path / "other")
    one_by_one = Dataset.from_generator(lambda: iter(range(5)), np.int64, ())
    assert len(list(one_by_one.cache(other).as_numpy_iterator())) == 5
    assert [batch.tolist() for batch in Dataset.range(3).cache(other).batch(3).as_numpy_iterator()] == [
        [0, 1, 2],
        [3, 4],
    ]


def test_an_incomplete_pass_leaves_nothing(tmp_path: Path) -> None:
    dataset = generated(Counted()).cache(str(tmp_path / "kept"))
    elements = dataset.node.elements(Context())
    next(elements)
    elements.close()
    assert list(tmp_path.iterdir()) == []


def test_files_of_another_dataset_are_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "kept")
    list(Dataset.range(3).cache(path).as_numpy_iterator())
    with pytest.raises(DataLossError, match="elements of 1 components, not 2"):
        plain(generated(Counted()).cache(path))
    data = tmp_path / "kept.data-00000-of-00001"
    damaged = bytearray(data.read_bytes())
    damaged[0] ^= 1
    data.write_bytes(damaged)
    with pytest.raises(DataLossError, match="kept"):
        list(Dataset.range(3).cache(path).as_numpy_iterator())
