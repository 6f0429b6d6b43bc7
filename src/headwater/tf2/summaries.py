"""``tf.summary`` of TensorFlow 2: eager functions that write events for TensorBoard into a folder."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
from tensorboard.plugins.audio import metadata as audio_metadata
from tensorboard.plugins.histogram import summary_v2 as histograms
from tensorboard.plugins.image import metadata as image_metadata
from tensorboard.plugins.scalar import summary_v2 as scalars
from tensorboard.plugins.text import summary_v2 as texts

from headwater.data.io import summary_protos
from headwater.data.io.tensor_proto import make_tensor_proto
from headwater.graph.context import get_default_graph
from headwater.tensorboard_protos import summary_pb2
from headwater.tf1.training.file_writer import FileWriter
from headwater.tf2.tensors import to_numpy
from headwater.tf2.tracing import RunsInPython, tracing

_images: Any = image_metadata
_sounds: Any = audio_metadata


class _Here(threading.local):
    def __init__(self) -> None:
        self.writer: SummaryWriter | None = None
        self.step: object = None
        self.records: Callable[[], object] = lambda: True


_here = _Here()


class SummaryWriter:
    """Writes the values of ``tf.summary``'s functions while it is the default writer.

    Args:
      writer: writes the events; with None, nothing is written.
    """

    def __init__(self, writer: FileWriter | None) -> None:
        self._writer = writer
        self._closed = False

    @contextmanager
    def as_default(self, step: object = None) -> Generator[SummaryWriter]:
        """A context in which this is the thread's default writer, and ``step`` the default step.

        Raises:
          RuntimeError: the writer is closed.
        """
        if self._closed:
            raise RuntimeError("SummaryWriter is already closed")
        before = _here.writer, _here.step
        self.set_as_default(step)
        try:
            yield self
        finally:
            self.flush()
            _here.writer, _here.step = before

    def set_as_default(self, step: object = None) -> None:
        """Makes this the thread's default writer."""
        _here.writer = self
        if step is not None:
            _here.step = step

    def init(self) -> None:
        """Does nothing: a new writer is ready."""

    def flush(self) -> None:
        """Writes all buffered events to the file."""
        if self._writer is not None and not self._closed:
            self._writer.flush()

    def close(self) -> None:
        """Writes remaining events, and closes the file."""
        if self._writer is not None and not self._closed:
            self._writer.close()
        self._closed = True

    def add(self, summary: object, step: int) -> bool:
        """Adds a ``Summary``; returns whether it is written."""
        if self._writer is None or self._closed:
            return False
        self._writer.add_summary(summary, step)
        return True


def create_file_writer(
    logdir: object,
    max_queue: int | None = None,
    flush_millis: int | None = None,
    filename_suffix: str | None = None,
    name: str | None = None,
    experimental_trackable: bool = False,
    experimental_mesh: object = None,
) -> SummaryWriter:
    """Returns a writer of events in a folder.

    Args:
      logdir: the folder; it is created.
      max_queue: maximum number of buffered events; 10 if None.
      flush_millis: interval at which buffered events are written, in milliseconds; two minutes if None.
      filename_suffix: suffix of the file's name; ``.v2`` if None.
      name, experimental_trackable: ignored: the writer has no operation.
      experimental_mesh: must be None.
    """
    del name, experimental_trackable
    if experimental_mesh is not None:
        raise NotImplementedError("tf.summary.create_file_writer: experimental_mesh is not supported")
    queue = 10 if max_queue is None else max_queue
    seconds = 120.0 if flush_millis is None else flush_millis / 1e3
    suffix = ".v2" if filename_suffix is None else filename_suffix
    return SummaryWriter(FileWriter(to_text(logdir), max_queue=queue, flush_secs=seconds, filename_suffix=suffix))


def to_text(path: Any) -> str:
    """Converts a path, which may be a tensor, to text."""
    value = path.numpy() if hasattr(path, "numpy") else path
    return value.decode() if isinstance(value, bytes) else str(value)


def create_noop_writer() -> SummaryWriter:
    """Returns a writer that writes nothing."""
    return SummaryWriter(None)


def flush(writer: SummaryWriter | None = None, name: str | None = None) -> None:
    """Writes all buffered events of ``writer``, or of the thread's default writer, to the file."""
    del name
    writer = writer or _here.writer
    if writer is not None:
        writer.flush()


@contextmanager
def record_if(condition: object) -> Generator[None]:
    """A context in which values are written only if ``condition``, a boolean or a function, is true."""
    before = _here.records
    _here.records = condition if callable(condition) else lambda: condition
    try:
        yield
    finally:
        _here.records = before


