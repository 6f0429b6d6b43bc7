"""Readers of TensorFlow 1.15, such as ``tf.TFRecordReader``, and operations on whole files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.data.io.record_compression import TFRecordOptions
from headwater.dtypes import int64
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Operation, Tensor
from headwater.tf1.functional.apply import apply, one

if TYPE_CHECKING:
    from headwater.graph.types import Structure, TensorLike
    from headwater.tensorboard_protos import RunOptions
    from headwater.tf1.input.queues import QueueBase


class Record(NamedTuple):
    """A record: ``key`` is its file and position, ``value`` its content."""

    key: Tensor
    value: Tensor


class Records(NamedTuple):
    """Several records."""

    keys: Tensor
    values: Tensor


class ReaderBase:
    """Base of all readers, which take file names from a queue and return key and value of each record.

    Args:
      reader_ref: the tensor that represents the reader.
      supports_serialize: accepted for compatibility: no reader can save its state.
    """

    def __init__(self, reader_ref: Tensor, supports_serialize: bool = False) -> None:
        self.reader_ref: Tensor = reader_ref
        self.supports_serialize: bool = supports_serialize

    def read(self, queue: QueueBase, name: str | None = None) -> Record:
        """Key and value of the next record, two strings.

        Args:
          queue: a queue of file names, or its tensor, read when the current file is exhausted.

        At run time OutOfRangeError if the queue is closed and empty, DataLossError if a file is damaged.
        """
        return Record(*self._op("ReaderReadV2", [_ref(queue)], name).outputs)

    def read_up_to(self, queue: QueueBase, num_records: Any, name: str | None = None) -> Records:
        """Keys and values of the next records, two vectors of strings.

        Args:
          queue: as for `read`.
          num_records: maximum number of records; the end of a file may limit it.
        """
        with get_default_graph().name_scope(name or "ReaderReadUpToV2") as scope:
            count = convert_to_tensor(num_records, int64, name="num_records")
            return Records(*self._op("ReaderReadUpToV2", [_ref(queue), count], scope).outputs)

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """Returns the number of records read."""
        return self._op("ReaderNumRecordsProducedV2", [], name).outputs[0]

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """Returns the number of files read to their end."""
        return self._op("ReaderNumWorkUnitsCompletedV2", [], name).outputs[0]

    def serialize_state(self, name: str | None = None) -> Tensor:
        """The reader's state; at run time UnimplementedError."""
        return self._op("ReaderSerializeStateV2", [], name).outputs[0]

    def restore_state(self, state: Structure, name: str | None = None) -> Operation:
        """Restores a state; at run time UnimplementedError."""
        return self._op("ReaderRestoreStateV2", [convert_to_tensor(state)], name)

    def reset(self, name: str | None = None) -> Operation:
        """Returns an operation that drops the current file and resets all counts."""
        return self._op("ReaderResetV2", [], name)

    def _op(self, op_type: str, inputs: list[Tensor], name: str | None) -> Operation:
        return self.reader_ref.graph.create_op(op_type, [self.reader_ref, *inputs], {}, name)


def _ref(queue: QueueBase) -> Tensor:
    return queue if isinstance(queue, Tensor) else queue.queue_ref


def _make(op_type: str, name: str | None, **attrs: object) -> Tensor:
    return get_default_graph().create_op(op_type, [], attrs, name).outputs[0]


class TFRecordReader(ReaderBase):
    """Reads TFRecord files. A record's key is ``file:offset``.

    Args:
      options: `TFRecordOptions`, for compressed files.
    """

    def __init__(self, name: str | None = None, options: RunOptions | None = None) -> None:
        compression = TFRecordOptions.get_compression_type_string(options)
        super().__init__(_make("TFRecordReaderV2", name, compression_type=compression))


class TextLineReader(ReaderBase):
    """Reads text files line by line. A line's key is ``file:number``, from 1 on.

    Args:
      skip_header_lines: number of lines to skip at the start of every file.
    """

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        super().__init__(_make("TextLineReaderV2", name, skip_header_lines=skip_header_lines or 0))


class LMDBReader(ReaderBase):
    """Reads files of LMDB, keys with values in the order of the keys.

    Args:
      options: ignored, as in TensorFlow: such files are not compressed.
    """

    def __init__(self, name: str | None = None, options: RunOptions | None = None) -> None:
        del options
        super().__init__(_make("LMDBReader", name))


class FixedLengthRecordReader(ReaderBase):
    """Reads records of equal length. A record's key is ``file:number``, from 0 on.

    Args:
      record_bytes: length of a record.
      header_bytes: number of bytes to skip at the beginning of a file.
      footer_bytes: number of bytes to ignore at its end.
      hop_bytes: distance between the starts of two records; ``record_bytes`` if None or 0.
      encoding: ``ZLIB`` for compressed files.
    """

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        attrs = {
            "record_bytes": record_bytes,
            "header_bytes": header_bytes or 0,
            "footer_bytes": footer_bytes or 0,
            "hop_bytes": hop_bytes or 0,
            "encoding": encoding or "",
        }
        super().__init__(_make("FixedLengthRecordReaderV2", name, **attrs))


class WholeFileReader(ReaderBase):
    """Reads whole files, with their names as keys."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(_make("WholeFileReaderV2", name), supports_serialize=True)


class IdentityReader(ReaderBase):
    """Returns the queue's elements as key and value."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(_make("IdentityReaderV2", name), supports_serialize=True)


# Whole files ------------------------------------------------------------------------------------------------------


def read_file(filename: TensorLike, name: str | None = None) -> Tensor:
    """Returns the content of a file; at run time NotFoundError if it does not exist."""
    return one("ReadFile", filename, name=name)


def write_file(filename: TensorLike, contents: TensorLike, name: str | None = None) -> Operation:
    """An operation that writes a file, and makes the folders around it."""
    return apply("WriteFile", filename, contents, name=name)


def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """The names of all files that match a pattern, or one of several, in order."""
    return one("MatchingFiles", pattern, name=name)
