"""The journal: which examples each update of the parameters held, in a file that `headwater audit` reads.

A file is one life of the ``ps`` that keeps the ledger. It is a TFRecord file, so each record has a checksum; each is a
list in JSON, of which the first element says what it is::

    ["begins", run, set, task, time, update]            the first record: a ledger begins
    ["restored", run, set, task, time, update]          the first record: a ledger goes on as it was at that update;
                                                        what the lives before wrote of later ones does not count
    ["continued", run, set, task, time]                 the first record: of the same life as the file before, which
                                                        could not be written any more
    ["epoch", training, epoch, size, unit, batch, shuffle, seed]
    ["applied", update, time, training, [[worker, epoch, start, stop], ...]]
    ["back", time, training, worker, epoch, start, stop, tries, set aside, reason]
    ["over", time, training, epoch]

``run`` is a number that all lives of a ledger share, ``time`` is in seconds since 1970, and ``update`` is the version
of the parameters on that ``ps`` once the update is made.
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
"""The names of journals in a log folder."""

MOST: Final = 100_000
"""How many records wait for a disk that does not take them."""

Record = Sequence[Any]


class Journal:
    """Appends records to a new file, which is made at the first one.

    `add` only remembers a record; `flush` writes what there is, as one call of the system. Both may be called by any
    thread. Where a record cannot be written it is kept, and tried again later, in another file; where that fails until
    `MOST` records wait, the journal ends.

    Args:
      folder: the log folder; it is made, with those around it, if it is missing.
      first: the first record.
      troubles: is told of what cannot be written.
      clock: gives seconds since 1970.
      retry_s: how long to wait between two tries, in seconds.
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
        """Remembers a record."""
        if self._retry_at < math.inf:
            self._pending.append(record)

    def flush(self) -> None:
        """Writes all records that there are."""
        if not self._pending or (self._retry_at and self._clock() < self._retry_at):
            return
        pending, what = self._pending, f"the journal of examples in {self._folder}"
        with self._lock:
            count = len(pending)
            try:
                self._write([_packed(pending[at]) for at in range(count)])
            except OpError as error:
                self._retry_at = self._clock() + self._retry_s
                then = f"{count} records wait, and are tried again"
                if count > MOST:
                    self._retry_at, then = math.inf, "The journal ends here: headwater audit will miss what follows"
                    pending.clear()
                self._troubles.failed(what, error, then)
                return
            for _ in range(count):
                pending.popleft()
            if self._retry_at:
                self._retry_at = 0.0
                self._troubles.written(what)

    def close(self) -> None:
        """Writes what there is, and ends the file."""
        self.flush()
        if self._writer is not None:
            self._writer.close()

    def _write(self, records: Sequence[bytes]) -> None:
        if self._writer is None:
            self._begin_file()
        writer = self._writer
        assert writer is not None
        try:
            writer.write_all(records)
            writer.flush()
        except BaseException:
            # What was written whole stays, and what comes goes to another file.
            self._writer = None
            with contextlib.suppress(OpError):
                writer.close()
            truncate(self._path, self._written_bytes)
            raise
        self._written_bytes += _nbytes(records)

    def _begin_file(self) -> None:
        makedirs(self._folder)
        began, name = self._clock(), quote(str(self._first[2]), safe="")
        self._path = os.path.join(self._folder, f"examples.{name}.{began:017.6f}.{secrets.token_hex(4)}.journal")
        self._writer, self._written_bytes = TFRecordWriter(self._path), 0
        if self._files:
            records = [_packed(["continued", *self._first[1:4], began])]
            self._write(records)
        self._files += 1


def _packed(record: Record) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode()


def _nbytes(records: Sequence[bytes]) -> int:
    """How long records are in a file, each with its length and two checksums."""
    return sum(map(len, records)) + 16 * len(records)
