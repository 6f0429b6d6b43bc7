"""A table's memory: shards, each with a lock, an index, and rows, which grow independently."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np
from numpy.typing import NDArray

from headwater.tables import fields as f
from headwater.tables import row_access, shard_kernels
from headwater.tables.compiled import Words
from headwater.tables.memory import Block

_FIRST_SLOTS: Final = 64
_WORD: Final = 8


class Gate:
    """A readers-writer lock: any number of shared calls, or one exclusive call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._inside = 0
        self._closed = False

    def enter(self) -> None:
        """Acquires shared access, until `exit`; waits for an exclusive call."""
        # New shared calls also wait for a waiting exclusive call, which otherwise might never begin.
        with self._lock:
            while self._closed:
                self._changed.wait()
            self._inside += 1

    def exit(self) -> None:
        """Releases shared access."""
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._closed:
                self._changed.notify_all()

    @contextmanager
    def shared(self) -> Generator[None]:
        """Context manager for shared access: `enter` and `exit`."""
        self.enter()
        try:
            yield
        finally:
            self.exit()

    @contextmanager
    def alone(self) -> Generator[None]:
        """Context manager for exclusive access: waits until shared calls have ended, and blocks new calls."""
        with self._lock:
            while self._closed:
                self._changed.wait()
            self._closed = True
            while self._inside:
                self._changed.wait()
        try:
            yield
        finally:
            with self._lock:
                self._closed = False
                self._changed.notify_all()


