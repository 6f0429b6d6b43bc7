"""Readers: take file names from a queue and return the records in the files."""

from __future__ import annotations

import io
import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from headwater.data.io.files import BUFFER_BYTES, as_path, open_file, translated
from headwater.data.io.record_compression import Inflater, TFRecordOptions
from headwater.data.io.tfrecord import TFRecordReader
from headwater.errors import InvalidArgumentError
from headwater.graph.resources.lmdb_files import pairs as lmdb_pairs
from headwater.graph.resources.queues import Queue, Waiting

Record = tuple[bytes, bytes]


class Reader(ABC):
    """Reads work items, usually files, one after the other.

    Args:
      name: for messages.

    Attributes:
      produced: number of records read.
      completed: number of work items read to their end.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.produced: int = 0
        self.completed: int = 0
        self._lock = threading.Lock()
        self._records: Iterator[list[Record]] | None = None
        self._left: list[Record] = []
        self._ahead = 1

    @abstractmethod
    def _open(self, work: bytes) -> Iterator[list[Record]]:
        """Yields the records of one work item, keys with values, in lists of at most `_ahead`."""

    def read_up_to(self, step: Waiting, queue: Queue, count: int) -> list[Record]:
        """Returns the next records of the present work item, at least one and at most ``count``.

        Args:
          step: for waiting.
          queue: the queue of file names, its only component.
          count: maximum number of records.

        Raises:
          OutOfRangeError: the queue is closed and empty.
          DataLossError: a file is damaged; the message has its name and the position of the damage.
        """
        if count < 1:
            raise InvalidArgumentError(f"reader {self.name!r} cannot read {count} records")
        with self._lock:
            while not self._left:
                if self._records is None:
                    (work,) = queue.dequeue(step)
                    self._records = self._open(bytes(work.item()))
                # Read no more records than the step requests, so that a damaged record fails the step that requests it
                # and not an earlier one.
                self._ahead = count
                record = next(self._records, None)
                if record is None:
                    self._records = None
                    self.completed += 1
                else:
                    self._left = record
            taken, self._left = self._left[:count], self._left[count:]
            self.produced += len(taken)
            return taken

    def reset(self) -> None:
        """Drops the present work item and resets the counts."""
        with self._lock:
            self._records = None
            self._left = []
            self.produced = self.completed = 0


class RecordReader(Reader):
    """Reads TFRecord files. A record's key is the file's name and the record's offset.

    Args:
      compression: ``GZIP``, ``ZLIB``, or empty.
    """

    def __init__(self, name: str, compression: str) -> None:
        super().__init__(name)
        self._compression = compression

    def _open(self, work: bytes) -> Iterator[list[Record]]:
        with TFRecordReader(work, self._compression) as file:
            prefix = work + b":"
            while True:
                offset = file.offset
                values = file.read_block(self._ahead)
                if not values:
                    return
                records: list[Record] = []
                for value in values:
                    records.append((prefix + b"%d" % offset, value))
                    # A record of a TFRecord file has 16 bytes of lengths and checksums beside its value.
                    offset += len(value) + 16
                yield records


class LineReader(Reader):
    """Reads text files line by line. A line's key is the file's name and its number.

    Args:
      skipped: number of lines to skip at the start of each file.
    """

    def __init__(self, name: str, skipped: int) -> None:
        super().__init__(name)
        self._skipped = skipped

    def _open(self, work: bytes) -> Iterator[list[Record]]:
        with translated(work) as path, open_file(path, "rb") as file:
            lines = iter(file.readline, b"")
            number = 1 + sum(1 for _ in itertools.islice(lines, self._skipped))
            while block := list(itertools.islice(lines, self._ahead)):
                yield [
                    (work + b":%d" % (number + index), line.rstrip(b"\n").replace(b"\r", b""))
                    for index, line in enumerate(block)
                ]
                number += len(block)


class FixedLengthReader(Reader):
    """Reads records of equal length. A record's key is the file's name and its number.

    Args:
      record_bytes: length of a record.
      header_bytes: bytes skipped at the start of a file.
      footer_bytes: bytes skipped at the end of a file.
      hop_bytes: distance between the starts of records; 0 for ``record_bytes``.
      encoding: ``ZLIB`` for compressed files, or empty.
    """

    def __init__(
        self, name: str, record_bytes: int, header_bytes: int, footer_bytes: int, hop_bytes: int, encoding: str
    ) -> None:
        super().__init__(name)
        for what, value, least in (
            ("record_bytes", record_bytes, 1),
            ("header_bytes", header_bytes, 0),
            ("footer_bytes", footer_bytes, 0),
            ("hop_bytes", hop_bytes, 0),
        ):
            if value < least:
                raise InvalidArgumentError(f"{what} of reader {name!r} must be >= {least} but is {value}")
        if encoding not in ("", "ZLIB"):
            raise InvalidArgumentError(f"encoding of reader {name!r} must be '' or 'ZLIB', not {encoding}")
        self._record, self._header, self._footer = record_bytes, header_bytes, footer_bytes
        self._hop = hop_bytes or record_bytes
        self._encoding = encoding

    def _open(self, work: bytes) -> Iterator[list[Record]]:
        data = read_file(work)
        if self._encoding:
            data = inflate(data, "ZLIB", as_path(work))
        starts = range(self._header, len(data) - self._footer - self._record + 1, self._hop)
        at = 0
        while at < len(starts):
            chosen = range(at, min(at + self._ahead, len(starts)))
            yield [(work + b":%d" % index, data[starts[index] : starts[index] + self._record]) for index in chosen]
            at = chosen.stop


class WholeFileReader(Reader):
    """Returns whole files, with their names as keys."""

    def _open(self, work: bytes) -> Iterator[list[Record]]:
        yield [(work, read_file(work))]


class LMDBReader(Reader):
    """Returns the entries of an LMDB file, in the order of keys."""

    def _open(self, work: bytes) -> Iterator[list[Record]]:
        with translated(work) as path:
            pairs = lmdb_pairs(path)
            while chosen := list(itertools.islice(pairs, self._ahead)):
                yield chosen


class IdentityReader(Reader):
    """Returns the work item itself, as key and value."""

    def _open(self, work: bytes) -> Iterator[list[Record]]:
        yield [(work, work)]


def read_file(name: bytes) -> bytes:
    """Returns the contents of a file."""
    with translated(name) as path, open_file(path, "rb") as file:
        return file.read()


def inflate(data: bytes, compression_type: str, name: str) -> bytes:
    """Decompresses ``data``; DataLossError if it is damaged, with ``name`` in the message."""
    bits = TFRecordOptions.of(compression_type).zlib_window_bits
    if bits is None:
        return data
    source = Inflater(io.BytesIO(data), name, bits)
    return b"".join(iter(lambda: source.read(BUFFER_BYTES), b""))


def columns(records: list[Record]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Returns keys and values as two vectors of strings."""
    keys = np.empty(len(records), object)
    values = np.empty(len(records), object)
    keys[:] = [key for key, _ in records]
    values[:] = [value for _, value in records]
    return keys, values
