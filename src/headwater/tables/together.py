"""Lookups and updates of several tables in one compiled call.

For many small tables, the overhead of calls (arguments, Python's locks) exceeds the work on rows. Keys and rows are
concatenated in flat arrays, table by table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import numpy as np

from headwater.tables import fields as f
from headwater.tables import kernels, row_access
from headwater.tables.compiled import Matrix, Reals, Words

if TYPE_CHECKING:
    from headwater.tables.table import Table


@contextmanager
def inside(tables: Sequence[Table]) -> Generator[None]:
    """Context manager for shared access to tables. All threads enter the gates in one order, to avoid deadlocks."""
    gates = [table.gate for table in sorted(set(tables), key=id)]
    entered = 0
    try:
        for gate in gates:
            gate.enter()
            entered += 1
        for table in tables:
            table.require_open()
        yield
    finally:
        for gate in gates[:entered]:
            gate.exit()


def look_up(tables: Sequence[Table], words: Words, checks: Words, counts: Sequence[int], *, training: bool) -> Reals:
    """Looks up rows of several tables, see `headwater.tables.Table.look_up`.

    Args:
      tables: the tables.
      words: the first words of the keys, table by table, ``[n]``.
      checks: the second words, ``[n]``; ``[0]`` if no table has string keys.
      counts: the number of keys of each table.
      training: as for `headwater.tables.Table.look_up`.

    Returns:
      The numbers of all rows, table by table, flat.
    """
    with inside(tables):
        return look_up_inside(tables, words, checks, counts, [table.step for table in tables], training)


def look_up_inside(
    tables: Sequence[Table], words: Words, checks: Words, counts: Sequence[int], steps: Sequence[int], training: bool
) -> Reals:
    """Looks up rows as `look_up` does, for a caller inside the gates; ``steps`` may be earlier steps."""
    out = np.empty(sum(count * table.config.dim for table, count in zip(tables, counts, strict=True)), np.float32)
    handles, ends = _handles(tables, steps), np.cumsum(counts, dtype=np.int64)

    def call(order: Words, cursor: Words, stop: Words) -> int:
        return kernels.look_up(handles, words, checks, ends, order, cursor, stop, training, out)

    finish(tables, words, ends, call)
    return out


def apply(tables: Sequence[Table], words: Words, checks: Words, counts: Sequence[int], gradients: Reals) -> None:
    """Performs one update of several tables.

    Args:
      tables, words, checks, counts: as for `look_up`; the keys of a table are distinct.
      gradients: the gradients of all keys in one flat array; all numbers are finite.
    """
    with inside(tables):
        handles, ends = _handles(tables, [table.count_update() for table in tables]), np.cumsum(counts, dtype=np.int64)

        def call(order: Words, cursor: Words, stop: Words) -> int:
            return kernels.update(handles, words, checks, ends, order, cursor, stop, gradients.reshape(-1))

        finish(tables, words, ends, call)


def _handles(tables: Sequence[Table], steps: Sequence[int]) -> Matrix[np.int64]:
    handles = np.concatenate([table.handle for table in tables]).reshape(-1, row_access.HANDLE_SIZE)
    handles[:, row_access.STEP] = steps
    return handles


def finish(tables: Sequence[Table], words: Words, ends: Words, call: Callable[[Words, Words, Words], int]) -> None:
    """Repeats a call until it is done, and provides the room that it needs in between.

    Args:
      tables: the tables of the call.
      words: the keys.
      ends: the end of each table's keys.
      call: called with the results of `headwater.tables.kernels.by_shard`.
    """
    shards = np.array([len(table.shards) for table in tables], np.int64)
    order, cursor, stop = kernels.by_shard(words, ends, shards)
    before = -1
    while result := call(order, cursor, stop):
        status, number = kernels.needed(result)
        if status == f.BUSY:
            # Other threads hold locks. If this call has made progress, repeat it immediately; otherwise let these
            # threads run.
            remaining = int((stop - cursor).sum())
            if remaining == before:
                os.sched_yield()
            before = remaining
            continue
        # No lock is held here, so this thread may allocate memory and evict rows.
        table, slot = tables[number], int(shards[:number].sum())
        mine = slice(slot, slot + len(table.shards))
        waiting = np.flatnonzero(cursor[mine] < stop[mine])
        if status == f.FULL:
            table.make_space(words, int(order[cursor[mine][waiting[0]]]), int((stop - cursor)[mine].sum()))
            continue
        for s in cast(Sequence[int], waiting.tolist()):
            if status == f.LOG_FULL:
                table.shards.grow_log(s)
            else:
                table.shards.grow(s)
