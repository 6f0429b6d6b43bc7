"""Names around models in TensorFlow 1.15's ``tf.keras`` that Keras 3 has removed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import h5py
import keras
import numpy as np

from headwater.graph.registry import HostArray
from headwater.keras.internals import keras_skipgrams
from headwater.keras.old_files import is_old, model_of_old_config
from headwater.keras.types import Tree


def model_from_config(config: Mapping[str, object], custom_objects: Mapping[str, type] | None = None) -> keras.Model:
    """Creates a model from a configuration in the form of ``model.to_json``.

    Raises:
      TypeError: ``config`` is a list: the configuration of a `Sequential` alone belongs to ``Sequential.from_config``.
    """
    if isinstance(config, list):
        raise TypeError(
            "`model_from_config` expects a dictionary, not a list. Maybe you meant to use "
            "`Sequential.from_config(config)`?"
        )
    if is_old(config):
        return model_of_old_config(config, custom_objects)
    # A configuration without a module names one of Keras's own classes.
    full = {"module": "keras", "registered_name": None, **config}
    return keras.saving.deserialize_keras_object(full, custom_objects=custom_objects)


def model_from_json(json_string: str, custom_objects: Mapping[str, type] | None = None) -> Tree:
    """Creates a model from the text of ``model.to_json``, also of Keras 2."""
    return model_from_config(json.loads(json_string), custom_objects)


class BaseLogger(keras.callbacks.Callback):
    """Adds the means of metrics over an epoch to its logs.

    Args:
      stateful_metrics: names of metrics that are means already; their last values are used.
    """

    def __init__(self, stateful_metrics: Iterable[str] | None = None) -> None:
        super().__init__()
        self.stateful_metrics = set(stateful_metrics or ())
        self.seen = 0
        self.totals: dict[str, float] = {}

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, float] | None = None) -> None:
        """Resets the means."""
        del epoch, logs
        self.seen = 0
        self.totals = {}

    def on_batch_end(self, batch: int, logs: Mapping[str, float] | None = None) -> None:
        """Adds the metrics of a batch, weighted by the ``size`` in its logs (1 by default)."""
        del batch
        values = dict(logs or {})
        size = int(values.get("size", 1))
        self.seen += size
        for name, value in values.items():
            if name in self.stateful_metrics:
                self.totals[name] = value
            else:
                self.totals[name] = self.totals.get(name, 0.0) + value * size

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Adds the means to ``logs``."""
        del epoch
        if logs is None:
            return
        for name, total in self.totals.items():
            if name != "size":
                logs[name] = total if name in self.stateful_metrics else total / self.seen


class HDF5Matrix:
    """A dataset of an HDF5 file in place of an array, or some of its rows.

    Args:
      datapath: path of the file.
      dataset: the dataset's name in the file.
      start: the first row to use.
      end: the row after the last row to use.
      normalizer: a function that is applied to the values read.
    """

    def __init__(
        self,
        datapath: str,
        dataset: str,
        start: int = 0,
        end: int | None = None,
        normalizer: Callable[[Any], object] | None = None,
    ) -> None:
        self.data: Any = h5py.File(datapath, "r")[dataset]
        self.start = start
        self.end = self.data.shape[0] if end is None else end
        self.normalizer = normalizer

    def __len__(self) -> int:
        return self.end - self.start

    def __getitem__(self, key: int | slice | Sequence[int] | HostArray) -> Any:
        """Returns rows by their numbers, counted from ``start``.

        Raises:
          IndexError: a row is beyond ``end``.
        """
        if isinstance(key, slice):
            first, last = key.start or 0, len(self) if key.stop is None else key.stop
            if self.start + last > self.end:
                raise IndexError(f"row {last} is out of range: there are {len(self)} rows")
            rows_read = self.data[slice(first + self.start, last + self.start, key.step)]
        else:
            rows = np.asarray(key)
            if rows.size and rows.max() + self.start >= self.end:
                raise IndexError(f"row {rows.max()} is out of range: there are {len(self)} rows")
            rows_read = self.data[rows + self.start] if rows.ndim else self.data[int(rows) + self.start]
        return rows_read if self.normalizer is None else self.normalizer(rows_read)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows in use, and the shape of a row."""
        return (len(self), *self.data.shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.data.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))


def skipgrams(
    sequence: Sequence[int],
    vocabulary_size: int,
    window_size: int = 4,
    negative_samples: float = 1.0,
    shuffle: bool = True,
    categorical: bool = False,
    sampling_table: Sequence[float] | None = None,
    seed: int | None = None,
) -> tuple[list[list[int]], list[object]]:
    """Returns pairs of words that are near each other, with label 1, and pairs of random words, with label 0.

    Args:
      sequence: the numbers of the words; 0 is not a word.
      vocabulary_size: the number of words, plus one.
      window_size: the greatest distance of the words of a pair.
      negative_samples: number of pairs of random words for each pair of near words.
      shuffle: whether the pairs are in random order.
      categorical: whether labels are [0, 1] and [1, 0].
      sampling_table: for each word, the probability that it is used.
      seed: the seed of the random order.
    """
    # Keras's own function draws a seed in a way that is an error in Python 3.12.
    drawn = random.randrange(10**7) if seed is None else seed
    return keras_skipgrams(
        sequence, vocabulary_size, window_size, negative_samples, shuffle, categorical, sampling_table, drawn
    )
