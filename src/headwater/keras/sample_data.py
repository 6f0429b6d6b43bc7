"""The sample data sets of ``keras.datasets``, read from ``HEADWATER_DATA_DIR`` if the files are there."""

from __future__ import annotations

from typing import Any

import keras

from headwater.data.io.sample_files import find_file, read_idx
from headwater.errors import OpError

Parts = tuple[tuple[Any, Any], tuple[Any, Any]]


def load_mnist(path: str = "mnist.npz") -> Parts:
    """MNIST: 60,000 and 10,000 images of 28 by 28 pixels (uint8), and their labels from 0 to 9 (uint8).

    Args:
      path: see ``keras.datasets.mnist.load_data``, which is called if ``HEADWATER_DATA_DIR`` does not have the files.
    """
    return _from_files("mnist") or keras.datasets.mnist.load_data(path)


def load_fashion_mnist() -> Parts:
    """Fashion-MNIST, in the same form as the result of `load_mnist`."""
    return _from_files("fashion_mnist") or keras.datasets.fashion_mnist.load_data()


def _from_files(name: str) -> Parts | None:
    try:
        train, test = (
            (
                read_idx(find_file(name, f"{part}-images-idx3-ubyte.gz", None, None), 3),
                read_idx(find_file(name, f"{part}-labels-idx1-ubyte.gz", None, None), 1),
            )
            for part in ("train", "t10k")
        )
    except OpError:
        # The file is not there: Keras reads it from its cache or downloads it.
        return None
    return train, test
