"""Errors of datasets with invalid sizes. All results are TensorFlow 2.21's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import InvalidArgumentError
from headwater.tf2.namespace import tf

D: Any = tf.data.Dataset


def _pair(x: Any) -> Any:
    return D.from_tensors(x).repeat(2)


@pytest.mark.parametrize("size", [0, -2])
@pytest.mark.parametrize(
    "make",
    [
        lambda d, n: d.shuffle(n and -3),
        lambda d, n: d.batch(n),
        lambda d, n: d.padded_batch(n),
        lambda d, n: d.window(n),
        lambda d, n: d.window(2, n),
        lambda d, n: d.window(2, 1, n),
        lambda d, n: d.map(lambda x: x, n),
        lambda d, n: d.interleave(_pair, n),
        lambda d, n: d.interleave(_pair, 1, n),
        lambda d, n: d.interleave(_pair, 1, 1, n),
        lambda d, n: d.interleave(_pair, 2, 1, 3 - n),
        lambda d, n: d.shard(n - 3, 0),
        lambda d, n: d.shard(3, 3 - n),
        lambda d, n: d.prefetch(n - 2),
        lambda d, n: D.range(0, 3, n + 2 if n else 0),
        lambda d, n: tf.data.experimental.CsvDataset("no file", [tf.int32], buffer_size=n),
        lambda d, n: d.batch(n).prefetch(1).take(1),
    ],
)
def test_a_dataset_with_an_invalid_size_is_not_created(make: Callable[..., Any], size: int) -> None:
    with pytest.raises(InvalidArgumentError):
        make(D.range(3), size)


def test_an_invalid_size_within_a_function_is_found_by_the_iteration(tmp_path: Path) -> None:
    inner = D.range(2, -1, -1).flat_map(lambda n: D.range(3).batch(n))
    with pytest.raises(InvalidArgumentError):
        list(inner)
    (tmp_path / "file").write_bytes(b"abcd")
    records = tf.data.FixedLengthRecordDataset(str(tmp_path / "file"), 0)
    with pytest.raises(InvalidArgumentError):
        list(records)
