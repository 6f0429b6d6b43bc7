"""Event files of TensorBoard: one ``Event`` message in each TFRecord.

Source: files that TensorFlow 1.15 writes: their names, their first event, their records.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.message import DecodeError

from headwater.data.io.files import Path, as_path, create, makedirs, remove, stat, truncate
from headwater.data.io.tfrecord import TFRecordWriter, tf_record_iterator
from headwater.errors import AlreadyExistsError, DataLossError, OpError
from headwater.tensorboard_protos import event_pb2

FILE_VERSION: Final = "brain.Event:2"
"""Format version in the first event of a file."""


class EventFile:
    """A new file of events in a folder, ``events.out.tfevents.SECONDS.HOST``.

    Args:
      logdir: the folder; it is created, with its parents, if it is missing.
      suffix: end of the name. A file of the same second is not replaced: the new one gets a number before the suffix.

    Attributes:
      path: the file.

    Raises:
      PermissionDeniedError, ResourceExhaustedError ...: errors of the file system, from all methods.
    """

    def __init__(self, logdir: Path, suffix: str = "") -> None:
        makedirs(logdir)
        seconds = int(time.time())
        stem = os.path.join(as_path(logdir), f"events.out.tfevents.{seconds:010d}.{socket.gethostname()}")
        self.path: str = _create(stem, suffix)
        self._writer = TFRecordWriter(self.path)
        first = event_pb2.Event(wall_time=float(seconds), file_version=FILE_VERSION)
        self._flushed_bytes = 0
        try:
            self._writer.write(first.SerializeToString())
        except OpError:
            self.abandon()
            raise

    def write(self, event: bytes) -> None:
        """Appends a serialized ``Event``."""
        self._writer.write(event)

    def flush(self) -> None:
        """Passes all events to the operating system, so that readers see them."""
        self._writer.flush()
        self._flushed_bytes = stat(self.path).length

    def abandon(self) -> None:
        """Closes the file after an error, with the events up to the last successful `flush`; without any, deletes
        it."""
        with contextlib.suppress(OpError):
            self._writer.close()
        with contextlib.suppress(OpError):
            if self._flushed_bytes:
                truncate(self.path, self._flushed_bytes)
            else:
                remove(self.path)

    def close(self) -> None:
        """Closes the file."""
        self._writer.close()


def _create(stem: str, suffix: str) -> str:
    number = 0
    while True:
        path = f"{stem}.{number}{suffix}" if number else stem + suffix
        try:
            create(path)
        except AlreadyExistsError:
            number += 1
        else:
            return path


def summary_iterator(path: Path) -> Iterator[Any]:
    """Yields the ``Event`` messages of a file.

    Raises:
      NotFoundError: there is no such file.
      DataLossError: an event is damaged or cut off; events before it are yielded first.
    """
    for record in tf_record_iterator(path):
        try:
            event = event_pb2.Event.FromString(record)
        except DecodeError as error:
            raise DataLossError(f"{as_path(path)}: a record is no Event") from error
        yield event