def should_record_summaries() -> bool:
    """Returns whether a summary would be written now."""
    return _here.writer is not None and bool(_here.records())


def set_step(step: object) -> None:
    """Sets the default step; for a variable, its value at the time of each write."""
    _here.step = step


def get_step() -> Any:
    """Returns the step of `set_step`, or None."""
    return _here.step


def _write(name: str, step: object, make: Callable[[str], object]) -> bool:
    """Writes the ``Summary`` that ``make`` makes for a tag.

    Raises:
      ValueError: there is no step.
    """
    if _here.writer is None:
        return False
    if tracing() is not None:
        raise RunsInPython("tf.summary writes on the host")
    if not should_record_summaries():
        return False
    step = _here.step if step is None else step
    if step is None:
        raise ValueError(
            "No step set. Please specify one either through the `step` argument or through "
            "tf.summary.experimental.set_step()"
        )
    scope = get_default_graph().get_name_scope()
    return _here.writer.add(make(f"{scope}/{name}" if scope else name), int(to_numpy(step)))


def scalar(name: str, data: object, step: object = None, description: str | None = None) -> bool:
    """Writes a number and returns whether it was written; raises ValueError for an array, or without a step."""
    return _write(name, step, lambda tag: scalars.scalar_pb(tag, to_numpy(data), description))


def histogram(
    name: str, data: object, step: object = None, buckets: int | None = None, description: str | None = None
) -> bool:
    """Writes a histogram with ``buckets`` of equal width (30 if None); returns whether it was written."""
    return _write(
        name, step, lambda tag: histograms.histogram_pb(tag, to_numpy(data), buckets=buckets, description=description)
    )


def text(name: str, data: object, step: object = None, description: str | None = None) -> bool:
    """Writes text; returns whether it was written."""
    return _write(name, step, lambda tag: texts.text_pb(tag, to_numpy(data), description))


def image(name: str, data: object, step: object = None, max_outputs: int = 3, description: str | None = None) -> bool:
    """Writes the first images of a batch; returns whether they were written.

    Args:
      data: ``[pictures, height, width, channels]``: bytes, or numbers from 0 to 1.
    """

    def make(tag: str) -> object:
        array = to_numpy(data)
        if array.dtype != np.uint8:
            array = (np.clip(array.astype(np.float32), 0, 1) * 255.5).astype(np.uint8)
        found = [value.image for value in summary_protos.image(tag, array, max_outputs).value]
        height, width = array.shape[1:3]
        parts = [str(width).encode(), str(height).encode(), *(each.encoded_image_string for each in found)]
        return _tensor(tag, np.array(parts, object), _images.create_summary_metadata(None, description))

    return _write(name, step, make)


def audio(
    name: str,
    data: object,
    sample_rate: object,
    step: object = None,
    max_outputs: int = 3,
    encoding: str | None = None,
    description: str | None = None,
) -> bool:
    """Writes the first sounds of a batch as WAV; returns whether they were written.

    The batch has the shape ``[sounds, frames, channels]``, with values from -1 to 1.

    Raises:
      ValueError: ``encoding`` is not ``wav``.
    """
    if encoding not in (None, "wav"):
        raise ValueError(f"Unknown encoding: {encoding!r}")

    def make(tag: str) -> object:
        rate = float(to_numpy(sample_rate))
        found = [value.audio for value in summary_protos.audio(tag, to_numpy(data), rate, max_outputs).value]
        rows = np.array([[each.encoded_audio_string, b""] for each in found], object).reshape(-1, 2)
        wav: Any = _sounds.Encoding.Value("WAV")
        return _tensor(tag, rows, _sounds.create_summary_metadata(None, description, wav))

    return _write(name, step, make)


def write(tag: str, tensor: object, step: object = None, metadata: object = None, name: str | None = None) -> bool:
    """Writes a tensor with ``metadata``, a ``SummaryMetadata`` that selects the TensorBoard plugin for it."""
    del name
    return _write(tag, step, lambda tag: _tensor(tag, to_numpy(tensor), metadata))


def _tensor(tag: str, value: object, metadata: object) -> Any:
    made = summary_pb2.Summary.Value(tag=tag, metadata=metadata)
    made.tensor.MergeFromString(make_tensor_proto(value).SerializeToString())
    return summary_pb2.Summary(value=[made])


def _no_traces(*_args: object, **_kwargs: object) -> None:
    raise NotImplementedError(
        "tf.summary's graphs and traces of functions are not supported: use jax.profiler to profile XLA's executables"
    )


graph = trace_on = trace_off = trace_export = _no_traces

experimental = ModuleType("tensorflow.summary.experimental", "``tf.summary.experimental``.")
experimental.__dict__.update(set_step=set_step, get_step=get_step)
