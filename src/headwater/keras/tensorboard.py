"""Writes the events of a training run for TensorBoard, without TensorFlow.

The folders are ``log_dir/train`` and ``log_dir/validation``, with Keras's names: ``epoch_loss`` and so on at the end of
an epoch, ``batch_loss`` at batches, ``evaluation_loss_vs_iterations``, the learning rate, histograms of weights, and
the model.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from headwater.cluster.names import TaskName
from headwater.data.io import summary_protos
from headwater.keras.callbacks import become
from headwater.keras.embeddings.inference import dynamic_layers
from headwater.tables.description import TableStatistics
from headwater.tensorboard_protos import summary_pb2
from headwater.tf1.training.file_writer import FileWriter

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_DRAWN = {
    "rows": "rows",
    "memory_bytes": "nbytes",
    "file_bytes": "file_bytes",
    "made": "made",
    "evicted": "evicted",
    "refused": "refused",
    "hit_rate": "hit_rate",
}
"""For each curve of a table, by its name: the statistic that it shows."""

_callback: Any = keras.callbacks.Callback
_base: Any = keras.callbacks.TensorBoard
_proto: Any = summary_pb2


class TensorBoard(_base):
    """Writes event files for TensorBoard.

    For each `headwater.keras.layers.DynamicEmbedding` with rows on ``ps`` tasks, each epoch has ``tables/LAYER/`` with
    ``rows``, ``memory_bytes``, ``file_bytes``, ``made``, ``evicted``, ``refused`` (lookups of keys that were not
    admitted) and ``hit_rate``; ``rows/JOB_INDEX`` and ``lookups/JOB_INDEX`` of each ``ps`` show uneven load.

    Args:
      log_dir: the parent folder of ``train`` and ``validation``.
      histogram_freq: interval in epochs at which histograms of all weights are written; 0 for never.
      write_graph: whether to write the model's layers, for TensorBoard's graph view.
      write_steps_per_second: whether to write how fast steps and epochs are.
      update_freq: ``"epoch"``, ``"batch"``, or an interval in batches at which the logs are written.
      write_images, profile_batch, embeddings_freq, embeddings_metadata: not supported.

    Raises:
      ValueError: an argument that is not supported is given.
    """

    def __init__(
        self,
        log_dir: Any = "logs",
        histogram_freq: int = 0,
        write_graph: bool = True,
        write_images: bool = False,
        write_steps_per_second: bool = False,
        update_freq: Any = "epoch",
        profile_batch: object = 0,
        embeddings_freq: int = 0,
        embeddings_metadata: object = None,
    ) -> None:
        _callback.__init__(self)  # Keras's own TensorBoard needs TensorFlow
        refused = {
            "write_images": (write_images, "tf.summary.image writes images"),
            "profile_batch": (profile_batch, "jax.profiler.trace writes a profile"),
            "embeddings_freq": (embeddings_freq, "omit it"),
            "embeddings_metadata": (embeddings_metadata, "omit it"),
        }
        for name, (value, instead) in refused.items():
            if value:
                raise ValueError(f"{name} is not supported: {instead}")
        self.log_dir = os.fspath(log_dir)
        self.histogram_freq = histogram_freq
        self.write_graph = write_graph
        self.write_steps_per_second = write_steps_per_second
        self.update_freq = 1 if update_freq == "batch" else update_freq
        self._writers: dict[str, FileWriter] = {}
        self._step = 0
        self._training = False
        self._since = (0, 0.0)
        self._batch_began = 0.0

    @property
    def async_safe(self) -> bool:
        """Whether Keras may call this callback from other threads: only if the callback writes nothing for batches."""
        return self.update_freq == "epoch"

    def set_model(self, model: object) -> None:
        _callback.set_model(self, model)

    def on_train_begin(self, logs: object = None) -> None:
        self._step, self._training = 0, True
        if self.write_graph:
            metadata = _proto.SummaryMetadata(
                plugin_data=_proto.SummaryMetadata.PluginData(plugin_name="graph_keras_model", content=b"1")
            )
            try:
                text = self.model.to_json()
            except (NotImplementedError, TypeError, ValueError):
                # A model of a custom class that does not describe its layers.
                return
            self._writer("train").add_summary(summary_protos.tensor("keras", np.asarray(text, object), metadata), 0)

    def on_train_end(self, logs: object = None) -> None:
        self._training = False
        self._close()

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        self._since = (self._step, time.monotonic())

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        self._batch_began = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: dict[str, Tree] | None = None) -> None:
        self._step += 1
        if self.update_freq == "epoch" or self._step % self.update_freq:
            return
        values = {f"batch_{name}": value for name, value in (logs or {}).items()}
        if self.write_steps_per_second:
            values["batch_steps_per_second"] = 1 / max(time.monotonic() - self._batch_began, 1e-9)
        self._add("train", values, self._step)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        logs = logs or {}
        train = {f"epoch_{name}": value for name, value in logs.items() if not name.startswith("val_")}
        validation = {
            f"epoch_{name.removeprefix('val_')}": value for name, value in logs.items() if name.startswith("val_")
        }
        rate = getattr(self.model.optimizer, "learning_rate", None)
        if rate is not None:
            train["epoch_learning_rate"] = np.asarray(rate)
        if self.write_steps_per_second and self._step > self._since[0]:
            seconds = max(time.monotonic() - self._since[1], 1e-9)
            train["epoch_steps_per_second"] = (self._step - self._since[0]) / seconds
        for layer in dynamic_layers(self.model):
            train |= {f"tables/{layer.name}/{name}": value for name, value in _table_points(layer.statistics()).items()}
        self._add("train", train, epoch)
        self._add("validation", validation, epoch)
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            for variable in self.model.weights:
                summary = summary_protos.histogram(f"{variable.path}/histogram", np.asarray(variable.value))
                self._writer("train").add_summary(summary, epoch)
        for writer in self._writers.values():
            writer.flush()

    def on_test_begin(self, logs: object = None) -> None:
        pass

    def on_test_batch_begin(self, batch: int, logs: object = None) -> None:
        pass

    def on_test_end(self, logs: Any = None) -> None:
        values = {f"evaluation_{name}_vs_iterations": value for name, value in (logs or {}).items()}
        iterations = getattr(self.model.optimizer, "iterations", 0)
        self._add("validation", values, int(np.asarray(iterations)))
        if not self._training:
            self._close()

    def _add(self, part: str, values: dict[str, Any], step: int) -> None:
        numbers = {name: float(np.asarray(value)) for name, value in values.items() if np.ndim(value) == 0}
        if numbers:
            summary = summary_protos.scalar(list(numbers), list(numbers.values()))
            self._writer(part).add_summary(summary, step)

    def _writer(self, part: str) -> FileWriter:
        if part not in self._writers:
            self._writers[part] = FileWriter(os.path.join(self.log_dir, part))
        return self._writers[part]

    def _close(self) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()


def _table_points(statistics: Mapping[str, TableStatistics]) -> dict[str, float]:
    """Returns the points of a table's curves, from the statistics of each ``ps``."""
    if not statistics:
        return {}
    parts = statistics.values()
    whole = TableStatistics(
        **{each.name: sum(getattr(one, each.name) for one in parts) for each in fields(TableStatistics)}
    )
    points: dict[str, float] = {shown: getattr(whole, name) for shown, name in _DRAWN.items()}
    for task, one in statistics.items():
        place = TaskName.parse(task)
        points[f"rows/{place.job}_{place.index}"] = one.rows
        points[f"lookups/{place.job}_{place.index}"] = one.hits + one.misses
    return points


def adapt_board(callback: Any) -> None:
    """Makes a `keras.callbacks.TensorBoard`, or a program's subclass of it, write without TensorFlow.

    Raises:
      ValueError: ``callback`` has settings that `TensorBoard` does not support.
    """
    if isinstance(callback, TensorBoard):
        return
    board = TensorBoard(
        callback.log_dir,
        histogram_freq=callback.histogram_freq,
        write_graph=callback.write_graph,
        write_steps_per_second=callback.write_steps_per_second,
        update_freq=callback.update_freq,
        write_images=callback.write_images,
        profile_batch=getattr(callback, "_start_batch", 0),
        embeddings_freq=callback.embeddings_freq,
        embeddings_metadata=callback.embeddings_metadata,
    )
    become(callback, TensorBoard, _base)
    vars(callback).update(vars(board))
