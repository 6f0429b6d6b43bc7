"""Fields of a shard's entry in a table's directory, which is a row of words.

Compiled functions access a table's memory through the directory only. An entry is a multiple of a cache line, to avoid
false sharing between shards.
"""

from __future__ import annotations

from typing import Final

#: 1 while a thread uses the shard.
LOCK: Final = 0

#: The index: address, number of slots, and the shift of the tag in a slot. A slot is 0, or 1 + its row with the tag.
INDEX: Final = 8
SLOTS: Final = 9
SHIFT: Final = 10
#: Addresses: key, use (and second word of the key) by row; records of rows in memory; records of rows in a file.
META: Final = 11
VALUES: Final = 12
COLD: Final = 13
#: Rows below this one are in memory, all further rows in a file.
HOT: Final = 14
#: Number of rows ever used; rows for which there is memory; first free row below ROWS, or -1; rows in use.
ROWS: Final = 15
CAPACITY: Final = 16
FREE: Final = 17
LIVE: Final = 18
#: The row after which the next search for a row to be moved to the file begins.
SEARCH_START: Final = 19
#: The rows being saved: 0, `ALL` or `CHANGED`; and the value of the "saved" bit of rows that are already saved.
SAVING: Final = 20
PARITY: Final = 21
#: The log of rows that were changed or removed while a save was running, as they were when it began: address, number of
#: records, capacity.
LOG: Final = 22
LOG_USED: Final = 23
LOG_ROOM: Final = 24
#: Keys removed since the last save: address, number, capacity.
REMOVED: Final = 25
REMOVED_USED: Final = 26
REMOVED_CAPACITY: Final = 27
#: Counted keys without a row: address, slots, number.
CANDIDATES: Final = 28
CANDIDATE_SLOTS: Final = 29
CANDIDATES_USED: Final = 30
#: Counters: rows found in memory, rows found in the file, rows made, rows evicted, lookups of keys not admitted,
#: gradients dropped because their key has no row.
HITS: Final = 32
MISSES: Final = 33
CREATED: Final = 34
EVICTED: Final = 35
REFUSED: Final = 36
DROPPED: Final = 37

FIELDS: Final = 40

ALL: Final = 1
CHANGED: Final = 2

#: Bits of a row's use: whether it was saved, whether it has changed; then the number of uses (30 bits, 0: the row is
#: free), and the step of the last one (32 bits).
SAVED_BIT: Final = 1
CHANGED_BIT: Final = 2
COUNT_SHIFT: Final = 2
COUNT_MASK: Final = (1 << 30) - 1
STEP_SHIFT: Final = 32

#: Results of compiled functions: done; or the reason why they could not finish, which is that a lock is held, that a
#: shard or its log needs more memory, or that the table has its maximum number of rows.
DONE: Final = 0
BUSY: Final = 1
GROW: Final = 2
LOG_FULL: Final = 3
FULL: Final = 4
