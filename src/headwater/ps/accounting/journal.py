"""The journal: records the examples of each update of the parameters, in a file that `headwater audit` reads.

A file belongs to one incarnation of the ``ps`` that keeps the ledger. It is a TFRecord file, so each record has a
checksum; each record is a list in JSON, whose first element is its kind::

    ["begins", run, set, task, time, update]            the first record: a ledger begins
    ["restored", run, set, task, time, update]          the first record: a ledger is restored to its state at that
                                                        update; earlier records of later updates do not count
    ["continued", run, set, task, time] the first record: continues the previous file of the same incarnation, which
                                                        became unwritable
    ["epoch", training, epoch, size, unit, batch, shuffle, seed]
    ["applied", update, time, training, [[worker, epoch, start, stop], ...]]
    ["back", time, training, worker, epoch, start, stop, tries, set aside, reason]
    ["over", time, training, epoch]

``run`` is a number that all incarnations of a ledger share, ``time`` is in seconds since 1970, and ``update`` is the
version of the parameters on that ``ps`` after the update.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import quote

from headwater.cluster.telemetry.troubles import TROUBLES, Troubles
from headwater.data.io.files import as_path, makedirs, truncate
from headwater.data.io.tfrecord import TFRecordWriter
from headwater.errors import OpError

FILES: Final = "examples.*.journal"
"""Pattern of the names of journals in a log folder."""

MAX_WAITING: Final = 100_000
"""Maximum number of records that wait for a disk that cannot be written."""

Record = Sequence[Any]


class Journal:
    """Appends records to a new file, which is created with the first one.

    `add` only queues a record; `flush` writes the queue with one system call. Both may be called by any thread. Records
    that cannot be written are kept, and retried later in another file; when more than `MAX_WAITING` records wait, the
    journal ends.

    Args:
      folder: the log folder; it is made, with its parents, if it is missing.
      first: the first record.
      troubles: receives reports of failed writes.
      clock: returns seconds since 1970.
      retry_s: time between two attempts, in seconds.
    """

    def __init__(
        self,
        folder: str,
        first: Record,
        *,
        troubles: Troubles = TROUBLES,
        clock: Callable[[], float] = time.time,
        retry_s: float = 10.0,
    ) -> None:
        self._folder = as_path(folder)
        self._first = first
        self._troubles = troubles
        self._clock = clock
        self._retry_s = retry_s
        self._retry_at = 0.0
        self._pending: deque[Record] = deque([first])
        self._lock = threading.Lock()
        self._writer: TFRecordWriter | None = None
        self._files = 0
        self._path = ""
        self._written_bytes = 0

    def add(self, *record: object) -> None:
        """Queues a record."""
        if self._retry_at < math.inf:  # else the journal has ended
            self._pending.append(record)

    def flush(self) -> None:
        """Writes all queued records."""
        if not self._pending or (self._retry_at and self._clock() < self._retry_at):
            return
        pending, what = self._pending, f"the journal of examples in {self._folder}"
        with self._lock:
            count = len(pending)  # other threads may add records meanwhile: these are for the next flush
            try:
                self._write([_packed(pending[at]) for at in range(count)])
            except OpError as error:
                self._retry_at = self._clock() + self._retry_s
                then = f"{count} records wait, and are retried"
                if count > MAX_WAITING:
                    self._retry_at, then = math.inf, "The journal ends here: headwater audit will miss later records"
                    pending.clear()
                self._troubles.record_failure(what, error, then)
                return
            for _ in range(count):
                pending.popleft()
            if self._retry_at:
                self._retry_at = 0.0
                self._troubles.record_success(what)

    def close(self) -> None:
        """Writes all queued records, and closes the file."""
        self.flush()
        if self._writer is not None:
            self._writer.close()

    def _write(self, records: Sequence[bytes]) -> None:
        if self._writer is None:
            self._open_file()
        writer = self._writer
        assert writer is not None
        try:
            writer.write_all(records)
            writer.flush()
        except BaseException:
            # Keep the records that were written completely, and continue in another file.
            self._writer = None
            with contextlib.suppress(OpError):
                writer.close()
            truncate(self._path, self._written_bytes)
            raise
        self._written_bytes += _nbytes(records)

    def _open_file(self) -> None:
        makedirs(self._folder)
        began, name = self._clock(), quote(str(self._first[2]), safe="")
        self._path = os.path.join(self._folder, f"examples.{name}.{began:017.6f}.{secrets.token_hex(4)}.journal")
        self._writer, self._written_bytes = TFRecordWriter(self._path), 0
        # A later file of the same incarnation must not indicate the beginning of a ledger.
        if self._files:
            records = [_packed(["continued", *self._first[1:4], began])]
            self._write(records)
        self._files += 1


def _packed(record: Record) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()


def _nbytes(records: Sequence[bytes]) -> int:
    """Returns the size of records in a file, each with its length and two checksums."""
    return sum(map(len, records)) + 16 * len(records)
