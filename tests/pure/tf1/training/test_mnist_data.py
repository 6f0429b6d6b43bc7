"""The digits: their folder, batches of them, and their form as records."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from headwater.data.io.example import Example
from headwater.data.io.sample_files import DATA_VARIABLE, find_file, read_idx
from headwater.data.io.tfrecord import tf_record_iterator
from headwater.data.mnist_data import read_data_sets, write_records
from headwater.errors import DataLossError, NotFoundError


def _write_idx(path: Path, array: np.ndarray) -> None:
    header = struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    path.write_bytes(gzip.compress(header + array.tobytes()))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with 20 training and 10 test digits, named by the environment variable."""
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    where = tmp_path / "mnist"
    where.mkdir()
    for prefix, count in (("train", 20), ("t10k", 10)):
        images = np.arange(count, dtype=np.uint8)[:, None, None] * np.ones((1, 28, 28), np.uint8)
        _write_idx(where / f"{prefix}-images-idx3-ubyte.gz", images)
        _write_idx(where / f"{prefix}-labels-idx1-ubyte.gz", np.arange(count, dtype=np.uint8) % 10)
    return where


def test_parts_and_scaling(folder: Path) -> None:
    found = read_data_sets("", validation_size=5)
    assert [part.num_examples for part in found] == [15, 5, 10]
    assert found.train.images.shape == (15, 784)
    np.testing.assert_allclose(found.validation.images[:, 0], np.arange(5) / 255, rtol=1e-6)


def test_one_hot_and_whole_images(folder: Path) -> None:
    found = read_data_sets("", one_hot=True, reshape=False, dtype="uint8", validation_size=0)
    assert found.test.images.shape == (10, 28, 28, 1)
    assert found.test.labels[3].tolist() == [0.0, 0, 0, 1, 0, 0, 0, 0, 0, 0]


def test_a_batch_continues_with_the_next_epoch(folder: Path) -> None:
    train = read_data_sets("", dtype="uint8", validation_size=0).train
    seen = [image[0] for _ in range(5) for image in train.next_batch(12)[0]]
    assert train.epochs_completed == 2
    assert sorted(seen[:20]) == sorted(seen[20:40]) == list(range(20))


def test_in_order_without_shuffling(folder: Path) -> None:
    train = read_data_sets("", dtype="uint8", validation_size=0).train
    assert train.next_batch(20, shuffle=False)[0][:, 0].tolist() == list(range(20))


def test_too_large_a_validation_part(folder: Path) -> None:
    with pytest.raises(ValueError, match="between 0 and 20"):
        read_data_sets("", validation_size=21)


def test_nowhere(folder: Path) -> None:
    with pytest.raises(NotFoundError, match=f"absent.*{DATA_VARIABLE}"):
        find_file("mnist", "absent.gz", "elsewhere")


def test_a_file_that_is_cut_off(folder: Path) -> None:
    path = folder / "short"
    path.write_bytes(gzip.decompress((folder / "t10k-labels-idx1-ubyte.gz").read_bytes())[:-1])
    with pytest.raises(DataLossError, match="announces 10"):
        read_idx(path, 1)


def test_records(folder: Path, tmp_path: Path) -> None:
    written = write_records(tmp_path / "records")
    assert {path.name: count for path, count in written.items()} == {"train.tfrecords": 20, "test.tfrecords": 10}
    third = Example.FromString(list(tf_record_iterator(tmp_path / "records" / "train.tfrecords"))[3])
    feature = third.features.feature
    assert feature["image_raw"].bytes_list.value[0] == bytes([3]) * 784
    assert feature["pixels"].int64_list.value[0] == 784
    assert feature["label"].int64_list.value[0] == 3
