"""The handwritten digits of MNIST: in memory with batches, as in TensorFlow's tutorials, and as TFRecords."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from headwater.data.io.example import BytesList, Example, Feature, Features, Int64List
from headwater.data.io.sample_files import find_file, read_idx
from headwater.data.io.tfrecord import TFRecordWriter
from headwater.dtypes import as_dtype, float32, uint8

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.graph.operation import Tensor
    from headwater.graph.registry import HostArray


SOURCE_URL: Final = "https://storage.googleapis.com/cvdf-datasets/mnist/"
_PARTS: Final = {"train": "train", "test": "t10k"}
_CLASSES: Final = 10
_PIXELS: Final = 784


class DataSet:
    """Images with labels, and batches of them.

    Args:
      images: uint8 (count, height, width, 1).
      labels: (count,), or (count, classes).
      fake_data: whether there are no images, and `next_batch` can return fake ones.
      one_hot: whether fake labels are vectors.
      dtype: float32 scales the pixels to between 0 and 1; uint8 leaves them.
      reshape: whether to return images as vectors.
      seed: the seed for the order of batches.

    Raises:
      TypeError: ``dtype`` is the wrong type.
      ValueError: the numbers of labels and images differ.

    Attributes:
      epochs_completed: number of completed passes over all examples.
    """

    def __init__(
        self,
        images: Any,
        labels: Any,
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: DTypeLike = float32,
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        wanted = as_dtype(dtype).base_dtype
        if wanted not in (uint8, float32):
            raise TypeError(f"Invalid image dtype {wanted!r}, expected uint8 or float32")
        self._random = np.random.default_rng(seed)
        self._one_hot = one_hot
        self.num_examples: int = 10000
        if not fake_data:
            if len(images) != len(labels):
                raise ValueError(f"images.shape: {images.shape} labels.shape: {labels.shape}")
            self.num_examples = len(images)
            if reshape:
                images = images.reshape(self.num_examples, math.prod(images.shape[1:]))
            if wanted == float32:
                images = images.astype(np.float32) * np.float32(1 / 255)
        self.images: HostArray = images
        self.labels: HostArray = labels
        self.epochs_completed: int = 0
        self._next = 0

    def next_batch(self, batch_size: int, fake_data: bool = False, shuffle: bool = True) -> tuple[Any, Any]:
        """Returns images and labels of the next ``batch_size`` examples.

        If an epoch ends within the batch, the batch continues with the first examples of the next epoch.

        Args:
          fake_data: whether to return lists of white images, all of class 0.
          shuffle: whether each epoch has a random order of its own.

        Raises:
          ValueError: there are no examples.
        """
        if fake_data:
            label = [1] + [0] * (_CLASSES - 1) if self._one_hot else 0
            return [[1] * _PIXELS for _ in range(batch_size)], [label for _ in range(batch_size)]
        if self._next == 0 and self.epochs_completed == 0 and shuffle:
            self._shuffle()
        if not self.num_examples:
            raise ValueError("a data set without examples has no batches")
        images: list[Any] = []
        labels: list[Any] = []
        missing = batch_size
        while missing > self.num_examples - self._next:
            images.append(self.images[self._next :])
            labels.append(self.labels[self._next :])
            missing -= self.num_examples - self._next
            self.epochs_completed += 1
            self._next = 0
            if shuffle:
                self._shuffle()
        end = self._next + missing
        images.append(self.images[self._next : end])
        labels.append(self.labels[self._next : end])
        self._next = end
        return np.concatenate(images), np.concatenate(labels)

    def _shuffle(self) -> None:
        order = self._random.permutation(self.num_examples)
        self.images = self.images[order]
        self.labels = self.labels[order]


class Datasets(NamedTuple):
    """The parts of a data set."""

    train: Any
    validation: Any
    test: Any


def _one_hot(labels: Tensor) -> HostArray:
    return np.eye(_CLASSES)[labels]


def _read(part: str, folder: str | None, source_url: str | None) -> tuple[Any, Any]:
    """Reads images (count, 28, 28, 1) and labels (count,) of a part."""
    prefix = _PARTS[part]
    images = read_idx(find_file("mnist", f"{prefix}-images-idx3-ubyte.gz", folder, source_url), 3)
    labels = read_idx(find_file("mnist", f"{prefix}-labels-idx1-ubyte.gz", folder, source_url), 1)
    return images[..., None], labels


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: DTypeLike = float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str = SOURCE_URL,
) -> Datasets:
    """Reads MNIST for training, validation and test; see `headwater.data.io.sample_files.find_file` for the sources.

    Args:
      train_dir: a folder to look in, and to save downloads in.
      fake_data: whether to return no data; see `DataSet`.
      one_hot: whether labels are vectors of 0 and 1.
      dtype, reshape, seed: as for `DataSet`.
      validation_size: number of training examples, the first ones, to use for validation.
      source_url: address of the folder with the files.

    Raises:
      NotFoundError: the files were not found; the message names the places.
      ValueError: ``validation_size`` is not between 0 and the number of training examples.
    """
    if fake_data:
        return Datasets(*(DataSet([], [], fake_data=True, one_hot=one_hot, dtype=dtype, seed=seed) for _ in range(3)))
    folder = os.fspath(train_dir) or None
    url = source_url or SOURCE_URL
    (images, labels), (test_images, test_labels) = _read("train", folder, url), _read("test", folder, url)
    if one_hot:
        labels, test_labels = _one_hot(labels), _one_hot(test_labels)
    if not 0 <= validation_size <= len(images):
        raise ValueError(f"Validation size should be between 0 and {len(images)}. Received: {validation_size}.")
    options: dict[str, Any] = {"dtype": dtype, "reshape": reshape, "seed": seed}
    return Datasets(
        train=DataSet(images[validation_size:], labels[validation_size:], **options),
        validation=DataSet(images[:validation_size], labels[:validation_size], **options),
        test=DataSet(test_images, test_labels, **options),
    )


def write_records(directory: str | Path) -> dict[Path, int]:
    """Writes MNIST as TFRecords: ``train.tfrecords`` and ``test.tfrecords``.

    Each example has the features ``image_raw`` (784 bytes), ``pixels`` (784) and ``label``.

    Args:
      directory: created if it does not exist.

    Returns:
      The number of examples in each file.

    Raises:
      NotFoundError: the data were not found; the message names the places.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    written: dict[Path, int] = {}
    for part in _PARTS:
        images, labels = _read(part, str(folder), SOURCE_URL)
        path = folder / f"{part}.tfrecords"
        with TFRecordWriter(path) as writer:
            writer.write_all(_example(image, label) for image, label in zip(images, labels, strict=True))
        written[path] = len(images)
    return written


def _example(image: Any, label: Any) -> bytes:
    features = {
        "image_raw": Feature(bytes_list=BytesList(value=[image.tobytes()])),
        "pixels": Feature(int64_list=Int64List(value=[image.size])),
        "label": Feature(int64_list=Int64List(value=[int(label)])),
    }
    return Example(features=Features(feature=features)).SerializeToString()
