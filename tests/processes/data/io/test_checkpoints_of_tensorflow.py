"""TensorFlow 1.15 reads Headwater's checkpoints, and Headwater reads TensorFlow's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from headwater.data.io.bundle_writer import BundleWriter, merge_bundles
from headwater.data.io.tensor_bundle import BundleReader
from headwater.data.io.tensor_slice import TensorSlice

pytestmark = [pytest.mark.peer, pytest.mark.slow]

DATA = Path(__file__).resolve().parents[3] / "data"
TENSORS: dict[str, Any] = {
    "weights": np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4),
    "scope/scalar": np.float64(3.5),
    "step": np.int64(7),
    "strings": np.array([[b"a", b"bb"], [b"", "dé".encode() * 100]], object),
    "bfloat16": np.array([1.5, -2.0], ml_dtypes.bfloat16),
    "bool": np.array([True, False]),
    "complex64": np.array([1 + 2j], np.complex64),
    "empty": np.zeros((0, 3), np.float32),
    **{t: np.array([1, 2, 100], t) for t in ("float16", "uint8", "int8", "int16", "uint16", "int32", "int64")},
    **{f"many/variables_{n:04d}": np.float32(n) for n in range(300)},
}
ROWS = np.arange(20, dtype=np.float32).reshape(10, 2)


def plain(value: Any) -> list[Any]:
    if value.dtype == object:
        return [item.decode() for item in value.ravel()]
    return np.asarray(value, np.complex128).ravel().view(np.float64).tolist()


def check(answer: str, tensors: dict[str, Any]) -> None:
    found = json.loads(answer)
    assert sorted(found) == sorted(tensors)
    for name, value in tensors.items():
        assert found[name]["shape"] == list(value.shape), name
        assert found[name]["read"] == found[name]["restored"] == plain(value), name


def test_tensorflow_restores_ours(tmp_path: Path, tf1: Callable[..., str]) -> None:
    for _ in range(2):  # the second has two data files, one of which is empty
        with BundleWriter(tmp_path / "c") as writer:
            for name, value in TENSORS.items():
                writer.add(name, value)
        check(tf1("tf1_read_checkpoint.py", tmp_path / "c"), TENSORS)


def test_tensorflow_restores_our_shards(tmp_path: Path, tf1: Callable[..., str]) -> None:
    shards = [tmp_path / "c_temp" / f"part-{n:05d}-of-00002" for n in range(2)]
    with BundleWriter(shards[0]) as first, BundleWriter(shards[1]) as second:
        for writer, text in ((first, "0,4:-"), (second, "4,3:-"), (first, "7,3:-")):
            part = TensorSlice.parse(text)
            writer.add_slice("rows", (10, 2), part, ROWS[part.resolve((10, 2))])
        first.add("a", np.ones(3))
        second.add("b", np.array([b"text"], object))
    merge_bundles(shards, tmp_path / "c")
    expected = {"rows": ROWS, "a": np.ones(3), "b": np.array([b"text"], object)}
    check(tf1("tf1_read_checkpoint.py", tmp_path / "c", "rows=2"), expected)


def test_stored_files_equal_those_of_tensorflow(tmp_path: Path, tf1: Callable[..., str]) -> None:
    tf1("tf1_write_checkpoints.py", tmp_path)
    for stored in (DATA / "tf1").iterdir():
        if stored.name.startswith("single"):
            assert (tmp_path / stored.name).read_bytes() == stored.read_bytes()
    with BundleReader(tmp_path / "sharded") as reader:
        np.testing.assert_array_equal(reader.read("rows/part"), ROWS)