class Shards:
    """The memory of a table.

    Args:
      shape: see `headwater.tables.row_access`.
      memory_rows: maximum number of rows in memory in each shard; None for no limit.
      folder: the folder of the files with all further rows.
      candidates: maximum number of counted keys without a row in each shard; 0 for none.

    Attributes:
      directory: the argument of compiled functions, [shards + 1, fields]. The last row's first word counts all rows.
      on_remove: called with the keys of removed rows, [n, 2], in each call of `remove`; None for no call.
    """

    def __init__(self, shape: Words, *, memory_rows: int | None, folder: str | None, candidates: int) -> None:
        self._shape = shape
        self._count = int(shape[row_access.SHARDS])
        self._words = int(shape[row_access.WORDS])
        self._width = int(shape[row_access.WIDTH])
        self._memory_rows = memory_rows
        self._folder = folder
        self._candidate_slots = candidates
        # Aligned to cache lines of 64 bytes, so that no cache line contains the locks of two shards.
        self._space = np.zeros((self._count + 1) * f.FIELDS + 8, np.int64)
        skip = (-self._space.ctypes.data // _WORD) % 8
        whole = self._space[skip : skip + (self._count + 1) * f.FIELDS]
        self.directory: Words = whole.reshape(self._count + 1, f.FIELDS)
        self._blocks: list[dict[int, Block]] = []
        self.closed: bool = False
        self.on_remove: Callable[[Words], None] | None = None
        self._fill()

    def __len__(self) -> int:
        return self._count

    def _fill(self) -> None:
        for s in range(self._count):
            d = self.directory[s]
            d[:] = 0
            d[f.HOT] = self._memory_rows if self._memory_rows is not None else 1 << 62
            d[f.FREE] = -1
            d[f.SHIFT] = 24
            d[f.SLOTS] = _FIRST_SLOTS
            blocks = {f.INDEX: Block(4 * _FIRST_SLOTS), f.META: Block(1), f.VALUES: Block(1)}
            if self._candidate_slots:
                blocks[f.CANDIDATES] = Block(2 * _WORD * self._candidate_slots)
                d[f.CANDIDATE_SLOTS] = self._candidate_slots
            self._blocks.append(blocks)
            for field, block in blocks.items():
                d[field] = block.address
            self._make_room(s, _FIRST_SLOTS)
        self.directory[self._count, 0] = 0

    def clear(self) -> None:
        """Removes all rows. No other thread may use the table."""
        self._release()
        self._fill()

    def close(self) -> None:
        """Frees all memory. No other thread may use the table, now or later."""
        self.closed = True
        self._release()

    def _release(self) -> None:
        for blocks in self._blocks:
            for block in blocks.values():
                block.close()
        self._blocks.clear()

    def __del__(self) -> None:
        self._release()

    @contextmanager
    def locked(self, s: int) -> Generator[Words]:
        """Context manager that locks a shard and yields its entry."""
        # Spin: compiled functions use the same lock without the GIL, and hold it only for a short time.
        while not shard_kernels.lock_shard(self.directory, s):
            os.sched_yield()
        try:
            yield self.directory[s]
        finally:
            shard_kernels.unlock_shard(self.directory, s)

    # Room -------------------------------------------------------------------------------------------------------------

    def grow(self, s: int) -> None:
        """Makes room for at least one more row in a shard. Other shards stay usable meanwhile."""
        # Multiply sizes by a factor, so that the cost per row is constant. Do nothing if another thread, which needed
        # room as well, has already made room.
        with self.locked(s) as d:
            if int(d[f.FREE]) < 0 and int(d[f.ROWS]) >= int(d[f.CAPACITY]):
                self._make_room(s, int(d[f.CAPACITY]) * 5 // 4 + 1)
            if 5 * (int(d[f.LIVE]) + 1) > 4 * int(d[f.SLOTS]):
                self._make_index(s, int(d[f.SLOTS]) * 3 // 2)

    def reserve(self, s: int, rows: int) -> None:
        """Makes room for ``rows`` more rows in a shard at once."""
        with self.locked(s) as d:
            self._make_room(s, int(d[f.ROWS]) + rows)
            if 5 * (int(d[f.LIVE]) + rows) > 4 * int(d[f.SLOTS]):
                self._make_index(s, (int(d[f.LIVE]) + rows) * 5 // 4 + 1)

    def _make_room(self, s: int, rows: int) -> None:
        d, blocks = self.directory[s], self._blocks[s]
        if rows <= int(d[f.CAPACITY]):
            return
        hot = min(rows, int(d[f.HOT]))
        self._grow(s, f.META, rows * self._words * _WORD)
        self._grow(s, f.VALUES, hot * self._width * 4)
        if rows > hot:
            size = (rows - hot) * self._width * 4
            if f.COLD in blocks:
                self._grow(s, f.COLD, size)
            else:
                blocks[f.COLD] = Block(size, self._folder)
                d[f.COLD] = blocks[f.COLD].address
        d[f.CAPACITY] = rows

    def _grow(self, s: int, field: int, nbytes: int) -> None:
        block = self._blocks[s][field]
        block.grow(nbytes)
        self.directory[s, field] = block.address

    def _make_index(self, s: int, slots: int) -> None:
        d = self.directory[s]
        old, old_slots, old_shift = self._blocks[s][f.INDEX], int(d[f.SLOTS]), int(d[f.SHIFT])
        new = Block(4 * slots)
        # The tag has eight bits while rows need at most 24 bits, and fewer beyond.
        d[f.SHIFT] = max(24, slots.bit_length())
        d[f.SLOTS] = slots
        d[f.INDEX] = new.address
        shard_kernels.reindex(d, self._words, old.address, old_slots, old_shift)
        self._blocks[s][f.INDEX] = new
        old.close()

    def grow_log(self, s: int, records: int = 1) -> None:
        """Makes room in a shard's log for ``records`` more."""
        with self.locked(s):
            self._grow_log(s, records)

    def _grow_log(self, s: int, records: int) -> None:
        d, blocks = self.directory[s], self._blocks[s]
        size = row_access.record_bytes(self._words, self._width)
        room = max(int(d[f.LOG_USED]) + records + 8, int(d[f.LOG_ROOM]) * 3 // 2, 256)
        if f.LOG in blocks:
            self._grow(s, f.LOG, room * size)
        else:
            blocks[f.LOG] = Block(room * size)
            d[f.LOG] = blocks[f.LOG].address
        d[f.LOG_ROOM] = room

    # Keys without a row -----------------------------------------------------------------------------------------------

    @property
    def sightings(self) -> list[Words]:
        """Returns each shard's counted keys without a row; empty without counts. No other thread may use the table."""
        if not self._candidate_slots:
            return []
        used = self.directory[:-1, f.CANDIDATES_USED].copy()
        return [used, *(blocks[f.CANDIDATES].words for blocks in self._blocks)]

    @sightings.setter
    def sightings(self, sightings: Sequence[Words]) -> None:
        if sightings:
            self.directory[:-1, f.CANDIDATES_USED] = sightings[0]
        for blocks, words in zip(self._blocks, sightings[1:], strict=False):
            blocks[f.CANDIDATES].words = words

    # Removal of rows --------------------------------------------------------------------------------------------------

    def uses(self, d: Words) -> tuple[Words, Words, Words]:
        """Returns the rows in use of a locked shard, their numbers of uses, and the steps of the last ones."""
        meta = shard_kernels.read_meta(d, self._words, int(d[f.ROWS]))
        counts = (meta[:, 1] >> f.COUNT_SHIFT) & f.COUNT_MASK
        rows = np.flatnonzero(counts)
        return rows, counts[rows], (meta[rows, 1] >> f.STEP_SHIFT) & 0xFFFFFFFF

    def uses_of(self, s: int, rows: Words) -> tuple[Words, Words]:
        """Returns the numbers of uses of rows of a locked shard (0 for a free one), and the steps of the last ones."""
        use = shard_kernels.read_uses(self.directory[s], self._words, rows)
        return (use >> f.COUNT_SHIFT) & f.COUNT_MASK, (use >> f.STEP_SHIFT) & 0xFFFFFFFF

    def remove(self, s: int, rows: Words) -> None:
        """Removes rows of a shard that this thread has locked."""
        d, blocks = self.directory[s], self._blocks[s]
        if self.on_remove is not None:
            self.on_remove(shard_kernels.read_keys(d, self._words, rows))
        if d[f.SAVING] and int(d[f.LOG_USED]) + len(rows) + 3 > int(d[f.LOG_ROOM]):
            self._grow_log(s, len(rows))
        if f.REMOVED in blocks and int(d[f.REMOVED_USED]) + len(rows) > int(d[f.REMOVED_CAPACITY]):
            room = int(d[f.REMOVED_USED]) + len(rows) + int(d[f.REMOVED_CAPACITY]) // 2
            self._grow(s, f.REMOVED, room * 2 * _WORD)
            d[f.REMOVED_CAPACITY] = room
        shard_kernels.remove(self.directory, s, self._shape, rows)

    def record_removed_keys(self) -> None:
        """Records the keys of removed rows from now on, for the next delta. All shards must be locked."""
        for s, blocks in enumerate(self._blocks):
            if f.REMOVED not in blocks:
                blocks[f.REMOVED] = Block(1)
                self.directory[s, f.REMOVED] = blocks[f.REMOVED].address
                self.directory[s, f.REMOVED_CAPACITY] = blocks[f.REMOVED].nbytes // (2 * _WORD)

    # Saving -----------------------------------------------------------------------------------------------------------

    def start_saving(self, what: int) -> tuple[list[int], Words]:
        """Starts a save of the rows as they are now. No other thread may use the table during this call.

        Returns:
          For each shard the row after its last one; and the keys removed since the last save, [n, 2].
        """
        gone: list[NDArray[np.int64]] = []
        for s in range(self._count):
            d = self.directory[s]
            gone.append(shard_kernels.read_gone(d))
            d[f.REMOVED_USED] = 0
            # Invert the meaning of the "saved" bit: so no row counts as saved, without a pass over all rows.
            d[f.PARITY] = 1 - d[f.PARITY]
            d[f.SAVING] = what
            d[f.LOG_USED] = 0
        self.record_removed_keys()
        return [int(rows) for rows in self.directory[:-1, f.ROWS]], np.concatenate(gone)

    def saved_rows(self, s: int, last: int, chunk: int) -> Generator[tuple[Words, NDArray[np.float32]]]:
        """Yields the rows of a shard to save, at most ``chunk`` at once: words [n, words] and values [n, width]."""
        first = 0
        while first < last:
            meta = np.empty((chunk, self._words), np.int64)
            values = np.empty((chunk, self._width), np.float32)
            with self.locked(s) as d:
                # Rows that need not be saved are skipped quickly, but bound the time for which the lock is held.
                end = min(last, first + 16 * chunk)
                count, first = shard_kernels.save_rows(d, self._shape, first, end, meta, values)
            if count:
                yield meta[:count], values[:count]
        # All rows count as saved now, so the log no longer grows. It contains the rows that changed during the
        # save.
        done = 0
        while True:
            meta = np.empty((chunk, self._words), np.int64)
            values = np.empty((chunk, self._width), np.float32)
            with self.locked(s) as d:
                count = int(shard_kernels.read_log(d, self._shape, done, meta, values))
                if count == 0:
                    self._end_saving(s)
                    return
            done += count
            yield meta[:count], values[:count]

    def _end_saving(self, s: int) -> None:
        d = self.directory[s]
        d[f.SAVING] = 0
        d[f.LOG] = d[f.LOG_USED] = d[f.LOG_ROOM] = 0
        log = self._blocks[s].pop(f.LOG, None)
        if log is not None:
            log.close()

    def stop_saving(self, chunk: int) -> None:
        """Abandons a save: remaining rows count as saved. These rows are read as for a save, because reading sets their
        "saved" bits."""
        for s in range(self._count):
            with self.locked(s) as d:
                saving, rows = int(d[f.SAVING]), int(d[f.ROWS])
            if saving:
                for _ in self.saved_rows(s, rows, chunk):
                    pass

    # Status -----------------------------------------------------------------------------------------------------------

    def counter(self, field: int) -> int:
        """Returns a counter's sum over all shards."""
        return int(self.directory[:-1, field].sum())

    def nbytes(self, fields: Sequence[int]) -> int:
        """Returns the size of the mappings of these fields in all shards, in bytes."""
        return sum(block.nbytes for blocks in self._blocks for field, block in blocks.items() if field in fields)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.directory[self._count, 0])
