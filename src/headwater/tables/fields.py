"""What a shard's entry in a table's directory says: a row of words, one for each name here.

The directory is all that compiled functions get of a table's memory. An entry is a whole number of a cache's lines, so
that shards do not disturb each other.
"""

from __future__ import annotations

from typing import Final

#: 1 while a thread uses the shard.
LOCK: Final = 0

#: Address, number of slots, and how far left of a slot's row its tag is. A slot is 0, or 1 + its row with the tag.
INDEX: Final = 8
SLOTS: Final = 9
SHIFT: Final = 10
#: Addresses: key, use (and second word of the key) by row; records of rows in memory; records of rows in a file.
META: Final = 11
VALUES: Final = 12
COLD: Final = 13
#: Rows below this one are in memory, the others in a file.
HOT: Final = 14
#: Rows that were ever in use; rows for which there is memory; first free row below ROWS, or -1; rows in use.
ROWS: Final = 15
CAPACITY: Final = 16
FREE: Final = 17
LIVE: Final = 18
#: Where the next search for a row to leave memory begins.
HAND: Final = 19
#: 0, or what is being saved: `ALL` or `CHANGED` rows; what the "saved" bit of rows is that need not be saved any more.
SAVING: Final = 20
PARITY: Final = 21
#: Rows as they were when saving began, which have changed or gone since: address, records, how many fit.
LOG: Final = 22
LOG_USED: Final = 23
LOG_ROOM: Final = 24
#: Keys that went since the last save: address, how many, how many fit.
GONE: Final = 25
GONE_USED: Final = 26
GONE_ROOM: Final = 27
#: Keys without a row that are counted: address, slots, how many.
CANDIDATES: Final = 28
CANDIDATE_SLOTS: Final = 29
CANDIDATES_USED: Final = 30
#: Counters: rows found in memory, rows found in the file, rows made, rows that went, lookups of keys not admitted,
#: gradients dropped since their key has no row.
HITS: Final = 32
MISSES: Final = 33
MADE: Final = 34
EVICTED: Final = 35
REFUSED: Final = 36
DROPPED: Final = 37

FIELDS: Final = 40

ALL: Final = 1
CHANGED: Final = 2

#: Bits of a row's use: whether it was saved, whether it has changed; then how often it was used (30 bits, 0: the row is
#: free), and at which step last (32 bits).
SAVED_BIT: Final = 1
CHANGED_BIT: Final = 2
COUNT_SHIFT: Final = 2
COUNT_MASK: Final = (1 << 30) - 1
STEP_SHIFT: Final = 32

#: What a compiled function returns that could not finish: a lock was taken, a shard needs room, its log needs room, or
#: the table has as many rows as it may have.
DONE: Final = 0
BUSY: Final = 1
GROW: Final = 2
LOG_FULL: Final = 3
FULL: Final = 4
